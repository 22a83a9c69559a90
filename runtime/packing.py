"""The argument arrays of a plan's launches: written once, then only the addresses of roots that moved are replaced."""

from __future__ import annotations

import ctypes

from dlcb.runtime.plan import CallPlan, Launch

_SLOT_BYTES = 8


class ArgumentPack:
    """For each launch, in C's form, an array of pointers to its arguments' values. Every value has eight bytes, of
    which a 32-bit integer uses the lower four. `pointers[i]` is the address of step i's array (0 for a library
    call)."""

    def __init__(self, plan: CallPlan) -> None:
        self._addresses: list[int] = [0] * len(plan.roots)
        self._uses: list[list[tuple[int, int, int]]] = [[] for _ in plan.roots]
        """For each root: (step, number of the value, byte offset in the root)."""
        values: list[int] = []
        starts: list[int] = []
        for number, step in enumerate(plan.steps):
            starts.append(len(values))
            if isinstance(step, Launch):
                for root, offset in step.tensors:
                    self._uses[root].append((number, len(values), offset))
                    values.append(offset)
                values += step.integers
        count = len(values)
        self._values = (ctypes.c_uint64 * count)(*values)
        first = ctypes.addressof(self._values)
        self._arrays = (ctypes.c_uint64 * count)(*range(first, first + count * _SLOT_BYTES, _SLOT_BYTES))
        arrays = ctypes.addressof(self._arrays)
        self.pointers: tuple[int, ...] = tuple(
            arrays + start * _SLOT_BYTES if isinstance(step, Launch) else 0
            for start, step in zip(starts, plan.steps, strict=True)
        )

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
