"""Reductions, and what is made of them: variance, norms, softmax."""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.composite import LogSoftmaxOp, SoftmaxOp
from dlcb.dialects.graph.reduce import AllOp, AmaxOp, AminOp, AnyOp, MeanOp, ProdOp, Reduce, SumOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.shape.expr import maximum, sub
from dlcb.dialects.types import compute_type, i1, is_float
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.table import Table

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def _reduced(i: Builder, kind: type[Reduce], self: SSAValue, dim: Any, keepdim: bool) -> SSAValue:
    axes = i.axes(dim, rank_of(self))
    if not axes:
        return i.cast(self, i.element)
    return i.reduce(kind, self, axes, keepdim)


@TABLE.handles("sum")
def sum_(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    return _reduced(i, SumOp, _to_result(i, self), dim, keepdim)


def _to_result(i: Builder, self: SSAValue) -> SSAValue:
    """A dtype that is asked for is that of the terms, too."""
    return self if i.like(self) == i.element else i.cast(self, i.element)


@TABLE.handles("mean")
def mean(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    return _reduced(i, MeanOp, _to_result(i, self), dim, keepdim)


@TABLE.handles("prod")
def prod(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> SSAValue:
    return _reduced(i, ProdOp, _to_result(i, self), dim, keepdim)


@TABLE.handles("amax")
def amax(i: Builder, self: SSAValue, dim: Any = (), keepdim: bool = False) -> SSAValue:
    return _reduced(i, AmaxOp, self, dim, keepdim)


@TABLE.handles("amin")
def amin(i: Builder, self: SSAValue, dim: Any = (), keepdim: bool = False) -> SSAValue:
    return _reduced(i, AminOp, self, dim, keepdim)


def _enter_extremum(name: str, kind: type[Reduce], elementwise: str) -> None:
    @TABLE.handles(name)
    def extremum(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False) -> Any:
        """Of a whole tensor, along a dim (values and indices), or of two tensors."""
        if isinstance(dim, SSAValue):
            return i.call(elementwise, self, cast(SSAValue, dim))
        if dim is None:
            return _reduced(i, kind, self, None, False)
        return _reduced(i, kind, self, dim, keepdim), None


_enter_extremum("max", AmaxOp, "maximum")
_enter_extremum("min", AminOp, "minimum")


@TABLE.handles("any")
def any_(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
    return _reduced(i, AnyOp, i.truth(self), dim, keepdim)


@TABLE.handles("all")
def all_(i: Builder, self: SSAValue, dim: Any = None, keepdim: bool = False) -> SSAValue:
    return _reduced(i, AllOp, i.truth(self), dim, keepdim)


@TABLE.handles("count_nonzero")
def count_nonzero(i: Builder, self: SSAValue, dim: Any = None) -> SSAValue:
    return _reduced(i, SumOp, i.cast(i.truth(self), i.element), dim, False)


def variance(i: Builder, self: SSAValue, axes: tuple[int, ...], correction: Any) -> tuple[SSAValue, SSAValue]:
    """Variance and mean in the compute type, reduced dims kept."""
    wide = compute_type(i.like(self))
    average = i.reduce(MeanOp, self, axes, element=wide)
    away = i.call("sub", self, average, element=wide)
    square = i.call("mul", away, away, element=wide)
    if correction == 0:
        return i.reduce(MeanOp, square, axes, element=wide), average
    count = i.number(maximum(sub(i.count(self, axes), correction), 0), wide)
    return i.call("div", i.reduce(SumOp, square, axes, element=wide), count, element=wide), average


def _correction(unbiased: Any, correction: Any) -> Any:
    if correction is not None:
        return correction
    return 0 if unbiased is False else 1


def _dim_and_correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """`var(unbiased)` and `var(dim, unbiased, keepdim)` share their first place."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return dim, _correction(unbiased, correction)


def _without(i: Builder, value: SSAValue, axes: tuple[int, ...], keepdim: bool) -> SSAValue:
    if keepdim:
        return value
    return i.reshape(value, [s for axis, s in enumerate(i.sizes(value)) if axis not in axes])


@TABLE.handles("var")
def var(
    i: Builder, self: SSAValue, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> SSAValue:
    dim, minus = _dim_and_correction(dim, unbiased, correction)
    axes = i.axes(dim, rank_of(self))
    return i.cast(_without(i, variance(i, self, axes, minus)[0], axes, keepdim), i.element)


@TABLE.handles("std")
def std(
    i: Builder, self: SSAValue, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> SSAValue:
    dim, minus = _dim_and_correction(dim, unbiased, correction)
    axes = i.axes(dim, rank_of(self))
    return i.call("sqrt", _without(i, variance(i, self, axes, minus)[0], axes, keepdim))


@TABLE.handles("var_mean")
def var_mean(
    i: Builder, self: SSAValue, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[SSAValue, SSAValue]:
    dim, minus = _dim_and_correction(dim, unbiased, correction)
    axes = i.axes(dim, rank_of(self))
    first, second = (i.cast(_without(i, v, axes, keepdim), i.element) for v in variance(i, self, axes, minus))
    return first, second


@TABLE.handles("softmax", "_softmax", "_safe_softmax")
def softmax(i: Builder, self: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    return _along(i, SoftmaxOp, self, dim)


@TABLE.handles("log_softmax", "_log_softmax")
def log_softmax(i: Builder, self: SSAValue, dim: int, dtype: Any = None) -> SSAValue:
    return _along(i, LogSoftmaxOp, self, dim)


def _along(i: Builder, kind: type[Any], self: SSAValue, dim: int) -> SSAValue:
    if rank_of(self) == 0:
        return i.reshape(_along(i, kind, i.reshape(self, (1,)), 0), ())
    return i.make(kind, [i.cast(self, i.element)], i.element, axis=IntAttr(i.axis(dim, rank_of(self))))


@TABLE.handles("logsumexp")
def logsumexp(i: Builder, self: SSAValue, dim: Any, keepdim: bool = False) -> SSAValue:
    axes, wide = i.axes(dim, rank_of(self)), compute_type(i.element)
    top = i.reduce(AmaxOp, self, axes, element=wide)
    finite = i.call("lt", i.call("abs", top, element=wide), math.inf, element=i1)
    top = i.where(finite, top, 0.0, element=wide)
    total = i.reduce(SumOp, i.call("exp", i.call("sub", self, top, element=wide), element=wide), axes, element=wide)
    return i.cast(
        _without(i, i.call("add", i.call("log", total, element=wide), top, element=wide), axes, keepdim), i.element
    )


@TABLE.handles("linalg_vector_norm", "norm")
def vector_norm(
    i: Builder,
    self: SSAValue,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SSAValue:
    if not is_float(i.element):
        i.unsupported("the norm of integers")
    axes, wide = i.axes(dim, rank_of(self)), compute_type(i.element)
    size = i.call("abs", i.cast(self, i.element), element=wide)
    if ord in (math.inf, -math.inf):
        return i.reduce(AmaxOp if ord > 0 else AminOp, size, axes, keepdim, element=i.element)
    if ord == 0:
        return i.reduce(SumOp, i.cast(i.truth(size), wide), axes, keepdim, element=i.element)
    if ord == 1:
        return i.reduce(SumOp, size, axes, keepdim, element=i.element)
    if ord == 2:
        return i.call("sqrt", i.reduce(SumOp, i.call("mul", size, size, element=wide), axes, keepdim, element=wide))
    total = i.reduce(SumOp, i.call("pow", size, float(ord), element=wide), axes, keepdim, element=wide)
    return i.call("pow", total, 1.0 / ord)


@TABLE.handles("cumsum")
def cumsum(i: Builder, self: SSAValue, dim: int, *, dtype: torch.dtype | None = None) -> SSAValue:
    """result[.., p] = Σ over q ≤ p of x[.., q], each on its own: quadratic, for short dims."""
    rank = rank_of(self)
    if rank == 0:
        return i.cast(self, i.element)
    axis = i.axis(dim, rank)
    size = i.sizes(self)[axis]
    last = [*(a for a in range(rank) if a != axis), axis]
    row = i.unsqueeze(i.permute(_to_result(i, self), last), rank - 1)
    up_to = i.call("le", iota(i, size), i.reshape(iota(i, size), (size, 1)), element=i1)
    total = i.reduce(SumOp, i.where(up_to, row, i.number(0, i.element)), (rank,), keep=False)
    return i.permute(total, sorted(range(rank), key=last.__getitem__))
