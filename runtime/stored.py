"""Tensors as a `.dlcb` file has them: each once, row-major, with the strides that they had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dlcb.runtime.plan import extent


def unique_tensors(
    weights: Mapping[str, Tensor], stored: dict[Any, str]
) -> tuple[dict[str, Tensor], dict[str, list[Any]]]:
    """Every distinct tensor that is not stored yet, row-major, and for each weight the name it is stored under and its
    strides. What is stored is added to `stored`."""
    tensors: dict[str, Tensor] = {}
    entries: dict[str, list[Any]] = {}
    for name, weight in weights.items():
        identity = (weight.data_ptr(), weight.dtype, tuple(weight.shape), weight.stride()) if weight.numel() else name
        first = stored.setdefault(identity, name)
        if first == name:
            tensors[name] = weight.detach().to("cpu", copy=True).contiguous()
        entries[name] = [first, list(weight.stride())]
    return tensors, entries


def are_strides(strides: Sequence[Any], tensor: Tensor) -> bool:
    """Whether they may be strides of such a tensor."""
    return len(strides) == tensor.dim() and all(type(s) is int and 0 <= s < 1 << 62 for s in strides)


def with_strides(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """The elements in memory as the strides say; torch's `RuntimeError` where there is not so much of it."""
    if tensor.stride() == tuple(strides):
        return tensor
    if not _may_overlap(tensor.shape, strides):
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
    places = torch.zeros(tensor.shape, dtype=torch.int64)
    for dim, (size, stride) in enumerate(zip(tensor.shape, strides, strict=True)):
        places += (torch.arange(size) * stride).view([size] + [1] * (tensor.dim() - 1 - dim))
    memory = torch.empty(extent(tensor.shape, strides), dtype=tensor.dtype)
    memory[places.flatten()] = tensor.flatten()
    return memory.as_strided(tensor.shape, strides)


def _may_overlap(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements may share a place; surely not where each dim steps over all that is inside of it."""
    reach = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False
