"""Elements that must be right."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.irdl import AnyAttr, VarConstraint, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.coord.ops import CoordOp
from dlcb.dialects.types import INTEGERS, i1, index


@irdl_op_definition
class CheckOp(CoordOp):
    """The operand itself: `check 0 %value if %holds of %size : i64`. Where `holds` is false, the launch fails with the
    failure of that number among those of the launch, which names the value and the size; what the kernel stores is not
    to be used then. Made where its result is needed, so it is pure."""

    name = "dlcb.coord.check"
    T: ClassVar = VarConstraint("T", AnyAttr())
    number = prop_def(IntAttr)
    value = operand_def(T)
    holds = operand_def(i1)
    size = operand_def(index)
    res = result_def(T)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if self.number.data < 0:
            raise VerifyException(f"{self.name}: number is {self.number.data}, expected 0 or more")
        if self.value.type not in INTEGERS:
            raise VerifyException(f"{self.name}: value is {self.value.type}, expected an integer")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.number.data} ")
        printer.print_operand(self.value)
        printer.print_string(" if ")
        printer.print_operand(self.holds)
        printer.print_string(" of ")
        printer.print_operand(self.size)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.res.type)

    @classmethod
    def parse(cls, parser: Parser) -> CheckOp:
        number = parser.parse_integer(allow_boolean=False)
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("if")
        holds = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        parser.parse_keyword("of")
        size = parser.resolve_operand(parser.parse_unresolved_operand(), index)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        element = parser.parse_type()
        return cls.create(
            operands=[parser.resolve_operand(value, element), holds, size],
            result_types=[element],
            properties={"number": IntAttr(number)},
            attributes=attributes,
        )
