"""Pointwise kernels that read or write memory along another axis than the innermost one: a block computes a tile of the
two axes.

    load      what crosses (`dialects/coord/crossing.py`) is loaded in its own order, and waits in shared memory; what
              does not is loaded too, so a thread waits for memory once
    compute   along the innermost axis; what lies along it is stored
    store     results that cross have waited in shared memory, too, and are stored in their own order

Between two of these is a barrier. Beyond the end of an axis all is as at its last coordinates, so that only stores wait
for a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.crossing import crossing
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.coord.vectors import buffer_element
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.types import BYTES
from dlcb.errors import InternalError
from dlcb.lowering.kernels.arguments import BANDS, COLUMNS, KernelBuilder
from dlcb.lowering.kernels.flat import split_index
from dlcb.lowering.kernels.lanes import Lanes, Neighbours, Values, at_lane

REGISTER_BYTES = 4
MAX_WAITING = 64
"""Registers of a thread for what is loaded early and does not cross."""

Given = Callable[[SSAValue, SSAValue, SSAValue], "Values | None"]
"""What waits in a pass, on a line, of a value."""
Beside = Callable[[Lanes, SSAValue], None]


def lower_tile(name: str, kernel: ops.KernelOp, schedule: ScheduleAttr) -> CudaKernelOp:
    return _Tiles(name, kernel, schedule).build()


def padded(side: int, element: Attribute) -> int:
    """Elements from one line in shared memory to the next: an odd number of banks, so that elements at one place of
    neighbouring lines lie in different ones."""
    return side + max(REGISTER_BYTES // BYTES[element], 1)


class _Frame:
    """A block's tile among the kernel's coordinates. `starts`: where it begins along its two axes."""

    def __init__(self, name: str, kernel: ops.KernelOp, schedule: ScheduleAttr):
        tile = schedule.transpose
        if tile is None:
            raise InternalError(f"kernel {name}: its schedule has no tile")
        self.kernel = kernel
        self.b = b = KernelBuilder(name, kernel, schedule.threads, schedule.index)
        self.threads = schedule.threads
        self.axis = tile.axis
        self.last = len(kernel.outer.dims) - 1
        self.sides = {tile.axis: tile.along, self.last: tile.across}
        self.vectors = {tile.axis: tile.vector, self.last: schedule.vector}
        rest = b.cast(b.block_idx(), b.idx)
        self.starts: dict[int, SSAValue] = {}
        for axis, count in ((self.last, COLUMNS), (tile.axis, BANDS)):
            size, side = self.size(axis), self.sides[axis]
            rest, number = b.divide(rest, [-(-size // side) if isinstance(size, int) else count])
            self.starts[axis] = b.mul(number, b.constant(side, b.idx))
        others = [i for i in range(self.last) if i != tile.axis]
        sizes = tuple(map(self.size, others))
        self.outside = split_index(b, rest, [kernel.axes[i] for i in others], sizes)

    def size(self, axis: int) -> Dim:
        return self.kernel.outer.dims[axis]

    def spot(self, element: Attribute, along: SSAValue, across: SSAValue) -> SSAValue:
        """Where a place of the tile is in shared memory."""
        b = self.b
        return b.add(b.mul(across, b.constant(padded(self.sides[self.axis], element), b.idx)), along)


class _Walk:
    """How threads go through a tile: neighbours along `axis`, `vector` of them at once, then line by line."""

    def __init__(self, frame: _Frame, axis: int):
        self.frame = frame
        self.b = b = frame.b
        self.axis = axis
        self.crosswise = frame.axis if axis == frame.last else frame.last
        """The axis along which lines lie beside one another."""
        self.vector = frame.vectors[axis]
        together = frame.sides[axis] // self.vector
        self.step = frame.threads // together
        """Lines from one pass to the next."""
        self.passes = frame.sides[self.crosswise] // self.step
        self.line, place = b.divide(b.cast(b.thread_idx(), b.idx), [together])
        self.place = b.mul(place, b.constant(self.vector, b.idx))

    def line_of(self, number: SSAValue) -> SSAValue:
        b = self.b
        return b.add(self.line, b.mul(b.cast(number, b.idx), b.constant(self.step, b.idx)))

    def coordinates(self, line: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Of the thread's place on a line: along the walk's axis, and along the other one."""
        starts = self.frame.starts
        return self.b.add(starts[self.axis], self.place), self.b.add(starts[self.crosswise], line)

    def lanes_on(self, line: SSAValue, provide: Callable[[SSAValue], Values | None] = lambda _: None) -> Lanes:
        """At the thread's place on a line; beyond the end of an axis, at its last coordinates."""
        b, frame, v = self.b, self.frame, self.vector
        along, crosswise = self.coordinates(line)
        along = b.minimum(along, b.sub(b.number([frame.size(self.axis)]), b.constant(v, b.idx)))
        crosswise = b.minimum(crosswise, b.sub(b.number([frame.size(self.crosswise)]), b.constant(1, b.idx)))
        coords = dict(frame.outside)
        coords[frame.kernel.axes[self.axis]] = Neighbours(b, along, v) if v > 1 else [along]
        coords[frame.kernel.axes[self.crosswise]] = [crosswise]
        return Lanes(frame.kernel, b, coords, v, provide, self.axis)

    def is_inside(self, line: SSAValue) -> SSAValue:
        """Has the thread's place on a line coordinates of the kernel?"""
        b, frame = self.b, self.frame
        sizes = (b.number([frame.size(axis)]) for axis in (self.axis, self.crosswise))
        return b.and_(*[b.lt(coordinate, size) for coordinate, size in zip(self.coordinates(line), sizes, strict=True)])

    def store(self, stores: Sequence[ops.StoreOp], given: Given, beside: Beside | None = None) -> None:
        """Compute what is stored, everywhere: only stores wait for a test. Before them, `beside(lanes, line)`."""
        b = self.b
        with b.for_(0, self.passes, unroll=True) as number:
            line = self.line_of(number)
            lanes = self.lanes_on(line, partial(given, number, line))
            for op in stores:
                lanes.get(op.value)
            if beside is not None:
                beside(lanes, line)
            with b.if_(self.is_inside(line)):
                for op in stores:
                    lanes.store(op)

    def spots(self, element: Attribute, line: SSAValue) -> list[SSAValue]:
        """Where the thread's places on a line are in shared memory."""
        frame, b = self.frame, self.b
        places = [b.add(self.place, b.constant(lane, b.idx)) for lane in range(self.vector)]
        if self.axis == frame.last:
            return [frame.spot(element, line, place) for place in places]
        return [frame.spot(element, place, line) for place in places]


