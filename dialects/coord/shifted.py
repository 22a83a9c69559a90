"""Rows that start anywhere in memory, and alike: where vectors start at multiples of their width in memory instead of
in the row, they move all of it but its ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from dlcb.dialects.coord.check import CheckOp
from dlcb.dialects.coord.intervals import Interval, interval_of
from dlcb.dialects.coord.levels import row_stores
from dlcb.dialects.coord.ops import AccessOp, KernelOp, LoopOp, StoreOp
from dlcb.dialects.coord.vectors import MAX_VECTOR, MAX_VECTOR_BYTES, Along, buffer_element, memory_ops
from dlcb.dialects.graph.types import Dim, dims_attr


@dataclass(frozen=True, slots=True)
class ShiftedRows:
    """`strides`: how far apart the rows of `walking` lie along the outer axes; they start at multiples of a vector
    together if the buffers of `aligned` do. `unaligned` loads neighbours too, from anywhere; each only in an
    interval of the row."""

    widest: int
    strides: tuple[Dim, ...]
    walking: frozenset[AccessOp | StoreOp]
    unaligned: Mapping[AccessOp, Interval]
    aligned: tuple[int, ...]


def along_rows(kernel: KernelOp) -> KernelOp:
    """The kernel; if it has no row, one that computes the same, whose row is the innermost axis."""
    if kernel.row.dims:
        return kernel
    *outer, innermost = kernel.outer.dims
    made = kernel.clone()
    made.properties |= {"outer": dims_attr(tuple(outer)), "row": dims_attr((innermost,))}
    return made


def shifted_rows(kernel: KernelOp) -> ShiftedRows | None:
    """What rows have in common; None where they have too little. A lane outside a row computes something of zeros that
    counts for nothing, so no check may look at it."""
    along, outer = Along(kernel), len(kernel.outer.dims)
    if len(kernel.row.dims) != 1 or kernel.has_scans or any(_forbids(op, along) for op in kernel.body.walk()):
        return None
    neighbours = [op for op in memory_ops(kernel) if op.strides.dims[-1] == 1]
    plain = [op for op in neighbours if op.guard is None and op.extra is None]
    stores = row_stores(kernel)
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
    unaligned: dict[AccessOp, Interval] = {}
    for op in neighbours:
        if op not in walking and isinstance(op, AccessOp) and (op.extra is None or op.extra not in along.varying):
            interval = Interval() if op.guard is None else interval_of(op.guard, kernel.axes[-1], along.varying)
            if interval is not None:
                unaligned[op] = interval
    numbers = {value: i for i, value in enumerate(kernel.buffers)}
    aligned = tuple(sorted({numbers[op.buffer] for op in walking}))
    return ShiftedRows(widest, strides, walking, unaligned, aligned)


def all_in_vectors(kernel: KernelOp, rows: ShiftedRows) -> bool:
    """Does all that a row is computed of move as vectors, or lie along it as one element?"""
    along = Along(kernel)
    loads = [op for op in memory_ops(kernel) if isinstance(op, AccessOp) and op.res in along.varying]
    return all(op in rows.walking or op in rows.unaligned for op in loads)


def _forbids(op: Operation, along: Along) -> bool:
    return isinstance(op, LoopOp) or (isinstance(op, CheckOp) and not along.varying.isdisjoint(op.operands))
