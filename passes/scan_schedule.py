"""How kernels with scans run: see `lowering/kernels/scan.py` for what the bindings of the row mean.

* a row along memory: one warp where it fits into a tile of 32 threads; else a block, tile by tile, by vectors, or one
  by one for rows that do not allow them or need 64 bits;
* a row across memory: a thread a row, where there are enough of them or nothing is known.
"""

from __future__ import annotations

from math import prod

from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.coord.schedule import WARP, ScheduleAttr
from dlcb.dialects.coord.vectors import vector_facts

TILE_THREADS = 256
ROW_THREADS = 128
ITEMS = 4
"""Neighbouring row coordinates a thread holds, or as many as it loads at once."""
MANY_ROWS = 512


def scan_schedules(kernel: KernelOp, along: bool, wide: bool) -> list[ScheduleAttr]:
    """`along`: do rows lie along memory?  `wide`: may 64 bits be needed?"""
    bits = (32, 64) if wide else (32,)
    if not along and not _few_rows(kernel):
        return [ScheduleAttr.of("walk", ROW_THREADS, 1, 0, "none", i) for i in bits]
    widest = vector_facts(kernel).widest
    found: list[ScheduleAttr] = []
    (length,) = kernel.row.dims
    if isinstance(length, str) or length <= WARP * ITEMS:
        found.append(ScheduleAttr.of("block", WARP, 1, ITEMS, "none", 32))
    if isinstance(length, str) or length > WARP * ITEMS:
        found.append(ScheduleAttr.of("tile", TILE_THREADS, widest, max(widest, ITEMS), "none", 32))
    if wide or widest > 1:
        found.append(ScheduleAttr.of("tile", TILE_THREADS, 1, ITEMS, "none", bits[-1]))
    return found


def _few_rows(kernel: KernelOp) -> bool:
    sizes = [d for d in kernel.outer.dims if isinstance(d, int)]
    return len(sizes) == len(kernel.outer.dims) and prod(sizes) < MANY_ROWS
