"""Tensors laid one after the other: concatenation, stacks, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import ConcatOp, product
from dlcb.dialects.shape.expr import Expr, ExprLike, add, const, maximum, mod, sub
from dlcb.dialects.types import i1
from dlcb.frontend.aten import views
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.padding import pad
from dlcb.frontend.aten.table import Table, several
from dlcb.frontend.aten.views import flatten

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def concat(i: Builder, parts: Sequence[SSAValue], axis: int) -> SSAValue:
    element = i.element
    parts = [i.cast(p, element) for p in parts]
    return parts[0] if len(parts) == 1 else i.make(ConcatOp, parts, element, axis=IntAttr(axis))


@TABLE.handles("cat")
def cat(i: Builder, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    """Old torch lets an empty tensor of rank 1 stand among others."""
    rank = max(map(rank_of, tensors))
    empty = [p for p in tensors if rank_of(p) == 1 < rank]
    for part in empty:
        i.require("eq", i.sizes(part)[0], 0, "a part of rank 1 is not empty")
    return concat(i, [p for p in tensors if p not in empty], i.axis(dim, rank))


@TABLE.handles("stack")
def stack(i: Builder, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    axis = i.axis(dim, rank_of(tensors[0]) + 1)
    return concat(i, [i.unsqueeze(p, axis) for p in tensors], axis)


def _enter_stacks() -> None:
    """Parts of at least some rank, joined along one dim."""
    for name, least, axis in (("vstack", 2, 0), ("dstack", 3, 2), ("hstack", 1, 1)):

        @TABLE.handles(name)
        def joined(i: Builder, tensors: Sequence[SSAValue], least: int = least, axis: int = axis) -> SSAValue:
            parts = [views.TABLE[f"atleast_{least}d"](i, part) for part in tensors]
            return concat(i, parts, min(axis, rank_of(parts[0]) - 1))


_enter_stacks()
TABLE["row_stack"] = TABLE["vstack"]


@TABLE.handles("column_stack")
def column_stack(i: Builder, tensors: Sequence[SSAValue]) -> SSAValue:
    columns = [p if rank_of(p) > 1 else i.reshape(p, (product(i.sizes(p)), 1)) for p in tensors]
    return concat(i, columns, 1)


@TABLE.handles("block_diag")
def block_diag(i: Builder, tensors: Sequence[SSAValue]) -> SSAValue:
    """Each matrix among as many columns of zeros as the others have."""
    parts = [views.TABLE["atleast_2d"](i, part) for part in tensors]
    widths = [i.sizes(part)[1] for part in parts]
    rows: list[SSAValue] = []
    for at, part in enumerate(parts):
        before, after = (sum_of(sizes) for sizes in (widths[:at], widths[at + 1 :]))
        rows.append(pad(i, i.cast(part, i.element), (_plain(before), _plain(after))))
    return concat(i, rows, 0)


def sum_of(sizes: Sequence[Expr]) -> Expr:
    total = const(0)
    for size in sizes:
        total = add(total, size)
    return total


def _plain(size: Expr) -> ExprLike:
    return size if size.value is None else size.value


@TABLE.handles("roll")
def roll(i: Builder, self: SSAValue, shifts: Any, dims: Any = ()) -> SSAValue:
    if dims == ():
        sizes = i.sizes(self)
        return i.reshape(roll(i, flatten(i, self), shifts, 0), sizes)
    for amount, dim in zip(several(shifts), several(dims), strict=True):
        self = _rolled(i, self, amount, i.axis(dim, rank_of(self)))
    return self


def _rolled(i: Builder, self: SSAValue, amount: Any, axis: int) -> SSAValue:
    whole = i.sizes(self)[axis]
    cut = mod(sub(0, amount), maximum(whole, 1))
    if cut.value == 0:
        return self
    tail, head = i.slice(self, axis, cut, sub(whole, cut)), i.slice(self, axis, 0, cut)
    return concat(i, [tail, head], axis)


@TABLE.handles("diff")
def diff(
    i: Builder,
    self: SSAValue,
    n: int = 1,
    dim: int = -1,
    prepend: SSAValue | None = None,
    append: SSAValue | None = None,
) -> SSAValue:
    axis = i.axis(dim, rank_of(self))
    if n == 0:
        return self
    whole = concat(i, [v for v in (prepend, self, append) if v is not None], axis)
    for _ in range(n):
        size = maximum(sub(i.sizes(whole)[axis], 1), 0)
        name = "xor" if i.element == i1 else "sub"
        whole = i.call(name, i.slice(whole, axis, 1, size), i.slice(whole, axis, 0, size))
    return whole
