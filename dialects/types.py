"""Element types shared by all levels: constants, widths, promotion of what is computed."""

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute

f16 = Float16Type()
bf16 = BFloat16Type()
f32 = Float32Type()
f64 = Float64Type()
i1 = IntegerType(1)
i32 = IntegerType(32)
i64 = IntegerType(64)
index = IndexType()

NAMES: dict[str, Attribute] = {"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "i1": i1, "i32": i32, "i64": i64}
TYPE_NAME: dict[Attribute, str] = {t: n for n, t in NAMES.items()}
_NAME_BY_IDENTITY = {id(t): n for n, t in NAMES.items()}
BYTES: dict[Attribute, int] = {f16: 2, bf16: 2, f32: 4, f64: 8, i1: 1, i32: 4, i64: 8}
FLOATS = frozenset({f16, bf16, f32, f64})
_ORDER = (i1, i32, i64, f32, f64)


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
    return max((compute_type(e) for e in elements), key=_ORDER.index)
