"""Decide how each kernel runs: a list of variants, best first; the host program takes the first whose conditions hold.

* no row: a thread computes `vector` neighbouring elements; widths from the widest down to 1, with 32-bit coordinates,
  then with 64 bits (1 only, where there are several axes). Single elements are several a thread where there are many.
  What the sizes of all launches rule out is left out, single elements too where only a weight that lies at an odd
  address would need them; a plain variant serves such a call.
* no row, and memory that lies along another axis than the innermost one: before these, tiles that are turned in shared
  memory.
* a row that lies along memory: a warp a row for short rows, a block a row for longer ones, the row staying in
  registers; a loop that reads again for the longest, for those that need 64 bits, and where nothing but an address
  that is not aligned forbids vectors.
* a row across memory (a column): one thread walks a short one, several a longer one; neighbours walk neighbouring
  columns.
* rows that may be too few for the device and long: also steps over parts of them (`passes/parts.py`), each with a
  variant or two.

The choice is made here and only here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from dlcb.dialects.coord.levels import level_of, reduction_levels, row_stores
from dlcb.dialects.coord.ops import KernelOp, LoopOp
from dlcb.dialects.coord.schedule import MAX_THREAD_ROW, WARP, ScheduleAttr
from dlcb.dialects.coord.shifted import all_in_vectors, along_rows, shifted_rows
from dlcb.dialects.coord.vectors import Along, VectorFacts, buffer_element, column_facts, memory_ops, vector_facts
from dlcb.passes.parts import fills_device, may_be_cut
from dlcb.passes.precision import relax_precision
from dlcb.passes.scan_schedule import scan_schedules
from dlcb.passes.stages import mark_stage
from dlcb.passes.tile_schedule import tile_schedules
from dlcb.passes.uses import UNKNOWN, Use, needs_wide, uses_of, widths

FLAT_THREADS = 256
BLOCK_VECTOR = 4
"""Elements that a thread moves at once if it computes several results side by side: it has enough registers for these,
there are more threads, and the text, which the compiler's time goes with, is half of that for 8."""
ITEMS_APART = 24
"""Loads and stores that a thread has in all, where it moves single elements."""
LARGE = 1 << 20
"""Elements that keep a large device busy."""
WARP_THREADS = 128
BLOCK_THREADS = 256
LONG_THREADS = 512
ITEMS = 16
"""Row elements a thread holds where the row's length is not known."""
MAX_ITEMS = 32
SHIFTED_VECTORS = 16
"""Vectors of a row from which on its two partial ones do not count."""
COLUMN_ITEMS = 4
"""Row elements of a column that a thread loads at once."""
NARROW_ITEMS = 8
"""As many, of a part, where none has more than two bytes."""
COLUMN_VECTOR = 4
"""Neighbouring columns that a thread has at most."""


def flat_schedules(kernel: KernelOp, uses: Sequence[Use]) -> list[ScheduleAttr]:
    tiles, serve_all = tile_schedules(kernel, uses)
    if serve_all:
        return tiles
    facts, blocks = vector_facts(kernel), _has_blocks(kernel)
    if blocks:
        facts = replace(facts, widest=min(facts.widest, BLOCK_VECTOR))
    vectors = widths(facts, uses)
    one_axis = len(kernel.outer.dims) <= 1
    single = 1 if one_axis or not _is_large(kernel, uses) else _items_apart(kernel)
    wide = needs_wide(kernel, uses)
    found = [(v, v if v > 1 else single, 32) for v in vectors]
    if wide and one_axis:
        found += [(v, v, 64) for v in vectors]
    if wide or vectors[-1] > 1:
        found.append((1, 1, 64 if wide else 32))
    threads = WARP_THREADS if blocks else FLAT_THREADS
    flat = [ScheduleAttr.of("none", threads, v, n, "none", i) for v, n, i in dict.fromkeys(found)]
    return [*tiles, *_with_lines(kernel, uses, facts, flat)]


def _with_lines(
    kernel: KernelOp, uses: Sequence[Use], facts: VectorFacts, flat: list[ScheduleAttr]
) -> list[ScheduleAttr]:
    """Lines of the innermost axis, a warp or a block each, whose vectors start where memory is aligned, before single
    elements. Lines that are whole vectors are for the flat kernel."""
    divisible = all(use.is_multiple(d, facts.widest) for use in uses or [UNKNOWN] for d in facts.divisible)
    if len(kernel.outer.dims) < 2 or (facts.widest > 1 and divisible):
        return flat
    by_rows = along_rows(kernel)
    rows = shifted_rows(by_rows)
    if rows is None:
        return flat
    pieced = any(Along(by_rows).demands(op) is None for op in rows.unaligned)
    lines, length = _lines(by_rows, uses, 1 if pieced else facts.widest), _row_length(by_rows)
    first = [s for s in flat if s.vector > 1]
    if not first and length is not None and lines and length % lines[0].vector == 0:
        return flat
    return [*first, *lines, *flat[len(first) :]]


