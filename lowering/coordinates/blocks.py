"""Kernels in which a thread computes a block of neighbours along the last dim, because they share what they read.

Of the window that a depthwise convolution needs for one result, most is needed for the next. The results of a block are
written out: what they read alike is one access, their loops are one loop. A last block that is not full stores less.

All literal sizes are parameters, for layers differ in them: one kernel serves all layers with windows alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlcb.dialects.graph.base import Guard
from dlcb.dialects.graph.convolution import DepthwiseOp
from dlcb.dialects.graph.structure import KernelOp
from dlcb.dialects.graph.types import Dim, Layout, type_of
from dlcb.dialects.shape.expr import Expr, add, ceildiv, mul, substitute, sym
from dlcb.dialects.shape.system import System
from dlcb.dialects.types import TYPE_NAME
from dlcb.lowering.coordinates.axes import Axis
from dlcb.lowering.coordinates.elements import Elements, failing_ops, memory_order, offset_of
from dlcb.lowering.coordinates.rows import KernelRows, Numbering, Output
from dlcb.passes.sizes import DefinedSizes


def block_of(kernel: KernelOp) -> int:
    """How many neighbours a thread computes."""
    return max((op.block for op in kernel.body.block.ops if isinstance(op, DepthwiseOp)), default=1)


def block_rows(kernel: KernelOp, sizes: DefinedSizes, layouts: Sequence[Layout | None], count: int) -> KernelRows:
    """Infer the coordinates of a kernel whose threads compute `count` neighbours each."""
    block = kernel.body.block
    last = block.last_op
    assert last is not None
    opened = _OpenSizes(sizes)
    domain = opened.of(last.operands[0])
    axes = [Axis(f"$o{i}", size) for i, size in enumerate((*domain[:-1], ceildiv(domain[-1], count)))]
    elements = Elements(opened, block.args, layouts, (), failing_ops(kernel))
    coords = [sym(axis.name) for axis in axes]
    for coord, axis in zip(coords, axes, strict=True):
        elements.ranges.axis(coord, axis.size)
    buffers = [TYPE_NAME[type_of(v).element] for v in block.args]
    outputs: list[Output] = []
    for value in last.operands:
        t = type_of(value)
        for step in range(count):
            place = (*coords[:-1], add(mul(coords[-1], count), step))
            guard: tuple[Guard, ...] = (("lt", place[-1], domain[-1]),) if step else ()
            node = elements.cast(elements.within(value, place, guard), t.element)
            outputs.append(Output(node, len(buffers), offset_of(place, t.layout, domain, elements), guard))
        buffers.append(TYPE_NAME[t.element])
    order = memory_order(last.operands[0], len(domain), set())
    rows = Numbering(elements, [axes[i] for i in order], [], outputs, buffers).finish()
    return replace(rows, bindings=tuple(map(opened.closed, rows.bindings)))


class _OpenSizes(DefinedSizes):
    """Sizes in which a literal one is a symbol, all equal ones the same."""

    def __init__(self, sizes: DefinedSizes) -> None:
        super().__init__(System(), {})
        self._sizes = sizes
        self._literals: dict[str, Expr] = {}

    def dim(self, dim: Dim) -> Expr:
        size = self._sizes.dim(dim)
        if size.value is None or size.value <= 1:
            return size
        name = f"literal{size.value}"
        self._literals[name] = size
        return sym(name)

    def closed(self, expr: Expr) -> Expr:
        """The expression with the literals that it stands for."""
        return substitute(expr, self._literals)
