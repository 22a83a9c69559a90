"""Types of `dlcb.cuda`: global memory, mutable registers, arrays of a thread and of a block.

Elements are those of `dialects/types.py`. In memory an i1 is one byte, 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.types import BYTES, NAMES


def _verify_element(name: str, element: Attribute) -> None:
    if element not in BYTES:
        raise VerifyException(f"{name}: element type {element} is none of {', '.join(NAMES)}")


class _ElementType(ParametrizedAttribute, TypeAttribute):
    """A type with one parameter, its element."""

    element: Attribute

    def verify(self) -> None:
        _verify_element(self.name, self.element)


class _ArrayType(ParametrizedAttribute, TypeAttribute):
    """A type of a fixed number of elements: `<f32, 4>`."""

    element: Attribute
    size: IntAttr

    def verify(self) -> None:
        _verify_element(self.name, self.element)
        if self.size.data < 1:
            raise VerifyException(f"{self.name}: size {self.size.data} is not at least 1")

    @property
    def bytes(self) -> int:
        return self.size.data * BYTES[self.element]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            parser.parse_punctuation(",")
            return element, IntAttr(parser.parse_integer(allow_boolean=False))

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            printer.print_string(f", {self.size.data}")


@irdl_attr_definition
class PtrType(_ElementType):
    """Global memory: elements in a row, from the address on."""

    name = "dlcb.cuda.ptr"


@irdl_attr_definition
class VarType(_ElementType):
    """A mutable register of a thread; it lives inside one phase."""

    name = "dlcb.cuda.var"


@irdl_attr_definition
class LocalType(_ArrayType):
    """An array of each thread, in registers where its indices are constants after unrolling; it lives across phases."""

    name = "dlcb.cuda.local"


@irdl_attr_definition
class SharedType(_ArrayType):
    """An array of the block; a barrier orders one thread's write before another thread's read."""

    name = "dlcb.cuda.shared"


@cache
def ptr(element: Attribute) -> PtrType:
    return PtrType.new((element,))


@cache
def var(element: Attribute) -> VarType:
    return VarType.new((element,))


@cache
def local(element: Attribute, size: int) -> LocalType:
    return LocalType.new((element, IntAttr(size)))


@cache
def shared(element: Attribute, size: int) -> SharedType:
    return SharedType.new((element, IntAttr(size)))
