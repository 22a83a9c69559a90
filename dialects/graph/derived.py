"""Weights that are computed from the model's own ones, by `@weights`, not in the graph.

`@weights` takes weights under their own names and returns what is derived from them. A function takes a derived weight
as an argument of kind `weight`; its attribute `dlcb.derived` says which result of `@weights` it is.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr

from dlcb.dialects.graph.structure import FuncOp

NAME: Final = "weights"
DERIVED: Final = "dlcb.derived"


def derived_weights(func: FuncOp) -> dict[str, int]:
    """The function's derived weights, with the number of the result of `@weights` that each is."""
    known = func.attributes.get(DERIVED)
    if not isinstance(known, DictionaryAttr):
        return {}
    return {name: number.value.data for name, number in known.data.items() if isinstance(number, IntegerAttr)}
