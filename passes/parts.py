"""How blocks share reductions: the neighbouring rows that a column's block has, and into how many parts rows are cut
where there are too few of them for the device."""

from __future__ import annotations

from dlcb.dialects.coord.schedule import WARP
from dlcb.dialects.shape.expr import Expr, ceildiv, floordiv, le, logical_and, maximum, minimum, mul, select

SPLIT_BLOCKS = 1024
"""Blocks that fill a device: more than any has at once."""
PART_ELEMENTS = 8192
"""What a block of a part has to do at least, so that it is worth its start."""
LEAST_WORK = 4
"""Parts of this kind below which one block is as fast as several and the launches of further steps."""


def lanes_of(rows: Expr) -> Expr:
    """Neighbouring rows of a column's block."""
    return minimum(maximum(rows, 1), WARP)


def groups_of(rows: Expr, column: bool) -> Expr:
    """The blocks that have different rows."""
    return ceildiv(rows, lanes_of(rows)) if column else rows


def parts_of(rows: Expr, length: Expr, column: bool) -> Expr:
    """Into how many parts rows of this length are cut: 0 (they are not), or 2 and more."""
    groups = maximum(groups_of(rows, column), 1)
    work = ceildiv(mul(length, lanes_of(rows)) if column else length, PART_ELEMENTS)
    split = logical_and(le(LEAST_WORK, work), le(mul(groups, 2), SPLIT_BLOCKS))
    return select(split, minimum(work, floordiv(SPLIT_BLOCKS, groups)), 0)


def chunk_of(length: Expr, parts: Expr) -> Expr:
    """The row coordinates of a part, a multiple of every vector's width."""
    return mul(8, ceildiv(length, mul(8, maximum(parts, 1))))
