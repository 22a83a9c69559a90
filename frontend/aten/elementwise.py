"""Elementwise operations. Where the op set has no single op, they are formulas computed in the compute type."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.elementwise import GeluOp, GeluTanhOp, IsNanOp, ReluOp, SigmoidOp, SiluOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.types import bf16, compute_type, f16, i1, is_float
from dlcb.frontend.aten.builder import Builder, Number, Operand
from dlcb.frontend.aten.dtypes import element_of, promoted, rounded
from dlcb.frontend.aten.table import Table
from dlcb.frontend.tracker import Ratio

TABLE = Table()

Formula = Any
_HALVES = (f16, bf16)


def rank(value: SSAValue) -> int:
    return type_of(value).rank


def operand(i: Builder, value: Operand, element: Attribute) -> Operand:
    """An operand of arithmetic in `element`; torch rounds an integer to half precision before it computes."""
    if isinstance(value, SSAValue) and element in _HALVES and not is_float(i.like(value)):
        return i.cast(value, element)
    return value


def arithmetic(i: Builder, name: str, *operands: Operand) -> SSAValue:
    return i.call(name, *(operand(i, o, i.element) for o in operands))


def scaled(i: Builder, value: Operand, factor: Any) -> Operand:
    """value · factor, not rounded to half precision."""
    if factor == 1:
        return value
    return i.call("mul", value, factor, element=compute_type(i.element))


def _python_type(value: Number) -> type[int | float]:
    if isinstance(value, Ratio):
        return float
    return int if isinstance(value, Expr) else type(value)


def common_dtype(i: Builder, a: Operand, b: Operand) -> torch.dtype:
    """The dtype in which torch compares two operands."""
    if not isinstance(a, SSAValue):
        a, b = b, a
    assert isinstance(a, SSAValue)
    if isinstance(b, SSAValue):
        return promoted(i.dtype(a), rank(a) == 0, i.dtype(b), rank(b) == 0)
    return promoted(i.dtype(a), rank(a) == 0, _python_type(b), True)


def in_dtype(i: Builder, value: Operand, dtype: torch.dtype) -> SSAValue:
    """An operand as this dtype holds it."""
    element = element_of(dtype)
    if isinstance(value, SSAValue):
        return i.cast(value, element)
    if not isinstance(value, (Expr, Ratio)):
        value = rounded(value, dtype)
    return i.number(value, element)


# Arithmetic


@TABLE.handles("add")
def add(i: Builder, self: Operand, other: Operand, *, alpha: Any = 1) -> SSAValue:
    if i.element == i1:
        return i.call("or", self, other)
    return arithmetic(i, "add", self, scaled(i, other, alpha))


@TABLE.handles("sub")
def sub(i: Builder, self: Operand, other: Operand, *, alpha: Any = 1) -> SSAValue:
    return arithmetic(i, "sub", self, scaled(i, other, alpha))


@TABLE.handles("rsub")
def rsub(i: Builder, self: Operand, other: Operand, alpha: Any = 1) -> SSAValue:
    return arithmetic(i, "sub", other, scaled(i, self, alpha))


@TABLE.handles("mul")
def mul(i: Builder, self: Operand, other: Operand) -> SSAValue:
    return arithmetic(i, "and" if i.element == i1 else "mul", self, other)


@TABLE.handles("div")
def div(i: Builder, self: Operand, other: Operand, *, rounding_mode: str | None = None) -> SSAValue:
    name = {None: "div", "floor": "floordiv", "trunc": "truncdiv"}[rounding_mode]
    return arithmetic(i, name, self, other)


def _enter_binary(name: str, *aten: str) -> None:
    @TABLE.handles(*aten)
    def binary(i: Builder, self: Operand, other: Operand) -> SSAValue:
        return arithmetic(i, name, self, other)


_enter_binary("floordiv", "floor_divide")
_enter_binary("mod", "remainder")
_enter_binary("fmod", "fmod")
_enter_binary("atan2", "atan2", "arctan2")
_enter_binary("maximum", "maximum")
_enter_binary("minimum", "minimum")


@TABLE.handles("bitwise_and")
def bitwise_and(i: Builder, self: Operand, other: Operand) -> SSAValue:
    return i.call("and", self, other)


@TABLE.handles("bitwise_or")
def bitwise_or(i: Builder, self: Operand, other: Operand) -> SSAValue:
    return i.call("or", self, other)


@TABLE.handles("bitwise_xor")
def bitwise_xor(i: Builder, self: Operand, other: Operand) -> SSAValue:
    return i.call("xor", self, other)


def _enter_logical(name: str) -> None:
    @TABLE.handles(f"logical_{name}")
    def logical(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
        return i.call(name, i.truth(self), i.truth(other))


for _name in ("and", "or", "xor"):
    _enter_logical(_name)


@TABLE.handles("logical_not")
def logical_not(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("not", i.truth(self))


@TABLE.handles("bitwise_not")
def bitwise_not(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("not", self)


@TABLE.handles("pow")
def power(i: Builder, self: Operand, exponent: Operand) -> SSAValue:
    """Small literal exponents are products and roots, as torch computes them."""
    wide = compute_type(i.element)
    if not isinstance(exponent, SSAValue) and isinstance(self, SSAValue):
        if exponent == 0.5:
            return i.call("sqrt", self)
        if exponent == -0.5:
            return i.call("rsqrt", self)
        if exponent == 2:
            return i.call("mul", self, self)
        if exponent == 3:
            return i.call("mul", i.call("mul", self, self, element=wide), self)
        if exponent in (-1, -2) and is_float(i.element):
            return i.call("div", 1.0, self if exponent == -1 else i.call("mul", self, self, element=wide))
    return arithmetic(i, "pow", self, exponent)


@TABLE.handles("square")
def square(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("mul", self, self)


@TABLE.handles("reciprocal")
def reciprocal(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("div", 1.0, self)


def _enter_unary(name: str, *aten: str) -> None:
    @TABLE.handles(name, *aten)
    def unary(i: Builder, self: SSAValue) -> SSAValue:
        return i.call(name, self)


for _name in "neg abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh erf".split():
    _enter_unary(_name)
_enter_unary("sign", "sgn")


def _enter_rounding(name: str) -> None:
    @TABLE.handles(name)
    def rounding(i: Builder, self: SSAValue) -> SSAValue:
        return i.call(name, self) if is_float(i.element) else self


for _name in ("floor", "ceil", "trunc"):
    _enter_rounding(_name)


@TABLE.handles("round")
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


# Comparisons and choices


def _enter_comparison(name: str) -> None:
    @TABLE.handles(name)
    def comparison(i: Builder, self: Operand, other: Operand) -> SSAValue:
        dtype = common_dtype(i, self, other)
        return i.call(name, in_dtype(i, self, dtype), in_dtype(i, other, dtype), element=i1)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _enter_comparison(_name)


@TABLE.handles("isnan")
def isnan(i: Builder, self: SSAValue) -> SSAValue:
    if is_float(i.like(self)):
        return i.apply(IsNanOp, self)
    return i.call("ne", self, self, element=i1)


@TABLE.handles("isinf")
def isinf(i: Builder, self: SSAValue) -> SSAValue:
    if not is_float(i.like(self)):
        return i.call("ne", self, self, element=i1)
    size = i.call("abs", self, element=i.like(self))
    return i.call("eq", size, i.number(math.inf, i.like(self)), element=i1)


@TABLE.handles("isfinite")
def isfinite(i: Builder, self: SSAValue) -> SSAValue:
    if not is_float(i.like(self)):
        return i.call("eq", self, self, element=i1)
    size = i.call("abs", self, element=i.like(self))
    return i.call("lt", size, i.number(math.inf, i.like(self)), element=i1)


@TABLE.handles("where")
def where(i: Builder, condition: SSAValue, self: Operand, other: Operand) -> SSAValue:
    return i.where(i.truth(condition), _chosen(i, self), _chosen(i, other))


def _chosen(i: Builder, value: Operand) -> SSAValue:
    """A choice is not arithmetic: it has the result's dtype before it is chosen."""
    return in_dtype(i, value, i.dtypes[0])


