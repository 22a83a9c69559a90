"""Diagonals and windows of a tensor."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.reduce import SumOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import DiagonalOp, UnfoldOp, product
from dlcb.dialects.shape.expr import Expr, as_expr
from dlcb.dialects.types import i1, i64
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.padding import pad
from dlcb.frontend.aten.table import Table, spread

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


@TABLE.handles("diagonal")
def take_diagonal(i: Builder, self: SSAValue, offset: int = 0, dim1: int = 0, dim2: int = 1) -> SSAValue:
    rank = rank_of(self)
    attributes = {
        "offset": IntAttr(i.literal(offset, "the offset")),
        "first": IntAttr(i.axis(dim1, rank)),
        "second": IntAttr(i.axis(dim2, rank)),
    }
    return i.make(DiagonalOp, [self], i.like(self), **attributes)


@TABLE.handles("linalg_diagonal")
def last_diagonal(i: Builder, self: SSAValue, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> SSAValue:
    return take_diagonal(i, self, offset, dim1, dim2)


@TABLE.handles("trace")
def trace(i: Builder, self: SSAValue) -> SSAValue:
    return i.reduce(SumOp, i.cast(take_diagonal(i, self), i.element), (0,), keep=False)


@TABLE.handles("diag_embed")
def diag_embed(i: Builder, self: SSAValue, offset: int = 0, dim1: int = -2, dim2: int = -1) -> SSAValue:
    """The last dim along a diagonal of two new dims, which stand at the places dim1 and dim2 of the result."""
    rank = rank_of(self) + 1
    first, second = i.axis(dim1, rank), i.axis(dim2, rank)
    shift = i.literal(offset, "the offset")
    padded = pad(i, self, (max(shift, 0), max(-shift, 0)))
    size: Expr = i.sizes(padded)[-1]
    row = i.call("add", i.reshape(iota(i, size), (size, 1)), shift, element=i64)
    on = i.call("eq", row, iota(i, size), element=i1)
    square = i.where(on, i.unsqueeze(padded, rank - 2), i.number(0, i.element))
    order = [*range(rank - 2)]
    for axis, place in sorted(((first, rank - 2), (second, rank - 1))):
        order.insert(axis, place)
    return i.permute(square, order)


@TABLE.handles("diag")
def diag(i: Builder, self: SSAValue, diagonal: int = 0) -> SSAValue:
    return (diag_embed if rank_of(self) == 1 else take_diagonal)(i, self, diagonal)


@TABLE.handles("unfold")
def unfold(i: Builder, self: SSAValue, dimension: int, size: Any, step: Any, dilation: int = 1) -> SSAValue:
    """All windows along a dim, each laid along a new last dim."""
    rank = rank_of(self)
    if rank == 0:
        return i.reshape(self, (1,))
    numbers = {"size": i.literal(size, "a window's size"), "step": i.literal(step, "the step"), "dilation": dilation}
    attributes = {name: IntAttr(number) for name, number in numbers.items()}
    return i.make(UnfoldOp, [self], i.like(self), axis=IntAttr(i.axis(dimension, rank)), **attributes)


@TABLE.handles("im2col")
def im2col(i: Builder, self: SSAValue, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> SSAValue:
    """[.., c, h, w] -> [.., c · kernel, positions]: the windows of an image as columns."""
    i.require_elements(i.sizes(self)[rank_of(self) - 3 :], "an image")
    kernel, dilations, pads, strides = (spread(v, 2) for v in (kernel_size, dilation, padding, stride))
    around = [n for p in reversed(pads) for n in (p, p)]
    rank = rank_of(self)
    windows = pad(i, self, around)
    for axis, k, d, s in zip((rank - 2, rank - 1), kernel, dilations, strides, strict=True):
        windows = unfold(i, windows, axis, k, s, d)
    *lead, channels, height, width, _, _ = i.sizes(windows)
    moved = i.permute(windows, [*range(rank - 2), rank, rank + 1, rank - 2, rank - 1])
    return i.reshape(moved, (*lead, product([channels, *map(as_expr, kernel)]), product([height, width])))
