"""Kernels without a row: each thread computes `vector` neighbouring coordinates of the innermost axis, or one by one
`items` of them that lie as far apart as the block is wide, so that neighbouring threads still touch neighbours."""

from __future__ import annotations

from xdsl.ir import SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.types import Dim
from dlcb.lowering.kernels.arguments import KernelBuilder
from dlcb.lowering.kernels.lanes import Lanes, Neighbours, Values


def lower_flat(name: str, kernel: ops.KernelOp, schedule: ScheduleAttr) -> CudaKernelOp:
    b = KernelBuilder(name, kernel, schedule.threads, schedule.index)
    sizes = kernel.outer.dims
    v = schedule.vector
    thread = global_thread(b, schedule.threads)
    if not sizes:
        with b.if_(b.lt(thread, b.constant(1, b.idx))):
            run_stores(kernel, Lanes(kernel, b, {}, 1))
    elif len(sizes) == 1 and v > 1:
        _one_axis(kernel, b, thread, sizes[0], v)
    elif v == 1 and schedule.items > 1:
        _apart(kernel, b, sizes, schedule)
    else:
        with b.if_(b.lt(thread, b.number(sizes, v))):
            coords = split_index(b, thread, kernel.axes, sizes, v)
            run_stores(kernel, Lanes(kernel, b, coords, v))
    return b.done()


def _apart(kernel: ops.KernelOp, b: KernelBuilder, sizes: tuple[Dim, ...], schedule: ScheduleAttr) -> None:
    """All items at once, so that their loads are on the way together; in the last block, one after the other."""
    threads, items = schedule.threads, schedule.items
    block, thread = b.cast(b.block_idx(), b.idx), b.cast(b.thread_idx(), b.idx)
    first = b.add(b.mul(block, b.constant(threads * items, b.idx)), thread)
    last = b.add(first, b.constant(threads * (items - 1), b.idx))
    total = b.number(sizes)
    with b.if_(b.lt(last, total)):
        places = [b.add(first, b.constant(threads * item, b.idx)) for item in range(items)]
        split = [split_index(b, place, kernel.axes, sizes) for place in places]
        coords = {axis: [one[axis][0] for one in split] for axis in kernel.axes}
        run_stores(kernel, Lanes(kernel, b, coords, items, neighbours=False))
    with b.if_(b.le(total, last)), b.for_(first, total, b.constant(threads, b.idx)) as place:
        run_stores(kernel, Lanes(kernel, b, split_index(b, place, kernel.axes, sizes), 1))


def _one_axis(kernel: ops.KernelOp, b: KernelBuilder, thread: SSAValue, size: Dim, v: int) -> None:
    """Whole vectors, then what is left one by one."""
    (axis,) = kernel.axes
    start = b.mul(thread, b.constant(v, b.idx))
    end = b.add(start, b.constant(v, b.idx))
    whole = b.number([size])
    with b.if_(b.le(end, whole)):
        run_stores(kernel, Lanes(kernel, b, {axis: Neighbours(b, start, v)}, v))
    with b.if_(b.gt(end, whole)), b.for_(start, whole, b.constant(1, b.idx)) as k:
        run_stores(kernel, Lanes(kernel, b, {axis: [k]}, 1))


def global_thread(b: KernelBuilder, threads: int) -> SSAValue:
    block, thread = b.cast(b.block_idx(), b.idx), b.cast(b.thread_idx(), b.idx)
    return b.add(b.mul(block, b.constant(threads, b.idx)), thread)


def split_index(
    b: KernelBuilder, number: SSAValue, axes: object, sizes: tuple[Dim, ...], v: int = 1
) -> dict[SSAValue, Values]:
    """The coordinates of the point with this number, counted innermost axis first, `v` neighbours of the innermost axis
    at a time."""
    coords: dict[SSAValue, Values] = {}
    names = list(axes)  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    rest = number
    for position in range(len(sizes) - 1, -1, -1):
        step = v if position == len(sizes) - 1 else 1
        here = rest
        if position > 0:
            rest, here = b.divide(rest, [sizes[position]], step)
        if step > 1:
            coords[names[position]] = Neighbours(b, b.mul(here, b.constant(step, b.idx)), step)
        else:
            coords[names[position]] = [here]
    return coords


def run_stores(kernel: ops.KernelOp, lanes: Lanes) -> None:
    for op in kernel.body.block.ops:
        if isinstance(op, ops.StoreOp):
            lanes.store(op)
