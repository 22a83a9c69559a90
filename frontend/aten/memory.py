"""`as_strided`: elements by their place in memory. Here a value has no memory; where eager is known to lay it in
row-major order, whatever the strides of the inputs are, its elements can be counted so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import OpResult, SSAValue

from dlcb.dialects.graph.composite import LayerNormOp, RmsNormOp
from dlcb.dialects.graph.contract import MatmulOp
from dlcb.dialects.graph.creation import Creation
from dlcb.dialects.graph.elementwise import Elementwise
from dlcb.dialects.graph.types import dims_of
from dlcb.dialects.graph.view import ReshapeOp, product
from dlcb.dialects.shape.expr import Expr, add, as_expr, mul, select, sub
from dlcb.dialects.shape.expr import eq as equal
from dlcb.dialects.types import i64
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.indexing import UNCHECKED, take
from dlcb.frontend.aten.table import Table

TABLE = Table()

_ROW_MAJOR = (MatmulOp, Creation, LayerNormOp, RmsNormOp)
"""Their results lie so in eager."""


@TABLE.handles("as_strided", "as_strided_copy")
def as_strided(
    i: Builder, self: SSAValue, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> SSAValue:
    if not lies_row_major(self):
        i.unsupported("it depends on how its argument lies in memory, which is known at the call only")
    sizes, strides = [as_expr(s) for s in size], [as_expr(s) for s in stride]
    whole, offset = product(i.sizes(self)), as_expr(storage_offset or 0)
    i.require("le", _reach(sizes, strides, offset), whole, "as_strided reaches beyond its argument's memory")
    flat = i.reshape(self, (whole,))
    place: SSAValue = i.number(offset, i64)
    for axis, (count, step) in enumerate(zip(sizes, strides, strict=True)):
        along = i.call("mul", iota(i, count), step, element=i64)
        along = i.reshape(along, (count, *[1] * (len(sizes) - axis - 1)))
        place = i.call("add", place, along, element=i64)
    return take(i, flat, place, 0, UNCHECKED)


def _reach(sizes: Sequence[Expr], strides: Sequence[Expr], offset: Expr) -> Expr:
    """How many elements of memory are needed; none for a result of none."""
    last = offset
    for size, stride in zip(sizes, strides, strict=True):
        last = add(last, mul(sub(size, 1), stride))
    return select(equal(product(sizes), 0), 0, add(last, 1))


def lies_row_major(value: SSAValue) -> bool:
    """Does eager lay it in row-major order, in memory of its own, for all strides that inputs may have?"""
    if not isinstance(value, OpResult):
        return False
    op = value.op
    if isinstance(op, _ROW_MAJOR):
        return True
    if isinstance(op, ReshapeOp):
        return lies_row_major(op.src)
    if not isinstance(op, Elementwise):
        return False
    alike = [operand for operand in op.operands if dims_of(operand) == dims_of(value)]
    others = (operand for operand in op.operands if operand not in alike)
    return bool(alike) and all(map(lies_row_major, alike)) and not any(map(dims_of, others))
