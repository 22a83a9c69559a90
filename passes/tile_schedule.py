"""How kernels run that read or write memory along another axis than the innermost one: by tiles of the two axes, which
are turned in shared memory (`lowering/kernels/tile.py`).

A tile is 64 × 64, longer and narrower where an axis is known to be short, smaller where several operands share a
block's memory. Variants move vectors along both axes, along either, and along none. Kernels stay flat where an axis is
so short that neighbouring threads share what they fetch anyway, and where there is little to do. What is not known
before a call the host program finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from dlcb.dialects.coord.crossing import Crossing, crossing, facts_of
from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.coord.transpose import MIN_SIDE, SIDES, TransposeAttr
from dlcb.dialects.coord.vectors import VectorFacts
from dlcb.dialects.graph.types import Dim
from dlcb.passes.uses import UNKNOWN, Use, needs_wide, widths

THREADS = 256
SIDE = 64
WIDE_SIDE = 32
"""At most, where coordinates take 64 bits: less to compile of what is seldom launched."""
TILE_BYTES = 32 * 1024
"""At most, in shared memory: a multiprocessor has room for six blocks."""
MIN_TILE = 1024
"""Coordinates of the two axes from which on tiles pay."""
MIN_POINTS = 1 << 14
"""Coordinates of a kernel from which on a launch takes longer than to be launched."""


def tile_schedules(kernel: KernelOp, uses: Sequence[Use]) -> tuple[list[ScheduleAttr], bool]:
    """The variants by tiles, best first, and whether no launch needs others."""
    found = crossing(kernel)
    launches = uses or [UNKNOWN]
    if found is None or not any(pays(kernel, found, use) for use in launches):
        return [], False
    across, along = facts_of(kernel, found)
    first, second = axes_of(kernel, found)
    sides = tile_sides(longest(first, launches), longest(second, launches), found.bytes)
    wide = needs_wide(kernel, uses)
    pairs = vector_pairs(across, along, launches, wide)
    tiles = [_schedule(found, sides, pair, 32) for pair in pairs]
    if wide:
        tiles.append(_schedule(found, (min(sides[0], WIDE_SIDE), min(sides[1], WIDE_SIDE)), (1, 1), 64))
    return tiles, all(use.followed or is_long(kernel, found, use) for use in launches)


def _schedule(found: Crossing, sides: tuple[int, int], pair: tuple[int, int], bits: int) -> ScheduleAttr:
    (along, across), (vector, turned) = sides, pair
    threads = min(THREADS, along * across // max(pair))
    tile = TransposeAttr.of(found.axis, along, across, turned)
    return ScheduleAttr.of("none", threads, vector, along * across // threads, "none", bits, transpose=tile)


def axes_of(kernel: KernelOp, found: Crossing) -> tuple[Dim, Dim]:
    """The sizes of the tile's two axes: that of what crosses, the innermost one."""
    return kernel.outer.dims[found.axis], kernel.outer.dims[-1]


def is_long(kernel: KernelOp, found: Crossing, use: Use) -> bool:
    """Are both axes known to be long enough for tiles?"""
    return all((use.value(dim) or 0) >= MIN_SIDE for dim in axes_of(kernel, found))


def pays(kernel: KernelOp, found: Crossing, use: Use) -> bool:
    """May tiles pay in this launch?"""
    lengths = [use.value(dim) for dim in axes_of(kernel, found)]
    known = [length for length in lengths if length is not None]
    if any(length < MIN_SIDE for length in known) or (len(known) == len(lengths) and prod(known) < MIN_TILE):
        return False
    sizes = [use.value(dim) for dim in kernel.outer.dims]
    points = [size for size in sizes if size is not None]
    return len(points) < len(sizes) or prod(points) >= MIN_POINTS


def longest(axis: Dim, uses: Sequence[Use]) -> int | None:
    """The greatest length that the axis has in a launch, where all are known."""
    lengths = [use.value(axis) for use in uses]
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None


def tile_sides(along: int | None, across: int | None, element_bytes: int) -> tuple[int, int]:
    """The sides of tiles in axes of these lengths (None: any), of elements that share as many bytes in a block."""
    first, second = _side(along), _side(across)
    while first * second < SIDE * SIDE:
        if second < min(across or 2 * SIDE, SIDES[-1]):
            second *= 2
        elif first < min(along or 2 * SIDE, SIDES[-1]):
            first *= 2
        else:
            break
    while first * second * element_bytes > TILE_BYTES:
        first, second = (first // 2, second) if first >= second else (first, second // 2)
    return first, second


def _side(length: int | None) -> int:
    return next(side for side in SIDES if side >= min(SIDE if length is None else length, SIDE))


def vector_pairs(across: VectorFacts, along: VectorFacts, uses: Sequence[Use], wide: bool) -> list[tuple[int, int]]:
    """Widths along the innermost axis, and of what crosses: both the widest, either, none. Where sizes are known, only
    addresses may forbid vectors. `wide`: another variant serves what needs single elements by accident."""
    first, second = widths(across, uses), widths(along, uses)
    widest, singles = (first[0], second[0]), (first[-1] == 1, second[-1] == 1)
    known = all(use.value(dim) is not None for use in uses for dim in (*across.divisible, *along.divisible))
    pairs = [widest]
    if not known:
        pairs += [(widest[0], 1)] if singles[1] else []
        pairs += [(1, widest[1])] if singles[0] else []
    if any(singles) or not wide:
        pairs.append((1, 1))
    return list(dict.fromkeys(pairs))
