"""Padding, with a number or with elements of the tensor itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from dlcb.dialects.graph.creation import number_attr
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import PadOp
from dlcb.dialects.shape.expr import Expr, ExprLike, add, sub
from dlcb.dialects.types import i64, is_float
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.indexing import UNCHECKED, take
from dlcb.frontend.aten.table import Table

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


@TABLE.handles("pad", "constant_pad_nd")
def pad(i: Builder, self: SSAValue, pad: Sequence[Any], mode: Any = "constant", value: float | None = None) -> SSAValue:
    """Amounts in pairs, from the last dim on; a negative one cuts off."""
    if not isinstance(mode, str):
        mode, value = "constant", mode
    if mode != "constant":
        return _padded_with_own(i, self, pad, mode)
    sizes = i.sizes(self)
    low: list[ExprLike] = [0] * len(sizes)
    high: list[ExprLike] = [0] * len(sizes)
    for place in range(len(pad) // 2):
        axis = len(sizes) - 1 - place
        self, low[axis], high[axis] = _cut(i, self, axis, pad[2 * place], pad[2 * place + 1])
    if all(not isinstance(n, Expr) and n == 0 for n in (*low, *high)):
        return self
    fill = float(value or 0) if is_float(i.element) else int(value or 0)
    return i.make(PadOp, [self], i.element, low=i.dims_attr(low), high=i.dims_attr(high), value=number_attr(fill))


def _padded_with_own(i: Builder, self: SSAValue, pad: Sequence[Any], mode: str) -> SSAValue:
    """Padding with elements of the tensor itself; a negative amount cuts off."""
    if mode != "circular":
        i.require_elements(i.sizes(self)[rank_of(self) - len(pad) // 2 - 1 :], "an input")
    for place in range(len(pad) // 2):
        axis, low, high = rank_of(self) - 1 - place, pad[2 * place], pad[2 * place + 1]
        if mode == "circular":
            self, low, high = _cut(i, self, axis, low, high)
        size: Expr = i.sizes(self)[axis]
        _require_enough(i, size, low, high, mode)
        places = i.call("sub", iota(i, add(add(size, low), high)), low, element=i64)
        self = take(i, self, _own_places(i, places, size, mode), axis, UNCHECKED)
    return self


def _require_enough(i: Builder, size: Expr, low: ExprLike, high: ExprLike, mode: str) -> None:
    """No place is as far outside as the elements reach; something is left."""
    for amount in (low, high):
        if mode == "reflect":
            i.require("lt", amount, size, "as many elements of padding as there are")
        elif mode == "circular":
            i.require("le", amount, size, "more elements of padding than there are")
    if mode != "circular":
        i.require_elements([add(add(size, low), high)], "a result")


def _own_places(i: Builder, places: SSAValue, size: Expr, mode: str) -> SSAValue:
    """Which element stands at places that may lie outside of [0, size)."""
    last = sub(size, 1)
    match mode:
        case "circular":
            return i.call("mod", places, size, element=i64)
        case "replicate":
            return i.call("minimum", i.call("maximum", places, 0, element=i64), i.number(last, i64), element=i64)
        case "reflect":
            from_end = i.call("sub", i.number(last, i64), i.call("abs", places, element=i64), element=i64)
            return i.call("sub", i.number(last, i64), i.call("abs", from_end, element=i64), element=i64)
        case _:
            i.unsupported(f"padding of mode '{mode}'")


def _enter_own_padding(name: str, mode: str) -> None:
    for spatial in (1, 2, 3):

        @TABLE.handles(f"{name}{spatial}d")
        def own_padding(i: Builder, self: SSAValue, padding: Sequence[Any]) -> SSAValue:
            return _padded_with_own(i, self, padding, mode)


_enter_own_padding("reflection_pad", "reflect")
_enter_own_padding("replication_pad", "replicate")


def _cut(i: Builder, self: SSAValue, axis: int, low: Any, high: Any) -> tuple[SSAValue, ExprLike, ExprLike]:
    """Cut off what negative amounts say; what is left to add."""
    less = [n if i.traced(n) < 0 else 0 for n in (low, high)]
    for amount, negative in zip((low, high), less, strict=True):
        if isinstance(amount, Expr):
            i.require("le" if negative == 0 else "lt", *((0, amount) if negative == 0 else (amount, 0)), "padding")
    if any(not isinstance(n, int) or n != 0 for n in less):
        i.require("le", 0, add(i.sizes(self)[axis], add(less[0], less[1])), "more is cut off than there is")
        start = sub(0, less[0])
        self = i.slice(self, axis, start, add(i.sizes(self)[axis], add(less[0], less[1])))
    more_low, more_high = (0 if n != 0 else amount for amount, n in zip((low, high), less, strict=True))
    return self, more_low, more_high
