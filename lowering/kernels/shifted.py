"""Lanes of a vector that starts where memory is aligned: at the ends of a row, some of them lie outside it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.shifted import ShiftedRows, shifted_rows
from dlcb.dialects.coord.vectors import MAX_VECTOR_BYTES, buffer_element
from dlcb.errors import InternalError
from dlcb.lowering.kernels.arguments import KernelBuilder
from dlcb.lowering.kernels.lanes import Lanes, Provider, Values, at_lane, each


def rows_of(kernel: ops.KernelOp) -> ShiftedRows:
    """What the rows of a kernel with a shifted schedule have in common."""
    rows = shifted_rows(kernel)
    if rows is None:
        raise InternalError(f"kernel {kernel.symbol}: vectors are to be shifted, but rows do not lie alike")
    return rows


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
        if op in self.rows.walking or op in self.rows.unaligned:
            return self._load_part(op)
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

    def _load_part(self, op: ops.AccessOp) -> Values:
        """As many at once as one load can move."""
        b, place = self.b, self.place(op, first=True)[0]
        width = min(self.lanes, MAX_VECTOR_BYTES // buffer_element(op.buffer))
        found: list[SSAValue] = []
        for n in range(0, self.lanes, width):
            skipped = b.constant(n, b.idx)
            lower, upper, at = b.sub(self.lower, skipped), b.sub(self.upper, skipped), b.add(place, skipped)
            aligned = op in self.rows.walking
            found += b.load_part(lower, upper, b.pointer[op.buffer], at, width, aligned=aligned)
        return found

    def store(self, op: ops.StoreOp) -> None:
        """Rows are stored alike."""
        value = self.get(op.value)
        whole = [at_lane(value, lane) for lane in range(self.lanes)]
        place = self.place(op, first=True)[0]
        self.b.store_part(whole, self.lower, self.upper, self.b.pointer[op.buffer], place)
