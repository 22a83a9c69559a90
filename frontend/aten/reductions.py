"""Reductions along whole dims: sums, extrema with their positions, truth; and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.composite import LogSoftmaxOp, SoftmaxOp
from dlcb.dialects.graph.elementwise import IsNanOp
from dlcb.dialects.graph.reduce import AllOp, AmaxOp, AminOp, AnyOp, MeanOp, PositionOp, ProdOp, Reduce, SumOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import compute_type, i1, i64, is_float
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table
from dlcb.passes.graph_builder import int_list

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def _reduced(i: Builder, kind: type[Reduce], self: SSAValue, dim: Any, keepdim: bool) -> SSAValue:
    return i.reduce(kind, self, i.axes(dim, rank_of(self)), keepdim, element=i.element)


def in_result_type(i: Builder, self: SSAValue) -> SSAValue:
    """A dtype that is asked for is that of the terms, too."""
    return self if i.like(self) == i.element else i.cast(self, i.element)


def without_axes(i: Builder, value: SSAValue, axes: Sequence[int], keepdim: bool) -> SSAValue:
    """A reduced value whose reduced dims were kept, as it is asked for."""
    if keepdim:
        return value
    return i.reshape(value, [s for axis, s in enumerate(i.sizes(value)) if axis not in axes])


# Sums


@TABLE.handles("sum")
def sum_(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    return _reduced(i, SumOp, in_result_type(i, self), dim, keepdim)


@TABLE.handles("mean")
def mean(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    return _reduced(i, MeanOp, in_result_type(i, self), dim, keepdim)


@TABLE.handles("prod")
def prod(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    return _reduced(i, ProdOp, in_result_type(i, self), dim, keepdim)


def _numbers(i: Builder, self: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Where the elements are numbers, and the elements with 0 elsewhere."""
    number = i.call("not", i.apply(IsNanOp, self, element=i1), element=i1)
    return number, i.where(number, self, i.number(0, i.like(self)), element=i.like(self))


@TABLE.handles("nansum")
def nansum(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    self = in_result_type(i, self)
    return _reduced(i, SumOp, _numbers(i, self)[1] if is_float(i.like(self)) else self, dim, keepdim)


@TABLE.handles("nanmean")
def nanmean(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    self, axes = in_result_type(i, self), i.axes(dim, rank_of(self))
    number, filled = _numbers(i, self)
    wide = compute_type(i.element)
    total, count = (i.reduce(SumOp, v, axes, keepdim, element=wide) for v in (filled, i.cast(number, wide)))
    return i.call("div", total, count)


@TABLE.handles("count_nonzero")
def count_nonzero(i: Builder, self: SSAValue, dim: Any = None) -> SSAValue:
    return _reduced(i, SumOp, i.cast(i.truth(self), i.element), dim, False)


# Truth


def _enter_truth(name: str, kind: type[Reduce]) -> None:
    @TABLE.handles(name)
    def truth(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
        """An empty list of dims means none of them, not all. Of bytes the result is a byte."""
        true = i.truth(self)
        return i.cast(true if dim == () else i.reduce(kind, true, i.axes(dim, rank_of(self)), keepdim), i.element)


_enter_truth("any", AnyOp)
_enter_truth("all", AllOp)


# Extrema


@TABLE.handles("amax")
def amax(i: Builder, self: SSAValue, dim: Any = (), keepdim: bool = False) -> SSAValue:
    return _reduced(i, AmaxOp, self, dim, keepdim)


@TABLE.handles("amin")
def amin(i: Builder, self: SSAValue, dim: Any = (), keepdim: bool = False) -> SSAValue:
    return _reduced(i, AminOp, self, dim, keepdim)


@TABLE.handles("aminmax")
def aminmax(i: Builder, self: SSAValue, *, dim: Any = None, keepdim: bool = False) -> tuple[SSAValue, SSAValue]:
    return _reduced(i, AminOp, self, dim, keepdim), _reduced(i, AmaxOp, self, dim, keepdim)


def _with_position(
    i: Builder, kind: type[Reduce], self: SSAValue, dim: Any, keepdim: bool
) -> tuple[SSAValue, SSAValue]:
    """An extremum, and the first place where it is found; NaN is one."""
    axes = i.axes(dim, rank_of(self))
    if not axes:
        return self, i.full((), 0, i64)
    best = i.reduce(kind, self, axes)
    properties: dict[str, Attribute] = {"keep": UnitAttr()} if keepdim else {}
    place = i.make(PositionOp, [self, best], i64, axes=int_list(axes), **properties)
    return without_axes(i, best, axes, keepdim), place


def _enter_extremum(name: str, kind: type[Reduce], elementwise: str) -> None:
    @TABLE.handles(name)
    def extremum(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False) -> Any:
        """Of a whole tensor, along a dim (values and positions), or of two tensors."""
        if isinstance(dim, SSAValue):
            return i.call(elementwise, self, cast(SSAValue, dim))
        if dim is None:
            return _reduced(i, kind, self, None, False)
        return _with_position(i, kind, self, dim, keepdim)

    @TABLE.handles(f"arg{name}")
    def position(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
        if i.like(self) == i1:
            i.unsupported("the position of truth values")
        return _with_position(i, kind, self, dim, keepdim)[1]


_enter_extremum("max", AmaxOp, "maximum")
_enter_extremum("min", AminOp, "minimum")


# Softmax


@TABLE.handles("softmax", "_softmax")
def softmax(i: Builder, self: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    return _along(i, SoftmaxOp, self, dim)


@TABLE.handles("_safe_softmax")
def safe_softmax(i: Builder, self: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    """A row without anything above -∞ becomes 0."""
    self = in_result_type(i, self)
    axes = i.axes(dim, rank_of(self))
    top = i.reduce(AmaxOp, self, axes, empty=True)
    return i.where(i.call("eq", top, -math.inf, element=i1), 0.0, softmax(i, self, dim))


@TABLE.handles("log_softmax", "_log_softmax")
def log_softmax(i: Builder, self: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    return _along(i, LogSoftmaxOp, self, dim)


def _along(i: Builder, kind: type[Any], self: SSAValue, dim: int) -> SSAValue:
    if rank_of(self) == 0:
        return i.reshape(_along(i, kind, i.reshape(self, (1,)), 0), ())
    return i.make(kind, [i.cast(self, i.element)], i.element, axis=IntAttr(i.axis(dim, rank_of(self))))


@TABLE.handles("logsumexp")
def logsumexp(i: Builder, self: SSAValue, dim: Any, keepdim: bool = False) -> SSAValue:
    """max + ln Σ e^(x - max); an infinite max is left out, for it is the answer."""
    axes, wide = i.axes(dim, rank_of(self)), compute_type(i.element)
    top = i.reduce(AmaxOp, i.cast(self, wide), axes, empty=True)
    finite = i.call("lt", i.call("abs", top, element=wide), math.inf, element=i1)
    top = i.where(finite, top, 0.0, element=wide)
    total = i.reduce(SumOp, i.call("exp", i.call("sub", self, top, element=wide), element=wide), axes, element=wide)
    result = i.call("add", i.call("log", total, element=wide), top, element=wide)
    return i.cast(without_axes(i, result, axes, keepdim), i.element)
