"""Functions of one element, roundings and conversions."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.ir import SSAValue

from dlcb.dialects.types import compute_type, i1, is_float
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table

TABLE = Table()


def _enter_unary(name: str, *aten: str) -> None:
    @TABLE.handles(name, *aten)
    def unary(i: Builder, self: SSAValue) -> SSAValue:
        return i.call(name, self)


for _name in "neg exp sqrt rsqrt sin cos tan tanh sinh cosh log log2 log10".split():
    _enter_unary(_name)
for _name in "exp2 expm1 log1p erf erfc".split():
    _enter_unary(_name, f"special_{_name}")
for _name in "asin acos atan asinh acosh atanh".split():
    _enter_unary(_name, f"arc{_name[1:]}")
_enter_unary("lgamma", "special_gammaln")


def _enter_size(name: str, *aten: str) -> None:
    @TABLE.handles(name, *aten)
    def size(i: Builder, self: SSAValue) -> SSAValue:
        """A truth value has itself for its size and its sign."""
        return self if i.element == i1 else i.call(name, self)


_enter_size("abs")
_enter_size("sign", "sgn")


@TABLE.handles("positive")
def positive(i: Builder, self: SSAValue) -> SSAValue:
    return self


@TABLE.handles("reciprocal")
def reciprocal(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("div", 1.0, self)


def _enter_scaled(name: str, factor: float) -> None:
    @TABLE.handles(name)
    def scaled(i: Builder, self: SSAValue) -> SSAValue:
        return i.call("mul", self, factor)


_enter_scaled("deg2rad", math.pi / 180)
_enter_scaled("rad2deg", 180 / math.pi)


@TABLE.handles("sinc", "special_sinc")
def sinc(i: Builder, self: SSAValue) -> SSAValue:
    """sin(πx) / πx; 1 at 0."""
    wide = compute_type(i.element)
    angle = i.call("mul", self, math.pi, element=wide)
    zero = i.call("eq", angle, 0.0, element=i1)
    return i.where(zero, 1.0, i.call("div", i.call("sin", angle, element=wide), angle, element=wide))


@TABLE.handles("logit", "special_logit")
def logit(i: Builder, self: SSAValue, eps: float | None = None) -> SSAValue:
    wide = compute_type(i.element)
    x = self
    if eps is not None:
        x = i.call("minimum", i.call("maximum", x, eps, element=wide), 1.0 - eps, element=wide)
    return i.call("log", i.call("div", x, i.call("sub", 1.0, x, element=wide), element=wide))


# Roundings


def _enter_rounding(name: str) -> None:
    @TABLE.handles(name)
    def rounding(i: Builder, self: SSAValue) -> SSAValue:
        return i.call(name, self) if is_float(i.element) else self


for _name in ("floor", "ceil", "trunc"):
    _enter_rounding(_name)


@TABLE.handles("round", "special_round")
def round_(i: Builder, self: SSAValue, *, decimals: int = 0) -> SSAValue:
    if not is_float(i.element):
        return self
    if decimals == 0:
        return i.call("round", self)
    wide, scale = compute_type(i.element), 10.0 ** abs(decimals)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return i.call(back, i.call("round", i.call(there, self, scale, element=wide), element=wide), scale)


@TABLE.handles("frac")
def frac(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("sub", self, i.call("trunc", self))


# Of truth and bits


@TABLE.handles("logical_not")
def logical_not(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("not", i.truth(self))


@TABLE.handles("bitwise_not")
def bitwise_not(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("not", self)


# Conversions


@TABLE.handles(
    "to", "_to_copy", "_autocast_to_reduced_precision", "clone", "contiguous", "detach", "alias", "lift_fresh_copy"
)
def to(i: Builder, self: SSAValue, *others: Any, dtype: torch.dtype | None = None) -> SSAValue:
    return i.truth(self) if i.element == i1 else i.cast(self, i.element)
