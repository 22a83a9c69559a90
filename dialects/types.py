"""Element types shared by all levels: constants, widths, promotion of what is computed.

Integers without a sign in their name are signed, in two's complement; `ui8` is MLIR's spelling of an unsigned byte.
"""

import struct
from functools import cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute

f16 = Float16Type()
bf16 = BFloat16Type()
f32 = Float32Type()
f64 = Float64Type()
i1 = IntegerType(1)
ui8 = IntegerType(8, Signedness.UNSIGNED)
i8 = IntegerType(8)
i16 = IntegerType(16)
i32 = IntegerType(32)
i64 = IntegerType(64)
index = IndexType()

NAMES: dict[str, Attribute] = {
    "f16": f16,
    "bf16": bf16,
    "f32": f32,
    "f64": f64,
    "i1": i1,
    "ui8": ui8,
    "i8": i8,
    "i16": i16,
    "i32": i32,
    "i64": i64,
}
TYPE_NAME: dict[Attribute, str] = {t: n for n, t in NAMES.items()}
_NAME_BY_IDENTITY = {id(t): n for n, t in NAMES.items()}
BYTES: dict[Attribute, int] = {f16: 2, bf16: 2, f32: 4, f64: 8, i1: 1, ui8: 1, i8: 1, i16: 2, i32: 4, i64: 8}
FLOATS = frozenset({f16, bf16, f32, f64})
INTEGERS: tuple[Attribute, ...] = (ui8, i8, i16, i32, i64)
_ORDER = (i1, *INTEGERS, f32, f64)


_HALF_CLASSES = frozenset({Float16Type, BFloat16Type})
_FLOAT_CLASSES = frozenset({Float16Type, BFloat16Type, Float32Type, Float64Type})


def type_name(element: Attribute) -> str:
    """`TYPE_NAME`, without hashing the types above: hashing an attribute costs more than a microsecond."""
    return _NAME_BY_IDENTITY.get(id(element)) or TYPE_NAME[element]


def is_float(element: Attribute) -> bool:
    return type(element) in _FLOAT_CLASSES


def compute_type(element: Attribute) -> Attribute:
    """The type in which elements of this type are computed: f32 for half precision, else the type itself."""
    return f32 if type(element) in _HALF_CLASSES else element


def common_compute_type(*elements: Attribute) -> Attribute:
    """The smallest compute type that holds all of them."""
    largest = max((compute_type(e) for e in elements), key=_ORDER.index)
    return i16 if largest == i8 and ui8 in elements else largest


@cache
def integer_limits(element: Attribute) -> tuple[int, int]:
    """The least and the largest number of an integer type; truth values are 0 and 1."""
    bits = 1 if element == i1 else 8 * BYTES[element]
    if element in (i1, ui8):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def wrapped(value: int, element: Attribute) -> int:
    """The number of the integer type that is equal to the value modulo the type's range; of truth values, whether it is
    not 0."""
    if element == i1:
        return int(value != 0)
    low, high = integer_limits(element)
    return (value - low) % (high - low + 1) + low


def rounded(value: float, element: Attribute) -> float:
    """The number of the float type next to the value, ties to even; half precision is reached through f32."""
    if element == f64:
        return value
    single = _packed(value, "f")
    if element == f16:
        return _packed(single, "e")
    return _to_bf16(single) if element == bf16 else single


def _packed(value: float, code: str) -> float:
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return value * float("inf")


def _to_bf16(value: float) -> float:
    """The upper half of the float32's bits, rounded; NaN stays NaN."""
    if value != value:
        return value
    (bits,) = struct.unpack("I", struct.pack("f", value))
    return struct.unpack("f", struct.pack("I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]
