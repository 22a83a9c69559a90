"""What a kernel with a row computes in which pass over it, and what stays in registers between them."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property

from xdsl.ir import OpResult, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.levels import inputs_of, level_of, reduction_levels
from dlcb.dialects.coord.shifted import ShiftedRows, shifted_rows

COSTLY = frozenset("exp exp2 expm1 log log2 log1p sin cos tan tanh erf pow div sqrt rsqrt".split())


class RowPlan:
    """Which value is computed in which pass, and what is kept for later ones."""

    def __init__(self, kernel: ops.KernelOp):
        self.kernel = kernel
        row = set(kernel.axes[len(kernel.outer.dims) :])
        level = reduction_levels(kernel)
        self.varying: set[SSAValue] = set(row)
        for op in kernel.body.block.ops:
            if isinstance(op, ops.ReduceOp):
                continue
            varying = any(v in self.varying for v in inputs_of(op))
            accesses = [a for a in op.walk() if isinstance(a, ops.AccessOp)]
            varying = varying or isinstance(op, ops.ScanOp)
            varying = varying or any(s != 0 for a in accesses for s in a.strides.dims[len(kernel.outer.dims) :])
            if varying:
                self.varying.update(op.results)
        self.reductions: list[list[ops.ReduceOp]] = []
        for op in kernel.body.block.ops:
            if isinstance(op, ops.ReduceOp):
                at = level.get(op.src, 0)
                while len(self.reductions) <= at:
                    self.reductions.append([])
                self.reductions[at].append(op)
        stores = [op for op in kernel.body.block.ops if isinstance(op, ops.StoreOp)]
        row_axes = len(kernel.outer.dims)
        self.row_stores = [
            s
            for s in stores
            if any(v in self.varying for v in s.operands) or any(d != 0 for d in s.strides.dims[row_axes:])
        ]
        self.once_stores = [s for s in stores if s not in self.row_stores]
        self.storing = max([level_of(s, level) for s in self.row_stores], default=len(self.reductions))
        """The first pass that has all that rows are stored of: a kernel with a row reads nothing that it writes."""
        self.staged = self._staged()

    @cached_property
    def shifted(self) -> ShiftedRows | None:
        """What rows have in common, wherever they start."""
        return shifted_rows(self.kernel)

    def stored(self, number: int, staged: bool) -> list[ops.StoreOp]:
        """The whole rows that a pass stores. Where passes keep values, the last one does: no load waits for a store;
        else the first one that can, and the last may have nothing to do."""
        return self.row_stores if number == (len(self.reductions) if staged else self.storing) else []

    def wanted(self, number: int, staged: bool) -> list[SSAValue]:
        """What a pass over the row is for; the last one only stores."""
        reduced = [r.src for group in self.reductions[number : number + 1] for r in group]
        return [*reduced, *(v for s in self.stored(number, staged) for v in s.operands)]

    def loaded_first(self) -> list[SSAValue]:
        """The elements of memory along the row that the first pass needs."""
        found: dict[SSAValue, None] = {}
        seen: set[SSAValue] = set()
        pending = self.wanted(0, staged=True)
        while pending:
            value = pending.pop()
            if value not in seen and isinstance(value, OpResult) and value in self.varying:
                seen.add(value)
                if isinstance(value.op, ops.AccessOp):
                    found[value] = None
                pending += inputs_of(value.op)
        return list(found)

    def invariants(self, number: int, staged: bool) -> list[SSAValue]:
        """What a pass needs at every item and is the same for all; `staged` says whether earlier passes keep values."""
        body = self.kernel.body.block
        found: dict[SSAValue, None] = {}
        seen: set[SSAValue] = set()
        pending = self.wanted(number, staged)
        while pending:
            value = pending.pop()
            if value in seen or not isinstance(value, OpResult) or value.op.parent is not body:
                continue
            seen.add(value)
            if value not in self.varying:
                found[value] = None
            elif not staged or self.staged.get(value, number) >= number:
                pending += inputs_of(value.op)
        return list(found)

    def _staged(self) -> dict[SSAValue, int]:
        """Values kept for later passes → the pass that computes them."""
        made: dict[SSAValue, int] = {}
        kept: dict[SSAValue, int] = {}
        for number in range(len(self.reductions) + 1):
            pending = [v for v in self.wanted(number, staged=True) if v in self.varying]
            seen: set[SSAValue] = set()
            while pending:
                value = pending.pop()
                if value in seen or not isinstance(value, OpResult):
                    continue
                seen.add(value)
                if value in made and (_costly(value.op) or self._costly_sources(value, kept) > 1):
                    kept[value] = made[value]
                    continue
                made.setdefault(value, number)
                pending += [v for v in inputs_of(value.op) if v in self.varying]
        return kept

    def _costly_sources(self, value: SSAValue, kept: Container[SSAValue]) -> int:
        """How many costly or kept values it is computed from: if more than one, it is cheaper to keep it than them."""
        found: set[SSAValue] = set()
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            top = pending.pop()
            if isinstance(top, OpResult) and top in self.varying and top not in seen:
                seen.add(top)
                if _costly(top.op) or (top in kept and top is not value):
                    found.add(top)
                else:
                    pending += inputs_of(top.op)
        return len(found)


def _costly(op: object) -> bool:
    return isinstance(op, (ops.AccessOp, ops.LoopOp)) or (isinstance(op, ops.ScalarOp) and op.function.data in COSTLY)
