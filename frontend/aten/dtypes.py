"""Torch's dtypes as element types, and promotion by torch itself."""

from __future__ import annotations

from functools import cache

import torch
from xdsl.ir import Attribute

from dlcb.dialects.types import bf16, f16, f32, f64, i1, i8, i16, i32, i64, ui8
from dlcb.errors import UnsupportedError

ELEMENT_OF: dict[torch.dtype, Attribute] = {
    torch.float16: f16,
    torch.bfloat16: bf16,
    torch.float32: f32,
    torch.float64: f64,
    torch.int64: i64,
    torch.int32: i32,
    torch.int16: i16,
    torch.int8: i8,
    torch.uint8: ui8,
    torch.bool: i1,
}
DTYPE_OF: dict[Attribute, torch.dtype] = {element: dtype for dtype, element in ELEMENT_OF.items()}


def element_of(dtype: torch.dtype) -> Attribute:
    found = ELEMENT_OF.get(dtype)
    if found is None:
        raise UnsupportedError(why_not_dtype(dtype))
    return found


def why_not_dtype(dtype: torch.dtype) -> str:
    known = ", ".join(str(d).removeprefix("torch.") for d in ELEMENT_OF)
    return f"a tensor of {str(dtype).removeprefix('torch.')}; DLCB has {known}"


@cache
def _example(dtype: torch.dtype, scalar: bool) -> torch.Tensor:
    return torch.empty(() if scalar else (1,), dtype=dtype, device="meta")


@cache
def promoted(a: torch.dtype, a_scalar: bool, b: torch.dtype | type, b_scalar: bool) -> torch.dtype:
    """The common dtype of two operands; `scalar` says of rank 0. A Python number is given by its type."""
    if isinstance(b, torch.dtype):
        return torch.result_type(_example(a, a_scalar), _example(b, b_scalar))
    return torch.result_type(_example(a, a_scalar), b(1))


def rounded(value: float, dtype: torch.dtype) -> float | int | bool:
    """A Python number as this dtype holds it; an integer wraps."""
    exact = torch.float64 if isinstance(value, float) else torch.int64
    return torch.tensor(value, dtype=exact).to(dtype).item()
