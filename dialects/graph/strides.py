"""Strides and offset of a tensor from its layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlcb.dialects.graph.types import DenseLayout, Dim, Layout, StridedLayout
from dlcb.dialects.graph.view import row_major_strides
from dlcb.dialects.shape.expr import Expr, const


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
