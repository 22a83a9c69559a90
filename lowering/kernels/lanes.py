"""Values of a coordinate kernel in a thread that computes one or several neighbouring coordinates of an axis (*lanes*),
the innermost one if nothing else is said.

A value is a list: one entry where all lanes share it, else one a lane. A `Lanes` is valid in one place of the kernel (a
phase, a loop's body); it computes what is asked for, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Operation, OpResult, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.check import CheckOp
from dlcb.dialects.coord.vectors import MAX_VECTOR_BYTES, Along, buffer_element
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.types import compute_type, i1, i32, i64, index
from dlcb.errors import InternalError
from dlcb.lowering.kernels.arguments import KernelBuilder

Values = Sequence[SSAValue]
Provider = Callable[[SSAValue], "Values | None"]


class Neighbours(Sequence[SSAValue]):
    """The coordinates start, start + 1, …; made when they are asked for."""

    def __init__(self, b: KernelBuilder, start: SSAValue, count: int):
        self._b = b
        self._start = start
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, lane: Any) -> Any:
        if not 0 <= lane < self._count:
            raise IndexError(lane)
        return self._b.add(self._start, self._b.constant(lane, self._b.idx))


class Lanes:
    """Computes values at given coordinates. `provide` gives values that are known otherwise (staged ones,
    reductions)."""

    def __init__(
        self,
        kernel: ops.KernelOp,
        b: KernelBuilder,
        coords: Mapping[SSAValue, Values],
        lanes: int,
        provide: Provider = lambda _: None,
        axis: int = -1,
        neighbours: bool = True,
        along: Along | None = None,
    ):
        """`neighbours=False`: the lanes are any coordinates, and move no vectors; `along`: what moves along the axis,
        if that was asked already."""
        self.kernel = kernel
        self.b = b
        self.lanes = lanes
        self.provide = provide
        self.axis = axis
        self.neighbours = neighbours
        self.along = along or Along(kernel, axis)
        self.values: dict[SSAValue, Values] = dict(coords)
        self._axes = list(kernel.axes)

    def inner(self) -> Lanes:
        """For the body of a loop or a branch: knows what is known here; what it computes stays there."""
        return Lanes(self.kernel, self.b, self.values, self.lanes, self.provide, self.axis, self.neighbours, self.along)

    def get(self, value: SSAValue) -> Values:
        """The value, computed if need be; operands first, without recursion into long chains."""
        pending = [value]
        while pending:
            top = pending[-1]
            if top in self.values:
                pending.pop()
                continue
            given = self.provide(top)
            if given is not None:
                self.values[top] = given
                pending.pop()
                continue
            assert isinstance(top, OpResult)
            if isinstance(top.op, ops.LoopOp):
                self.values.update(zip(top.op.results, self._loop(top.op), strict=True))
            elif missing := [v for v in _needs(top.op) if v not in self.values]:
                pending += missing
                continue
            else:
                self.values[top] = self._compute(top.op)
            pending.pop()
        return self.values[value]

    def _compute(self, op: object) -> Values:
        if isinstance(op, ops.AccessOp):
            return self.access_of(op)
        compute = _COMPUTE.get(type(op))
        if compute is None:
            raise InternalError(f"kernel {self.kernel.symbol}: no lowering of {op}")
        return compute(self, op)

    def param_of(self, op: ops.ParamOp) -> Values:
        return [self.b.number([op.param.data])]

    def constant_of(self, op: ops.ConstantOp) -> Values:
        kind = op.results[0].type
        return [self.b.constant(op.number, self.b.idx if kind == index else kind)]

    def to_element_of(self, op: ops.ToElementOp) -> Values:
        kind = op.results[0].type
        return each(lambda v: self.b.cast(v, kind), self.values[op.operands[0]])

    def to_index_of(self, op: ops.ToIndexOp) -> Values:
        return each(self._as_coordinate, self.values[op.operands[0]])

    def _as_coordinate(self, value: SSAValue) -> SSAValue:
        """An integer element in the index type; one that does not fit becomes the nearest that does, which is out of
        range too."""
        b = self.b
        if value.type == i64 and b.idx == i32:
            value = b.minimum(b.maximum(value, b.constant(-(2**31), i64)), b.constant(2**31 - 1, i64))
        return b.cast(value, b.idx)

    def check_of(self, op: CheckOp) -> Values:
        """The value as it is."""
        value, holds, size = (self.values[operand] for operand in op.operands)
        for lane in range(max(len(value), len(holds))):
            known = self._number(at_lane(size, lane))
            self.b.check(op.number.data, self._truth(at_lane(holds, lane)), at_lane(value, lane), known)
        return value

    # Scalars and coordinates

    def scalar_of(self, op: ops.ScalarOp) -> Values:
        b, function = self.b, op.function.data
        operands = [self.values[a] for a in op.operands]
        kind = op.results[0].type
        if function == "cast":
            return each(lambda v: b.cast(v, kind), operands[0])
        return each(lambda *vs: b.cast(self._call(function, vs), kind), *operands)

    def _call(self, function: str, operands: Sequence[SSAValue]) -> SSAValue:
        b = self.b
        first = 1 if function == "select" else 0
        wide = [v if i < first else b.cast(v, compute_type(v.type)) for i, v in enumerate(operands)]
        return b.scalar(function, *wide)

    def index_of(self, op: ops.IndexOp) -> Values:
        b, function = self.b, op.function.data
        operands = [self.values[a] for a in op.operands]
        if function in ("floordiv", "mod"):
            return self._divide(op, operands)
        if function == "and":
            return each(lambda x, y: b.and_(self._truth(x), self._truth(y)), operands[0], operands[1])
        if function == "select":
            condition, x, y = operands
            return each(lambda c, x, y: b.select(self._truth(c), self._number(x), self._number(y)), condition, x, y)
        return each(lambda *vs: b.call(function, *map(self._number, vs)), *operands)

    def _truth(self, value: SSAValue) -> SSAValue:
        return value if value.type == i1 else self.b.ne(value, self.b.constant(0, value.type))

    def _number(self, value: SSAValue) -> SSAValue:
        return self.b.cast(value, self.b.idx)

    def _divide(self, op: ops.IndexOp, operands: list[Values]) -> Values:
        b, wanted = self.b, 0 if op.function.data == "floordiv" else 1
        divisor = op.args[1].owner
        dims: list[Dim] | None = None
        if isinstance(divisor, ops.ParamOp):
            dims = [divisor.param.data]
        elif isinstance(divisor, ops.ConstantOp):
            dims = [int(divisor.number)]
        if dims is None or not _not_negative(op.args[0]):
            x, y = operands
            return each(lambda x, y: b.call(op.function.data, self._number(x), self._number(y)), x, y)
        return each(lambda x: b.divide(self._number(x), dims)[wanted], operands[0])

    def elements(self, value: SSAValue, neutral: SSAValue) -> list[SSAValue]:
        """The value in every lane, where there is no such place in the row the neutral element."""
        return [at_lane(self.get(value), lane) for lane in range(self.lanes)]

    # Memory

    def place(self, op: ops.AccessOp | ops.StoreOp, first: bool = False) -> Values:
        """The offset of an access: one for all lanes if they share it; with `first`, that of the first lane."""
        b = self.b
        total: Values = [b.constant(0, b.idx)]
        for axis, stride in zip(self._axes, op.strides.dims, strict=True):
            if stride != 0:
                step = b.number([stride])
                along = self.values[axis]
                here = [along[0]] if first else along
                total = each(lambda t, c, s=step: b.add(t, b.mul(c, s)), total, here)
        if (extra := op.extra) is not None:
            total = each(lambda t, e: b.add(t, self._number(e)), total, self.get(extra))
        return total

    def moves_vectors(self, op: ops.AccessOp | ops.StoreOp) -> bool:
        return self.lanes > 1 and self.neighbours and self.along.demands(op) is not None

    def _vector(self, op: ops.AccessOp) -> Values:
        """Neighbours at once; where a guard, which is the same for all, does not hold, nothing is touched."""
        b, place = self.b, self.place(op, first=True)[0]
        guard, other = op.guard, op.other
        if guard is None:
            return self._load_neighbours(op, place)
        assert other is not None
        holds = self._truth(self.values[guard][0])
        if is_zero(other):
            return self._load_neighbours(op, place, holds)
        found = [b.var(at_lane(self.values[other], lane)) for lane in range(self.lanes)]
        with b.if_(holds):
            for var, value in zip(found, self._load_neighbours(op, place), strict=True):
                b.set(var, value)
        return [b.get(var) for var in found]

    def _load_neighbours(self, op: ops.AccessOp, place: SSAValue, holds: SSAValue | None = None) -> list[SSAValue]:
        """As many at once as one load can move; zeros where `holds` does not."""
        b, buffer = self.b, op.buffer
        array, width = b.pointer[buffer], min(self.lanes, MAX_VECTOR_BYTES // buffer_element(buffer))
        found: list[SSAValue] = []
        for n in range(0, self.lanes, width):
            at = b.add(place, b.constant(n, b.idx))
            found += b.load_vector(array, at, width) if holds is None else b.load_vector_if(holds, array, at, width)
        return found

    def access_of(self, op: ops.AccessOp) -> Values:
        if self.moves_vectors(op):
            return self._vector(op)
        b, places = self.b, self.place(op)
        array, guard, other = b.pointer[op.buffer], op.guard, op.other
        if guard is not None:
            assert other is not None
            return each(
                lambda g, at, other: b.load_if(self._truth(g), array, at, other),
                self.values[guard],
                places,
                self.values[other],
            )
        return each(lambda at: b.load(array, at), places)

    def store(self, op: ops.StoreOp) -> None:
        b = self.b
        array = b.pointer[op.buffer]
        value = self.get(op.value)
        if op.extra is not None:
            self.get(op.extra)
        if self.moves_vectors(op):
            whole, place = [at_lane(value, n) for n in range(self.lanes)], self.place(op, first=True)[0]
            if op.guard is None:
                b.store_vector(whole, array, place)
                return
            with b.if_(self._truth(self.get(op.guard)[0])):
                b.store_vector(whole, array, place)
            return
        places = self.place(op)
        if op.guard is not None:
            guards = self.get(op.guard)
            for lane in range(max(len(guards), len(places), len(value))):
                with b.if_(self._truth(at_lane(guards, lane))):
                    b.store(at_lane(value, lane), array, at_lane(places, lane))
        else:
            for lane in range(max(len(places), len(value)) if len(places) > 1 else 1):
                b.store(at_lane(value, lane), array, at_lane(places, lane))

    # Loops over small literal spaces

    def _loop(self, op: ops.LoopOp) -> list[Values]:
        """The values of each result."""
        b, body = self.b, op.body.block
        outside = _reads_from_outside(op)
        for value in outside:
            self.get(value)
        varying = any(len(self.values[v]) > 1 for v in outside) or any(
            len(self.values.get(axis, ())) > 1 for axis in self._axes
        )
        first = [b.constant(number_of(op.initial), kind) for kind in op.result_types]
        totals = [[b.var(initial) for _ in range(self.lanes if varying else 1)] for initial in first]
        self._nest(op, list(zip(body.args, op.extents.dims, strict=True)), totals, self.inner())
        return [[b.get(t) for t in one] for one in totals]

    def _nest(self, op: ops.LoopOp, left: list[tuple[SSAValue, Dim]], totals: Sequence[Values], lanes: Lanes) -> None:
        """The loops over the positions that are left. One that finds several totals has enough in each step."""
        b = self.b
        if not left:
            for value, total in zip(op.elements, totals, strict=True):
                element = lanes.get(value)
                for lane, one in enumerate(total):
                    b.set(one, self._call(op.function.data, (b.get(one), at_lane(element, lane))))
            return
        (position, extent), *rest = left
        unroll = len(totals) == 1
        with b.for_(b.constant(0, b.idx), b.number([extent]), b.constant(1, b.idx), unroll=unroll) as k:
            inner = lanes.inner()
            inner.values[position] = [k]
            self._nest(op, rest, totals, inner)


@overload
def each(make: Callable[[SSAValue], SSAValue], x: Values, /) -> Values: ...
@overload
def each(make: Callable[[SSAValue, SSAValue], SSAValue], x: Values, y: Values, /) -> Values: ...
@overload
def each(make: Callable[[SSAValue, SSAValue, SSAValue], SSAValue], x: Values, y: Values, z: Values, /) -> Values: ...
@overload
def each(make: Callable[..., SSAValue], *operands: Values) -> Values: ...
def each(make: Callable[..., SSAValue], *operands: Values) -> Values:
    """`make` of the operands in every lane; once, if all lanes share them all."""
    count = max([len(o) for o in operands], default=1)
    if count == 1:
        return [make(*[o[0] for o in operands])]
    return [make(*[o[lane] if len(o) > 1 else o[0] for o in operands]) for lane in range(count)]


_COMPUTE: dict[type[object], Callable[[Lanes, Any], Values]] = {
    ops.ParamOp: Lanes.param_of,
    ops.ConstantOp: Lanes.constant_of,
    ops.IndexOp: Lanes.index_of,
    ops.ScalarOp: Lanes.scalar_of,
    ops.ToElementOp: Lanes.to_element_of,
    ops.ToIndexOp: Lanes.to_index_of,
    CheckOp: Lanes.check_of,
}


def _needs(op: Operation) -> Sequence[SSAValue]:
    """The operands that are values: all but an access's buffer."""
    return op.operands[1:] if isinstance(op, ops.AccessOp) else op.operands


