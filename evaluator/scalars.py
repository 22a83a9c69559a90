"""The scalar functions of `dialects/scalar.py` on arrays.

Half precision lives in float32 arrays whose values the type holds; `convert` rounds to them. Integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from dlcb.dialects.scalar import FUNCTIONS
from dlcb.dialects.types import bf16, f16, f32, f64, i1, i8, i16, i32, i64, is_float, ui8
from dlcb.errors import InternalError

Array: TypeAlias = NDArray[Any]
Binary: TypeAlias = Callable[[Array, Array], Array]

DTYPE: dict[Attribute, type[np.generic]] = {
    f16: np.float32,
    bf16: np.float32,
    f32: np.float32,
    f64: np.float64,
    i1: np.bool_,
    ui8: np.uint8,
    i8: np.int8,
    i16: np.int16,
    i32: np.int32,
    i64: np.int64,
}
"""The dtype of the arrays that hold elements of each type."""


def _round_to_f16(array: Array) -> Array:
    return array.astype(np.float16).astype(np.float32)


def _round_to_bf16(array: Array) -> Array:
    """To the nearest, ties to even: the upper half of the float32's bits. NaN stays NaN."""
    bits = array.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), array, rounded.view(np.float32))


_BY_WAY_OF: dict[Attribute, type[np.generic]] = {ui8: np.int64, i8: np.int32, i16: np.int32}
"""How a float becomes a narrow integer, which wraps then."""


def convert(array: Array, element: Attribute) -> Array:
    """The values in an element type: rounded for half precision (through f32), towards zero from float to integer."""
    with np.errstate(all="ignore"):
        if element == i1:
            return np.asarray(array != 0)
        source = np.asarray(array)
        if source.dtype.kind == "f" and element in _BY_WAY_OF:
            source = source.astype(_BY_WAY_OF[element])
        out = source.astype(DTYPE[element], copy=False)
        if element == f16:
            return _round_to_f16(out)
        return _round_to_bf16(np.atleast_1d(out)).reshape(out.shape) if element == bf16 else out


def _vectorized(function: Callable[[float], float]) -> Callable[[Array], Array]:
    each = np.vectorize(function, otypes=[np.float64])
    return lambda x: each(x).astype(x.dtype)


def _by_kind(on_integers: Binary, on_floats: Binary) -> Binary:
    return lambda a, b: on_floats(a, b) if a.dtype.kind == "f" else on_integers(a, b)


def _nonzero_divisor(divide: Binary) -> Binary:
    """Division of integers where dividing by 0 gives 0."""
    return lambda a, b: np.where(b == 0, 0, divide(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _truncated(a: Array, b: Array) -> Array:
    quotient, remainder = np.floor_divide(a, b), np.remainder(a, b)
    return quotient + ((remainder != 0) & ((a < 0) != (b < 0)))


def _float_mod(a: Array, b: Array) -> Array:
    """A remainder of 0 keeps the dividend's sign."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _float_truncdiv(a: Array, b: Array) -> Array:
    return np.trunc(a / b)


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Rounded from a wider type, which is once but for ties."""
    wider = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wider) * b + c).astype(a.dtype)


def _inverse_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sign(x: Array) -> Array:
    return np.sign(np.where(np.isnan(x), 0, x)).astype(x.dtype)


def _integer_pow(base: Array, exponent: Array) -> Array:
    """A negative power is that of 1 / base, rounded towards zero."""
    power = np.power(base, np.maximum(exponent, 0))
    unit = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, unit, power).astype(base.dtype)


def _shift_left(a: Array, by: Array) -> Array:
    bits = a.dtype.itemsize * 8
    outside = (by < 0) | (by >= bits)
    return np.where(outside, 0, a << np.where(outside, 0, by)).astype(a.dtype)


def _shift_right(a: Array, by: Array) -> Array:
    outside = (by < 0) | (by >= a.dtype.itemsize * 8)
    return np.where(outside, np.where(a < 0, -1, 0), a >> np.where(outside, 0, by)).astype(a.dtype)


def _log_gamma(x: float) -> float:
    pole = x == -math.inf or (x <= 0 and x == math.floor(x))
    try:
        return math.inf if pole else math.lgamma(x)
    except OverflowError:
        return math.inf


def _first_of_equals(extremum: np.ufunc) -> Binary:
    return lambda a, b: np.where(a == b, a, extremum(a, b))


SCALARS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": _by_kind(_nonzero_divisor(np.floor_divide), np.floor_divide),
    "truncdiv": _by_kind(_nonzero_divisor(_truncated), _float_truncdiv),
    "mod": _by_kind(_nonzero_divisor(np.remainder), _float_mod),
    "fmod": _by_kind(_nonzero_divisor(np.fmod), np.fmod),
    "pow": _by_kind(_integer_pow, np.power),
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "maximum": _first_of_equals(np.maximum),
    "minimum": _first_of_equals(np.minimum),
    "fast_maximum": np.maximum,
    "fast_minimum": np.minimum,
    "logaddexp": np.logaddexp,
    "neg": np.negative,
    "abs": np.abs,
    "sign": _sign,
    "exp": np.exp,
    "fast_exp": np.exp,
    "fast_div": np.true_divide,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": _inverse_root,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _vectorized(math.erf),
    "erfc": _vectorized(math.erfc),
    "lgamma": _vectorized(_log_gamma),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "isnan": np.isnan,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.bitwise_not,
    "shl": _shift_left,
    "shr": _shift_right,
    "fma": _multiply_add,
    "select": np.where,
}
"""Every function of the table but `cast`, which is `convert`."""


def apply(function: str, element: Attribute, *operands: Array) -> tuple[Array, Attribute]:
    """The function of operands of the type `element` (a `select`'s condition aside), and the type of the result."""
    known = FUNCTIONS[function]
    if len(operands) != known.arity:
        raise InternalError(f"{function} takes {known.arity} operands, got {len(operands)}")
    if known.domain == "float" and not is_float(element):
        raise InternalError(f"{function} is a function of floats, its operands are {element}")
    with np.errstate(all="ignore"):
        result = np.asarray(SCALARS[function](*operands))
    wanted = i1 if known.result == "bool" else element
    if result.dtype != DTYPE[wanted]:
        raise InternalError(f"{function} of {element} gave {result.dtype}, expected {DTYPE[wanted].__name__}")
    return result, wanted


_COMBINING: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logaddexp": np.logaddexp,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""How numpy combines the elements of an axis."""


def fold(function: str, array: Array) -> Array:
    """The array reduced along its first axis, which is not empty, in its own type."""
    with np.errstate(all="ignore"):
        return np.asarray(_combining(function).reduce(array, axis=0, dtype=array.dtype))


def accumulate(function: str, array: Array) -> Array:
    """The running reductions along the array's first axis, in its own type; of equal extrema the last one."""
    with np.errstate(all="ignore"):
        running = np.asarray(_combining(function).accumulate(array, axis=0, dtype=array.dtype))
    if function not in ("maximum", "minimum"):
        return running
    places = np.arange(len(array)).reshape(-1, *[1] * (array.ndim - 1))
    last = np.maximum.accumulate(np.where(array == running, places, 0), axis=0)
    return np.where(running == running, np.take_along_axis(array, last, axis=0), running)


def _combining(function: str) -> np.ufunc:
    ufunc = _COMBINING.get(function)
    if ufunc is None:
        raise InternalError(f"{function} can't reduce: expected one of {', '.join(_COMBINING)}")
    return ufunc
