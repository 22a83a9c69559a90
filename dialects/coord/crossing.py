"""Which memory of a pointwise kernel lies along another axis than the innermost one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcb.dialects.coord.ops import AccessOp, KernelOp, StoreOp
from dlcb.dialects.coord.vectors import Along, VectorFacts, buffer_element, facts_along, memory_ops

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
    inner = Along(kernel)
    stores = [op for op in kernel.body.block.ops if isinstance(op, StoreOp)]
    if kernel.row.dims or all(inner.demands(op) is None for op in stores):
        return None
    found = [
        _along(kernel, axis, candidates, inner) for axis in range(last) if (candidates := _candidates(kernel, axis))
    ]
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


def _along(kernel: KernelOp, axis: int, candidates: Sequence[AccessOp | StoreOp], inner: Along) -> Crossing:
    along = Along(kernel, axis)
    found: list[AccessOp | StoreOp] = []
    left = MAX_BYTES
    for op in candidates:
        crosses = along.demands(op) is not None if isinstance(op, StoreOp) else _is_read_along(op, along, inner)
        if crosses and (size := buffer_element(op.buffer)) <= left:
            left -= size
            found.append(op)
    loads = tuple(op for op in found if isinstance(op, AccessOp))
    return Crossing(axis, loads, tuple(op for op in found if isinstance(op, StoreOp)))


def _is_read_along(op: AccessOp, along: Along, inner: Along) -> bool:
    """Is it read at other places for neighbours along the innermost axis, and is nothing but the stride what moves it
    along the other axis?"""
    if op.extra is None:
        return op.strides.dims[-1] != 0
    return op.extra not in along.varying and (op.strides.dims[-1] != 0 or op.extra in inner.varying)
