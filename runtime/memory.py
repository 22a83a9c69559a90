"""Where a call's memory comes from, and tensors as torch sees them."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import torch
from torch import Tensor

from dlcb.errors import InternalError
from dlcb.runtime.plan import CallPlan, Place, Root, extent

ALIGNMENT_BYTES = 16
_POISON = 0xFF


class Allocator:
    """Memory from torch's caching allocator. `separate_buffers`: plans shall not put buffers into one arena."""

    separate_buffers = False

    def bytes(self, count: int, device: torch.device) -> Tensor:
        return torch.empty(count, dtype=torch.uint8, device=device)

    def tensor(self, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty_strided(sizes, strides, dtype=dtype, device=device)

    def root(self, root: Root, device: torch.device) -> Tensor:
        """Fresh memory for an arena, a separate buffer or an output."""
        if root.kind == "output":
            return self.tensor(root.sizes, root.strides, root.dtype, device)
        return self.bytes(root.sizes[0], device)


class HostileAllocator(Allocator):
    """For tests on the CPU: all memory starts as 0xFF bytes, which are NaN, -1 or true. With `guard` every buffer and
    output is a mapping of its own whose end, up to 16-byte alignment, is the end of a page that may be used: one step
    further is a crash."""

    def __init__(self, guard: bool) -> None:
        self.separate_buffers = guard
        self._guard = guard

    def bytes(self, count: int, device: torch.device) -> Tensor:
        memory = _before_guard_page(count) if self._guard and count else super().bytes(count, device)
        return memory.fill_(_POISON)

    def tensor(self, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        memory = self.bytes(extent(sizes, strides) * dtype.itemsize, device)
        return memory.view(dtype).as_strided(sizes, strides)


def _before_guard_page(count: int) -> Tensor:
    """`count` bytes, aligned, that end where no byte may be touched. Unmapped when the tensor's storage goes."""
    page = mmap.PAGESIZE
    room = -(-count // page) * page
    mapping = mmap.mmap(-1, room + page)
    whole = torch.frombuffer(mapping, dtype=torch.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(whole.data_ptr() + room), ctypes.c_size_t(page), 0):
        raise InternalError(f"mprotect of a guard page failed with errno {ctypes.get_errno()}")
    start = (room - count) // ALIGNMENT_BYTES * ALIGNMENT_BYTES
    return whole[start : start + count]


class Tensors:
    """The roots of one call as torch tensors, and the places in them. A root that is not there yet, or no more, is
    None."""

    def __init__(self, plan: CallPlan, roots: list[Tensor | None]) -> None:
        self.roots = roots
        self._plan = plan
        self._typed: dict[tuple[int, torch.dtype], Tensor] = {}

    def root(self, number: int) -> Tensor:
        tensor = self.roots[number]
        if tensor is None:
            raise InternalError(f"{self._plan.roots[number].kind} root {number} is used outside its life")
        return tensor

    def tensor(self, place: Place) -> Tensor:
        root = self.root(place.root)
        if place.whole:
            return root
        if root.dtype == place.dtype:
            return view_at(root, place)
        key = (place.root, place.dtype)
        typed = self._typed.get(key)
        if typed is None:
            typed = self._typed[key] = root[: root.numel() // place.dtype.itemsize * place.dtype.itemsize].view(
                place.dtype
            )
        return view_at(typed, place)


def view_at(root: Tensor, place: Place) -> Tensor:
    """The place in a root of its dtype."""
    return torch.as_strided(root, place.sizes, place.strides, root.storage_offset() + place.offset)
