"""Kernels with scans: a running value along the row, at each place.

* `block`, `tile`: the row goes by in tiles of `items` neighbouring coordinates a thread. In a tile each thread combines
  its own items, the threads of a warp combine their totals by shuffles, warps through shared memory; what came before
  the tile is carried along. A scan of another scan's result takes one more round in the same tile.
* `walk`: one thread walks a row that lies across memory, and has the running values at hand.

A pass over the row makes all scans that it needs, again if an earlier pass had them too. After Merrill and Garland,
"Single-pass parallel prefix scan with decoupled look-back" (2016), section 2, without the look-back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import OpResult, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.schedule import WARP, ScheduleAttr
from dlcb.dialects.cuda.builder import Operand
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.lowering.kernels.arguments import KernelBuilder
from dlcb.lowering.kernels.lanes import Lanes, Values, at_lane, number_of
from dlcb.lowering.kernels.row import Item, RowLowering, ThreadRow
from dlcb.lowering.kernels.row_plan import RowPlan

Scans = Sequence[ops.ScanOp]
EXTREMA = ("maximum", "minimum")
"""Functions that give the first of equal operands, which may differ in the sign of 0."""


def join(b: KernelBuilder, op: ops.ScanOp, earlier: SSAValue, later: SSAValue) -> SSAValue:
    """Combine two stretches of a row; of equal extrema the later one counts, as in eager."""
    return b.call(op.function.data, later, earlier)


def scan_rounds(plan: RowPlan, number: int) -> list[list[ops.ScanOp]]:
    """The scans that a pass needs, in program order; each round needs results of earlier rounds only."""
    needed = _reached(plan.wanted(number, staged=False))
    round_of: dict[SSAValue, int] = {}
    rounds: list[list[ops.ScanOp]] = []
    for op in plan.kernel.body.block.ops:
        if isinstance(op, ops.ScanOp) and op.res in needed:
            before = [round_of[value] for value in _reached([op.src]) if value in round_of]
            at = round_of[op.res] = max(before, default=-1) + 1
            rounds += [[]] * (at + 1 - len(rounds))
            rounds[at] = [*rounds[at], op]
    return rounds


def _reached(roots: Sequence[SSAValue]) -> set[SSAValue]:
    """What the values are computed from in one pass: reductions are at hand."""
    found: set[SSAValue] = set()
    pending = list(roots)
    while pending:
        value = pending.pop()
        if value not in found and isinstance(value, OpResult) and not isinstance(value.op, ops.ReduceOp):
            found.add(value)
            pending += [operand for inner in value.op.walk() for operand in inner.operands]
    return found


@dataclass(frozen=True, slots=True)
class _Running:
    """What a thread holds of a scan in a tile, in locals."""

    items: SSAValue
    """At each of its items: all of its own items up to there."""
    total: SSAValue
    """All of its items; while warps combine, those of more and more lanes."""
    before: SSAValue
    """All that lies before its first item."""
    carry: SSAValue
    """All that lies before the next tile."""


class TileScan(RowLowering):
    """A block a row, tile by tile."""

    def __init__(self, name: str, plan: RowPlan, schedule: ScheduleAttr):
        super().__init__(name, plan, schedule)
        self.running: dict[ops.ScanOp, _Running] = {}

    def each_item(self, number: int, body: Item) -> None:
        b = self.b
        rounds = scan_rounds(self.plan, number)
        for op in chain(*rounds):
            if op not in self.running:
                sizes = (self.schedule.items, 1, 1, 1)
                self.running[op] = _Running(*[b.local(op.res.type, size) for size in sizes])
            b.write(self._identity(op), self.running[op].carry, 0)
        lower, length = self.bounds()
        done: list[ops.ScanOp] = []
        with b.for_(lower, length, b.constant(self.tile, b.idx), uniform=True) as start:
            for scans in rounds:
                self._sum_items(start, number, done, scans)
                for op in scans:
                    self._sum_threads(op, start)
                done += scans
            self._over_tile(start, number, done, lambda lanes, _: body(lanes, None, 0))

    @property
    def tile(self) -> int:
        """Coordinates in a tile."""
        return self.schedule.threads * self.schedule.items

    def _identity(self, op: ops.ScanOp) -> SSAValue:
        return self.b.constant(number_of(op.initial), op.res.type)

    def _over_tile(self, start: SSAValue, number: int, done: Scans, body: Callable[[Lanes, SSAValue], None]) -> None:
        """Call `body(lanes, the first lane's place among the thread's items)`; `done` are scans that are made."""
        b, v, items = self.b, self.schedule.vector, self.schedule.items
        _, length = self.bounds()
        first = b.add(start, b.mul(self.lane(), b.constant(items, b.idx)))
        outer = self.outer_lanes(number)
        with b.for_(0, items, v, unroll=True) as place:
            k = b.add(first, b.cast(place, b.idx))
            with b.if_(b.lt(k, length)):

                def item(lanes: Lanes, _place: SSAValue | None, _chain: Operand) -> None:
                    for op in done:
                        lanes.values[op.res] = self._results(op, place)
                    body(lanes, place)

                self.item(k, None, number, item, outer)

    def _results(self, op: ops.ScanOp, place: SSAValue) -> Values:
        b, running = self.b, self.running[op]
        own = [b.read(running.items, b.add(place, lane)) for lane in range(self.schedule.vector)]
        return [join(b, op, b.read(running.before, 0), value) for value in own]

    def _sum_items(self, start: SSAValue, number: int, done: Scans, scans: Scans) -> None:
        """Combine each thread's own items."""
        b = self.b
        for op in scans:
            b.write(self._identity(op), self.running[op].total, 0)

        def item(lanes: Lanes, place: SSAValue) -> None:
            for op in scans:
                running, value = self.running[op], lanes.get(op.src)
                for lane in range(lanes.lanes):
                    total = join(b, op, b.read(running.total, 0), at_lane(value, lane))
                    b.write(total, running.total, 0)
                    b.write(total, running.items, b.add(place, lane))

        self._over_tile(start, number, done, item)

    def _sum_threads(self, op: ops.ScanOp, start: SSAValue) -> None:
        """Make what lies before each thread, and before the next tile."""
        b, running = self.b, self.running[op]
        self._sum_warp(op)
        carry, total = b.read(running.carry, 0), b.read(running.total, 0)
        warps = self.schedule.threads // WARP
        if warps == 1:
            b.write(join(b, op, carry, b.read(running.before, 0)), running.before, 0)
            b.write(join(b, op, carry, total), running.carry, 0)
            return
        # Neighbouring tiles use different halves: a thread that is ahead by a barrier overwrites nothing.
        across = b.shared(op.res.type, 2 * warps)
        half = self._half(start, warps)
        with b.if_(b.eq(b.mod(b.thread_idx(), WARP), 0)):
            b.write(total, across, b.add(half, b.truncdiv(b.thread_idx(), WARP)))
        b.barrier()
        with b.for_(0, warps, 1, unroll=True) as warp:
            so_far = b.read(running.carry, 0)
            with b.if_(b.eq(b.truncdiv(b.thread_idx(), WARP), warp)):
                b.write(join(b, op, so_far, b.read(running.before, 0)), running.before, 0)
            b.write(join(b, op, so_far, b.read(across, b.add(half, warp))), running.carry, 0)

    def _half(self, start: SSAValue, warps: int) -> SSAValue:
        b = self.b
        odd = b.mod(b.truncdiv(start, b.constant(self.tile, b.idx)), b.constant(2, b.idx))
        return b.mul(b.cast(odd, b.thread_idx().type), warps)

    def _sum_warp(self, op: ops.ScanOp) -> None:
        """Make what lies before each lane in its warp, and the warp's total in every lane: halves that double."""
        b, running = self.b, self.running[op]
        other = b.local(op.res.type, 1)
        b.write(self._identity(op), running.before, 0)
        mask = 1
        while mask < WARP:
            b.shuffle_xor(running.total, 0, other, 0, mask)
            mine, theirs, before = b.read(running.total, 0), b.read(other, 0), b.read(running.before, 0)
            upper = b.ne(b.and_(b.thread_idx(), mask), 0)
            b.write(b.select(upper, join(b, op, theirs, before), before), running.before, 0)
            earlier, later = mine, theirs
            if op.function.data in EXTREMA:
                earlier, later = b.select(upper, theirs, mine), b.select(upper, mine, theirs)
            b.write(join(b, op, earlier, later), running.total, 0)
            mask *= 2


class WalkScan(ThreadRow):
    """A thread a row."""

    def each_item(self, number: int, body: Item) -> None:
        b = self.b
        totals = {op: b.local(op.res.type, 1) for op in chain(*scan_rounds(self.plan, number))}
        for op, total in totals.items():
            b.write(b.constant(number_of(op.initial), op.res.type), total, 0)

        def item(lanes: Lanes, place: SSAValue | None, after: Operand) -> None:
            for op, total in totals.items():
                running = join(b, op, b.read(total, 0), at_lane(lanes.get(op.src), 0))
                b.write(running, total, 0)
                lanes.values[op.res] = [running]
            body(lanes, place, after)

        super().each_item(number, item)


LOWERINGS: dict[str, type[RowLowering]] = {"block": TileScan, "tile": TileScan, "walk": WalkScan}


def lower_scan(name: str, plan: RowPlan, schedule: ScheduleAttr) -> CudaKernelOp:
    return LOWERINGS[schedule.row](name, plan, schedule).build()
