"""The argument arrays of a plan's launches: written once, then only the addresses of roots that moved are replaced."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from dlcb.runtime.plan import CallPlan, Launch, Step

_SLOT_BYTES = 8


class ArgumentPack:
    """For each launch, in C's form, an array of pointers to its arguments' values. Every value has eight bytes, of
    which a 32-bit integer uses the lower four. `pointers[i]` is the address of step i's array (0 for a library
    call)."""

    def __init__(self, plan: CallPlan) -> None:
        counts = [_argument_count(step) for step in plan.steps]
        total = max(sum(counts), 1)
        self._values = (ctypes.c_uint64 * total)()
        self._arrays = (ctypes.c_uint64 * total)()
        self._addresses: list[int] = [0] * len(plan.roots)
        self._uses: list[list[tuple[int, int, int]]] = [[] for _ in plan.roots]
        """For each root: (step, number of the value, byte offset in the root)."""
        first = ctypes.addressof(self._values)
        for number in range(total):
            self._arrays[number] = first + number * _SLOT_BYTES
        self.pointers: tuple[int, ...] = self._fill(plan.steps, counts)

    def _fill(self, steps: Sequence[Step], counts: Sequence[int]) -> tuple[int, ...]:
        start = 0
        pointers: list[int] = []
        for number, (step, count) in enumerate(zip(steps, counts, strict=True)):
            pointers.append(ctypes.addressof(self._arrays) + start * _SLOT_BYTES if isinstance(step, Launch) else 0)
            if isinstance(step, Launch):
                for i, place in enumerate(step.tensors):
                    self._uses[place.root].append((number, start + i, place.offset_bytes))
                for i, (value, _) in enumerate(step.integers, start + len(step.tensors)):
                    self._values[i] = value & 0xFFFF_FFFF_FFFF_FFFF
            start += count
        for uses in self._uses:
            for _, number, offset in uses:
                self._values[number] = offset
        return tuple(pointers)

    def point(self, root: int, address: int) -> bool:
        """Let all launches see the root at that address; whether it moved."""
        if self._addresses[root] == address:
            return False
        self._addresses[root] = address
        for _, number, offset in self._uses[root]:
            self._values[number] = address + offset
        return True

    def steps_of(self, root: int) -> list[int]:
        """The launches that take an address in that root."""
        return [step for step, _, _ in self._uses[root]]

    def values_of(self, step: int, count: int) -> list[int]:
        """The first `count` values of a launch, as they are passed."""
        start = (self.pointers[step] - ctypes.addressof(self._arrays)) // _SLOT_BYTES
        return list(self._values[start : start + count])


def _argument_count(step: Step) -> int:
    return len(step.tensors) + len(step.integers) if isinstance(step, Launch) else 0
