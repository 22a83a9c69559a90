"""Weights that are computed from the model's own ones, by `@weights`, not in the graph.

`@weights` takes weights under their own names and returns what is derived from them. A function takes a derived weight
as an argument of kind `weight`; its attribute `dlcb.derived` says which result of `@weights` it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute

from dlcb.dialects.graph.structure import FuncOp

NAME: Final = "weights"
DERIVED: Final = "dlcb.derived"


def derived_numbers(func: FuncOp) -> Mapping[str, Attribute]:
    """The function's derived weights, with the attributes that number them."""
    known = func.attributes.get(DERIVED)
    return known.data if isinstance(known, DictionaryAttr) else {}


def derived_weights(func: FuncOp) -> dict[str, int]:
    """The function's derived weights, with the number of the result of `@weights` that each is."""
    numbers = derived_numbers(func)
    return {name: number.value.data for name, number in numbers.items() if isinstance(number, IntegerAttr)}
