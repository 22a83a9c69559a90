"""Numbers at which scalar functions go wrong, and a comparison that looks at every element of a result: NaN,
infinities, the sign of 0, and how many representable numbers lie between."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DTYPES = (torch.bool, *INTEGERS, *FLOATS)
_BITS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
INF, NAN = float("inf"), float("nan")
CLOSE = {torch.float16: 2, torch.bfloat16: 2, torch.float32: 6, torch.float64: 8}
"""How many representable numbers a result may be away."""


def edges(dtype: torch.dtype) -> Tensor:
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        signed = [-1, -2, -3, -7, -100] if info.min else [200, 254]
        return torch.tensor([0, 1, 2, 3, 5, 7, 8, 13, 31, 64, 100, info.max, info.min, *signed], dtype=dtype)
    info = torch.finfo(dtype)
    special = [0.0, -0.0, INF, -INF, NAN, info.tiny, -info.tiny / 4, info.max, info.min]
    usual = [1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, -3.5, 3.7, 0.1, -0.3, 7, 20.5, -20.5, 1e-3, -8, 64]
    return torch.tensor([*special, *usual], dtype=dtype)


def all_pairs(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    places = torch.tensor(list(product(range(len(a)), range(len(b)))))
    return a[places[:, 0]], b[places[:, 1]]


def _order(x: Tensor) -> Tensor:
    """Integers that count the representable numbers; 0 and -0 are one."""
    bits = x.contiguous().view(_BITS[x.dtype]).long()
    return torch.where(bits < 0, torch.iinfo(_BITS[x.dtype]).min - bits, bits)


def steps_between(a: Tensor, b: Tensor) -> Tensor:
    return (_order(a) - _order(b)).abs()


def difference(actual: Tensor, eager: Tensor, exact: Tensor, signs: bool = True) -> str | None:
    """In what a result is not eager's: integers and truth values must be equal; floats may be a few representable
    numbers away from eager's or from those of float64, and have NaN, infinities and signs of 0 where eager or float64
    has them."""
    if (actual.dtype, actual.shape) != (eager.dtype, eager.shape):
        return f"{actual.dtype} {tuple(actual.shape)}, eager gives {eager.dtype} {tuple(eager.shape)}"
    if not actual.is_floating_point():
        wrong = actual != eager
    else:
        rounded = exact.to(eager.dtype)
        wrong = _apart(actual, eager, signs) & _apart(actual, rounded, signs)
    if not wrong.any():
        return None
    places = wrong.nonzero().flatten()[:4].tolist()
    return f"at {places}: {actual[wrong][:4].tolist()}, eager gives {eager[wrong][:4].tolist()}"


def _apart(actual: Tensor, expected: Tensor, signs: bool) -> Tensor:
    plain = actual.isfinite() & expected.isfinite()
    near = torch.where(plain, steps_between(actual, expected) <= CLOSE[actual.dtype], False)
    if signs:
        near &= ~((actual == 0) & (expected == 0) & (actual.signbit() != expected.signbit()))
    return ~(near | (actual == expected) & ~plain | actual.isnan() & expected.isnan())
