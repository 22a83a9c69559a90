"""The type of `dlcb.shape` beside `index`: lists of sizes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class ListType(ParametrizedAttribute, TypeAttribute):
    """A list of so many sizes."""

    name = "dlcb.shape.list"

    length: IntAttr

    def verify(self) -> None:
        if self.length.data < 0:
            raise VerifyException(f"a list of {self.length.data} sizes")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer(allow_boolean=False))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.length.data))


def length_of(value: SSAValue) -> int:
    """Of a list."""
    assert isinstance(value.type, ListType)
    return value.type.length.data
