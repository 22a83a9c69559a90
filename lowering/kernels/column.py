"""Kernels whose rows lie across memory: a block has neighbouring rows, and several threads walk each.

Threads `0 … lanes - 1` stand at neighbouring rows, so what they read together lies together; so do the next `lanes`,
one item further along the row, and so on. The host program gives `lanes` (as many as there are rows, up to a warp) and
`across`, the threads a row: few rows still keep all threads of a block busy. Totals meet in shared memory.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.cuda.builder import Operand
from dlcb.lowering.kernels.arguments import ACROSS, LANES
from dlcb.lowering.kernels.lanes import Lanes, at_lane
from dlcb.lowering.kernels.row import Item, RowLowering
from dlcb.lowering.kernels.row_plan import RowPlan


class ColumnRow(RowLowering):
    """A thread walks `items` items at once, each into a total of its own, then what is left one by one: loads wait for
    nothing, no test either, and chains of additions are short. What is stored of them waits until all are computed, for
    a compiler moves no load before a store."""

    def __init__(self, name: str, plan: RowPlan, schedule: ScheduleAttr):
        super().__init__(name, plan, schedule)
        self.chains = schedule.items
        self._meeting: dict[Attribute, list[SSAValue]] = {}
        self._waiting: dict[ops.StoreOp, SSAValue] = {}

    def _place(self) -> tuple[SSAValue, SSAValue]:
        """This thread's place along its row, and the place of its row in the block."""
        return self.b.divide(self.b.cast(self.b.thread_idx(), self.b.idx), [LANES])

    def row_number(self) -> SSAValue:
        b = self.b
        return b.add(b.mul(self.block(), b.number([LANES])), self._place()[1])

    def lane(self) -> SSAValue:
        return self._place()[0]

    @contextmanager
    def row_guard(self) -> Generator[None]:
        """`threads` may be no multiple of `lanes`: the last threads have nothing to do."""
        b = self.b
        has_row = b.lt(self.row_number(), b.number(self.kernel.outer.dims))
        with b.if_(b.and_(has_row, b.lt(self.lane(), b.number([ACROSS])))):
            yield

    def each_item(self, number: int, body: Item) -> None:
        b = self.b
        lower, upper = self.bounds()
        across, chains = b.number([ACROSS]), self.chains
        outer = self.outer_lanes(number)
        first = b.add(lower, self.lane())
        at = b.var(first)
        step = b.mul(across, b.constant(chains, b.idx))
        self._waiting = {op: b.local(op.value.type, chains) for op in self.stored(number)}
        with b.for_(first, b.sub(upper, b.mul(across, b.constant(chains - 1, b.idx))), step) as start:
            for each in (body, self._store_waiting) if self._waiting else (body,):
                with b.for_(0, chains, 1, unroll=True) as chain:
                    self.item(b.add(start, b.mul(b.cast(chain, b.idx), across)), None, number, each, outer, chain)
            b.set(at, b.add(start, step))
        self._waiting = {}
        with b.for_(b.get(at), upper, across) as k:
            self.item(k, None, number, body, outer)

    def store_item(self, number: int, lanes: Lanes, chain: Operand) -> None:
        if not self._waiting:
            super().store_item(number, lanes, chain)
        for op, waiting in self._waiting.items():
            self.b.write(at_lane(lanes.get(op.value), 0), waiting, chain)

    def _store_waiting(self, lanes: Lanes, _place: SSAValue | None, chain: Operand) -> None:
        for op, waiting in self._waiting.items():
            lanes.values[op.value] = [self.b.read(waiting, chain)]
            lanes.store(op)

    def walk(self, count: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        return self.lane(), count, self.b.number([ACROSS])

    def combine(self, op: ops.ReduceOp, total: SSAValue) -> None:
        b = self.b
        meeting = self._meeting_place(op.results[0].type)
        b.write(b.read(total, 0), meeting, b.thread_idx())
        b.barrier()
        mine = self._place()[1]
        b.write(b.read(meeting, mine), total, 0)
        with b.for_(b.constant(1, b.idx), b.number([ACROSS]), b.constant(1, b.idx)) as other:
            theirs = b.read(meeting, b.add(b.mul(other, b.number([LANES])), mine))
            b.write(self.both(op, b.read(total, 0), theirs), total, 0)

    def _meeting_place(self, kind: Attribute) -> SSAValue:
        """Two arrays of a type take turns: before one is written again, the other's barrier has seen all threads done
        with it."""
        arrays = self._meeting.setdefault(kind, [])
        if len(arrays) < 2:
            arrays.append(self.b.shared(kind, self.schedule.threads))
        else:
            arrays.reverse()
        return arrays[-1]
