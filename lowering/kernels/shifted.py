"""Lanes of a vector that starts where memory is aligned: at the ends of a row, some of them lie outside it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.intervals import Bound, Interval
from dlcb.dialects.coord.shifted import ShiftedRows
from dlcb.dialects.coord.vectors import MAX_VECTOR_BYTES, buffer_element
from dlcb.errors import InternalError
from dlcb.lowering.kernels.arguments import KernelBuilder
from dlcb.lowering.kernels.lanes import Lanes, Provider, Values, at_lane, each, is_zero
from dlcb.lowering.kernels.row_plan import RowPlan


def rows_of(plan: RowPlan) -> ShiftedRows:
    """What the rows of a kernel with a shifted schedule have in common."""
    if plan.shifted is None:
        raise InternalError(f"kernel {plan.kernel.symbol}: vectors are to be shifted, but rows do not lie alike")
    return plan.shifted


def vectors_start(
    b: KernelBuilder, rows: ShiftedRows, vector: int, coords: Mapping[SSAValue, Values], lower: SSAValue
) -> SSAValue:
    """The row coordinate, at most `lower`, from which vectors count; `coords` are those of the outer axes, in order."""
    place = lower
    for along, stride in zip(coords.values(), rows.strides, strict=True):
        if stride != 0:
            place = b.add(place, b.mul(along[0], b.number([stride])))
    return b.sub(lower, b.and_(place, b.constant(vector - 1, b.idx)))


class ShiftedLanes(Lanes):
    """The lanes from `lower` up to `upper` are in the row. What others compute is never stored and counts for nothing;
    they touch no memory."""

    def __init__(
        self,
        kernel: ops.KernelOp,
        b: KernelBuilder,
        coords: Mapping[SSAValue, Values],
        lanes: int,
        provide: Provider,
        rows: ShiftedRows,
        lower: SSAValue,
        upper: SSAValue,
    ):
        super().__init__(kernel, b, coords, lanes, provide)
        self.rows = rows
        self.lower = lower
        self.upper = upper

    def is_inside(self, lane: int) -> SSAValue:
        b = self.b
        number = b.constant(lane, b.idx)
        return b.and_(b.le(self.lower, number), b.lt(number, self.upper))

    def elements(self, value: SSAValue, neutral: SSAValue) -> list[SSAValue]:
        b = self.b
        found = [b.var(element) for element in super().elements(value, neutral)]
        partial = b.or_(b.lt(b.constant(0, b.idx), self.lower), b.lt(self.upper, b.constant(self.lanes, b.idx)))
        with b.if_(partial):
            for lane, var in enumerate(found):
                b.set(var, b.select(self.is_inside(lane), b.get(var), neutral))
        return [b.get(var) for var in found]

    def access_of(self, op: ops.AccessOp) -> Values:
        if op in self.rows.walking:
            return self._load_part(op, self.lower, self.upper)
        if (interval := self.rows.unaligned.get(op)) is not None:
            return self._load_interval(op, interval)
        places = self.place(op)
        if len(places) == 1:
            return super().access_of(op)
        b, array, guard, other = self.b, self.b.pointer[op.buffer], op.guard, op.other
        inside: Values = [self.is_inside(lane) for lane in range(self.lanes)]
        if guard is None or other is None:
            zero = b.constant(0, op.results[0].type)
            return each(lambda holds, at: b.load_if(holds, array, at, zero), inside, places)
        holds = each(lambda here, g: b.and_(here, self._truth(g)), inside, self.values[guard])
        return each(lambda holds, at, x: b.load_if(holds, array, at, x), holds, places, self.values[other])

    def _load_interval(self, op: ops.AccessOp, interval: Interval) -> Values:
        """What the interval has of the row, what stands for the others elsewhere."""
        b, lower, upper = self.b, self.lower, self.upper
        for bound in interval.lower:
            lower = b.maximum(lower, self._lane_of(bound))
        for bound in interval.upper:
            upper = b.minimum(upper, self._lane_of(bound))
        for condition in interval.conditions:
            upper = b.select(self._truth(self.get(condition)[0]), upper, b.constant(0, b.idx))
        found = self._load_part(op, lower, upper)
        if op.guard is None or op.other is None or is_zero(op.other):
            return found
        guards, others, kind = self.get(op.guard), self.get(op.other), op.results[0].type
        return each(lambda g, x, other: b.cast(b.select(self._truth(g), x, other), kind), guards, found, others)

    def _lane_of(self, bound: Bound) -> SSAValue:
        """The lane that a coordinate of the row is, if there were lanes so far."""
        b = self.b
        total = b.add(self._number(self.get(bound.start)[0]), b.constant(bound.more, b.idx))
        for sign, value in bound.terms:
            number = self._number(self.get(value)[0])
            total = b.add(total, number) if sign > 0 else b.sub(total, number)
        return b.sub(total, self.values[self.kernel.axes[-1]][0])

    def _load_part(self, op: ops.AccessOp, lower: SSAValue, upper: SSAValue) -> Values:
        """As many at once as one load can move."""
        b, place, aligned = self.b, self.place(op, first=True)[0], op in self.rows.walking
        array, width = b.pointer[op.buffer], min(self.lanes, MAX_VECTOR_BYTES // buffer_element(op.buffer))
        found: list[SSAValue] = []
        for n in range(0, self.lanes, width):
            skipped = b.constant(n, b.idx)
            bounds = b.sub(lower, skipped), b.sub(upper, skipped)
            found += b.load_part(*bounds, array, b.add(place, skipped), width, aligned=aligned)
        return found

    def store(self, op: ops.StoreOp) -> None:
        """Rows are stored alike."""
        value = self.get(op.value)
        whole = [at_lane(value, lane) for lane in range(self.lanes)]
        place = self.place(op, first=True)[0]
        self.b.store_part(whole, self.lower, self.upper, self.b.pointer[op.buffer], place)
