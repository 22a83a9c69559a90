"""Kernels whose rows lie across memory: a block has neighbouring rows, and several threads walk each.

Threads `0 … lanes - 1` stand at neighbouring rows, so what they read together lies together; so do the next `lanes`,
one item further along the row, and so on. The host program gives `lanes` (as many as there are rows, up to a warp) and
`across`, the threads a row: few rows still keep all threads of a block busy. Totals meet in shared memory. Where
elements are narrow, each thread has several neighbouring rows, whose elements it moves at once.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.cuda.builder import Operand
from dlcb.lowering.kernels.arguments import ACROSS, LANES
from dlcb.lowering.kernels.flat import split_index
from dlcb.lowering.kernels.lanes import Lanes, Provider, Values, at_lane
from dlcb.lowering.kernels.row import Item, RowLowering
from dlcb.lowering.kernels.row_plan import RowPlan


class ColumnRow(RowLowering):
    """A thread walks `items` items at once, each into a total of its own, then what is left one by one: loads wait for
    nothing, no test either, and chains of additions are short. What is stored of them waits until all are computed, for
    a compiler moves no load before a store."""

    def __init__(self, name: str, plan: RowPlan, schedule: ScheduleAttr):
        super().__init__(name, plan, schedule)
        self.chains = schedule.items
        self.rows = schedule.vector
        """Neighbouring rows of a thread; each array of totals has them innermost."""
        self._meeting: dict[Attribute, list[SSAValue]] = {}
        self._waiting: dict[ops.StoreOp, SSAValue] = {}

    def _place(self) -> tuple[SSAValue, SSAValue]:
        """This thread's place along its row, and the place of its row in the block."""
        return self.b.divide(self.b.cast(self.b.thread_idx(), self.b.idx), [LANES])

    def row_number(self) -> SSAValue:
        """That of this thread's row, or rows, among all or among so many."""
        b = self.b
        return b.add(b.mul(self.block(), b.number([LANES])), self._place()[1])

    def lane(self) -> SSAValue:
        return self._place()[0]

    @contextmanager
    def row_guard(self) -> Generator[None]:
        """`threads` may be no multiple of `lanes`: the last threads have nothing to do."""
        b = self.b
        has_row = b.lt(self.row_number(), b.number(self.kernel.outer.dims, self.rows))
        with b.if_(b.and_(has_row, b.lt(self.lane(), b.number([ACROSS])))):
            yield

    def outer_coords(self) -> dict[SSAValue, Values]:
        return split_index(self.b, self.row_number(), self.outer_axes, self.kernel.outer.dims, self.rows)

    def outer_values(self) -> Lanes:
        return self._rows(self.outer_coords(), self.given)

    def row_coords(self, k: SSAValue) -> dict[SSAValue, Values]:
        return split_index(self.b, k, self.row_axes, self.kernel.row.dims)

    def lanes_at(self, k: SSAValue, coords: dict[SSAValue, Values], provide: Provider) -> Lanes:
        return self._rows(coords, provide)

    def _rows(self, coords: dict[SSAValue, Values], provide: Provider) -> Lanes:
        return Lanes(self.kernel, self.b, coords, self.rows, provide, len(self.outer_axes) - 1)

    def given(self, value: SSAValue) -> Values | None:
        total = self.totals.get(value)
        return None if total is None else [self.b.read(total, row) for row in range(self.rows)]

    def start(self, op: ops.ReduceOp, chains: int) -> SSAValue:
        return super().start(op, chains * self.rows)

    def include(self, op: ops.ReduceOp, total: SSAValue, lanes: Lanes, chain: Operand) -> None:
        b = self.b
        for row, value in enumerate(lanes.elements(op.src, self.neutral(op))):
            at = self._at(chain, row)
            b.write(self.both(op, b.read(total, at), value), total, at)

    def join_chains(self, op: ops.ReduceOp, total: SSAValue) -> None:
        b = self.b
        for row in range(self.rows if self.chains > 1 else 0):
            b.write(self.join(op, [b.read(total, self._at(n, row)) for n in range(self.chains)]), total, row)

    def _at(self, chain: Operand, row: int) -> Operand:
        return chain * self.rows + row if isinstance(chain, int) else self.b.add(self.b.mul(chain, self.rows), row)

    def each_item(self, number: int, body: Item) -> None:
        b = self.b
        lower, upper = self.bounds()
        across, chains = b.number([ACROSS]), self.chains
        outer = self.outer_lanes(number)
        first = b.add(lower, self.lane())
        at = b.var(first)
        step = b.mul(across, b.constant(chains, b.idx))
        self._waiting = {op: b.local(op.value.type, chains * self.rows) for op in self.stored(number)}
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
            for row in range(self.rows):
                self.b.write(at_lane(lanes.get(op.value), row), waiting, self._at(chain, row))

    def _store_waiting(self, lanes: Lanes, _place: SSAValue | None, chain: Operand) -> None:
        for op, waiting in self._waiting.items():
            lanes.values[op.value] = [self.b.read(waiting, self._at(chain, row)) for row in range(self.rows)]
            lanes.store(op)

    def walk(self, count: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        return self.lane(), count, self.b.number([ACROSS])

    def combine(self, op: ops.ReduceOp, total: SSAValue) -> None:
        b, threads = self.b, self.schedule.threads
        meeting = self._meeting_place(op.results[0].type)
        for row in range(self.rows):
            b.write(b.read(total, row), meeting, b.add(b.thread_idx(), row * threads))
        b.barrier()
        mine = self._place()[1]
        for row in range(self.rows):
            b.write(b.read(meeting, b.add(mine, b.constant(row * threads, b.idx))), total, row)
        with b.for_(b.constant(1, b.idx), b.number([ACROSS]), b.constant(1, b.idx)) as other:
            theirs = b.add(b.mul(other, b.number([LANES])), mine)
            for row in range(self.rows):
                found = b.read(meeting, b.add(theirs, b.constant(row * threads, b.idx)))
                b.write(self.both(op, b.read(total, row), found), total, row)

    def _meeting_place(self, kind: Attribute) -> SSAValue:
        """Two arrays of a type take turns: before one is written again, the other's barrier has seen all threads done
        with it."""
        arrays = self._meeting.setdefault(kind, [])
        if len(arrays) < 2:
            arrays.append(self.b.shared(kind, self.schedule.threads * self.rows))
        else:
            arrays.reverse()
        return arrays[-1]
