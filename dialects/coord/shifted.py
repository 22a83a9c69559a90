"""Rows that start anywhere in memory, and alike: where vectors start at multiples of their width in memory instead of
in the row, they move all of it but its ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dlcb.dialects.coord.check import CheckOp
from dlcb.dialects.coord.levels import row_stores
from dlcb.dialects.coord.ops import AccessOp, KernelOp, LoopOp, StoreOp
from dlcb.dialects.coord.vectors import MAX_VECTOR, MAX_VECTOR_BYTES, Along, buffer_element, memory_ops
from dlcb.dialects.graph.types import Dim


@dataclass(frozen=True, slots=True)
class ShiftedRows:
    """`strides`: how far apart the rows of `walking` lie along the outer axes; they start at multiples of a vector
    together if the buffers of `aligned` do. `unaligned` loads neighbours too, from anywhere."""

    widest: int
    strides: tuple[Dim, ...]
    walking: frozenset[AccessOp | StoreOp]
    unaligned: frozenset[AccessOp]
    aligned: tuple[int, ...]


def shifted_rows(kernel: KernelOp) -> ShiftedRows | None:
    """What rows have in common; None where they have too little. A lane outside a row computes something of zeros that
    counts for nothing, so no check may look at it."""
    row, outer = kernel.row.dims, len(kernel.outer.dims)
    if len(row) != 1 or kernel.has_scans or any(isinstance(op, LoopOp | CheckOp) for op in kernel.body.walk()):
        return None
    along = Along(kernel)
    neighbours = [op for op in memory_ops(kernel) if op.strides.dims[-1:] == (1,) and op.guard is None]
    stores = row_stores(kernel)
    plain = [op for op in neighbours if op.extra is None]
    lie = Counter(op.strides.dims[:outer] for op in (stores or plain))
    if not lie:
        return None
    strides = max(lie, key=lie.__getitem__)
    walking = frozenset(op for op in plain if op.strides.dims[:outer] == strides)
    if not walking.issuperset(stores) or (outer and not any(strides)):
        return None
    widest = min(MAX_VECTOR, MAX_VECTOR_BYTES // max(buffer_element(op.buffer) for op in walking))
    if widest == 1:
        return None
    others = [op for op in neighbours if op not in walking and isinstance(op, AccessOp)]
    numbers = {value: i for i, value in enumerate(kernel.buffers)}
    return ShiftedRows(
        widest,
        strides,
        walking,
        frozenset(op for op in others if op.extra is None or op.extra not in along.varying),
        tuple(sorted({numbers[op.buffer] for op in walking})),
    )
