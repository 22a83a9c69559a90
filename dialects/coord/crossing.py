"""Which memory of a pointwise kernel lies along another axis than the innermost one."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from dlcb.dialects.coord.levels import inputs_of
from dlcb.dialects.coord.ops import AccessOp, KernelOp, StoreOp
from dlcb.dialects.coord.vectors import VectorFacts, buffer_element, facts_along, memory_ops, moves_vectors

MAX_BYTES = 32
"""What crosses shares a block's memory: beyond so many bytes an element it is read and written as it lies."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """Neighbours along outer axis number `axis` lie together in what `loads` read and `stores` write; neighbours along
    the innermost axis do not."""

    axis: int
    loads: tuple[AccessOp, ...]
    stores: tuple[StoreOp, ...]

    @property
    def ops(self) -> tuple[AccessOp | StoreOp, ...]:
        return (*self.loads, *self.stores)

    @property
    def bytes(self) -> int:
        """Those of an element of each."""
        return sum(buffer_element(op.buffer) for op in self.ops)


def crossing(kernel: KernelOp) -> Crossing | None:
    """What crosses along the axis along which most does, the innermost of these; None where nothing is to be gained
    from tiles: the kernel has a row, nothing crosses, or nothing is stored along the innermost axis."""
    last = len(kernel.outer.dims) - 1
    if kernel.row.dims or not any(isinstance(op, StoreOp) and moves_vectors(op) for op in kernel.body.block.ops):
        return None
    found = [_along(kernel, axis, candidates) for axis in range(last) if (candidates := _candidates(kernel, axis))]
    best = max(found, key=lambda c: (c.bytes, c.axis), default=None)
    return best if best is not None and best.bytes else None


def facts_of(kernel: KernelOp, found: Crossing) -> tuple[VectorFacts, VectorFacts]:
    """Of vectors along the innermost axis, and of those of what crosses."""
    others = [op for op in memory_ops(kernel) if op not in found.ops]
    return facts_along(kernel, others, len(kernel.outer.dims) - 1), facts_along(kernel, found.ops, found.axis)


def _candidates(kernel: KernelOp, axis: int) -> list[AccessOp | StoreOp]:
    """What has a stride of 1 along that axis and not along the innermost one."""
    return [
        op
        for op in kernel.body.block.ops
        if isinstance(op, (AccessOp, StoreOp)) and op.strides.dims[axis] == 1 and op.strides.dims[-1] != 1
    ]


def _along(kernel: KernelOp, axis: int, candidates: Sequence[AccessOp | StoreOp]) -> Crossing:
    moving, inner = varying(kernel, axis), varying(kernel, len(kernel.outer.dims) - 1)
    found: list[AccessOp | StoreOp] = []
    left = MAX_BYTES
    for op in candidates:
        crosses = moves_vectors(op, axis) if isinstance(op, StoreOp) else _is_read_along(op, moving, inner)
        if crosses and (size := buffer_element(op.buffer)) <= left:
            left -= size
            found.append(op)
    loads = tuple(op for op in found if isinstance(op, AccessOp))
    return Crossing(axis, loads, tuple(op for op in found if isinstance(op, StoreOp)))


def _is_read_along(op: AccessOp, moving: Container[SSAValue], inner: Container[SSAValue]) -> bool:
    """Is it read at other places for neighbours along the innermost axis, and is nothing but the stride what moves it
    along the other axis?"""
    if op.extra is None:
        return op.strides.dims[-1] != 0
    return op.extra not in moving and (op.strides.dims[-1] != 0 or op.extra in inner)


def varying(kernel: KernelOp, axis: int) -> set[SSAValue]:
    """The values that differ between neighbours along an axis."""
    found: set[SSAValue] = {kernel.axes[axis]}
    for op in kernel.body.block.ops:
        accesses = [inner for inner in op.walk() if isinstance(inner, AccessOp)]
        if any(a.strides.dims[axis] != 0 for a in accesses) or any(v in found for v in inputs_of(op)):
            found.update(op.results)
    return found
