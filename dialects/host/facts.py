"""What a host program knows when it starts: sizes, strides, alignment of its inputs; integer arguments; constants."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import EqAttrConstraint, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.host.attributes import ArgumentAttr, InputAttr, IntegerArgumentAttr, WeightAttr
from dlcb.dialects.host.integers import HostOp
from dlcb.dialects.host.syntax import TENSOR
from dlcb.dialects.types import i1, index

MAX_ALIGNMENT = 16


class NamesArgument(HostOp):
    """An op that names an argument of the program."""

    traits = traits_def(Pure())
    ACCEPTS: ClassVar[tuple[type[ArgumentAttr], ...]]
    label = prop_def(StringAttr)

    def verify_against(self, arguments: dict[str, ArgumentAttr]) -> None:
        """Check the name, and what the op says about that argument, against the program's header."""
        argument = arguments.get(self.label.data)
        if argument is None:
            known = ", ".join(arguments) or "none"
            raise VerifyException(f"{self.name}: no argument '{self.label.data}'; the program's arguments are: {known}")
        if not isinstance(argument, self.ACCEPTS):
            wanted = " or ".join(a.KEYWORD for a in self.ACCEPTS)
            raise VerifyException(f"{self.name}: '{self.label.data}' is of kind {argument.KEYWORD}, expected {wanted}")


class _NumberedArgumentOp(NamesArgument):
    """Names an argument and a number: `size "x" 0`."""

    number = prop_def(IntAttr)
    RESULT_TYPE: ClassVar[Attribute] = index

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)
        printer.print_string(f" {self.number.data}")

    @classmethod
    def parse(cls, parser: Parser) -> _NumberedArgumentOp:
        label = StringAttr(parser.parse_str_literal())
        number = IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))
        return cls.create(result_types=[cls.RESULT_TYPE], properties={"label": label, "number": number})


class _DimOp(_NumberedArgumentOp):
    ACCEPTS: ClassVar[tuple[type[ArgumentAttr], ...]] = (InputAttr,)
    result = result_def(index)

    def verify_against(self, arguments: dict[str, ArgumentAttr]) -> None:
        super().verify_against(arguments)
        argument = arguments[self.label.data]
        if isinstance(argument, InputAttr) and self.number.data >= argument.rank.data:
            raise VerifyException(
                f"{self.name}: '{self.label.data}' has rank {argument.rank.data}, no dimension {self.number.data}"
            )


@irdl_op_definition
class SizeOp(_DimOp):
    """result = size of an input along a dimension: `dlcb.host.size "x" 0`."""

    name = "dlcb.host.size"


@irdl_op_definition
class StrideOp(_DimOp):
    """result = stride of an input along a dimension, in elements; where the size is 1, that of a contiguous tensor."""

    name = "dlcb.host.stride"


@irdl_op_definition
class AlignedOp(_NumberedArgumentOp):
    """result = whether the address is a multiple of so many bytes (1, 2, 4, 8, 16): `dlcb.host.aligned "x" 16`."""

    name = "dlcb.host.aligned"
    ACCEPTS: ClassVar[tuple[type[ArgumentAttr], ...]] = (InputAttr, WeightAttr)
    RESULT_TYPE: ClassVar[Attribute] = i1
    result = result_def(i1)

    def verify_(self) -> None:
        if self.number.data not in (1, 2, 4, 8, MAX_ALIGNMENT):
            raise VerifyException(f"{self.name}: bytes must be 1, 2, 4, 8 or 16, got {self.number.data}")


class _NamedArgumentOp(NamesArgument):
    RESULT_TYPE: ClassVar[Attribute] = TENSOR

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.label.data)

    @classmethod
    def parse(cls, parser: Parser) -> _NamedArgumentOp:
        return cls.create(result_types=[cls.RESULT_TYPE], properties={"label": StringAttr(parser.parse_str_literal())})


@irdl_op_definition
class IntegerOp(_NamedArgumentOp):
    """result = the integer argument of that name."""

    name = "dlcb.host.integer"
    ACCEPTS: ClassVar[tuple[type[ArgumentAttr], ...]] = (IntegerArgumentAttr,)
    RESULT_TYPE: ClassVar[Attribute] = index
    result = result_def(index)


@irdl_op_definition
class ArgumentOp(_NamedArgumentOp):
    """result = the input tensor of that name."""

    name = "dlcb.host.argument"
    ACCEPTS: ClassVar[tuple[type[ArgumentAttr], ...]] = (InputAttr,)
    result = result_def(TENSOR)


@irdl_op_definition
class WeightOp(_NamedArgumentOp):
    """result = the weight of that name."""

    name = "dlcb.host.weight"
    ACCEPTS: ClassVar[tuple[type[ArgumentAttr], ...]] = (WeightAttr,)
    result = result_def(TENSOR)


@irdl_op_definition
class ConstantOp(HostOp):
    """result = an integer, or a truth value: `constant 7`, `constant true`."""

    name = "dlcb.host.constant"
    traits = traits_def(Pure())
    value = prop_def(IntAttr)
    result = result_def(EqAttrConstraint(index) | EqAttrConstraint(i1))

    def verify_(self) -> None:
        if self.result.type == i1 and self.value.data not in (0, 1):
            raise VerifyException(f"{self.name}: a truth value is 0 or 1, got {self.value.data}")

    def print(self, printer: Printer) -> None:
        value = self.value.data
        printer.print_string(f" {value}" if self.result.type == index else " true" if value else " false")

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        truth = parser.parse_optional_boolean()
        value = parser.parse_integer(allow_boolean=False) if truth is None else int(truth)
        return cls.create(result_types=[index if truth is None else i1], properties={"value": IntAttr(value)})