def at_lane(values: Values, lane: int) -> SSAValue:
    return values[lane] if len(values) > 1 else values[0]


def number_of(attribute: object) -> float | int:
    assert isinstance(attribute, (FloatAttr, IntegerAttr))
    return attribute.value.data


def _reads_from_outside(op: ops.LoopOp) -> list[SSAValue]:
    """The values that a loop's body uses and does not make; the kernel's arguments (buffers, coordinates) left out."""
    made = {r for inner in op.body.walk() for r in inner.results} | {
        a for inner in op.body.walk() for region in inner.regions for block in region.blocks for a in block.args
    }
    made |= set(op.body.block.args)
    found: dict[SSAValue, None] = {}
    for inner in op.body.walk():
        for operand in inner.operands:
            if operand not in made and isinstance(operand, OpResult):
                found[operand] = None
    return list(found)


def is_zero(value: SSAValue) -> bool:
    maker = value.owner
    return isinstance(maker, ops.ConstantOp) and maker.number == 0 and math.copysign(1, maker.number) > 0


def _not_negative(value: SSAValue) -> bool:
    """Is a coordinate number proved to be ≥ 0? Axes and sizes are; sums and products of such; differences are not."""
    owner = value.owner
    if not isinstance(value, OpResult):
        return True
    if isinstance(owner, ops.ConstantOp):
        return owner.number >= 0
    if isinstance(owner, ops.IndexOp) and owner.function.data not in ("sub",):
        return all(map(_not_negative, owner.args))
    return isinstance(owner, ops.ParamOp)
