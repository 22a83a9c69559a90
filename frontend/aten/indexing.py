"""Operations whose coordinates are elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.indexing import BoundedOp, GatherOp, PutOp, ScatterOp, TakeOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import Expr, as_expr, broadcast, const
from dlcb.dialects.types import i1, i64, ui8
from dlcb.frontend.aten.builder import Builder, Operand
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.spans import settled
from dlcb.frontend.aten.table import Table

TABLE = Table()
Properties = dict[str, Attribute]


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


UNCHECKED: Properties = {"unchecked": UnitAttr()}
"""Of indices that are in range by construction."""
_SETTLED: Properties = {**UNCHECKED, "nonnegative": UnitAttr()}


def checks(i: Builder, error: str = "IndexError", nonnegative: bool = False) -> Properties:
    """What the operation demands of its indices; `error` is the class of error that eager raises."""
    properties: Properties = {"call": StringAttr(i.op)}
    if error != "IndexError":
        properties["error"] = StringAttr(error)
    return properties | ({"nonnegative": UnitAttr()} if nonnegative else {})


def _demands(
    i: Builder, indices: SSAValue, axis: int, extent: Expr, demands: Properties, sizes: Sequence[Expr]
) -> Properties:
    """What is left to demand where sizes may tell that the indices are in range; `sizes`: one of 0 means that none is
    used."""
    return demands if demands is UNCHECKED or not settled(i, indices, axis, extent, sizes) else _SETTLED


def take(i: Builder, data: SSAValue, indices: SSAValue, axis: int, demands: Properties) -> SSAValue:
    sizes = i.sizes(data)
    used = (*sizes[:axis], *sizes[axis + 1 :], *i.sizes(indices))
    demands = _demands(i, indices, axis, sizes[axis], demands, used)
    return i.make(TakeOp, [data, indices], i.like(data), axis=IntAttr(axis), **demands)


def gather_at(i: Builder, data: SSAValue, axis: int, indices: SSAValue, demands: Properties) -> SSAValue:
    demands = _demands(i, indices, axis, i.sizes(data)[axis], demands, i.sizes(indices))
    return i.make(GatherOp, [data, indices], i.like(data), axis=IntAttr(axis), **demands)


def bounded(
    i: Builder, index: SSAValue, axis: int, size: Expr, demands: Properties, sizes: Sequence[Expr] = ()
) -> SSAValue:
    """The index as a number in [0, size), the size of dim `axis`. Where one of its own sizes is 0, or of `sizes`, it is
    not used."""
    if settled(i, index, axis, size, (*i.sizes(index), *sizes)):
        return index
    return i.make(BoundedOp, [index], i64, axis=IntAttr(axis), extent=i.dims_attr((size,)), **demands)


def _refuse_scalar(i: Builder, self: SSAValue) -> None:
    if rank_of(self) == 0:
        i.unsupported("indexing a tensor of rank 0")


@TABLE.handles("embedding")
def embedding(
    i: Builder,
    self: SSAValue,
    indices: SSAValue,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> SSAValue:
    return take(i, self, indices, 0, checks(i, nonnegative=True))


@TABLE.handles("index_select")
def index_select(i: Builder, self: SSAValue, dim: int, index: SSAValue) -> SSAValue:
    _refuse_scalar(i, self)
    flat = i.reshape(index, (product(i.sizes(index)),))
    return take(i, self, flat, i.axis(dim, rank_of(self)), checks(i, nonnegative=True))


@TABLE.handles("gather")
def gather(i: Builder, self: SSAValue, dim: int, index: SSAValue, *, sparse_grad: bool = False) -> SSAValue:
    _refuse_scalar(i, self)
    return gather_at(i, self, i.axis(dim, rank_of(self)), index, checks(i, "RuntimeError", nonnegative=True))


class _Place:
    """Where index tensors stand: the indexed dims laid together as one, and one linear index tensor."""

    def __init__(self, i: Builder, self_: SSAValue, indices: Sequence[SSAValue | None]) -> None:
        rank = rank_of(self_)
        self.axes = [axis for axis, index in enumerate(indices) if index is not None]
        given = [index for index in indices if index is not None]
        if any(i.like(index) in (i1, ui8) for index in given):
            i.unsupported("indexing with a mask")
        first, last = self.axes[0], self.axes[-1]
        self.adjacent = self.axes == list(range(first, last + 1))
        kept = [axis for axis in range(rank) if axis not in self.axes]
        self.axis = first if self.adjacent else 0
        self.order = [*kept[: self.axis], *self.axes, *kept[self.axis :]]
        sizes = i.sizes(self_)
        self.inner = [sizes[axis] for axis in self.order]
        count = len(self.axes)
        self.merged = [
            *self.inner[: self.axis],
            product([sizes[a] for a in self.axes]),
            *self.inner[self.axis + count :],
        ]
        self.demands = checks(i) if len(given) == 1 else UNCHECKED
        self.index = given[0] if len(given) == 1 else _linear(i, given, self.axes, sizes)

    def together(self, i: Builder, value: SSAValue) -> SSAValue:
        return i.reshape(i.permute(value, self.order), self.merged)

    def apart(self, i: Builder, value: SSAValue) -> SSAValue:
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return i.permute(i.reshape(value, self.inner), inverse)


def _linear(i: Builder, indices: Sequence[SSAValue], axes: Sequence[int], sizes: Sequence[Expr]) -> SSAValue:
    """One index into dims laid together. Each index may count from its dim's end."""
    total: SSAValue | None = None
    used = [size for axis, size in enumerate(sizes) if axis not in axes]
    used += [size for index in indices for size in i.sizes(index)]
    for index, axis in zip(indices, axes, strict=True):
        at = bounded(i, index, axis, sizes[axis], checks(i), used)
        total = at if total is None else i.call("add", i.call("mul", total, sizes[axis], element=i64), at, element=i64)
    assert total is not None
    return total


