"""The vendor's attention, and which of its routines computes it.

On one H200 (torch 2.11, halves): cuDNN's takes 8 µs where the others take 12 (8 × 12 heads of 128 × 64 with a mask of
keys), 41 where they take 105 (16 × 12, 384 × 64), 952 where they take 1642 (4 × 16, 4096 × 128); but 86 where they take
48 for 3072 windows of 49 × 32, and the first call of any size takes 40 ms, in which it builds a plan.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.backends import cuda

SHORT = 64
"""Up to so many queries and keys, one tile of a matrix unit, cuDNN's routine is the slower one."""

_choosing = threading.Lock()


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """softmax(q @ k.T * scale + mask) @ v over the last two dimensions; a head of k and v may serve several of q."""
    if max(q.size(-2), k.size(-2)) <= SHORT:
        return quick_attention(q, k, v, mask, causal, scale)
    return _attention(q, k, v, mask, causal, scale)


def quick_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    """The same by a routine that needs no plan for new sizes, where there is one that needs no room for all scores."""
    if q.is_cuda and _may_do_without_cudnn(q, k, v, mask, causal):
        with _without_cudnn():
            return _attention(q, k, v, mask, causal, scale)
    return _attention(q, k, v, mask, causal, scale)


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=_is_grouped(q, k)
    )


def _is_grouped(q: Tensor, k: Tensor) -> bool:
    return q.dim() > 2 and q.size(-3) != k.size(-3)


def _may_do_without_cudnn(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> bool:
    asked = cuda.SDPAParams(q, k, v, mask, 0.0, causal, _is_grouped(q, k))
    return cuda.can_use_flash_attention(asked) or cuda.can_use_efficient_attention(asked)


@contextmanager
def _without_cudnn() -> Generator[None]:
    """torch's choice is one for the process: other threads may meet it, and get another routine's result."""
    with _choosing:
        allowed = cuda.cudnn_sdp_enabled()
        cuda.enable_cudnn_sdp(False)
        try:
            yield
        finally:
            cuda.enable_cudnn_sdp(allowed)
