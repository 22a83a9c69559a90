"""Strides and offset of a tensor from its layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlcb.dialects.graph.types import DenseLayout, Dim, Layout, StridedLayout
from dlcb.dialects.graph.view import is_one, product, row_major_strides
from dlcb.dialects.shape.expr import Expr, const, eq, logical_or, mul, select


def layout_strides(
    layout: Layout | None, sizes: Sequence[Expr], dim: Callable[[Dim], Expr]
) -> tuple[tuple[Expr, ...], Expr]:
    """In elements; a tensor without a layout is contiguous. `dim` reads the layout's dims."""
    if isinstance(layout, StridedLayout):
        return tuple(map(dim, layout.strides)), dim(layout.offset)
    if layout is None:
        return row_major_strides(sizes), const(0)
    return dense_strides(layout, sizes), const(0)


def dense_strides(layout: DenseLayout, sizes: Sequence[Expr]) -> tuple[Expr, ...]:
    in_memory = row_major_strides([sizes[a] for a in layout.order])
    strides = [const(0)] * len(sizes)
    for axis, stride in zip(layout.order, in_memory, strict=True):
        strides[axis] = stride
    return tuple(strides)


def reshape_conditions(
    sizes: Sequence[Expr], strides: Sequence[Expr], result_sizes: Sequence[Expr], runs: Sequence[tuple[range, range]]
) -> tuple[tuple[Expr, ...], list[Expr]]:
    """The strides of a reshape as a view, and the conditions under which it can be one. A dim of size 1 may have any
    stride, and an empty tensor can be viewed anyhow. `runs` are those of `reshape_groups`, where they need not be
    proved."""
    found: list[Expr] = [const(0)] * len(result_sizes)
    conditions: list[Expr] = []
    empty = eq(product(sizes), 0)
    for operand_run, result_run in runs:
        whole = product([sizes[i] for i in operand_run])
        conditions.append(logical_or(empty, eq(whole, product([result_sizes[j] for j in result_run]))))
        axes = [i for i in reversed(operand_run) if not is_one(sizes[i])]
        step, count = (strides[axes[0]], sizes[axes[0]]) if axes else (const(1), const(1))
        for i in axes[1:]:
            if strides[i] is not mul(step, count):
                conditions.append(logical_or(empty, eq(sizes[i], 1), eq(count, 1), eq(strides[i], mul(step, count))))
                step = select(eq(count, 1), strides[i], step)
            count = mul(count, sizes[i])
        for j in reversed(result_run):
            found[j] = step
            step = mul(step, result_sizes[j])
    return tuple(found), [c for c in conditions if c.value != 1]


def expand_strides(sizes: Sequence[Expr], strides: Sequence[Expr], result_sizes: Sequence[Expr]) -> tuple[Expr, ...]:
    """The strides of an expand as torch gives them: a dim that stays 1 keeps its stride, a new one of size 1 lies
    outside its neighbour."""
    found = [const(0)] * len(result_sizes)
    new = len(result_sizes) - len(sizes)
    for axis in reversed(range(len(result_sizes))):
        wanted = result_sizes[axis]
        if axis >= new:
            found[axis] = select(eq(sizes[axis - new], wanted), strides[axis - new], 0)
        elif axis + 1 < len(result_sizes):
            found[axis] = select(eq(wanted, 1), mul(result_sizes[axis + 1], found[axis + 1]), 0)
        else:
            found[axis] = select(eq(wanted, 1), 1, 0)
    return tuple(found)
