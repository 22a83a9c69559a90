"""In which order a kernel's reductions can be made: how many stand behind one another before each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from dlcb.dialects.coord.ops import KernelOp, ReduceOp, StoreOp


def inputs_of(op: Operation) -> list[SSAValue]:
    """Operands, and for a loop what its body reads from outside."""
    found = list(op.operands)
    for region in op.regions:
        for inner in region.walk():
            found += inner.operands
    return found


def reduction_levels(kernel: KernelOp) -> dict[SSAValue, int]:
    """How many reductions, one needing the other, each value needs."""
    level: dict[SSAValue, int] = {}
    for op in kernel.body.block.ops:
        here = level_of(op, level)
        for result in op.results:
            level[result] = here + isinstance(op, ReduceOp)
    return level


def level_of(op: Operation, level: Mapping[SSAValue, int]) -> int:
    """How many reductions, one needing the other, come before the op."""
    return max([level.get(v, 0) for v in inputs_of(op)], default=0)


def row_stores(kernel: KernelOp) -> Sequence[StoreOp]:
    """The stores of more than one element a row."""
    outer = len(kernel.outer.dims)
    stores = [op for op in kernel.body.block.ops if isinstance(op, StoreOp)]
    return [op for op in stores if op.extra is not None or op.guard is not None or any(op.strides.dims[outer:])]
