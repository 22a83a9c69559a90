"""What neighbouring coordinates of an axis have in common: which accesses move whole vectors, and what that demands at
launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Block, SSAValue

from dlcb.dialects.coord.ops import AccessOp, BufferType, ConstantOp, IndexOp, KernelOp, ParamOp, ScanOp, StoreOp
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.types import BYTES

MAX_VECTOR_BYTES = 16
MAX_VECTOR = 8


@dataclass(frozen=True, slots=True)
class VectorFacts:
    """`widest`: elements a thread can move at once. To use a vector of v: `aligned` buffers start at a multiple of v
    elements, and `divisible` dims (sizes, strides, factors of offsets) are multiples of v. `strided`: some operand may
    have any stride along the axis."""

    widest: int
    aligned: tuple[int, ...]
    divisible: tuple[Dim, ...]
    strided: bool = False


class Along:
    """What moves along an axis of a kernel."""

    def __init__(self, kernel: KernelOp, axis: int = -1) -> None:
        self._kernel = kernel
        self._axis = axis

    @cached_property
    def varying(self) -> set[SSAValue]:
        """The values that differ between neighbours."""
        found: set[SSAValue] = {self._kernel.axes[self._axis]}
        self._visit(self._kernel.body.block, found)
        return found

    def _visit(self, block: Block, found: set[SSAValue]) -> bool:
        """Does anything vary that the block computes?"""
        varies = False
        for op in block.ops:
            inside = [self._visit(part, found) for region in op.regions for part in region.blocks]
            moves = isinstance(op, ScanOp) or (isinstance(op, AccessOp) and op.strides.dims[self._axis] != 0)
            if moves or any(inside) or not found.isdisjoint(op.operands):
                found.update(op.results)
                varies = varies or bool(op.results)
        return varies

    def demands(self, op: AccessOp | StoreOp) -> tuple[Dim, ...] | None:
        """What a vector's width must divide, beside strides and sizes, so that the op moves vectors; None where it
        moves single elements: neighbours lie elsewhere, or do not all exist."""
        strides = op.strides.dims
        if not strides or strides[self._axis] != 1:
            return None
        guard, extra = op.guard, op.extra
        if guard is not None and guard in self.varying:
            return None
        if extra is None:
            return ()
        factors = None if extra in self.varying else factors_of(extra)
        odd = factors is None or any(isinstance(factor, int) and factor % 2 for factor in factors)
        return None if factors is None or odd else factors


def factors_of(value: SSAValue) -> tuple[Dim, ...] | None:
    """Dims such that what divides them all divides the value too; None where that takes more than a look."""
    op = value.owner
    match op:
        case ConstantOp():
            return (int(op.number),) if op.number else ()
        case ParamOp():
            return (op.param.data,)
        case IndexOp() if op.function.data == "mul":
            known = [found for found in map(factors_of, op.args) if found is not None]
            return min(known, key=_doubt) if known else None
        case IndexOp() if op.function.data in ("add", "sub", "minimum", "maximum"):
            return _factors_of_all(op.args)
        case IndexOp() if op.function.data == "select":
            return _factors_of_all(op.args[1:])
        case _:
            return None


def _factors_of_all(values: Sequence[SSAValue]) -> tuple[Dim, ...] | None:
    parts = list(map(factors_of, values))
    known = [dim for part in parts if part is not None for dim in part]
    return None if None in parts else tuple(dict.fromkeys(known))


def _doubt(factors: tuple[Dim, ...]) -> int:
    """How far they are from being multiples of every vector."""
    return sum(isinstance(factor, str) or factor % MAX_VECTOR != 0 for factor in factors)


def shift_of(op: AccessOp | StoreOp) -> Dim | None:
    """The part of the offset that is not linear in the coordinates, where it is the same for all of them; 0 where there
    is none, None where it varies."""
    if (extra := op.extra) is None:
        return 0
    maker = extra.owner
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


def column_facts(kernel: KernelOp) -> VectorFacts:
    """Of the same, along the innermost outer axis: rows that lie across memory, beside one another."""
    return facts_along(kernel, memory_ops(kernel), len(kernel.outer.dims) - 1)


def _moves_outside(op: AccessOp, axis: int) -> bool:
    """Does it lie elsewhere along other axes? What does not is small, and may take several loads a vector."""
    return any(dim != 0 for i, dim in enumerate(op.strides.dims) if i != axis)


def facts_along(kernel: KernelOp, ops: Sequence[AccessOp | StoreOp], axis: int) -> VectorFacts:
    """Of these loads and stores, along an axis."""
    sizes: tuple[Dim, ...] = (*kernel.outer.dims, *kernel.row.dims)
    along = Along(kernel, axis)
    demands = {op: found for op in ops if (found := along.demands(op)) is not None}
    moving = list(demands)
    numbers = {value: i for i, value in enumerate(kernel.buffers)}
    strided = any(isinstance(dim, str) for op in ops for dim in op.strides.dims[axis : axis + 1])
    if not moving or strided:
        return VectorFacts(1, (), (), strided)
    often = [op for op in moving if isinstance(op, StoreOp) or _moves_outside(op, axis)] or moving
    widest = MAX_VECTOR_BYTES // max(buffer_element(op.buffer) for op in often)
    divisible = dict.fromkeys(dim for found in demands.values() for dim in found)
    if len(sizes) > 1 or kernel.row.dims:
        divisible[sizes[axis]] = None
        for op in moving:
            divisible.update(dict.fromkeys(d for i, d in enumerate(op.strides.dims) if i != axis and d != 0))
    while widest > 1 and any(isinstance(d, int) and d % widest for d in divisible):
        widest //= 2
    aligned = tuple(sorted({numbers[op.buffer] for op in moving}))
    return VectorFacts(min(widest, MAX_VECTOR), aligned, tuple(d for d in divisible if isinstance(d, str)))