@TABLE.handles("masked_fill")
def masked_fill(i: Builder, self: SSAValue, mask: SSAValue, value: Operand) -> SSAValue:
    return i.where(mask, _chosen(i, value), self)


@TABLE.handles("clamp", "clamp_min", "clamp_max")
def clamp(i: Builder, self: SSAValue, min: Operand | None = None, max: Operand | None = None) -> SSAValue:
    if i.op == "clamp_max" and max is None:
        min, max = None, min
    result = self
    if min is not None:
        result = arithmetic(i, "maximum", result, min)
    if max is not None:
        result = arithmetic(i, "minimum", result, max)
    return result


@TABLE.handles("nan_to_num")
def nan_to_num(
    i: Builder, self: SSAValue, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> SSAValue:
    if not is_float(i.element):
        return self
    limits = torch.finfo(i.dtypes[0])
    result = i.where(i.apply(IsNanOp, self, element=i1), nan or 0.0, self)
    infinite = [
        (math.inf, limits.max if posinf is None else posinf),
        (-math.inf, limits.min if neginf is None else neginf),
    ]
    for from_, to in infinite:
        found = i.call("eq", self, i.number(from_, i.like(self)), element=i1)
        result = i.where(found, to, result)
    return result


# Conversions


@TABLE.handles(
    "to", "_to_copy", "_autocast_to_reduced_precision", "clone", "contiguous", "detach", "alias", "lift_fresh_copy"
)
def to(i: Builder, self: SSAValue, *others: Any, dtype: torch.dtype | None = None) -> SSAValue:
    return i.truth(self) if i.element == i1 else i.cast(self, i.element)


# Activations


@TABLE.handles("relu")
def relu(i: Builder, self: SSAValue) -> SSAValue:
    return i.apply(ReluOp, self)


@TABLE.handles("sigmoid")
def sigmoid(i: Builder, self: SSAValue) -> SSAValue:
    return i.apply(SigmoidOp, self)


@TABLE.handles("silu")
def silu(i: Builder, self: SSAValue) -> SSAValue:
    return i.apply(SiluOp, self)


@TABLE.handles("gelu")
def gelu(i: Builder, self: SSAValue, *, approximate: str = "none") -> SSAValue:
    return i.apply(GeluTanhOp if approximate == "tanh" else GeluOp, self)


@TABLE.handles("relu6")
def relu6(i: Builder, self: SSAValue) -> SSAValue:
    return clamp(i, self, 0, 6)


@TABLE.handles("hardtanh")
def hardtanh(i: Builder, self: SSAValue, min_val: float = -1.0, max_val: float = 1.0) -> SSAValue:
    return clamp(i, self, min_val, max_val)


@TABLE.handles("leaky_relu")
def leaky_relu(i: Builder, self: SSAValue, negative_slope: float = 0.01) -> SSAValue:
    positive = i.call("gt", self, i.number(0, i.like(self)), element=i1)
    return i.where(positive, self, i.call("mul", self, negative_slope))


@TABLE.handles("elu")
def elu(i: Builder, self: SSAValue, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> SSAValue:
    wide = compute_type(i.element)
    positive = i.call("gt", self, i.number(0, i.like(self)), element=i1)
    inner = i.call("expm1", i.call("mul", self, input_scale, element=wide), element=wide)
    negative = i.call("mul", inner, alpha * scale, element=wide)
    return i.where(positive, i.call("mul", self, scale, element=wide), negative)


@TABLE.handles("selu")
def selu(i: Builder, self: SSAValue) -> SSAValue:
    return elu(i, self, 1.6732632423543772, 1.0507009873554805)


def _hard_gate(i: Builder, self: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6)."""
    wide = compute_type(i.element)
    shifted = i.call("add", self, 3.0, element=wide)
    return i.call("minimum", i.call("maximum", shifted, 0.0, element=wide), 6.0, element=wide)


@TABLE.handles("hardsigmoid")
def hardsigmoid(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("div", _hard_gate(i, self), 6.0)


@TABLE.handles("hardswish")
def hardswish(i: Builder, self: SSAValue) -> SSAValue:
    wide = compute_type(i.element)
    return i.call("div", i.call("mul", self, _hard_gate(i, self), element=wide), 6.0)


@TABLE.handles("softplus")
def softplus(i: Builder, self: SSAValue, beta: float = 1.0, threshold: float = 20.0) -> SSAValue:
    wide = compute_type(i.element)
    x = i.call("mul", self, beta, element=wide)
    soft = i.call("div", i.call("log1p", i.call("exp", x, element=wide), element=wide), beta, element=wide)
    return i.where(i.call("gt", x, threshold, element=i1), self, soft)


@TABLE.handles("mish")
def mish(i: Builder, self: SSAValue) -> SSAValue:
    wide = compute_type(i.element)
    soft = i.call("log1p", i.call("exp", self, element=wide), element=wide)
    far = i.call("gt", self, i.number(20.0, wide), element=i1)
    gate = i.call("tanh", i.where(far, self, soft, element=wide), element=wide)
    return i.call("mul", self, gate)


@TABLE.handles("log_sigmoid")
def log_sigmoid(i: Builder, self: SSAValue) -> SSAValue:
    wide = compute_type(i.element)
    far = i.call("exp", i.call("neg", i.call("abs", self, element=wide), element=wide), element=wide)
    return i.call("sub", i.call("minimum", self, 0.0, element=wide), i.call("log1p", far, element=wide))


@TABLE.handles("addcmul")
def addcmul(i: Builder, self: SSAValue, tensor1: SSAValue, tensor2: SSAValue, *, value: float = 1) -> SSAValue:
    wide = compute_type(i.element)
    return arithmetic(i, "add", self, scaled(i, i.call("mul", tensor1, tensor2, element=wide), value))


@TABLE.handles("addcdiv")
def addcdiv(i: Builder, self: SSAValue, tensor1: SSAValue, tensor2: SSAValue, *, value: float = 1) -> SSAValue:
    wide = compute_type(i.element)
    return arithmetic(i, "add", self, scaled(i, i.call("div", tensor1, tensor2, element=wide), value))


@TABLE.handles("lerp")
def lerp(i: Builder, self: SSAValue, end: SSAValue, weight: Operand) -> SSAValue:
    wide = compute_type(i.element)
    way = i.call("mul", i.call("sub", end, self, element=wide), weight, element=wide)
    return arithmetic(i, "add", self, way)
