"""Operations that make tensors from numbers."""

from __future__ import annotations

from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.creation import IotaOp
from dlcb.dialects.shape.expr import Expr, ExprLike, ceildiv, floordiv, maximum, sub
from dlcb.dialects.types import compute_type, f64, i1, i64, is_float
from dlcb.frontend.aten.builder import Builder, Number, Operand
from dlcb.frontend.aten.dtypes import rounded
from dlcb.frontend.aten.table import Table, listed, several
from dlcb.frontend.tracing.real import Real

TABLE = Table()


def filled(i: Builder, sizes: tuple[Any, ...], value: Operand) -> SSAValue:
    """A tensor of one number, or of one element."""
    if isinstance(value, SSAValue):
        return i.expand(i.cast(value, i.element), sizes)
    if isinstance(value, (Expr, Real)):
        return i.expand(i.number(value, i.element), sizes)
    return i.full(sizes, rounded(value, i.dtypes[0]), i.element)


@TABLE.handles("zeros", "empty")
def zeros(i: Builder, *sizes: Any, size: Any = None, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, listed(sizes, size), 0)


@TABLE.handles("ones")
def ones(i: Builder, *sizes: Any, size: Any = None, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, listed(sizes, size), 1)


@TABLE.handles("full")
def full(i: Builder, size: Any, fill_value: Any, *, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, several(size), fill_value)


@TABLE.handles("zeros_like", "empty_like")
def zeros_like(i: Builder, self: SSAValue, *, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, i.sizes(self), 0)


@TABLE.handles("ones_like")
def ones_like(i: Builder, self: SSAValue, *, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, i.sizes(self), 1)


@TABLE.handles("full_like")
def full_like(i: Builder, self: SSAValue, fill_value: Any, *, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, i.sizes(self), fill_value)


@TABLE.handles("new_zeros", "new_empty")
def new_zeros(i: Builder, self: SSAValue, *sizes: Any, size: Any = None, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, listed(sizes, size), 0)


@TABLE.handles("new_ones")
def new_ones(i: Builder, self: SSAValue, *sizes: Any, size: Any = None, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, listed(sizes, size), 1)


@TABLE.handles("new_full")
def new_full(i: Builder, self: SSAValue, size: Any, fill_value: Any, *, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, several(size), fill_value)


@TABLE.handles("scalar_tensor")
def scalar_tensor(i: Builder, s: Number, *, dtype: torch.dtype | None = None) -> SSAValue:
    return filled(i, (), s)


def iota(i: Builder, size: ExprLike, element: Attribute = i64, start: ExprLike = 0, step: ExprLike = 1) -> SSAValue:
    """start, start + step, …"""
    numbers = {"start": i.dims_attr([start]), "step": i.dims_attr([step])}
    return i.make(IotaOp, [], element, shape=i.dims_attr([size]), **numbers)


@TABLE.handles("arange")
def arange(i: Builder, *bounds: Any, step: Any = None, end: Any = None, dtype: torch.dtype | None = None) -> SSAValue:
    given = [b for b in (*bounds, end, step) if b is not None]
    start, stop, by = (0, given[0], 1) if len(given) == 1 else (*given, 1) if len(given) == 2 else given
    if any(isinstance(b, (float, Real)) for b in (start, stop, by)):
        return _float_range(i, start, stop, by)
    step = i.literal(by, "the step")
    length = ceildiv(sub(stop, start), step) if step > 0 else ceildiv(sub(start, stop), -step)
    i.require("le", 0, length, "the range ends before it starts")
    return i.cast(iota(i, length, i64, start, step), i.element)


def _float_range(i: Builder, start: Any, stop: Any, step: Any) -> SSAValue:
    if any(isinstance(b, (Expr, Real)) for b in (start, stop, step)):
        i.unsupported("a range of floats whose bounds depend on sizes")
    length = int(torch.arange(start, stop, step, device="meta").shape[0])
    element = f64 if is_float(i.element) else i64
    scaled = i.call("mul", i.cast(iota(i, length), element), float(step), element=element)
    return i.cast(i.call("add", scaled, float(start), element=element), i.element)


@TABLE.handles("linspace")
def linspace(i: Builder, start: Operand, end: Operand, steps: Any, *, dtype: torch.dtype | None = None) -> SSAValue:
    """Counted from the nearer end, as torch does, so that both are exact."""
    element = compute_type(i.element) if is_float(i.element) else f64
    first, last = (i.cast(v, element) if isinstance(v, SSAValue) else i.number(v, element) for v in (start, end))
    apart = i.call("sub", last, first, element=element)
    step = i.call("div", apart, i.number(maximum(sub(steps, 1), 1), element), element=element)
    place = iota(i, steps)
    up = i.call("add", first, i.call("mul", step, i.cast(place, element), element=element), element=element)
    back = i.cast(i.call("sub", i.number(sub(steps, 1), i64), place, element=i64), element)
    down = i.call("sub", last, i.call("mul", step, back, element=element), element=element)
    near = i.call("lt", place, i.number(maximum(floordiv(steps, 2), 1), i64), element=i1)
    return i.cast(i.where(near, up, down, element=element), i.element)


def _triangle(i: Builder, self: SSAValue, diagonal: Any, name: str) -> SSAValue:
    """self where column - row `name` diagonal, else 0."""
    *_, rows, columns = i.sizes(self)
    row = i.reshape(iota(i, rows, i64, diagonal), (rows, 1))
    kept = i.call(name, iota(i, columns), row, element=i1)
    return i.where(kept, self, i.number(0, i.element))


@TABLE.handles("tril")
def tril(i: Builder, self: SSAValue, diagonal: Any = 0) -> SSAValue:
    return _triangle(i, self, diagonal, "le")


@TABLE.handles("triu")
def triu(i: Builder, self: SSAValue, diagonal: Any = 0) -> SSAValue:
    return _triangle(i, self, diagonal, "ge")


@TABLE.handles("eye")
def eye(i: Builder, n: Any, m: Any = None, *, dtype: torch.dtype | None = None) -> SSAValue:
    row = i.reshape(iota(i, n), (n, 1))
    return i.cast(i.call("eq", row, iota(i, n if m is None else m), element=i1), i.element)


@TABLE.handles("fill")
def fill(i: Builder, self: SSAValue, value: Operand) -> SSAValue:
    return filled(i, i.sizes(self), value)
