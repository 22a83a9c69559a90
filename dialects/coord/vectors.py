"""What neighbouring coordinates of an axis have in common: which accesses move whole vectors, and what that demands at
launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from dlcb.dialects.coord.ops import AccessOp, BufferType, ConstantOp, KernelOp, ParamOp, StoreOp
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.types import BYTES

MAX_VECTOR_BYTES = 16


@dataclass(frozen=True, slots=True)
class VectorFacts:
    """`widest`: elements a thread can move at once. To use a vector of v: `aligned` buffers start at a multiple of v
    elements, and `divisible` dims (sizes, strides, shifts) are multiples of v. `strided`: some operand may have any
    stride along the axis."""

    widest: int
    aligned: tuple[int, ...]
    divisible: tuple[Dim, ...]
    strided: bool = False


def moves_vectors(op: AccessOp | StoreOp, axis: int = -1) -> bool:
    """Does it touch neighbouring memory for neighbouring coordinates of an axis, always?"""
    strides = op.strides.dims
    return bool(strides) and strides[axis] == 1 and shift_of(op) is not None and op.guard is None


def shift_of(op: AccessOp | StoreOp) -> Dim | None:
    """The part of the offset that is not linear in the coordinates, where it is the same for all of them; 0 where there
    is none, None where it varies."""
    if op.extra is None:
        return 0
    maker = op.extra.owner
    if isinstance(maker, ConstantOp):
        return int(maker.number)
    return maker.param.data if isinstance(maker, ParamOp) else None


def memory_ops(kernel: KernelOp) -> list[AccessOp | StoreOp]:
    return [op for op in kernel.body.walk() if isinstance(op, (AccessOp, StoreOp))]


def buffer_element(buffer: SSAValue) -> int:
    """Bytes of one element."""
    kind = buffer.type
    assert isinstance(kind, BufferType)
    return BYTES[kind.element]


def vector_facts(kernel: KernelOp) -> VectorFacts:
    """Of all that a kernel loads and stores, along the innermost axis."""
    return facts_along(kernel, memory_ops(kernel), len(kernel.axes) - 1)


def facts_along(kernel: KernelOp, ops: Sequence[AccessOp | StoreOp], axis: int) -> VectorFacts:
    """Of these loads and stores, along an axis."""
    sizes: tuple[Dim, ...] = (*kernel.outer.dims, *kernel.row.dims)
    moving = [op for op in ops if moves_vectors(op, axis)]
    numbers = {value: i for i, value in enumerate(kernel.buffers)}
    strided = any(isinstance(dim, str) for op in ops for dim in op.strides.dims[axis : axis + 1])
    if not moving or strided:
        return VectorFacts(1, (), (), strided)
    widest = MAX_VECTOR_BYTES // max(buffer_element(op.buffer) for op in moving)
    divisible = dict.fromkeys(shift for op in moving if (shift := shift_of(op)) is not None and shift != 0)
    if len(sizes) > 1 or kernel.row.dims:
        divisible[sizes[axis]] = None
        for op in moving:
            divisible.update(dict.fromkeys(d for i, d in enumerate(op.strides.dims) if i != axis and d != 0))
    while widest > 1 and any(isinstance(d, int) and d % widest for d in divisible):
        widest //= 2
    aligned = tuple(sorted({numbers[op.buffer] for op in moving}))
    return VectorFacts(min(widest, 8), aligned, tuple(d for d in divisible if isinstance(d, str)))