class _Held:
    """What a thread has loaded of an access in each pass, in a local: one value where passes or lanes share it."""

    def __init__(self, walk: _Walk, op: ops.AccessOp, each_pass: bool = True, each_lane: bool = True):
        self.b = walk.b
        self.value = op.res
        self.of_lane = 1 if each_lane else 0
        self.of_pass = (walk.vector if each_lane else 1) if each_pass else 0
        self.lanes = walk.vector if each_lane else 1
        self.count = self.lanes * (walk.passes if each_pass else 1)
        self.registers = self.count * -(-buffer_element(op.buffer) // REGISTER_BYTES)

    def declare(self) -> None:
        self.local = self.b.local(self.value.type, self.count)

    def keep(self, lanes: Lanes, number: SSAValue) -> None:
        values = lanes.get(self.value)
        for lane in range(self.lanes):
            self.b.write(at_lane(values, lane), self.local, self.place(number, lane))

    def read(self, number: SSAValue) -> Values:
        return [self.b.read(self.local, self.place(number, lane)) for lane in range(self.lanes)]

    def place(self, number: SSAValue, lane: int) -> SSAValue:
        b = self.b
        return b.add(b.mul(number, b.constant(self.of_pass, number.type)), b.constant(lane, number.type))


class _Tiles:
    def __init__(self, name: str, kernel: ops.KernelOp, schedule: ScheduleAttr):
        self.frame = frame = _Frame(name, kernel, schedule)
        self.kernel = kernel
        self.b = frame.b
        found = crossing(kernel)
        if found is None or found.axis != frame.axis:
            raise InternalError(f"kernel {name}: nothing lies along the axis of its schedule's tile, {frame.axis}")
        self.crossing = found
        self.turned: dict[SSAValue, SSAValue] = {}
        """Values that wait in shared memory → the array."""
        self.held: dict[SSAValue, _Held] = {}
        """Values that wait in registers."""

    def build(self) -> CudaKernelOp:
        self.load()
        self.b.barrier()
        self.compute()
        if self.crossing.stores:
            self.b.barrier()
            self.store()
        return self.b.done()

    def shared(self, element: Attribute) -> SSAValue:
        sides = self.frame.sides
        return self.b.shared(element, sides[self.frame.last] * padded(sides[self.frame.axis], element))

    def load(self) -> None:
        b = self.b
        walk = _Walk(self.frame, self.frame.axis)
        loaded = [_Held(walk, op) for op in self.crossing.loads]
        self.load_into(walk, loaded)
        self.load_beside()
        with b.for_(0, walk.passes, unroll=True) as number:
            line = walk.line_of(number)
            for held in loaded:
                element = held.value.type
                array = self.turned[held.value] = self.turned.get(held.value) or self.shared(element)
                for value, spot in zip(held.read(number), walk.spots(element, line), strict=True):
                    b.write(value, array, spot)

    def load_beside(self) -> None:
        """Load what does not cross, as far as registers go."""
        walk = _Walk(self.frame, self.frame.last)
        left = MAX_WAITING
        for op in self.kernel.body.block.ops:
            if isinstance(op, ops.AccessOp) and op not in self.crossing.loads and op.extra is None and op.guard is None:
                strides = op.strides.dims
                held = _Held(walk, op, strides[self.frame.axis] != 0, strides[-1] != 0)
                if held.registers <= left:
                    left -= held.registers
                    self.held[op.res] = held
        self.load_into(walk, list(self.held.values()))

    def load_into(self, walk: _Walk, loaded: list[_Held]) -> None:
        b = self.b
        for held in loaded:
            held.declare()
        once = [held for held in loaded if held.of_pass == 0]
        if once:
            lanes, first = walk.lanes_on(walk.line), b.constant(0, b.thread_idx().type)
            for held in once:
                held.keep(lanes, first)
        if len(once) < len(loaded):
            with b.for_(0, walk.passes, unroll=True) as number:
                lanes = walk.lanes_on(walk.line_of(number))
                for held in loaded:
                    if held.of_pass:
                        held.keep(lanes, number)

    def compute(self) -> None:
        walk = _Walk(self.frame, self.frame.last)
        waiting = {op.value: self.shared(op.value.type) for op in self.crossing.stores}

        def turn(lanes: Lanes, line: SSAValue) -> None:
            for value, array in waiting.items():
                values = lanes.get(value)
                for lane, spot in enumerate(walk.spots(value.type, line)):
                    self.b.write(at_lane(values, lane), array, spot)

        stores = [op for op in self.kernel.body.block.ops if isinstance(op, ops.StoreOp)]
        walk.store([op for op in stores if op not in self.crossing.stores], partial(self.known, walk), turn)
        self.turned = waiting

    def store(self) -> None:
        walk = _Walk(self.frame, self.frame.axis)
        walk.store(self.crossing.stores, partial(self.known, walk))

    def known(self, walk: _Walk, number: SSAValue, line: SSAValue, value: SSAValue) -> Values | None:
        """What waits for a thread on a line."""
        array = self.turned.get(value)
        if array is not None:
            return [self.b.read(array, spot) for spot in walk.spots(value.type, line)]
        held = self.held.get(value)
        return None if held is None else held.read(number)
