"""Arithmetic of two operands, on numbers and on bits. Where the op set has no single op, they are formulas computed in
the compute type."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.types import type_of
from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.types import bf16, compute_type, f16, i1, integer_limits, is_float
from dlcb.frontend.aten.builder import Builder, Number, Operand
from dlcb.frontend.aten.dtypes import element_of, promoted, rounded
from dlcb.frontend.aten.table import Table
from dlcb.frontend.tracing.real import Real

TABLE = Table()

_HALVES = (f16, bf16)
_ON_TRUTH = frozenset({"and", "or", "xor", "maximum", "minimum"})


def rank(value: SSAValue) -> int:
    return type_of(value).rank


def operand(i: Builder, value: Operand, element: Attribute) -> Operand:
    """An operand of arithmetic in `element`; torch rounds an integer to half precision before it computes."""
    if isinstance(value, SSAValue) and element in _HALVES and not is_float(i.like(value)):
        return i.cast(value, element)
    return value


def arithmetic(i: Builder, name: str, *operands: Operand) -> SSAValue:
    if i.element == i1 and name not in _ON_TRUTH:
        i.unsupported("arithmetic of truth values")
    return i.call(name, *(operand(i, o, i.element) for o in operands))


def in_range(i: Builder, value: Operand, dtype: torch.dtype) -> Operand:
    """The operand; torch refuses a number that the dtype does not hold where it is no operand of arithmetic;
    the negative of one that an unsigned dtype holds wraps."""
    if isinstance(value, (int, float)) and not is_float(element_of(dtype)) and dtype != torch.bool:
        low, high = integer_limits(element_of(dtype))
        if not min(low, -high) <= value <= high:
            i.unsupported(f"the number {value} is outside of {dtype}")
    return value


def scaled(i: Builder, value: Operand, factor: Any) -> Operand:
    """value · factor, not rounded to half precision."""
    if factor == 1:
        return value
    return i.call("mul", value, in_range(i, factor, i.dtypes[0]), element=compute_type(i.element))


def multiply_add(i: Builder, a: Operand, b: Operand, c: Operand, element: Attribute | None = None) -> SSAValue:
    """a · b + c; of floats rounded once, as torch's vectors and its kernels for GPUs do."""
    element = i.element if element is None else element
    if is_float(element):
        return i.call("fma", *(operand(i, o, element) for o in (a, b, c)), element=element)
    return i.call("add", i.call("mul", a, b, element=element), c, element=element)


def _python_type(value: Number) -> type[int | float]:
    if isinstance(value, Real):
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
    if not isinstance(value, (Expr, Real)):
        value = rounded(value, dtype)
    return i.number(value, element)


@TABLE.handles("add")
def add(i: Builder, self: Operand, other: Operand, *, alpha: Any = 1) -> SSAValue:
    if i.element == i1:
        return arithmetic(i, "or", self, i.call("and", other, alpha) if alpha != 1 else other)
    if alpha == 1:
        return arithmetic(i, "add", self, other)
    return multiply_add(i, other, in_range(i, alpha, i.dtypes[0]), self)


@TABLE.handles("sub")
def sub(i: Builder, self: Operand, other: Operand, *, alpha: Any = 1) -> SSAValue:
    if alpha == 1 or isinstance(alpha, (Expr, Real)):
        return arithmetic(i, "sub", self, scaled(i, other, alpha))
    return add(i, self, other, alpha=-alpha)


@TABLE.handles("rsub")
def rsub(i: Builder, self: Operand, other: Operand, alpha: Any = 1) -> SSAValue:
    return sub(i, other, self, alpha=alpha)


@TABLE.handles("mul")
def mul(i: Builder, self: Operand, other: Operand) -> SSAValue:
    return arithmetic(i, "and" if i.element == i1 else "mul", self, other)


@TABLE.handles("square", "special_square")
def square(i: Builder, self: SSAValue) -> SSAValue:
    return mul(i, self, self)


@TABLE.handles("div")
def div(i: Builder, self: Operand, other: Operand, *, rounding_mode: str | None = None) -> SSAValue:
    name = {None: "div", "floor": "floordiv", "trunc": "truncdiv"}[rounding_mode]
    return arithmetic(i, name, self, other)


def _enter_binary(name: str, *aten: str) -> None:
    @TABLE.handles(*aten)
    def binary(i: Builder, self: Operand, other: Operand) -> SSAValue:
        return arithmetic(i, name, self, other)


_enter_binary("floordiv", "floor_divide")
_enter_binary("atan2", "atan2", "arctan2")
_enter_binary("hypot", "hypot")
_enter_binary("copysign", "copysign")
_enter_binary("and", "bitwise_and")
_enter_binary("or", "bitwise_or")
_enter_binary("xor", "bitwise_xor")


def _enter_remainder(name: str, aten: str) -> None:
    @TABLE.handles(aten)
    def remainder(i: Builder, self: Operand, other: Operand) -> SSAValue:
        """A number is rounded to half precision, unlike one that is added or divides."""
        return arithmetic(i, name, in_dtype(i, self, i.dtypes[0]), in_dtype(i, other, i.dtypes[0]))


_enter_remainder("mod", "remainder")
_enter_remainder("fmod", "fmod")


