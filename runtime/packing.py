"""The argument arrays of a plan's launches: written once, then only the addresses of roots that moved are replaced."""

from __future__ import annotations

from array import array
from bisect import bisect_right

import torch

from dlcb.runtime.plan import CallPlan, Launch

_SLOT_BYTES = 8


class ArgumentPack:
    """For each launch, in C's form, an array of pointers to its arguments' values. Every value has eight bytes, of
    which a 32-bit integer uses the lower four. `pointers[i]` is the address of step i's array; of a library call,
    which has none, that of the next one's."""

    def __init__(self, plan: CallPlan) -> None:
        self._addresses: list[int] = [0] * len(plan.roots)
        self._uses: list[list[int]] = [[] for _ in plan.roots]
        """For each root: the numbers of the values that are addresses in it."""
        values: list[int] = []
        self._starts: list[int] = []
        """The number of the first value of each step."""
        for step in plan.steps:
            self._starts.append(len(values))
            if isinstance(step, Launch):
                for number, (root, offset) in enumerate(step.tensors, len(values)):
                    self._uses[root].append(number)
                    values.append(offset)
                values += step.integers
        self._values = array("q", values)
        first, _ = self._values.buffer_info()
        self._arrays = torch.arange(first, first + len(values) * _SLOT_BYTES, _SLOT_BYTES, device="cpu")
        arrays = self._arrays.data_ptr()
        self.pointers: tuple[int, ...] = tuple([arrays + start * _SLOT_BYTES for start in self._starts])

    def point(self, root: int, address: int) -> bool:
        """Let all launches see the root at that address; whether it moved."""
        distance = address - self._addresses[root]
        if distance == 0:
            return False
        self._addresses[root] = address
        values = self._values
        for number in self._uses[root]:
            values[number] += distance
        return True

    def steps_of(self, root: int) -> list[int]:
        """The launches that take an address in that root, one for each."""
        return [bisect_right(self._starts, number) - 1 for number in self._uses[root]]
