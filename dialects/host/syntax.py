"""How the parts of `dlcb.host` ops are written: operands with their fixed types, sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from dlcb.dialects.host.attributes import ArenaType, TensorType
from dlcb.dialects.types import i32, index

TENSOR = TensorType()
ARENA = ArenaType()


@lru_cache(maxsize=1024)
def segments(*sizes: int) -> DenseArrayBase:
    return DenseArrayBase.from_list(i32, sizes)


def parse_operand(parser: Parser, type: Attribute) -> SSAValue:
    return parser.resolve_operand(parser.parse_unresolved_operand(), type)


def parse_operands(parser: Parser, type: Attribute, delimiter: Parser.Delimiter) -> list[SSAValue]:
    return parser.parse_comma_separated_list(delimiter, lambda: parse_operand(parser, type))


def print_operands(printer: Printer, operands: Sequence[SSAValue], brackets: str = "[]") -> None:
    printer.print_string(brackets[0])
    printer.print_list(operands, printer.print_ssa_value)
    printer.print_string(brackets[1])


def parse_layout(parser: Parser) -> tuple[list[SSAValue], list[SSAValue]]:
    sizes = parse_operands(parser, index, parser.Delimiter.SQUARE)
    parser.parse_keyword("strides")
    return sizes, parse_operands(parser, index, parser.Delimiter.SQUARE)


def print_layout(printer: Printer, sizes: Sequence[SSAValue], strides: Sequence[SSAValue]) -> None:
    print_operands(printer, sizes)
    printer.print_string(" strides ")
    print_operands(printer, strides)
