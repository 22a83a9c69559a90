"""What a kernel computes at each coordinate: its rows, inferred from its ops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.indexing import Put
from dlcb.dialects.graph.reduce import Reduce
from dlcb.dialects.graph.row import AlongRow
from dlcb.dialects.graph.structure import KernelOp
from dlcb.dialects.graph.types import Layout, type_of
from dlcb.dialects.graph.view import InsertOp
from dlcb.dialects.shape.expr import Expr, const, sym
from dlcb.dialects.types import TYPE_NAME
from dlcb.lowering.coordinates.axes import Axis
from dlcb.lowering.coordinates.blocks import block_of, block_rows
from dlcb.lowering.coordinates.elements import Elements, failing_ops, memory_order, offset_of
from dlcb.lowering.coordinates.rows import KernelRows, Numbering, Output
from dlcb.passes.sizes import DefinedSizes


def kernel_rows(
    kernel: KernelOp, sizes: DefinedSizes, layouts: Sequence[Layout | None], general: bool = False
) -> KernelRows:
    """Infer the coordinates of a kernel whose operands have these layouts."""
    if (count := block_of(kernel)) > 1:
        return block_rows(kernel, sizes, layouts, count)
    block = kernel.body.block
    last = block.last_op
    assert last is not None
    combining = next((op for op in block.ops if isinstance(op, AlongRow)), None)
    yielded = list(last.operands)
    domain = _domain(kernel, yielded, combining, sizes)
    axes = set(combining.row_axes) if combining is not None else set[int]()
    names = [f"$r{i}" if i in axes else f"$o{i}" for i in range(len(domain))]
    coords = tuple(map(sym, names))
    row = tuple(coords[i] for i in range(len(domain)) if i in axes)
    elements = Elements(sizes, block.args, layouts, row, failing_ops(kernel))
    for i, (coord, size) in enumerate(zip(coords, domain, strict=True)):
        elements.ranges.axis(coord, size, least=0 if i in axes else 1)
    over = kernel.written_over
    buffers = [TYPE_NAME[type_of(v).element] for v in block.args]
    outputs: list[Output] = []
    for i, value in enumerate(yielded):
        if i in over:
            outputs.append(_written(value, over[i], elements, coords, layouts))
        else:
            outputs.append(_fresh(value, len(buffers), elements, _place(value, domain, coords, axes, elements)))
            buffers.append(TYPE_NAME[type_of(value).element])
    order = memory_order(yielded[0], len(domain), axes)
    outer = [Axis(names[i], domain[i]) for i in order if i not in axes]
    inner = [Axis(names[i], domain[i]) for i in order if i in axes]
    return Numbering(elements, outer, inner, outputs, buffers, general).finish()


def _domain(
    kernel: KernelOp, yielded: Sequence[SSAValue], combining: AlongRow | None, sizes: DefinedSizes
) -> tuple[Expr, ...]:
    if combining is not None:
        return sizes.of(combining.operands[0])
    if 0 in kernel.written_over:
        maker = yielded[0].owner
        assert isinstance(maker, GraphOp)
        return sizes.of(maker.operands[-1])
    return sizes.of(yielded[0])


def _place(
    value: SSAValue, domain: tuple[Expr, ...], coords: tuple[Expr, ...], axes: set[int], elements: Elements
) -> tuple[Expr, ...]:
    """The coordinates of a result: those of the domain, or those outside the row, with reduced dims as 0 or gone."""
    shape = elements.of(value)
    if shape == domain and not _is_reduced(value, axes, len(domain)):
        return coords
    if len(shape) == len(domain):
        return tuple(const(0) if i in axes else c for i, c in enumerate(coords))
    return tuple(c for i, c in enumerate(coords) if i not in axes)


def _is_reduced(value: SSAValue, axes: set[int], rank: int) -> bool:
    """Is it a reduction's result though its sizes are those of the domain (all reduced dims have size 1)?"""
    return bool(axes) and isinstance(value.owner, Reduce)


def _fresh(value: SSAValue, buffer: int, elements: Elements, place: tuple[Expr, ...]) -> Output:
    node = elements.cast(elements.value(value, place), type_of(value).element)
    return Output(node, buffer, offset_of(place, type_of(value).layout, elements.of(value), elements))


def _written(
    value: SSAValue, base: int, elements: Elements, coords: tuple[Expr, ...], layouts: Sequence[Layout | None]
) -> Output:
    """The store of an op that writes into its base: only the elements of its source."""
    op = value.owner
    assert isinstance(op, (InsertOp, Put))
    source = op.operands[-1]
    node = elements.cast(elements.read(source, coords), type_of(value).element)
    if isinstance(op, InsertOp):
        target, guard = op.written(coords, elements), ()
    else:
        target, guard = op.target(elements, coords)
    return Output(node, base, offset_of(target, layouts[base], elements.of(op.operands[0]), elements), tuple(guard))
