"""Kernels with a row: passes over the row, one for each reduction that needs the result of another.

A pass visits the row's items (each thread its own), then combines over the threads. What a later pass needs again and
is costly (a load, an exponential) stays in registers where the schedule stages; else it is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.schedule import WARP, ScheduleAttr
from dlcb.dialects.cuda.builder import Operand
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.lowering.kernels.arguments import KernelBuilder
from dlcb.lowering.kernels.flat import global_thread, split_index
from dlcb.lowering.kernels.lanes import Lanes, Neighbours, Provider, Values, number_of
from dlcb.lowering.kernels.row_plan import RowPlan
from dlcb.lowering.kernels.shifted import ShiftedLanes, rows_of, vectors_start

Item = Callable[[Lanes, "SSAValue | None", Operand], None]
LOADING = -1
"""The number of a pass before the first that loads what that one needs."""
FAST = {"maximum": "fast_maximum", "minimum": "fast_minimum"}
"""How totals are combined where the order of their operands means nothing."""


class RowLowering:
    """The loops of one row kernel. Subclasses say how threads share a row."""

    def __init__(self, name: str, plan: RowPlan, schedule: ScheduleAttr):
        kernel = plan.kernel
        self.kernel = kernel
        self.schedule = schedule
        self.plan = plan
        self.b = KernelBuilder(name, kernel, schedule.threads, schedule.index)
        self.outer_axes = kernel.axes[: len(kernel.outer.dims)]
        self.row_axes = kernel.axes[len(kernel.outer.dims) :]
        self.totals: dict[SSAValue, SSAValue] = {}
        self.kept: dict[SSAValue, SSAValue] = {}
        self.shifted = rows_of(plan) if schedule.shifted else None
        self.loaded: list[SSAValue] = []
        """What the first pass loads, of vectors that may be partial: they are asked for one by one, and would be
        waited for one by one."""
        if self.shifted is not None and schedule.staged:
            walking = {op.results[0] for op in self.shifted.walking if isinstance(op, ops.AccessOp)}
            self.loaded = [value for value in plan.loaded_first() if value in walking]
        self.chains = 1
        """Totals that a thread keeps of a reduction during a pass."""

    def build(self) -> CudaKernelOp:
        if self.schedule.staged:
            for value in dict.fromkeys([*self.loaded, *self.plan.staged]):
                self.kept[value] = self.b.local(value.type, self.schedule.items)
        if self.loaded:
            with self.row_guard():
                self.each_item(LOADING, lambda lanes, place, _: self._keep(LOADING, lanes, place))
        for number, group in enumerate(self.plan.reductions):
            self.reduce_pass(number, group)
        self.store_results()
        return self.b.done()

    def store_results(self) -> None:
        with self.row_guard():
            last = len(self.plan.reductions)
            if self.stored(last):
                self.each_item(last, lambda lanes, _, chain: self.store_item(last, lanes, chain))
            if self.plan.once_stores:
                with self.b.if_(self.is_first()):
                    lanes = self.outer_values()
                    for op in self.plan.once_stores:
                        lanes.store(op)

    def store_item(self, number: int, lanes: Lanes, chain: Operand) -> None:
        """Store what a pass stores of an item."""
        for op in self.stored(number):
            lanes.store(op)

    def stored(self, number: int) -> Sequence[ops.StoreOp]:
        return self.plan.stored(number, self.schedule.staged)

    def reduce_pass(self, number: int, group: Sequence[ops.ReduceOp]) -> None:
        running = [(op, self.start(op, self.chains)) for op in group]

        def item(lanes: Lanes, place: SSAValue | None, chain: Operand) -> None:
            for op, total in running:
                self.include(op, total, lanes, chain)
            self._keep(number, lanes, place)
            self.store_item(number, lanes, chain)

        with self.row_guard():
            self.each_item(number, item)
        for op, total in running:
            self.join_chains(op, total)
            self.combine(op, total)

    def join_chains(self, op: ops.ReduceOp, total: SSAValue) -> None:
        """A thread's totals of a reduction as one."""

    def include(self, op: ops.ReduceOp, total: SSAValue, lanes: Lanes, chain: Operand) -> None:
        """Add what an item gives to a total."""
        b = self.b
        sum_ = self.join(op, lanes.elements(op.src, self.neutral(op)))
        b.write(self.both(op, b.read(total, chain), sum_), total, chain)

    def start(self, op: ops.ReduceOp, chains: int) -> SSAValue:
        """Totals of nothing; the first will be the reduction's result."""
        b = self.b
        total = self.totals[op.results[0]] = b.local(op.results[0].type, chains)
        for chain in range(chains):
            b.write(self.neutral(op), total, chain)
        return total

    def neutral(self, op: ops.ReduceOp) -> SSAValue:
        return self.b.constant(number_of(op.initial), op.results[0].type)

    def both(self, op: ops.ReduceOp, x: SSAValue, y: SSAValue) -> SSAValue:
        """Two totals as one."""
        function = op.function.data
        return self.b.call(FAST.get(function, function), x, y)

    def join(self, op: ops.ReduceOp, values: Sequence[SSAValue]) -> SSAValue:
        """The values reduced pairwise: a sum's rounding error grows with the longest chain of additions."""
        while len(values) > 1:
            pairs = [self.both(op, *values[i : i + 2]) for i in range(0, len(values) - 1, 2)]
            values = [*pairs, *values[2 * len(pairs) :]]
        return values[0]

    def _made(self, value: SSAValue) -> int:
        """The pass that makes a value that is kept."""
        return LOADING if value in self.loaded else self.plan.staged[value]

    def _keep(self, number: int, lanes: Lanes, place: SSAValue | None) -> None:
        b = self.b
        for value, kept in self.kept.items():
            if place is not None and self._made(value) == number:
                for lane, element in enumerate(self._spread(lanes.get(value), lanes.lanes)):
                    b.write(element, kept, b.add(place, b.constant(lane, place.type)))

    @staticmethod
    def _spread(values: Values, count: int) -> Values:
        return values if len(values) > 1 else [values[0]] * count

    def given(self, value: SSAValue) -> Values | None:
        """Results of reductions already made."""
        total = self.totals.get(value)
        return None if total is None else [self.b.read(total, 0)]

    def each_item(self, number: int, body: Item) -> None:
        """Call `body(lanes, place in registers, chain)` for each of the thread's items."""
        b, schedule = self.b, self.schedule
        v = schedule.vector
        lower, length = self.bounds()
        if self.shifted is not None:
            outer = self.outer_coords()
            lower = vectors_start(b, self.shifted, v, {axis: outer[axis] for axis in self.outer_axes}, lower)
        first = b.add(lower, b.mul(self.lane(), b.constant(v, b.idx)))
        step = self.together() * v
        outer = self.outer_lanes(number)
        if schedule.items == 0:
            with b.for_(first, length, b.constant(step, b.idx)) as k:
                self.item(k, None, number, body, outer)
            return
        with b.for_(0, schedule.items // v, 1, unroll=True) as group:
            k = b.add(first, b.mul(b.cast(group, b.idx), b.constant(step, b.idx)))
            with b.if_(b.lt(k, length)):
                place = b.mul(group, b.constant(v, group.type)) if schedule.staged else None
                self.item(k, place, number, body, outer)

    def outer_lanes(self, number: int) -> Lanes:
        """What a pass needs that is the same for all items."""
        outer = self.outer_values()
        for value in self.plan.invariants(number, self.schedule.staged):
            outer.get(value)
        return outer

    def outer_values(self) -> Lanes:
        """What does not depend on the row."""
        return Lanes(self.kernel, self.b, self.outer_coords(), 1, self.given)

    def item(
        self, k: SSAValue, place: SSAValue | None, number: int, body: Item, outer: Lanes, chain: Operand = 0
    ) -> None:
        b = self.b
        coords = outer.values | self.row_coords(k)

        def provide(value: SSAValue) -> Values | None:
            kept = self.kept.get(value)
            if kept is not None and place is not None and self._made(value) < number:
                return [
                    b.read(kept, b.add(place, b.constant(lane, place.type))) for lane in range(self.schedule.vector)
                ]
            return self.given(value)

        body(self.lanes_at(k, coords, provide), place, chain)

    def row_coords(self, k: SSAValue) -> dict[SSAValue, Values]:
        b, v, sizes = self.b, self.schedule.vector, self.kernel.row.dims
        if len(sizes) == 1:
            return {self.row_axes[0]: Neighbours(b, k, v) if v > 1 else [k]}
        unit = k if v == 1 else b.truncdiv(k, b.constant(v, b.idx))
        return split_index(b, unit, self.row_axes, sizes, v)

    def lanes_at(self, k: SSAValue, coords: dict[SSAValue, Values], provide: Provider) -> Lanes:
        """A thread's neighbours from row coordinate `k` on."""
        kernel, b, v = self.kernel, self.b, self.schedule.vector
        if self.shifted is None:
            return Lanes(kernel, b, coords, v, provide)
        lower, upper = (b.sub(bound, k) for bound in self.bounds())
        return ShiftedLanes(kernel, b, coords, v, provide, self.shifted, lower, upper)

    def outer_coords(self) -> dict[SSAValue, Values]:
        return split_index(self.b, self.row_number(), self.outer_axes, self.kernel.outer.dims)

    # How threads share a row

    def bounds(self) -> tuple[SSAValue, SSAValue]:
        """The row coordinates that this block walks: from, up to."""
        return self.b.constant(0, self.b.idx), self.b.number(self.kernel.row.dims)

    def block(self) -> SSAValue:
        """The number of this block among those that have other rows."""
        return self.b.cast(self.b.block_idx(), self.b.idx)

    def row_number(self) -> SSAValue:
        """The number of this thread's row."""
        return self.block()

    def lane(self) -> SSAValue:
        """This thread's place among those that share its row."""
        return self.b.cast(self.b.thread_idx(), self.b.idx)

    def together(self) -> int:
        """How many threads share a row."""
        return self.schedule.threads

    def walk(self, count: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        """How this thread counts its share of `count` things that belong to its row: from, up to, step."""
        return self.lane(), count, self.b.constant(self.together(), self.b.idx)

    def first_thread(self) -> SSAValue:
        return self.b.eq(self.lane(), self.b.constant(0, self.b.idx))

    def is_first(self) -> SSAValue:
        """Of all threads that have the row, in any block, is this the first?"""
        return self.first_thread()

    @contextmanager
    def row_guard(self) -> Generator[None]:
        """Only threads that have a row."""
        yield

    def combine(self, op: ops.ReduceOp, total: SSAValue) -> None:
        """Combine a block's totals: within warps by shuffles, then through shared memory."""
        b = self.b
        self.combine_warp(op, total)
        warps = self.schedule.threads // WARP
        if warps == 1:
            return
        kind = op.results[0].type
        across = b.shared(kind, warps)
        thread = b.thread_idx()
        with b.if_(b.eq(b.mod(thread, 32), 0)):
            b.write(b.read(total, 0), across, b.truncdiv(b.thread_idx(), 32))
        b.barrier()
        sum_ = b.read(across, 0)
        for warp in range(1, warps):
            sum_ = self.both(op, sum_, b.read(across, warp))
        b.write(sum_, total, 0)

    def combine_warp(self, op: ops.ReduceOp, total: SSAValue) -> None:
        b = self.b
        other = b.local(op.results[0].type, 1)
        mask = WARP // 2
        while mask:
            b.shuffle_xor(total, 0, other, 0, mask)
            b.write(self.both(op, b.read(total, 0), b.read(other, 0)), total, 0)
            mask //= 2


class WarpRow(RowLowering):
    """A warp a row; a block has several rows."""

    def row_number(self) -> SSAValue:
        b = self.b
        rows = self.schedule.threads // WARP
        block = b.cast(b.block_idx(), b.idx)
        warp = b.cast(b.truncdiv(b.thread_idx(), 32), b.idx)
        return b.add(b.mul(block, b.constant(rows, b.idx)), warp)

    def lane(self) -> SSAValue:
        return self.b.cast(self.b.mod(self.b.thread_idx(), 32), self.b.idx)

    def together(self) -> int:
        return WARP

    @contextmanager
    def row_guard(self) -> Generator[None]:
        with self.b.if_(self.b.lt(self.row_number(), self.b.number(self.kernel.outer.dims))):
            yield

    def combine(self, op: ops.ReduceOp, total: SSAValue) -> None:
        self.combine_warp(op, total)


class ThreadRow(RowLowering):
    """One thread a row: nothing to combine."""

    def row_number(self) -> SSAValue:
        return global_thread(self.b, self.schedule.threads)

    def lane(self) -> SSAValue:
        return self.b.constant(0, self.b.idx)

    def together(self) -> int:
        return 1

    def first_thread(self) -> SSAValue:
        return self.b.eq(self.b.constant(0, self.b.idx), self.b.constant(0, self.b.idx))

    @contextmanager
    def row_guard(self) -> Generator[None]:
        with self.b.if_(self.b.lt(self.row_number(), self.b.number(self.kernel.outer.dims))):
            yield

    def combine(self, op: ops.ReduceOp, total: SSAValue) -> None:
        pass
