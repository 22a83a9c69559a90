"""Parsing and printing that ops of `dlcb.cuda` share. Operands are written without types: they are defined before."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer


def parse_value(parser: Parser) -> SSAValue:
    """A value that is defined before; its type is that of its definition."""
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name)
    if values is None or operand.index >= len(values):
        parser.raise_error(f"%{operand.operand_name} is used before its definition", operand.span)
    return values[operand.index]


def parse_values(parser: Parser) -> list[SSAValue]:
    """One value or more, separated by commas."""
    values = [parse_value(parser)]
    while parser.parse_optional_punctuation(","):
        values.append(parse_value(parser))
    return values


def print_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    printer.print_string(" ")
    printer.print_list(values, printer.print_operand)


def parse_index(parser: Parser) -> SSAValue:
    """`[%index]`"""
    parser.parse_punctuation("[")
    index = parse_value(parser)
    parser.parse_punctuation("]")
    return index


def print_index(printer: Printer, index: SSAValue) -> None:
    printer.print_string("[")
    printer.print_operand(index)
    printer.print_string("]")


def parse_element(parser: Parser) -> tuple[SSAValue, SSAValue]:
    """`%array[%index]`"""
    return parse_value(parser), parse_index(parser)


def print_element(printer: Printer, array: SSAValue, index: SSAValue) -> None:
    printer.print_operand(array)
    print_index(printer, index)


def parse_result_types(parser: Parser) -> list[Attribute]:
    """`: i32, i32`, or nothing where there are no results."""
    if not parser.parse_optional_punctuation(":"):
        return []
    return parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)


def print_result_types(printer: Printer, types: Sequence[Attribute]) -> None:
    if types:
        printer.print_string(" : ")
        printer.print_list(types, printer.print_attribute)


def parse_flags(parser: Parser, names: Sequence[str]) -> dict[str, Attribute]:
    """Unit attributes that are written as plain words, in the order of `names`."""
    return {name: UnitAttr() for name in names if parser.parse_optional_keyword(name) is not None}


def print_flags(printer: Printer, flags: dict[str, bool]) -> None:
    for name, present in flags.items():
        if present:
            printer.print_string(f" {name}")


def parse_attributes(parser: Parser) -> dict[str, Attribute]:
    """What stands in `attributes {…}`: anything that is not the op's own."""
    attributes = parser.parse_optional_attr_dict_with_keyword()
    return {} if attributes is None else dict(attributes.data)


def print_attributes(printer: Printer, attributes: dict[str, Attribute]) -> None:
    if attributes:
        printer.print_op_attributes(attributes, print_keyword=True)


def parse_body(parser: Parser, arguments: Sequence[Parser.Argument] = ()) -> Region:
    """A region of one block; `{}` is an empty block."""
    body = parser.parse_region(arguments)
    if not body.blocks:
        body.add_block(Block())
    return body


def print_body(printer: Printer, body: Region) -> None:
    printer.print_string(" ")
    printer.print_region(body, print_entry_block_args=False, print_empty_block=False)