@TABLE.handles("index")
def index(i: Builder, self: SSAValue, indices: Sequence[SSAValue | None]) -> SSAValue:
    place = _Place(i, self, indices)
    return take(i, place.together(i, self), place.index, place.axis, place.demands)


@TABLE.handles("index_put", "_unsafe_index_put")
def index_put(
    i: Builder, self: SSAValue, indices: Sequence[SSAValue | None], values: SSAValue, accumulate: bool = False
) -> SSAValue:
    if accumulate:
        i.unsupported("adding to places that may occur twice")
    place = _Place(i, self, indices)
    at = i.sizes(place.index)
    lead, rest = place.merged[: place.axis], place.merged[place.axis + 1 :]
    values = i.expand(i.cast(values, i.like(self)), (*lead, *at, *rest))
    flat = i.reshape(values, (*lead, product(at), *rest))
    index = i.reshape(place.index, (product(at),))
    return place.apart(i, put(i, place.together(i, self), index, flat, place.axis, place.demands))


def put(i: Builder, base: SSAValue, indices: SSAValue, src: SSAValue, axis: int, demands: Properties) -> SSAValue:
    demands = _demands(i, indices, axis, i.sizes(base)[axis], demands, i.sizes(src))
    return i.make(PutOp, [base, indices, src], i.like(base), axis=IntAttr(axis), **demands)


@TABLE.handles("scatter")
def scatter(
    i: Builder,
    self: SSAValue,
    dim: int,
    index: SSAValue,
    src: Operand | None = None,
    *,
    value: Operand | None = None,
    reduce: str | None = None,
) -> SSAValue:
    """Elements, or one number, at places along a dim. More elements than there are indices are not looked at."""
    src = value if src is None else src
    if reduce is not None or src is None:
        i.unsupported("adding to places that may occur twice")
    if rank_of(self) == 0:
        return i.reshape(scatter(i, *(_as_row(i, v) for v in (self, index)), src=_as_row(i, src)), ())
    sizes = i.sizes(index)
    if isinstance(src, SSAValue) and rank_of(src):
        for axis, size in enumerate(sizes):
            src = src if i.sizes(src)[axis] is size else i.slice(src, axis, 0, size)
        src = i.cast(src, i.like(self))
    else:
        number = i.cast(src, i.like(self)) if isinstance(src, SSAValue) else i.number(src, i.like(self))
        src = i.expand(number, sizes)
    axis = i.axis(dim, rank_of(self))
    demands = _demands(i, index, axis, i.sizes(self)[axis], checks(i, "RuntimeError", nonnegative=True), sizes)
    return i.make(ScatterOp, [self, index, src], i.like(self), axis=IntAttr(axis), **demands)


def _as_row(i: Builder, value: Any) -> Any:
    return i.reshape(cast(SSAValue, value), (1,)) if isinstance(value, SSAValue) else value


@TABLE.handles("take")
def take_flat(i: Builder, self: SSAValue, index: SSAValue) -> SSAValue:
    return take(i, i.reshape(self, (product(i.sizes(self)),)), index, 0, checks(i))


@TABLE.handles("one_hot")
def one_hot(i: Builder, self: SSAValue, num_classes: Any = -1) -> SSAValue:
    if not isinstance(num_classes, Expr) and num_classes < 0:
        i.unsupported("the number of classes depends on elements")
    rank = rank_of(self)
    demands = checks(i, "RuntimeError", nonnegative=True)
    at = i.unsqueeze(bounded(i, self, rank, as_expr(num_classes), demands), rank)
    return i.cast(i.call("eq", at, iota(i, num_classes), element=i1), i.element)


@TABLE.handles("index_copy")
def index_copy(i: Builder, self: SSAValue, dim: int, index: SSAValue, source: SSAValue) -> SSAValue:
    _refuse_scalar(i, self)
    flat = i.reshape(index, (product(i.sizes(index)),))
    source = i.cast(source, i.like(self))
    return put(i, self, flat, source, i.axis(dim, rank_of(self)), checks(i, nonnegative=True))


@TABLE.handles("index_fill")
def index_fill(i: Builder, self: SSAValue, dim: int, index: SSAValue, value: Operand) -> SSAValue:
    _refuse_scalar(i, self)
    axis = i.axis(dim, rank_of(self))
    sizes = list(i.sizes(self))
    sizes[axis] = product(i.sizes(index))
    number = i.cast(value, i.like(self)) if isinstance(value, SSAValue) else i.number(value, i.like(self))
    return put(i, self, i.reshape(index, (sizes[axis],)), i.expand(number, sizes), axis, checks(i))


@TABLE.handles("take_along_dim")
def take_along_dim(i: Builder, self: SSAValue, indices: SSAValue, dim: int | None = None) -> SSAValue:
    """Along a dim, indices count round and round it; among all elements they must be in range."""
    if dim is None:
        return gather(
            i, i.reshape(self, (product(i.sizes(self)),)), 0, i.reshape(indices, (product(i.sizes(indices)),))
        )
    axis = i.axis(dim, rank_of(self))
    wanted = [
        broadcast(a, b) if at != axis else const(0)
        for at, (a, b) in enumerate(zip(i.sizes(self), i.sizes(indices), strict=True))
    ]
    data = [i.sizes(self)[at] if at == axis else size for at, size in enumerate(wanted)]
    at_indices = [i.sizes(indices)[at] if at == axis else size for at, size in enumerate(wanted)]
    indices = i.call("mod", i.cast(indices, i64), i.sizes(self)[axis], element=i64)
    return gather_at(i, i.expand(self, data), axis, i.expand(indices, at_indices), UNCHECKED)