def _lines(by_rows: KernelOp, uses: Sequence[Use], widest: int) -> list[ScheduleAttr]:
    """Of lines that a warp or a block holds: longer ones would be too few to fill a device."""
    v = _shifted_width(by_rows, uses, widest)
    return [s for s in _shifted_classes(_row_length(by_rows), v) if s.shifted and s.items] if v > 1 else []


def _has_blocks(kernel: KernelOp) -> bool:
    """Does a thread compute several results side by side, in one loop?"""
    return any(isinstance(op, LoopOp) and len(op.results) > 1 for op in kernel.body.block.ops)


def _is_large(kernel: KernelOp, uses: Sequence[Use]) -> bool:
    """Can there be enough to do that a device is full with several elements a thread?"""
    totals = [use.product(kernel.outer.dims).value for use in uses or [UNKNOWN]]
    return any(total is None or total >= LARGE for total in totals)


def _items_apart(kernel: KernelOp) -> int:
    """Elements that a thread computes where it moves them one by one: many loads on the way, few registers."""
    return max(2, min(8, ITEMS_APART // len(memory_ops(kernel))))


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


def row_schedules(kernel: KernelOp, uses: Sequence[Use]) -> list[ScheduleAttr]:
    if kernel.has_scans:
        return scan_schedules(kernel, along_memory(kernel), needs_wide(kernel, uses))
    bits = (32, 64) if needs_wide(kernel, uses) else (32,)
    column = not along_memory(kernel)
    facts = vector_facts(kernel)
    if column:
        found = column_schedules(kernel, uses, bits)
    elif facts.strided:
        found = [ScheduleAttr.of("block", BLOCK_THREADS, 1, 0, "none", i) for i in bits]
    else:
        found = along_schedules(kernel, uses, facts, bits)
    if may_split(kernel, uses, WARP if column else 1):
        found += step_schedules(kernel, uses, column, bits)
    return found


def _row_length(kernel: KernelOp) -> int | None:
    row = kernel.row.dims
    return prod(d for d in row if isinstance(d, int)) if all(isinstance(d, int) for d in row) else None


def column_schedules(kernel: KernelOp, uses: Sequence[Use], bits: Sequence[int]) -> list[ScheduleAttr]:
    length = _row_length(kernel)
    thread = [ScheduleAttr.of("thread", WARP_THREADS, 1, 0, "none", i) for i in bits]
    if length is not None and length <= MAX_THREAD_ROW:
        return thread
    forms = _column_forms(kernel, uses, bits)
    most = WARP * _column_vector(kernel)
    if not any(fills_device(use.product(kernel.outer.dims), most).value != 0 for use in uses or [UNKNOWN]):
        forms = [(1, i) for i in bits]
    columns = [ScheduleAttr.of("column", BLOCK_THREADS, v, COLUMN_ITEMS, "none", i) for v, i in forms]
    return columns if length is not None else [thread[0], *columns]


def along_schedules(
    kernel: KernelOp, uses: Sequence[Use], facts: VectorFacts, bits: Sequence[int]
) -> list[ScheduleAttr]:
    length = _row_length(kernel)
    shifted = _shifted_width(kernel, uses, facts.widest)
    divisible = all(use.is_multiple(d, facts.widest) for use in uses or [UNKNOWN] for d in facts.divisible)
    found = [] if length is not None and shifted > facts.widest else _row_classes(length, facts.widest)
    if not divisible or not found:
        found += _row_classes(length, 1) if shifted == 1 else _shifted_classes(length, shifted)
    serves_all = ScheduleAttr.of("block", LONG_THREADS, 1, 0, "none", bits[-1])
    if len(bits) > 1 or any(s.vector > 1 for s in found) or length is None:
        found = [s for s in found if s.items or s.vector > 1] + [serves_all]
    return found


def _shifted_width(kernel: KernelOp, uses: Sequence[Use], widest: int) -> int:
    """The vectors that start where memory is aligned, of rows that may start elsewhere; 1 where none pay: few elements,
    short rows, single elements all the same, or vectors of half the width (`widest` of what starts in the row) that
    serve them all."""
    rows = shifted_rows(kernel)
    length = _row_length(kernel)
    if rows is None or not all_in_vectors(kernel, rows):
        return 1
    if length is not None and length < SHIFTED_VECTORS * rows.widest:
        return 1
    if length is not None and rows.widest == 2 * widest:
        return 1
    totals = [use.product((*kernel.outer.dims, *kernel.row.dims)).value for use in uses or [UNKNOWN]]
    return rows.widest if any(total is None or total >= LARGE for total in totals) else 1


def _shifted_classes(length: int | None, v: int) -> list[ScheduleAttr]:
    """A block has a warp more if need be, for the vectors at the ends are partial. Where any length may come, a warp
    moves its short rows by single elements."""
    long = ScheduleAttr.of("block", LONG_THREADS, v, 0, "none", 32, shifted=True)
    if length is None:
        threads, items = BLOCK_THREADS + WARP, max(ITEMS, v)
        short, *_ = _row_classes(None, 1)
        return [short, ScheduleAttr.of("block", threads, v, items, "registers", 32, shifted=True), long]
    reach = length + v - 1
    items = -(-reach // (WARP * v)) * v
    if items <= MAX_ITEMS:
        return [ScheduleAttr.of("warp", WARP_THREADS, v, items, "registers", 32, shifted=True)]
    items = -(-length // (BLOCK_THREADS * v)) * v
    if items <= MAX_ITEMS:
        threads = -(-reach // (items * WARP)) * WARP
        return [ScheduleAttr.of("block", threads, v, items, "registers", 32, shifted=True)]
    return [long]


def may_split(kernel: KernelOp, uses: Sequence[Use], most: int) -> bool:
    """May cutting rows into parts pay, in some launch, if a block has so many rows at most?"""
    stored = bool(row_stores(kernel))
    return any(
        may_be_cut(use.product(kernel.outer.dims), use.product(kernel.row.dims), most, stored)
        for use in uses or [UNKNOWN]
    )


def step_schedules(kernel: KernelOp, uses: Sequence[Use], column: bool, bits: Sequence[int]) -> list[ScheduleAttr]:
    """The last of each step serves all. A last step that stores no whole row does little."""
    level = reduction_levels(kernel)
    last = max(level.values())
    walks = last == max([level_of(op, level) for op in row_stores(kernel)], default=0)
    forms = (_column_steps if column else _block_steps)(kernel, uses, bits)
    return [form(step=step) for step in range(last + 1) for form in (forms if step < last or walks else forms[-1:])]


_Step = Callable[..., ScheduleAttr]
"""A schedule but for its step."""


def _column_steps(kernel: KernelOp, uses: Sequence[Use], bits: Sequence[int]) -> list[_Step]:
    many = NARROW_ITEMS if _is_narrow(kernel) else COLUMN_ITEMS
    return [
        partial(ScheduleAttr.of, "column", BLOCK_THREADS, v, COLUMN_ITEMS if v > 1 else many, "none", i)
        for v, i in _column_forms(kernel, uses, bits)
    ]


def _block_steps(kernel: KernelOp, uses: Sequence[Use], bits: Sequence[int]) -> list[_Step]:
    """Shifted vectors serve rows that start at a multiple as well. Coordinates of 64 bits cost a long loop little,
    unless they take divisions."""
    widest = vector_facts(kernel).widest
    shifted = _shifted_width(kernel, uses, widest)
    if _row_length(kernel) is not None and shifted <= widest:
        shifted = 1
    first = bits[0] if len(kernel.row.dims) > 1 else bits[-1]
    forms = dict.fromkeys([(max(widest, shifted), first, shifted > 1), (1, bits[-1], False)])
    return [partial(ScheduleAttr.of, "block", BLOCK_THREADS, v, 0, "none", i, shifted=start) for v, i, start in forms]


def _column_forms(kernel: KernelOp, uses: Sequence[Use], bits: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring rows of a thread, and bits. Where all sizes allow several rows, one is for odd addresses alone."""
    vector, divisible = _column_vector(kernel), column_facts(kernel).divisible
    if vector == 1:
        return [(1, i) for i in bits]
    proved = all(use.is_multiple(d, vector) for use in uses or [UNKNOWN] for d in divisible)
    return [(vector, bits[0]), *((1, i) for i in (bits[-1:] if proved else bits))]


def _column_vector(kernel: KernelOp) -> int:
    """The neighbouring rows of a thread, whose elements it moves at once: one where an element has four bytes or
    more."""
    loops = any(isinstance(op, LoopOp) for op in kernel.body.walk())
    return min(COLUMN_VECTOR, column_facts(kernel).widest) if _is_narrow(kernel) and not loops else 1


def _is_narrow(kernel: KernelOp) -> bool:
    """Has no element of a row more than two bytes?"""
    outer = len(kernel.outer.dims)
    along = [buffer_element(op.buffer) for op in memory_ops(kernel) if any(op.strides.dims[outer:])]
    return max(along, default=0) <= 2


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
        uses = uses_of(op)
        for kernel in op.body.block.ops:
            if isinstance(kernel, KernelOp) and kernel.schedules is None:
                relax_precision(kernel)
                choose = row_schedules if kernel.row.dims else flat_schedules
                kernel.properties["schedules"] = ArrayAttr(choose(kernel, uses.get(kernel.symbol, ())))
        mark_stage(op, "schedule")
