"""Decide how each kernel runs: a list of variants, best first; the host program takes the first whose conditions hold.

* no row: a thread computes `vector` neighbouring elements; widths from the widest down to 1, with 32-bit coordinates,
  then again the widest and 1 with 64 bits.
* a row that lies along memory: a warp a row for short rows, a block a row for longer ones, the row staying in
  registers; a loop that reads again for the longest.
* a row across memory (a column): one thread walks it, neighbours walk neighbouring columns.

The choice is made here and only here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.coord.schedule import WARP, ScheduleAttr
from dlcb.dialects.coord.vectors import VectorFacts, memory_ops, vector_facts
from dlcb.passes.stages import mark_stage

FLAT_THREADS = 256
WARP_THREADS = 128
BLOCK_THREADS = 256
LONG_THREADS = 512
ITEMS = 16
"""Row elements a thread holds where the row's length is not known."""
MAX_ITEMS = 32


def widths(facts: VectorFacts, one_axis: bool) -> list[int]:
    """Vector widths worth having: all powers of two, or the widest and 1 where nothing but the address decides."""
    if facts.widest == 1:
        return [1]
    if one_axis:
        return [facts.widest, 1]
    found = [facts.widest]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found


def flat_schedules(kernel: KernelOp) -> list[ScheduleAttr]:
    facts = vector_facts(kernel)
    vectors = widths(facts, len(kernel.outer.dims) <= 1)
    short = [ScheduleAttr.of("none", FLAT_THREADS, v, v, "none", 32) for v in vectors]
    long = [ScheduleAttr.of("none", FLAT_THREADS, v, v, "none", 64) for v in dict.fromkeys((vectors[0], 1))]
    return short + long if needs_wide(kernel) else short


def needs_wide(kernel: KernelOp) -> bool:
    """May some coordinate or offset need 64 bits?"""
    dims = [*kernel.outer.dims, *kernel.row.dims, *kernel.reached]
    for op in memory_ops(kernel):
        dims += op.strides.dims
        if op.extra is not None:
            return True
    return any(isinstance(d, str) for d in dims) or prod(d for d in dims if isinstance(d, int) and d) >= 2**31


def along_memory(kernel: KernelOp) -> bool:
    """Do rows lie along memory, or is the row too alone to be walked by one thread?"""
    outer = len(kernel.outer.dims)
    if outer == 0:
        return True
    votes = 0
    for op in memory_ops(kernel):
        strides = op.strides.dims
        votes += (strides[-1] == 1) - (strides[outer - 1] == 1)
    return votes >= 0


def row_schedules(kernel: KernelOp) -> list[ScheduleAttr]:
    wide = needs_wide(kernel)
    bits = (32, 64) if wide else (32,)
    if not along_memory(kernel):
        return [ScheduleAttr.of("thread", WARP_THREADS, 1, 0, "none", i) for i in bits]
    facts = vector_facts(kernel)
    if facts.strided:
        return [ScheduleAttr.of("block", BLOCK_THREADS, 1, 0, "none", i) for i in bits]
    vectors = [facts.widest, 1] if facts.widest > 1 else [1]
    row = kernel.row.dims
    length = prod(d for d in row if isinstance(d, int)) if all(isinstance(d, int) for d in row) else None
    found: list[ScheduleAttr] = []
    for v in vectors:
        found += _row_classes(length, v)
    if wide:
        found.append(ScheduleAttr.of("block", LONG_THREADS, 1, 0, "none", 64))
    return found


def _row_classes(length: int | None, v: int) -> list[ScheduleAttr]:
    if length is None:
        return [
            ScheduleAttr.of("warp", WARP_THREADS, v, max(ITEMS, v), "registers", 32),
            ScheduleAttr.of("block", BLOCK_THREADS, v, max(ITEMS, v), "registers", 32),
            ScheduleAttr.of("block", LONG_THREADS, v, 0, "none", 32),
        ]
    for binding, threads, together in (("warp", WARP_THREADS, WARP), ("block", BLOCK_THREADS, BLOCK_THREADS)):
        items = max(-(-length // (together * v)), 1) * v
        if items <= MAX_ITEMS:
            return [ScheduleAttr.of(binding, threads, v, items, "registers", 32)]  # pyright: ignore[reportArgumentType]
    return [ScheduleAttr.of("block", LONG_THREADS, v, 0, "none", 32)]


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-schedule"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in op.body.block.ops:
            if isinstance(kernel, KernelOp) and kernel.schedules is None:
                chosen = row_schedules(kernel) if kernel.row.dims else flat_schedules(kernel)
                kernel.properties["schedules"] = ArrayAttr(chosen)
        mark_stage(op, "schedule")