def _enter_shift(name: str, aten: str) -> None:
    @TABLE.handles(aten)
    def shift(i: Builder, self: Operand, other: Operand) -> SSAValue:
        if is_float(i.element):
            i.unsupported("a shift of floats")
        return arithmetic(i, name, self, other)


_enter_shift("shl", "bitwise_left_shift")
_enter_shift("shr", "bitwise_right_shift")


def _enter_logical(name: str) -> None:
    @TABLE.handles(f"logical_{name}")
    def logical(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
        return i.call(name, i.truth(self), i.truth(other))


for _name in ("and", "or", "xor"):
    _enter_logical(_name)


# Powers


@TABLE.handles("pow", "float_power")
def power(i: Builder, self: Operand, exponent: Operand) -> SSAValue:
    """Small literal exponents are products and roots, as torch computes them."""
    if isinstance(self, SSAValue) and isinstance(exponent, (int, float)):
        simple = _literal_power(i, self, exponent)
        if simple is not None:
            return simple
    base = in_dtype(i, in_range(i, self, i.dtypes[0]), i.dtypes[0])
    return arithmetic(i, "pow", base, in_range(i, exponent, i.dtypes[0]))


def _literal_power(i: Builder, base: SSAValue, exponent: float) -> SSAValue | None:
    wide = compute_type(i.element)
    if exponent in (2, 3) and i.element != i1:
        squared = i.call("mul", base, base, element=i.element if exponent == 2 else wide)
        return squared if exponent == 2 else i.call("mul", squared, base)
    if not is_float(i.element):
        return None
    if exponent in (0.5, -0.5):
        return i.call("sqrt" if exponent == 0.5 else "rsqrt", base)
    if exponent in (-1, -2):
        return i.call("div", 1.0, base if exponent == -1 else i.call("mul", base, base, element=wide))
    return None


# Sums and products of several


@TABLE.handles("addcmul")
def addcmul(i: Builder, self: SSAValue, tensor1: SSAValue, tensor2: SSAValue, *, value: float = 1) -> SSAValue:
    return multiply_add(i, scaled(i, tensor1, value), tensor2, self)


@TABLE.handles("addcdiv")
def addcdiv(i: Builder, self: SSAValue, tensor1: SSAValue, tensor2: SSAValue, *, value: float = 1) -> SSAValue:
    wide = compute_type(i.element)
    return arithmetic(i, "add", self, i.call("div", scaled(i, tensor1, value), tensor2, element=wide))


@TABLE.handles("lerp")
def lerp(i: Builder, self: SSAValue, end: SSAValue, weight: Operand) -> SSAValue:
    """From the nearer end, so that a weight of 1 gives exactly the other one."""
    wide = compute_type(i.element)
    way = i.call("sub", end, self, element=wide)
    if isinstance(weight, (int, float)):
        near, rest = (self, weight) if abs(weight) < 0.5 else (end, weight - 1)
        return multiply_add(i, way, rest, near)
    weight = weight if isinstance(weight, SSAValue) else i.number(weight, wide)
    from_start = multiply_add(i, way, weight, self, wide)
    from_end = multiply_add(i, way, i.call("sub", weight, 1.0, element=wide), end, wide)
    small = i.call("lt", i.call("abs", weight, element=wide), 0.5, element=i1)
    return i.where(small, from_start, from_end)


# Logarithms of sums and of products


def _log_of_sum(i: Builder, a: SSAValue, b: SSAValue, exponential: str, scale: float) -> SSAValue:
    """max + log(1 + e^-|a - b|); where both are the same infinity, that one."""
    wide = compute_type(i.element)
    top = i.call("maximum", a, b, element=wide)
    apart = i.call("neg", i.call("abs", i.call("sub", a, b, element=wide), element=wide), element=wide)
    more = i.call("log1p", i.call(exponential, apart, element=wide), element=wide)
    if scale != 1.0:
        more = i.call("mul", more, scale, element=wide)
    infinite = i.call("eq", i.call("abs", a, element=wide), math.inf, element=i1)
    same = i.call("and", infinite, i.call("eq", a, b, element=i1), element=i1)
    return i.where(same, a, i.call("add", top, more, element=wide))


@TABLE.handles("logaddexp")
def logaddexp(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    return _log_of_sum(i, self, other, "exp", 1.0)


@TABLE.handles("logaddexp2")
def logaddexp2(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    return _log_of_sum(i, self, other, "exp2", 1.0 / math.log(2.0))


def _enter_product_with_log(logarithm: str, *aten: str) -> None:
    @TABLE.handles(*aten)
    def product_with_log(i: Builder, self: Operand, other: Operand) -> SSAValue:
        """0 where `self` is, unless the other one is NaN."""
        wide = compute_type(i.element)
        x, y = (o if isinstance(o, SSAValue) else i.number(o, wide) for o in (self, other))
        product = i.call("mul", x, i.call(logarithm, y, element=wide), element=wide)
        zero = i.call("eq", x, 0, element=i1)
        number = i.call("eq", y, y, element=i1)
        return i.where(i.call("and", zero, number, element=i1), 0.0, product)


_enter_product_with_log("log", "xlogy", "special_xlogy")
_enter_product_with_log("log1p", "special_xlog1py")
