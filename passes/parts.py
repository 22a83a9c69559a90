"""How blocks share reductions: the neighbouring rows that a column's block has, and into how many parts rows are cut
where there are too few of them for the device."""

from __future__ import annotations

from dlcb.dialects.coord.schedule import WARP
from dlcb.dialects.shape.expr import Expr, ceildiv, const, floordiv, le, logical_and, lt, maximum, minimum, mul, select

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
    work = _work(length, lanes_of(rows) if column else const(1))
    cut = logical_and(_is_long(work), _are_few(groups))
    return select(cut, minimum(work, floordiv(SPLIT_BLOCKS, groups)), 0)


def may_be_cut(rows: Expr, length: Expr, column: bool) -> bool:
    """May rows be cut, at some sizes of which none is 0?"""
    fewest = sum(c for c, _ in rows.terms) if all(c > 0 for c, _ in rows.terms) else 1
    most = _work(length, const(WARP if column else 1))
    return _are_few(groups_of(const(fewest), column)).value != 0 and _is_long(most).value != 0


def _work(length: Expr, lanes: Expr) -> Expr:
    return ceildiv(mul(length, lanes), PART_ELEMENTS)


def _is_long(work: Expr) -> Expr:
    return le(LEAST_WORK, work)


def _are_few(groups: Expr) -> Expr:
    return lt(mul(groups, 2), SPLIT_BLOCKS)


def chunk_of(length: Expr, parts: Expr) -> Expr:
    """The row coordinates of a part, a multiple of every vector's width."""
    return mul(8, ceildiv(length, mul(8, maximum(parts, 1))))
