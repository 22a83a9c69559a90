"""Comparisons, questions about elements, and choices between operands."""

from __future__ import annotations

import math

import torch
from xdsl.ir import SSAValue

from dlcb.dialects.graph.elementwise import IsNanOp
from dlcb.dialects.types import compute_type, i1, is_float
from dlcb.frontend.aten.arithmetic import arithmetic, common_dtype, in_dtype, in_range
from dlcb.frontend.aten.builder import Builder, Operand
from dlcb.frontend.aten.table import Table

TABLE = Table()


def _enter_comparison(name: str) -> None:
    @TABLE.handles(name)
    def comparison(i: Builder, self: Operand, other: Operand) -> SSAValue:
        dtype = common_dtype(i, self, other)
        return i.call(name, in_dtype(i, self, dtype), in_dtype(i, other, dtype), element=i1)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _enter_comparison(_name)


# Questions


def _never(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("ne", self, self, element=i1)


def is_nan(i: Builder, self: SSAValue) -> SSAValue:
    return i.apply(IsNanOp, self, element=i1) if is_float(i.like(self)) else _never(i, self)


@TABLE.handles("isnan")
def isnan(i: Builder, self: SSAValue) -> SSAValue:
    return is_nan(i, self)


def _compared(i: Builder, name: str, value: SSAValue, bound: float) -> SSAValue:
    return i.call(name, value, i.number(bound, i.like(value)), element=i1)


@TABLE.handles("isinf")
def isinf(i: Builder, self: SSAValue) -> SSAValue:
    if not is_float(i.like(self)):
        return _never(i, self)
    return _compared(i, "eq", i.call("abs", self, element=i.like(self)), math.inf)


@TABLE.handles("isfinite")
def isfinite(i: Builder, self: SSAValue) -> SSAValue:
    if not is_float(i.like(self)):
        return i.call("eq", self, self, element=i1)
    return _compared(i, "lt", i.call("abs", self, element=i.like(self)), math.inf)


def _enter_is_infinity(name: str, infinity: float) -> None:
    @TABLE.handles(name)
    def is_infinity(i: Builder, self: SSAValue) -> SSAValue:
        return _compared(i, "eq", self, infinity) if is_float(i.like(self)) else _never(i, self)


_enter_is_infinity("isposinf", math.inf)
_enter_is_infinity("isneginf", -math.inf)


@TABLE.handles("signbit")
def signbit(i: Builder, self: SSAValue) -> SSAValue:
    element = i.like(self)
    if element == i1:
        return _never(i, self)
    if not is_float(element):
        return _compared(i, "lt", self, 0)
    wide = compute_type(element)
    return _compared(i, "lt", i.call("copysign", 1.0, self, element=wide), 0.0)


# Choices


def _chosen(i: Builder, value: Operand) -> SSAValue:
    """A choice is not arithmetic: it has the result's dtype before it is chosen."""
    return in_dtype(i, in_range(i, value, i.dtypes[0]), i.dtypes[0])


@TABLE.handles("where")
def where(i: Builder, condition: SSAValue, self: Operand, other: Operand) -> SSAValue:
    return i.where(i.truth(condition), _chosen(i, self), _chosen(i, other))


@TABLE.handles("masked_fill")
def masked_fill(i: Builder, self: SSAValue, mask: SSAValue, value: Operand) -> SSAValue:
    return i.where(i.truth(mask), _chosen(i, value), self)


@TABLE.handles("clamp", "clamp_min", "clamp_max")
def clamp(i: Builder, self: SSAValue, min: Operand | None = None, max: Operand | None = None) -> SSAValue:
    if i.op == "clamp_max" and max is None:
        min, max = None, min
    result = self
    if min is not None:
        result = arithmetic(i, "maximum", result, in_range(i, min, i.dtypes[0]))
    if max is not None:
        result = arithmetic(i, "minimum", result, in_range(i, max, i.dtypes[0]))
    return result


def _enter_extremum(name: str) -> None:
    @TABLE.handles(name)
    def extremum(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
        return arithmetic(i, name, self, other)

    @TABLE.handles(f"f{name[:3]}")
    def extremum_of_numbers(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
        """The operand that is no NaN, where one is."""
        result = arithmetic(i, name, self, other)
        if not is_float(i.element):
            return result
        return i.where(is_nan(i, self), other, i.where(is_nan(i, other), self, result))


_enter_extremum("maximum")
_enter_extremum("minimum")


@TABLE.handles("heaviside")
def heaviside(i: Builder, self: SSAValue, values: SSAValue) -> SSAValue:
    step = i.cast(_compared(i, "gt", self, 0), i.element)
    return i.where(_compared(i, "eq", self, 0), values, step)


@TABLE.handles("nan_to_num")
def nan_to_num(
    i: Builder, self: SSAValue, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> SSAValue:
    if not is_float(i.element):
        return self
    limits = torch.finfo(i.dtypes[0])
    result = i.where(is_nan(i, self), nan or 0.0, self)
    infinite = [
        (math.inf, limits.max if posinf is None else posinf),
        (-math.inf, limits.min if neginf is None else neginf),
    ]
    for from_, to in infinite:
        result = i.where(_compared(i, "eq", self, from_), to, result)
    return result
