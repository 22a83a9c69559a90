"""How graph ops write their properties: `{axis = 1, axes = [0, 2], shape = [n, 3], keep}`.

Integers, lists of integers and dims stand without the names of their attributes; these are read too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

from dlcb.dialects.graph.types import DimsAttr, dims_attr

T = TypeVar("T")


def print_properties(
    printer: Printer, properties: Mapping[str, Attribute], attributes: Mapping[str, Attribute]
) -> None:
    if not properties and not attributes:
        return
    printer.print_string(" {")
    entries = [(name, value, True) for name, value in properties.items()]
    entries += [(name, value, False) for name, value in attributes.items()]
    printer.print_list(entries, lambda entry: _print_entry(printer, *entry))
    printer.print_string("}")


def _print_entry(printer: Printer, name: str, value: Attribute, short: bool) -> None:
    printer.print_identifier_or_string_literal(name)
    if isinstance(value, UnitAttr):
        return
    text = _short_text(value) if short else None
    printer.print_string(" = ")
    if text is None:
        printer.print_attribute(value)
    else:
        printer.print_string(text)


def _short_text(value: Attribute) -> str | None:
    match value:
        case IntAttr():
            return str(value.data)
        case DimsAttr():
            return f"[{', '.join(map(str, value.dims))}]"
        case ArrayAttr():
            if not all(isinstance(v, IntAttr) for v in value):
                return None
            return f"[{', '.join(str(cast(IntAttr, v).data) for v in value)}]"
        case _:
            return None


def parse_properties(parser: Parser, kind: type[IRDLOperation]) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """The properties of an op of that class, and its other attributes."""
    properties: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    bases = _property_bases(kind)

    def one() -> None:
        name = parser.parse_optional_identifier() or parser.parse_str_literal("the name of an attribute")
        if name in properties or name in attributes:
            parser.raise_error(f"'{name}' is given twice")
        base = bases.get(name)
        value = UnitAttr() if parser.parse_optional_punctuation("=") is None else _parse_value(parser, base)
        (attributes if base is None else properties)[name] = value

    if parser.parse_optional_punctuation("{") is not None:
        _rest_of_list(parser, one, "}")
    return properties, attributes


def _parse_value(parser: Parser, base: type[Attribute] | None) -> Attribute:
    if base is IntAttr:
        return _parse_number(parser)
    if base in (DimsAttr, ArrayAttr) and parser.parse_optional_punctuation("[") is not None:
        if base is DimsAttr:
            return dims_attr(tuple(_rest_of_list(parser, lambda: _parse_dim(parser), "]")))
        return ArrayAttr(_rest_of_list(parser, lambda: _parse_number(parser), "]"))
    return parser.parse_attribute()


def _parse_number(parser: Parser) -> Attribute:
    number = parser.parse_optional_integer(allow_boolean=False)
    return parser.parse_attribute() if number is None else IntAttr(number)


def _parse_dim(parser: Parser) -> int | str:
    number = parser.parse_optional_integer(allow_boolean=False)
    return parser.parse_identifier("a dim: an integer or the name of a symbol") if number is None else number


def _rest_of_list(parser: Parser, one: Callable[[], T], end: str) -> list[T]:
    """The elements up to the closing bracket; the opening one has been read."""
    found: list[T] = []
    if parser.parse_optional_characters(end) is not None:
        return found
    found.append(one())
    while parser.parse_optional_punctuation(",") is not None:
        found.append(one())
    parser.parse_characters(end)
    return found


@cache
def _property_bases(kind: type[IRDLOperation]) -> dict[str, type[Attribute]]:
    """The class of each property; `Attribute` where it may be several."""
    bases: dict[str, type[Attribute]] = {}
    for name, definition in kind.get_irdl_definition().properties.items():
        found = definition.constr.get_bases()
        bases[name] = next(iter(found)) if found is not None and len(found) == 1 else Attribute
    return bases
