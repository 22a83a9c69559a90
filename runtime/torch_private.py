"""What the runtime uses of torch that is not public, each with a public way beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _stream_handle(index: int) -> int:
    return torch.cuda.current_stream(index).cuda_stream


raw_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", _stream_handle)  # pyright: ignore
"""The handle of the current stream of a device. The private function takes a tenth of the time that a
`torch.cuda.Stream` takes."""

_addmm_activation: Any = getattr(torch.ops.aten, "_addmm_activation", None)


def addmm_relu(bias: Tensor, a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
    """max(a @ b + bias, 0) of matrices; one cuBLASLt call where torch has that."""
    if _addmm_activation is None:
        return torch.addmm(bias, a, b, out=out).relu_()
    if out is None:
        return _addmm_activation.default(bias, a, b)
    return _addmm_activation.out(bias, a, b, out=out)
