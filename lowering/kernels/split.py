"""Kernels that follow one another over rows that are cut into parts: where there are few rows, all of the device works
on each.

Step i makes the i-th reduction of a part and leaves it in a workspace, one array a reduction, `workspace[part, row]`. A
later step first combines the parts' results, in their order, whoever made them: no atomics, so equal inputs give equal
bits. The mean is known before the second step sums squares around it, so a variance is as exact as in one kernel.

Whole rows are stored by the first step that has all that they need, part by part: squeeze-and-excite's in the step that
sums. The last step has all totals and stores the results; if it has to store whole rows (a softmax), it walks the parts
as well, and the first part's block stores the rest.
"""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.levels import inputs_of
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.errors import InternalError
from dlcb.lowering.kernels.arguments import CHUNK, GROUPS, PARTS
from dlcb.lowering.kernels.column import ColumnRow
from dlcb.lowering.kernels.row import RowLowering
from dlcb.lowering.kernels.row_plan import RowPlan


class SplitRow(RowLowering):
    """One step. Stands before the class that says how threads share a row."""

    def __init__(self, name: str, plan: RowPlan, schedule: ScheduleAttr):
        super().__init__(name, plan, schedule)
        if schedule.step is None:
            raise InternalError(f"kernel {name}: rows are cut into parts in steps, but the schedule has no step")
        self.step = schedule.step
        self.walks = self.step < len(plan.reductions) or bool(self.stored(self.step))
        """Has each part a block?"""
        made = [op for group in plan.reductions for op in group]
        self.workspace = {op: self.b.workspace(op.results[0].type) for op in made}

    def build(self) -> CudaKernelOp:
        reductions = self.plan.reductions
        for op in self.needed():
            self.recall(op)
        if self.step == len(reductions):
            self.store_results()
            return self.b.done()
        group = reductions[self.step]
        self.reduce_pass(self.step, group)
        with self.row_guard(), self.b.if_(self.first_thread()):
            for op in group:
                self.leave(op)
        return self.b.done()

    def leave(self, op: ops.ReduceOp) -> None:
        """Put what this step found of a part, of one row or of several beside one another, into the workspace."""
        b, place = self.b, self.place(self.part())
        found = [b.read(self.totals[op.results[0]], row) for row in range(self.rows_of_thread())]
        if len(found) > 1:
            b.store_vector(found, self.workspace[op], place)
        else:
            b.store(found[0], self.workspace[op], place)

    def needed(self) -> list[ops.ReduceOp]:
        """What this step needs of earlier ones, in their order."""
        pending = self.plan.wanted(self.step, staged=False)
        if self.step == len(self.plan.reductions):
            pending += [v for s in self.plan.once_stores for v in inputs_of(s)]
        seen: set[SSAValue] = set()
        while pending:
            value = pending.pop()
            if isinstance(value, OpResult) and value not in seen:
                seen.add(value)
                pending += () if isinstance(value.op, ops.ReduceOp) else inputs_of(value.op)
        return [op for op in self.workspace if op.results[0] in seen]

    def recall(self, op: ops.ReduceOp) -> None:
        """Combine what an earlier step found of each part."""
        b, total = self.b, self.start(op, 1)
        with self.row_guard(), b.for_(*self.walk(b.number([PARTS]))) as part:
            array, place = self.workspace[op], self.place(part)
            rows = self.rows_of_thread()
            for row, found in enumerate(b.load_vector(array, place, rows) if rows > 1 else [b.load(array, place)]):
                b.write(self.both(op, b.read(total, row), found), total, row)
        self.combine(op, total)

    def place(self, part: SSAValue) -> SSAValue:
        b = self.b
        first = b.mul(self.row_number(), b.constant(self.rows_of_thread(), b.idx))
        return b.add(b.mul(part, b.number(self.kernel.outer.dims)), first)

    def rows_of_thread(self) -> int:
        """The neighbouring rows that a thread has."""
        return 1

    def part(self) -> SSAValue:
        return self._divided()[0]

    def block(self) -> SSAValue:
        return self._divided()[1] if self.walks else super().block()

    def is_first(self) -> SSAValue:
        b = self.b
        if not self.walks:
            return super().is_first()
        return b.and_(b.eq(self.part(), b.constant(0, b.idx)), super().is_first())

    def _divided(self) -> tuple[SSAValue, SSAValue]:
        """Part and place of this block: those of the first part come first."""
        return self.b.divide(super().block(), [GROUPS])

    def bounds(self) -> tuple[SSAValue, SSAValue]:
        """Those of the part; a last part may be empty."""
        b = self.b
        chunk = b.number([CHUNK])
        lower = b.mul(self.part(), chunk)
        return lower, b.minimum(b.add(lower, chunk), super().bounds()[1])


class SplitBlock(SplitRow):
    """A block a part of a row."""


class SplitColumn(SplitRow, ColumnRow):
    """A block the parts of neighbouring rows."""

    def rows_of_thread(self) -> int:
        return self.rows
