"""How element types, constants and scalar functions are spelled in a kernel's text: tables, no decisions elsewhere.

The functions named `dlcb_…` are in `device/common.h`. Floats use the precise functions of C (`expf`, not
`__expf`), where the function is not a `fast_` one.
"""

from __future__ import annotations

import math
import struct
from functools import cache

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from dlcb.dialects.types import INTEGERS, NAMES, TYPE_NAME, f16, f32, i1, integer_limits, rounded

VALUE: dict[str, str] = {
    "i1": "bool",
    "ui8": "dlcb_u8",
    "i8": "dlcb_i8",
    "i16": "dlcb_i16",
    "i32": "int",
    "i64": "dlcb_i64",
    "f16": "dlcb_f16",
    "bf16": "dlcb_bf16",
    "f32": "float",
    "f64": "double",
}
"""The C type of a value in a register."""

STORED: dict[str, str] = VALUE | {"i1": "dlcb_u8"}
"""The C type of an element in memory."""

FROM_STORED: dict[str, str] = dict.fromkeys(VALUE, "{0}") | {"i1": "({0} != 0)"}
"""The value of a stored element."""

_INTEGERS = tuple(TYPE_NAME[element] for element in INTEGERS)
_FLOATS = ("f32", "f64")
_NUMBERS = (*_INTEGERS, *_FLOATS)

_INFIX = {"add": "+", "sub": "-", "mul": "*"}
_CALLED = ("maximum", "minimum", "fast_maximum", "fast_minimum", "floordiv", "mod")
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BITS = {"and": "&", "or": "|", "xor": "^"}
_TRUTH = {"and": "{0} && {1}", "or": "{0} || {1}", "xor": "{0} != {1}", "not": "!{0}"}
_C_FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc "
    "lgamma floor ceil trunc"
).split()


def _numbers() -> dict[tuple[str, str], str]:
    table: dict[tuple[str, str], str] = {}
    for kind in _NUMBERS:
        table |= {(name, kind): f"{{0}} {sign} {{1}}" for name, sign in _INFIX.items()}
        table |= {(name, kind): f"dlcb_{name}({{0}}, {{1}})" for name in _CALLED}
        table["fmod", kind] = "dlcb_remainder({0}, {1})"
        table["sign", kind] = "dlcb_sign({0})"
        table["neg", kind] = "-{0}"
    return table


def _integers() -> dict[tuple[str, str], str]:
    table: dict[tuple[str, str], str] = {}
    for kind in _INTEGERS:
        table |= {(name, kind): f"{{0}} {sign} {{1}}" for name, sign in _BITS.items()}
        table |= {(name, kind): f"dlcb_{name}({{0}}, {{1}})" for name in ("truncdiv", "shl", "shr")}
        table["pow", kind] = "dlcb_integer_pow({0}, {1})"
        table["abs", kind] = "{0} < 0 ? -{0} : {0}"
        table["not", kind] = "~{0}"
    return table


def _floats() -> dict[tuple[str, str], str]:
    table: dict[tuple[str, str], str] = {}
    for kind, suffix in (("f32", "f"), ("f64", "")):
        table |= {(name, kind): f"{name}{suffix}({{0}})" for name in _C_FUNCTIONS}
        table |= {(name, kind): f"{name}{suffix}({{0}}, {{1}})" for name in ("pow", "atan2", "hypot", "copysign")}
        table["logaddexp", kind] = "dlcb_logaddexp({0}, {1})"
        table["fma", kind] = f"fma{suffix}({{0}}, {{1}}, {{2}})"
        table["abs", kind] = f"fabs{suffix}({{0}})"
        table["round", kind] = f"rint{suffix}({{0}})"
        table["rsqrt", kind] = "dlcb_rsqrt({0})"
        table["div", kind] = "{0} / {1}"
        table["fast_div", kind] = "dlcb_fast_div({0}, {1})"
        table["fast_exp", kind] = "dlcb_fast_exp({0})"
        table["truncdiv", kind] = f"trunc{suffix}({{0}} / {{1}})"
        table["isnan", kind] = "{0} != {0}"
    return table


def _any() -> dict[tuple[str, str], str]:
    table = {(name, "i1"): text for name, text in _TRUTH.items()}
    for kind in VALUE:
        table["select", kind] = "{0} ? {1} : {2}"
    for kind in ("i1", *_NUMBERS):
        table |= {(name, kind): f"{{0}} {sign} {{1}}" for name, sign in _COMPARISONS.items()}
    return table


FUNCTION: dict[tuple[str, str], str] = _numbers() | _integers() | _floats() | _any()
"""The spelling of a function, by its name and the type of its last operand; {0} … stand for names or constants."""


_BY_WAY_OF = dict.fromkeys(_INTEGERS, "dlcb_to_i32") | dict.fromkeys(("ui8", "i64"), "dlcb_to_i64")
"""How a float becomes an integer; a narrow one wraps then, as eager's does."""


def _casts() -> dict[tuple[str, str], str]:
    table = {(a, b): f"({VALUE[b]}){{0}}" for a in ("i1", *_NUMBERS) for b in _NUMBERS}
    table |= {(a, b): f"({VALUE[b]}){_BY_WAY_OF[b]}({{0}})" for a in _FLOATS for b in _INTEGERS}
    table |= {(kind, "i1"): "{0} != 0" for kind in ("i1", *_NUMBERS)}
    for half in ("f16", "bf16"):
        table["f32", half] = f"dlcb_to_{half}({{0}})"
        table[half, "f32"] = "dlcb_to_f32({0})"
        table[half, half] = "{0}"
    return table


CAST: dict[tuple[str, str], str] = _casts()
"""The spelling of a conversion, by the types from and to."""


def _integer(value: int, kind: str) -> str:
    """C has no negative literals, so the lowest number is one less than the one above it; none is narrower than int."""
    if kind not in ("i32", "i64"):
        return f"({VALUE[kind]})({value})"
    suffix = "LL" if kind == "i64" else ""
    if value == integer_limits(NAMES[kind])[0]:
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


def _half(value: float, element: Attribute) -> str:
    if element == f16:
        (bits,) = struct.unpack("<H", struct.pack("<e", value))
        return f"dlcb_f16{{0x{bits:04x}}}"
    (bits,) = struct.unpack("<I", struct.pack("<f", rounded(value, element)))
    return f"dlcb_bf16{{0x{bits >> 16:04x}}}"


def _float(value: float, single: bool) -> str:
    if not math.isfinite(value):
        if single:
            return f"dlcb_f32_bits(0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}u)"
        return f"dlcb_f64_bits(0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}ull)"
    text = f"{value:.9g}" if single else repr(value)
    if "." not in text and "e" not in text:
        text += ".0"
    text += "f" if single else ""
    return f"({text})" if math.copysign(1.0, value) < 0 else text


@cache
def constant(value: IntegerAttr | FloatAttr) -> str:
    """The constant as a C expression, exact to the bit, in parentheses where it starts with a sign."""
    element = value.type
    number = value.value.data
    if element == i1:
        return "true" if number else "false"
    if isinstance(number, int):
        return _integer(number, TYPE_NAME[element])
    if TYPE_NAME[element] in ("f16", "bf16"):
        return _half(number, element)
    return _float(number, element == f32)
