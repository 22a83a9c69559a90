"""Indices that sizes alone determine, as `torch.arange(x.shape[1])` does: whether they are in range is asked before
anything is launched, and no kernel checks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, OpResult, SSAValue

from dlcb.dialects.graph.creation import FullOp, IotaOp, SizeOp
from dlcb.dialects.graph.elementwise import SIMPLE
from dlcb.dialects.graph.types import dim_to_expr
from dlcb.dialects.graph.view import ExpandOp, PermuteOp, ReshapeOp
from dlcb.dialects.shape.bounds import is_nonneg
from dlcb.dialects.shape.expr import Expr, add, const, eq, le, logical_or, mul, sub
from dlcb.dialects.types import i64
from dlcb.frontend.aten.builder import Builder

Span: TypeAlias = tuple[Expr, Expr]
"""The least and the largest element of a tensor, where it has any."""


def settled(i: Builder, index: SSAValue, axis: int, extent: Expr, sizes: Sequence[Expr]) -> bool:
    """Whether sizes tell if the indices into a dim of this extent are in [0, extent). Then it is required that they
    are, or that one of `sizes` is 0, so that no index is used."""
    span = span_of(i, index)
    if span is None or not is_nonneg(i.system.value(span[0]), i.at_least):
        return False
    end = add(span[1], 1)
    nothing = [eq(size, 0) for size in dict.fromkeys(sizes) if not (size.value or size is end)]
    what = f"an index is out of range for dimension {axis}"
    if nothing:
        i.require("any_of", logical_or(*nothing), le(end, extent), what)
    else:
        i.require("le", end, extent, what)
    return True


def span_of(i: Builder, value: SSAValue) -> Span | None:
    """None where elements are not known from sizes."""
    if not isinstance(value, OpResult) or i.like(value) != i64:
        return None
    rule = _RULES.get(type(value.op))
    return rule(i, value.op) if rule is not None else None


def _iota(i: Builder, op: IotaOp) -> Span | None:
    (size,) = i.sizes(op.results[0])
    start, step = dim_to_expr(op.start.dims[0]), i.system.value(dim_to_expr(op.step.dims[0])).value
    if step is None:
        return None
    end = add(start, mul(sub(size, 1), step))
    return (start, end) if step > 0 else (end, start)


def _full(i: Builder, op: FullOp) -> Span | None:
    return (const(op.number), const(op.number)) if isinstance(op.number, int) else None


def _size(i: Builder, op: SizeOp) -> Span:
    size = dim_to_expr(op.dim.dims[0])
    return size, size


def _add(i: Builder, op: Operation) -> Span | None:
    lhs, rhs = (span_of(i, operand) for operand in op.operands)
    return None if lhs is None or rhs is None else (add(lhs[0], rhs[0]), add(lhs[1], rhs[1]))


def _moved(i: Builder, op: Operation) -> Span | None:
    return span_of(i, op.operands[0])


_RULES: dict[type[Operation], Callable[[Builder, Any], Span | None]] = {
    IotaOp: _iota,
    FullOp: _full,
    SizeOp: _size,
    SIMPLE["add"]: _add,
    **dict.fromkeys((ReshapeOp, PermuteOp, ExpandOp), _moved),
}
