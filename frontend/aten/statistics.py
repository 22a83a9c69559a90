"""Variance, norms, and what is made of them."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.reduce import AmaxOp, AminOp, MeanOp, SumOp
from dlcb.dialects.shape.expr import maximum, sub
from dlcb.dialects.types import compute_type, is_float
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.reductions import rank_of, without_axes
from dlcb.frontend.aten.table import Table, several

TABLE = Table()


# Variance


def variance(i: Builder, self: SSAValue, axes: tuple[int, ...], correction: Any) -> tuple[SSAValue, SSAValue]:
    """Variance and mean in the compute type, reduced dims kept."""
    wide = compute_type(i.like(self))
    average = i.reduce(MeanOp, self, axes, element=wide)
    away = i.call("sub", self, average, element=wide)
    square = i.call("mul", away, away, element=wide)
    if correction == 0:
        return i.reduce(MeanOp, square, axes, element=wide), average
    total = i.reduce(SumOp, square, axes, element=wide)
    return i.call("div", total, _corrected_count(i, self, axes, correction, wide), element=wide), average


def _corrected_count(i: Builder, self: SSAValue, axes: tuple[int, ...], correction: Any, wide: Attribute) -> SSAValue:
    count = i.count(self, axes)
    if correction == int(correction):
        return i.number(maximum(sub(count, int(correction)), 0), wide)
    less = i.call("sub", i.number(count, wide), float(correction), element=wide)
    return i.call("maximum", less, 0.0, element=wide)


def _dim_and_correction(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, Any]:
    """`var(unbiased)` and `var(dim, unbiased, keepdim)` share their first place."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    return dim, correction


def _enter_variance(name: str, root: bool) -> None:
    def results(
        i: Builder, self: SSAValue, dim: Any, unbiased: Any, keepdim: bool, correction: Any
    ) -> tuple[SSAValue, SSAValue]:
        dim, correction = _dim_and_correction(dim, unbiased, correction)
        axes = i.axes(dim, rank_of(self))
        spread, average = variance(i, self, axes, correction)
        if root:
            spread = i.call("sqrt", spread, element=i.like(spread))
        first, second = (i.cast(without_axes(i, v, axes, keepdim), i.element) for v in (spread, average))
        return first, second

    @TABLE.handles(name)
    def spread(
        i: Builder, self: SSAValue, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None,
    ) -> SSAValue:  # fmt: skip
        return results(i, self, dim, unbiased, keepdim, correction)[0]

    @TABLE.handles(f"{name}_mean")
    def spread_and_mean(
        i: Builder, self: SSAValue, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *,
        correction: Any = None,
    ) -> tuple[SSAValue, SSAValue]:  # fmt: skip
        return results(i, self, dim, unbiased, keepdim, correction)


_enter_variance("var", root=False)
_enter_variance("std", root=True)


# Norms


@TABLE.handles("linalg_vector_norm")
def vector_norm(
    i: Builder,
    self: SSAValue,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SSAValue:
    if not is_float(i.like(self)):
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
    if ord < 0:
        i.require("lt", 0, i.count(self, axes), f"the {ord} norm of nothing")
    total = i.reduce(SumOp, i.call("pow", size, float(ord), element=wide), axes, keepdim, element=wide)
    return i.call("pow", total, 1.0 / ord)


@TABLE.handles("norm")
def norm(
    i: Builder,
    self: SSAValue,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SSAValue:
    if isinstance(p, str) and p != "fro":
        i.unsupported(f"the norm '{p}' of a matrix")
    return vector_norm(i, self, 2 if p in (None, "fro") else p, dim, keepdim)


@TABLE.handles("linalg_norm")
def linalg_norm(
    i: Builder,
    self: SSAValue,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> SSAValue:
    """Of a vector, or of a matrix as if it were one."""
    dims = rank_of(self) if dim is None else len(several(dim))
    if ord is not None and ord != "fro" and dims > 1:
        i.unsupported(f"the norm {ord} of a matrix")
    return norm(i, self, ord, dim, keepdim)


@TABLE.handles("cosine_similarity")
def cosine_similarity(i: Builder, x1: SSAValue, x2: SSAValue, dim: int = 1, eps: float = 1e-8) -> SSAValue:
    """Σ (x1 / |x1|) · (x2 / |x2|), no length being below eps."""
    wide = compute_type(i.element)
    sizes = i.sizes(i.call("mul", x1, x2, element=wide))
    axes = i.axes(dim, len(sizes))

    def direction(x: SSAValue) -> SSAValue:
        x = i.expand(i.cast(x, wide), sizes)
        length = i.call("sqrt", i.reduce(SumOp, i.call("mul", x, x, element=wide), axes, element=wide), element=wide)
        return i.call("div", x, i.call("maximum", length, float(eps), element=wide), element=wide)

    product = i.call("mul", direction(x1), direction(x2), element=wide)
    return i.reduce(SumOp, product, axes, keep=False, element=i.element)
