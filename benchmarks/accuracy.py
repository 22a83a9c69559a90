"""The error measure used everywhere: worst ‖out − ref‖ / ‖ref‖ over rows of the last dimension, against a float64
reference.

An output passes if that is at most 1.5 times eager's own error in the same dtype, plus 1e-6, and NaN and infinities
stand where eager has them. Integer and bool outputs must be equal.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FACTOR = 1.5
FLOOR = 1e-6


@dataclass(frozen=True, slots=True)
class Verdict:
    """`error` and `eager_error` are the measure; `reason` is None where the output passes."""

    error: float
    eager_error: float
    reason: str | None

    @property
    def ok(self) -> bool:
        return self.reason is None


def row_error(out: Tensor, ref: Tensor) -> float:
    """The worst relative error of a row; rows whose reference is 0 count absolutely. Places that are not finite in the
    reference are left out."""
    if out.numel() == 0:
        return 0.0
    a, b = _together(out.double(), ref.double())
    if a.dim() == 0:
        a, b = a[None], b[None]
    finite = torch.isfinite(b) & torch.isfinite(a)
    a, b = torch.where(finite, a, 0.0), torch.where(finite, b, 0.0)
    norm = b.norm(dim=-1)
    return ((a - b).norm(dim=-1) / torch.where(norm == 0, 1.0, norm)).max().item()


def _together(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Both where they are, if that is one device; else on the CPU."""
    return (a, b) if a.device == b.device else (a.cpu(), b.cpu())


def judge(out: Tensor, eager: Tensor, ref: Tensor) -> Verdict:
    """Compare one output with eager's and with the float64 reference."""
    if out.shape != eager.shape or out.dtype != eager.dtype:
        return Verdict(0, 0, f"{out.dtype} {tuple(out.shape)}, eager gives {eager.dtype} {tuple(eager.shape)}")
    if not out.is_floating_point():
        differ = int(torch.ne(*_together(out, eager)).sum())
        return Verdict(0, 0, f"{differ} elements differ" if differ else None)
    for what, test in (("NaN", torch.isnan), ("infinities", torch.isinf)):
        if not torch.equal(*_together(test(out), test(eager))):
            return Verdict(0, 0, f"{what} at other places than eager")
    error, own = row_error(out, ref), row_error(eager, ref)
    fine = error <= FACTOR * own + FLOOR
    return Verdict(error, own, None if fine else f"error {error:.3g}, eager's own is {own:.3g}")


def in_float64(model: Callable[..., Any]) -> Callable[..., Any]:
    """The model with float64 parameters on the CPU."""
    return copy.deepcopy(model).cpu().double() if isinstance(model, torch.nn.Module) else model


def as_float64(value: Any) -> Any:
    """Floating tensors in nested arguments as float64 on the CPU."""
    if isinstance(value, Tensor):
        return value.cpu().double() if value.is_floating_point() else value.cpu()
    if isinstance(value, Mapping):
        return {k: as_float64(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(as_float64(v) for v in value)
    return value


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors of nested results, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors_of(v)]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_of(v)]
    return []


def judge_all(out: Any, eager: Any, ref: Any) -> list[Verdict]:
    """Compare nested results."""
    outs, eagers, refs = tensors_of(out), tensors_of(eager), tensors_of(ref)
    if len(outs) != len(eagers):
        return [Verdict(0, 0, f"{len(outs)} results, eager gives {len(eagers)}")]
    return [judge(o, e, r) for o, e, r in zip(outs, eagers, refs, strict=True)]
