"""Where buffers lie in a call's one arena, when sizes are known only at launch.

Buffers whose lives don't overlap share a *slot*. A buffer takes, of the slots that are free, one of exactly its size
(as an expression), else one whose size or its own covers the other, else any of the free ones whose size is then the
maximum of both: total bytes never grow by that. Only where no slot is free, a new one is opened. Slots lie one behind
the other, so buffers that live at the same time never overlap, whatever the sizes turn out to be. The greedy order (by
first use) needs the fewest slots (interval graph colouring: Kleinberg, Tardos, "Algorithm Design", section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcb.dialects.shape.expr import Expr, add, ceildiv, const, maximum, mul, sub

ALIGNMENT_BYTES = 256


@dataclass(frozen=True)
class Lifetime:
    """A buffer is written first in step `first` and used last in step `last`, both inclusive."""

    first: int
    last: int
    size_bytes: Expr


@dataclass(frozen=True)
class BufferPlan:
    """Byte offsets, one a buffer, all multiples of `ALIGNMENT_BYTES`, and the bytes of the whole arena."""

    offsets: tuple[Expr, ...]
    total_bytes: Expr


@dataclass
class _Slot:
    size_bytes: Expr
    free_from: int


def plan_buffers(buffers: Sequence[Lifetime]) -> BufferPlan:
    """Offsets for the buffers, in their order. Sizes are at least 0; `total_bytes` is at most the sum of the aligned
    sizes."""
    slots: list[_Slot] = []
    slot_of: dict[int, _Slot] = {}
    for number in sorted(range(len(buffers)), key=lambda i: (buffers[i].first, i)):
        buffer = buffers[number]
        size = _aligned(buffer.size_bytes)
        slot = _best_slot([s for s in slots if s.free_from <= buffer.first], size)
        if slot is None:
            slot = _Slot(size, 0)
            slots.append(slot)
        slot.size_bytes = maximum(slot.size_bytes, size)
        slot.free_from = buffer.last + 1
        slot_of[number] = slot
    return _laid_out(slots, [slot_of[i] for i in range(len(buffers))])


def _aligned(size_bytes: Expr) -> Expr:
    return mul(ceildiv(size_bytes, ALIGNMENT_BYTES), ALIGNMENT_BYTES)


def _best_slot(free: Sequence[_Slot], size: Expr) -> _Slot | None:
    """The free slot that grows least, as far as that is known without numbers: the same size, a known difference,
    any."""
    return min(free, key=lambda slot: _growth(slot.size_bytes, size), default=None)


def _growth(have: Expr, need: Expr) -> tuple[int, int]:
    if have is need:
        return 0, 0
    difference = sub(need, have).value
    if difference is not None:
        return 1, max(difference, 0)
    return (1, 0) if maximum(have, need) is have else (2, 0)


def _laid_out(slots: Sequence[_Slot], slot_of: Sequence[_Slot]) -> BufferPlan:
    offsets: dict[int, Expr] = {}
    end = const(0)
    for slot in slots:
        offsets[id(slot)] = end
        end = add(end, slot.size_bytes)
    return BufferPlan(tuple(offsets[id(s)] for s in slot_of), end)
