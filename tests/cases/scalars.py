"""Programs of many elementwise operations of the same operands, for all dtypes; operations that eager refuses for a
dtype are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Operation = Callable[..., Tensor]

OF_ONE: list[Operation] = [
    torch.neg, torch.abs, torch.sign, torch.sgn, torch.signbit, torch.exp, torch.exp2, torch.expm1, torch.log,
    torch.log2, torch.log10, torch.log1p, torch.sqrt, torch.rsqrt, torch.sin, torch.cos, torch.tan, torch.asin,
    torch.acos, torch.atan, torch.sinh, torch.cosh, torch.tanh, torch.asinh, torch.acosh, torch.atanh, torch.erf,
    torch.erfc, torch.special.erfc, torch.special.exp2, torch.floor, torch.ceil, torch.trunc, torch.round, torch.frac,
    torch.square, torch.reciprocal, torch.positive, torch.deg2rad, torch.rad2deg, torch.sinc, torch.logit,
    torch.isnan, torch.isinf, torch.isfinite, torch.isposinf, torch.isneginf, torch.bitwise_not, torch.logical_not,
    torch.nan_to_num, torch.sigmoid, torch.relu, F.relu6, F.hardtanh, F.hardsigmoid, F.hardswish, F.hardshrink,
    F.softplus, F.softsign, F.celu, F.elu, F.selu, F.mish, F.logsigmoid, F.silu, F.leaky_relu, F.rrelu,
    lambda x: torch.nan_to_num(x, 1.5, 7.25, -7.25), lambda x: torch.round(x, decimals=2),
    lambda x: torch.round(x, decimals=-1), lambda x: torch.logit(x, 0.1), lambda x: F.threshold(x, 1, 5),
    lambda x: F.celu(x, 0.7), lambda x: F.elu(x, 0.3), lambda x: F.softplus(x, 2.0, 5.0),
    lambda x: F.hardshrink(x, 0.0),
    lambda x: x.clamp(-1, 2), lambda x: x.clamp(min=0), lambda x: x.clamp(max=3), lambda x: x.clamp_min(1),
    lambda x: x.clamp_max(1.5), lambda x: x.clamp(2, 1), lambda x: x + 0, lambda x: x + 0.0, lambda x: x - 0.0,
    lambda x: x + -0.0, lambda x: x * 1.0, lambda x: x / 1, lambda x: 0 - x, lambda x: 0.0 + x, lambda x: x * 0,
    lambda x: (x + torch.zeros_like(x)).reciprocal(), lambda x: x + 300, lambda x: x * 77, lambda x: 5 - x,
    lambda x: x // 3, lambda x: x % 3, lambda x: x // -2.5, lambda x: x % -2.5, lambda x: torch.fmod(x, -3),
    lambda x: torch.div(x, 7, rounding_mode="trunc"), lambda x: x / 3, lambda x: 3 / x.clamp(min=1), lambda x: x**0,
    lambda x: x**1, lambda x: x**2, lambda x: x**3, lambda x: x**5, lambda x: x**0.5, lambda x: x**-0.5,
    lambda x: x**-1.0, lambda x: x**-2.0, lambda x: x**2.0, lambda x: x.clamp(max=9) ** 1.7, lambda x: 2**x.clamp(0, 9),
    lambda x: torch.float_power(x, 2), lambda x: torch.float_power(x, -1), lambda x: torch.float_power(3, x),
    lambda x: x > 1.5, lambda x: x == 0, lambda x: x <= 100, lambda x: torch.bitwise_left_shift(x, 1),
    lambda x: torch.bitwise_right_shift(x, 1), lambda x: torch.bitwise_left_shift(x, 40),
    lambda x: torch.bitwise_right_shift(x, 40), lambda x: x & 6, lambda x: x | 9, lambda x: x ^ 5,
    lambda x: torch.where(x > 0, x, 0),
    lambda x: torch.where(x > 0, x, 2.5), lambda x: x.masked_fill(x > 1, 3), lambda x: -x.abs(),
    lambda x: x * x - x * x,
    lambda x: x.to(torch.bfloat16).float(), lambda x: x.to(torch.float16).float() * 2, lambda x: x.bool(),
    lambda x: x.float().to(torch.bfloat16).double(), lambda x: x.byte(), lambda x: x.char(), lambda x: x.short(),
    lambda x: x.int(), lambda x: x.long(), lambda x: x.half(), lambda x: x.double(), lambda x: x.byte().float(),
    lambda x: (x.byte() * 3).short() - 5, lambda x: x.char().abs(), lambda x: (x.short() * 300).long(),
]  # fmt: skip

OF_TWO: list[Operation] = [
    torch.add, torch.sub, torch.mul, torch.div, torch.floor_divide, torch.remainder, torch.fmod, torch.pow,
    torch.float_power, torch.atan2, torch.hypot, torch.copysign, torch.logaddexp, torch.xlogy, torch.special.xlog1py,
    torch.heaviside, torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge,
    torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, torch.bitwise_left_shift, torch.bitwise_right_shift,
    torch.logical_and, torch.logical_or, torch.logical_xor,
    lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    lambda x, y: torch.where(x > y, x, y),
    lambda x, y: (x - y) + (y - x), lambda x, y: x * y // 7, lambda x, y: x / y.abs(), lambda x, y: (x * y).float() / 3,
    lambda x, y: x.pow(5) // 3, lambda x, y: torch.trunc(x / y), lambda x, y: x + y * 1, lambda x, y: torch.rsub(x, y),
]  # fmt: skip

TIES: list[Operation] = [
    torch.maximum, torch.minimum, torch.fmax, torch.fmin, lambda x, y: x.clamp(y, None), lambda x, y: x.clamp(max=y),
    lambda x, y: F.softshrink(x),
]  # fmt: skip
"""Of 0 and -0 eager gives either, by where an element stands."""

QUOTIENTS: list[Operation] = [
    torch.floor_divide, torch.remainder, torch.fmod, lambda x, y: torch.div(x, y, rounding_mode="floor"),
    lambda x, y: torch.div(x, y, rounding_mode="trunc"), lambda x, y: torch.trunc(x / y), lambda x, y: x // y * y,
    lambda x, y: (x * 10).int() % (y * 10).int().clamp(min=1), lambda x, y: x // 0.1, lambda x, y: x % 0.3,
]  # fmt: skip
"""Off by one where a quotient is not exact."""

OF_THREE: list[Operation] = [
    lambda x, y, z: torch.lerp(x, y, z), lambda x, y, z: torch.lerp(x, y, 0.75), lambda x, y, z: torch.lerp(x, y, 0.25),
    torch.addcmul, lambda x, y, z: torch.addcmul(x, y, z, value=3), lambda x, y, z: torch.addcdiv(x, y, z),
    lambda x, y, z: torch.addcdiv(x, y, z, value=0.3), lambda x, y, z: torch.clamp(x, y, z),
    lambda x, y, z: torch.add(x, y, alpha=2), lambda x, y, z: torch.sub(x, y, alpha=3),
    lambda x, y, z: torch.logaddexp2(x, y),
    lambda x, y, z: F.glu(torch.stack([x, y]), 0)[0], lambda x, y, z: torch.where(z > 0, x, y),
]  # fmt: skip


def eager(operation: Operation, operands: tuple[Tensor, ...]) -> Tensor | None:
    """What eager gives, None where it refuses the dtype."""
    try:
        return operation(*(o.clone() for o in operands))
    except (RuntimeError, TypeError):
        return None


def together(operations: list[Operation]) -> Callable[..., Any]:
    """One program that gives the results of all."""
    return lambda *operands: tuple(operation(*operands) for operation in operations)
