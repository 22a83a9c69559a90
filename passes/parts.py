"""How blocks share reductions: the neighbouring rows that a column's block has, and into how many parts rows are cut
where there are too few of them for the device."""

from __future__ import annotations

from dlcb.dialects.coord.schedule import WARP, ScheduleAttr
from dlcb.dialects.shape.expr import Expr, ceildiv, const, floordiv, le, logical_and, lt, maximum, minimum, mul, select

SPLIT_BLOCKS = 1024
"""Blocks that fill a device: more than any has at once."""
WHOLE_BLOCKS = 256
"""Blocks that keep it busy."""
PART_ELEMENTS = 8192
"""What a block of a part moves at least, so that it is worth its start: what it reads, and as much again where rows are
stored whole."""
LEAST_WORK = 4
"""Parts of this kind below which one block is as fast as several and the launches of further steps."""


def block_rows(schedule: ScheduleAttr) -> int:
    """The neighbouring rows that a block has at most: of columns `vector` a thread of a warp."""
    return WARP * schedule.vector if schedule.row == "column" else 1


def beside(rows: Expr, most: int) -> Expr:
    """The neighbouring rows that a block has."""
    return minimum(maximum(rows, 1), most) if most > 1 else const(1)


def groups_of(rows: Expr, most: int) -> Expr:
    """The blocks that have different rows."""
    return ceildiv(rows, beside(rows, most))


def parts_of(rows: Expr, length: Expr, most: int, stored: bool) -> Expr:
    """Into how many parts rows of this length are cut: 0 (they are not), or 2 and more. Whether they are follows from
    blocks of a warp's columns at most: to have more would pay for no further launch."""
    few = min(most, WARP)
    cut = logical_and(_is_long(_work(length, beside(rows, few), stored)), _are_few(_blocks(rows, few), stored))
    return select(
        cut, minimum(_work(length, beside(rows, most), stored), floordiv(SPLIT_BLOCKS, _blocks(rows, most))), 0
    )


def _blocks(rows: Expr, most: int) -> Expr:
    return maximum(groups_of(rows, most), 1)


def fills_device(rows: Expr, most: int) -> Expr:
    """Are there blocks enough if none is cut?"""
    return le(WHOLE_BLOCKS, groups_of(rows, most))


def may_be_cut(rows: Expr, length: Expr, most: int, stored: bool) -> bool:
    """May rows be cut, at some sizes of which none is 0?"""
    most = min(most, WARP)
    if _is_long(_work(length, const(most), stored)).value == 0:
        return False
    shortest = (LEAST_WORK - 1) * _part_elements(stored) // most + 1
    fewest = _fewest(rows, length, shortest)
    return _are_few(groups_of(const(fewest), most), stored).value != 0


def _fewest(rows: Expr, length: Expr, shortest: int) -> int:
    """How many rows there are at least where each is so long: more, if the length is a multiple of a symbol that
    counts rows too (attention of a sequence to itself)."""
    if any(c <= 0 for c, _ in rows.terms):
        return 1
    (times, atoms), *more = length.terms or ((1, ()),)
    symbol = atoms[0] if len(atoms) == 1 and times > 0 and not more else None
    least = -(-shortest // times) if symbol is not None else 1
    return sum(c * least ** monomial.count(symbol) if symbol is not None else c for c, monomial in rows.terms)


def _part_elements(stored: bool) -> int:
    return PART_ELEMENTS // 2 if stored else PART_ELEMENTS


def _work(length: Expr, rows: Expr, stored: bool) -> Expr:
    return ceildiv(mul(length, rows), _part_elements(stored))


def _is_long(work: Expr) -> Expr:
    return le(LEAST_WORK, work)


def _are_few(groups: Expr, stored: bool) -> Expr:
    """Too few to fill the device by themselves; what is stored after a reduction is walked again, so cutting must gain
    more."""
    return lt(mul(groups, 4 if stored else 2), SPLIT_BLOCKS)


def chunk_of(length: Expr, parts: Expr) -> Expr:
    """The row coordinates of a part, a multiple of every vector's width."""
    return mul(8, ceildiv(length, mul(8, maximum(parts, 1))))
