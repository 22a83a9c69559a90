"""Ops of `dlcb.shape` on lists of sizes, which `require eq` compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.shape.ops import CalculationOp, SystemOp, parse_value, print_values
from dlcb.dialects.shape.types import ListType, length_of
from dlcb.dialects.types import index


@irdl_op_definition
class ListOp(CalculationOp):
    """The list of its operands: the sizes of a tensor, say."""

    name = "dlcb.shape.list"

    values = var_operand_def(index)
    result = result_def(ListType)
    traits = traits_def(Pure(), HasParent(SystemOp))

    @classmethod
    def make(cls, values: Sequence[SSAValue]) -> Self:
        return cls.create(operands=values, result_types=[ListType(IntAttr(len(values)))])

    def verify_(self) -> None:
        _verify_length(self, len(self.operands))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.make(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_value(parser)))

    def print(self, printer: Printer) -> None:
        printer.print_string(" [")
        print_values(printer, self.operands)
        printer.print_string("]")


@irdl_op_definition
class ConcatOp(CalculationOp):
    """One list after the other."""

    name = "dlcb.shape.concat"

    values = var_operand_def(ListType)
    result = result_def(ListType)
    traits = traits_def(Pure(), HasParent(SystemOp))

    @classmethod
    def make(cls, values: Sequence[SSAValue]) -> Self:
        return cls.create(operands=values, result_types=[ListType(IntAttr(sum(map(length_of, values))))])

    def verify_(self) -> None:
        if not self.operands:
            raise VerifyException("concat has no operands, expected at least 1")
        _verify_length(self, sum(map(length_of, self.operands)))


@irdl_op_definition
class PermuteOp(CalculationOp):
    """Element i of the result is element order[i] of the operand."""

    name = "dlcb.shape.permute"

    value = operand_def(ListType)
    order = prop_def(ArrayAttr[IntAttr])
    result = result_def(ListType)
    traits = traits_def(Pure(), HasParent(SystemOp))

    @classmethod
    def make_ordered(cls, value: SSAValue, order: Sequence[int]) -> Self:
        properties = {"order": ArrayAttr([IntAttr(place) for place in order])}
        return cls.create(operands=[value], properties=properties, result_types=[ListType(IntAttr(len(order)))])

    @property
    def places(self) -> list[int]:
        return [place.data for place in self.order.data]

    def verify_(self) -> None:
        length = length_of(self.operands[0])
        if sorted(self.places) != list(range(length)):
            raise VerifyException(f"{self.places} is no order of a list of {length}")
        _verify_length(self, length)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parse_value(parser)
        return cls.make_ordered(value, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self.operands)
        printer.print_string(f" {self.places}")


def _verify_length(op: CalculationOp, length: int) -> None:
    if length_of(op.results[0]) != length:
        raise VerifyException(f"the result is a list of {length_of(op.results[0])}, expected {length}")
