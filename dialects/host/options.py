"""Options of library calls, in Python and as attributes: truth values, i64 integers, f64 floats, strings, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, BoolAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from dlcb.dialects.types import f64, i1, i64
from dlcb.errors import InternalError

Option: TypeAlias = "int | float | bool | str | Sequence[Option]"


def options_to_attribute(options: Mapping[str, Option]) -> DictionaryAttr:
    return DictionaryAttr({name: _option(value) for name, value in options.items()})


def _option(value: Option) -> Attribute:
    if isinstance(value, (bool, int, float, str)):
        return _single_option(value)
    return ArrayAttr([_option(v) for v in value])


@lru_cache(maxsize=1024, typed=True)
def _single_option(value: int | float | bool | str) -> Attribute:
    match value:
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)


def attribute_to_options(attribute: DictionaryAttr) -> dict[str, Option]:
    return {name: _value(value) for name, value in attribute.data.items()}


def _value(attribute: Attribute) -> Option:
    match attribute:
        case IntegerAttr():
            return bool(attribute.value.data) if attribute.type == i1 else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case ArrayAttr():
            return [_value(a) for a in attribute.data]  # pyright: ignore
        case _:
            raise InternalError(f"library option: expected a number, a truth value, a text or a list, got {attribute}")
