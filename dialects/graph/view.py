"""Views and other ops that only move elements: each result element is one operand element, or a fill value.

reshape, permute, expand and slice can be views (no copy) where the operand's strides allow; concat, pad, insert and
flip compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntAttr, IntegerAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.graph.base import (
    Coords,
    ElementBuilder,
    GraphOp,
    Guard,
    Read,
    ShapeScope,
    Sizes,
    Strided,
    broadcast_coords,
)
from dlcb.dialects.graph.types import DimsAttr, TensorType, dims_attr, type_of
from dlcb.dialects.shape.expr import Expr, add, const, eq, floordiv, lt, maximum, minimum, mod, mul, select, sub
from dlcb.dialects.types import compute_type


class Move(GraphOp):
    """One operand element, unchanged."""

    FAMILY: ClassVar[str] = "move"
    src = operand_def(TensorType)
    res = result_def(TensorType)
    traits = traits_def(Pure())

    def scalar(self, b: Any, *elements: Any) -> Any:
        return elements[0]


class View(Move):
    """May be a view of the operand."""

    FAMILY: ClassVar[str] = "view"


def product(sizes: Sequence[Expr]) -> Expr:
    total = const(1)
    for size in sizes:
        total = mul(total, size)
    return total


def row_major_strides(sizes: Sequence[Expr]) -> tuple[Expr, ...]:
    strides: list[Expr] = []
    step = const(1)
    for size in reversed(sizes):
        strides.append(step)
        step = mul(step, size)
    return tuple(reversed(strides))


@irdl_op_definition
class ReshapeOp(View):
    """result[linear(q)] = x[linear(p)], row-major order kept.  Sizes: product(result) = product(x).
    Source: torch.reshape, view, flatten, squeeze, unsqueeze."""

    name = "dlcb.graph.reshape"
    shape = prop_def(DimsAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        wanted = scope.list(self.shape)
        scope.require("eq", product(scope.of(self.src)), product(wanted), f"{self.title}: number of elements differs")
        return (wanted,)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        return [Read(0, reshape_coords(sizes.of(self.results[0]), sizes.of(self.src), coords))]

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        got = reshape_strides(sizes.of(self.src), tuple(strides), sizes.of(self.results[0]))
        return None if got is None else Strided(got, const(0))


def reshape_groups(a: Sequence[Expr], b: Sequence[Expr]) -> list[tuple[range, range]]:
    """Split both shapes into runs of dims with equal products, as many as can be proved: a reshape acts within each
    run."""
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        start_i, start_j = i, j
        pa, pb = const(1), const(1)
        while True:
            if i < len(a) and (pa is pb or j >= len(b) or _fewer_atoms(pa, pb)):
                pa, i = mul(pa, a[i]), i + 1
            elif j < len(b):
                pb, j = mul(pb, b[j]), j + 1
            if pa is pb and (i > start_i or j > start_j) and not (i == start_i and j == start_j):
                break
            if i >= len(a) and j >= len(b):
                break
        groups.append((range(start_i, i), range(start_j, j)))
    return groups


def _fewer_atoms(a: Expr, b: Expr) -> bool:
    """Which side of a run should take the next dim: the one whose product looks smaller."""
    if a.value is not None and b.value is not None:
        return a.value < b.value
    return len(a.free) < len(b.free) or (len(a.free) == len(b.free) and a.is_const)


def reshape_coords(result_sizes: Sequence[Expr], operand_sizes: Sequence[Expr], coords: Sequence[Expr]) -> Coords:
    """Operand coordinates of a result element: linearize within each run of equal products, then delinearize."""
    out: list[Expr] = [const(0)] * len(operand_sizes)
    for operand_run, result_run in reshape_groups(operand_sizes, result_sizes):
        operand_axes = [i for i in operand_run if not is_one(operand_sizes[i])]
        result_axes = [j for j in result_run if not is_one(result_sizes[j])]
        if len(operand_axes) == 1 and len(result_axes) == 1:
            out[operand_axes[0]] = coords[result_axes[0]]
            continue
        linear = const(0)
        for j in result_axes:
            linear = add(mul(linear, result_sizes[j]), coords[j])
        for i in reversed(operand_axes[1:]):
            out[i] = mod(linear, operand_sizes[i])
            linear = floordiv(linear, operand_sizes[i])
        if operand_axes:
            out[operand_axes[0]] = linear
    return tuple(out)


def is_one(size: Expr) -> bool:
    return size.is_const and size.value == 1


def reshape_strides(
    sizes: Sequence[Expr], strides: tuple[Expr, ...], result_sizes: Sequence[Expr]
) -> tuple[Expr, ...] | None:
    """The strides of a reshape as a view; None where the operand's strides do not allow it for every size."""
    out: list[Expr] = [const(0)] * len(result_sizes)
    for operand_run, result_run in reshape_groups(sizes, result_sizes):
        axes = [i for i in operand_run if not is_one(sizes[i])]
        if any(strides[i] is not mul(strides[j], sizes[j]) for i, j in pairwise(axes)):
            return None
        step = strides[axes[-1]] if axes else const(1)
        for j in reversed(result_run):
            out[j] = step
            step = mul(step, result_sizes[j])
    return tuple(out)


@irdl_op_definition
class PermuteOp(View):
    """result[p] = x[q] with q[order[i]] = p[i].  Source: torch.permute, transpose, t, movedim."""

    name = "dlcb.graph.permute"
    order = prop_def(ArrayAttr[IntAttr])

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(a.data for a in self.order.data)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.src)
        if sorted(self.axes) != list(range(len(sizes))):
            raise VerifyException(f"{self.name}: order {list(self.axes)} is no permutation of {len(sizes)} dims")
        return (tuple(sizes[a] for a in self.axes),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        operand = [const(0)] * len(coords)
        for i, axis in enumerate(self.axes):
            operand[axis] = coords[i]
        return [Read(0, tuple(operand))]

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        return Strided(tuple(strides[a] for a in self.axes), const(0))


@irdl_op_definition
class ExpandOp(View):
    """result[p] = x[p with 0 where x has size 1].  The result's leading dims may be new.  Source: torch.expand,
    broadcast_to."""

    name = "dlcb.graph.expand"
    shape = prop_def(DimsAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        wanted = scope.list(self.shape)
        for have, want in zip(reversed(scope.of(self.src)), reversed(wanted), strict=False):
            if have is not want and not is_one(have):
                scope.require("expandable", have, want, f"{self.title}: size that cannot be expanded")
        return (wanted,)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        return [Read(0, broadcast_coords(coords, sizes.of(self.src), sizes.of(self.results[0])))]

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        result, operand = sizes.of(self.results[0]), sizes.of(self.src)
        new = len(result) - len(operand)
        kept = [
            stride if have is want else (const(0) if is_one(have) else select(eq(have, want), stride, 0))
            for stride, have, want in zip(strides, operand, result[new:], strict=True)
        ]
        return Strided((*[const(0)] * new, *kept), const(0))


@irdl_op_definition
class SliceOp(View):
    """result[p] = x[start + p·step] in every dim; starts and sizes are dims, steps integers.  In range: start +
    (size-1)·step < x.  Source: torch slicing, select, narrow, chunk, split."""

    name = "dlcb.graph.slice"
    starts = prop_def(DimsAttr)
    shape = prop_def(DimsAttr)
    steps = prop_def(DimsAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        require_in_range(self, scope, self.starts, self.shape, self.steps)
        return (scope.list(self.shape),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        grid = zip(coords, sizes.list(self.starts), sizes.list(self.steps), strict=True)
        return [Read(0, tuple(add(start, mul(c, step)) for c, start, step in grid))]

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        offset = const(0)
        for start, stride in zip(sizes.list(self.starts), strides, strict=True):
            offset = add(offset, mul(start, stride))
        return Strided(tuple(mul(s, k) for s, k in zip(strides, sizes.list(self.steps), strict=True)), offset)


@irdl_op_definition
class UnfoldOp(View):
    """result[.., p, .., k] = x[.., p·step + k·dilation, ..]: all windows of `size` along `axis`, laid side by side in a
    new last dim.  Source: torch.Tensor.unfold."""

    name = "dlcb.graph.unfold"
    axis = prop_def(IntAttr)
    size = prop_def(IntAttr)
    step = prop_def(IntAttr)
    dilation = prop_def(IntAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes, axis = scope.of(self.src), self.axis.data
        reach = self.dilation.data * (self.size.data - 1) + 1
        scope.require("le", const(reach), sizes[axis], f"{self.title}: the window is larger than the input")
        count = add(floordiv(sub(sizes[axis], reach), self.step.data), 1)
        return ((*sizes[:axis], count, *sizes[axis + 1 :], const(self.size.data)),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        axis, (*place, k) = self.axis.data, coords
        at = add(mul(coords[axis], self.step.data), mul(k, self.dilation.data))
        return [Read(0, (*place[:axis], at, *place[axis + 1 :]))]

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        axis = self.axis.data
        along = mul(strides[axis], self.step.data)
        within = mul(strides[axis], self.dilation.data)
        return Strided((*strides[:axis], along, *strides[axis + 1 :], within), const(0))


@irdl_op_definition
class DiagonalOp(View):
    """result[.., k] = x with k + max(-offset, 0) in dim `first` and k + max(offset, 0) in dim `second`, which vanish;
    the other dims come first.  Source: torch.diagonal."""

    name = "dlcb.graph.diagonal"
    offset = prop_def(IntAttr)
    first = prop_def(IntAttr)
    second = prop_def(IntAttr)

    @property
    def starts(self) -> dict[int, int]:
        """Where the diagonal starts in each of its two dims."""
        return {self.first.data: max(-self.offset.data, 0), self.second.data: max(self.offset.data, 0)}

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes, starts = scope.of(self.src), self.starts
        first, second = (sub(sizes[axis], start) for axis, start in starts.items())
        others = (size for axis, size in enumerate(sizes) if axis not in starts)
        return ((*others, maximum(minimum(first, second), 0)),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        starts, others = self.starts, iter(coords[:-1])
        place = (add(coords[-1], starts[a]) if a in starts else next(others) for a in range(len(coords) + 1))
        return [Read(0, tuple(place))]

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        starts = self.starts
        (first, begin), (second, start) = starts.items()
        kept = (stride for axis, stride in enumerate(strides) if axis not in starts)
        offset = add(mul(strides[first], begin), mul(strides[second], start))
        inside = lt(const(0), sizes.of(self.results[0])[-1])
        return Strided((*kept, add(strides[first], strides[second])), select(inside, offset, 0))


def require_in_range(op: GraphOp, scope: ShapeScope, starts: DimsAttr, shape: DimsAttr, steps: DimsAttr) -> None:
    """A grid of `shape` elements from `starts` by `steps` must lie in the first operand."""
    whole_sizes = scope.of(op.operands[0])
    grids = zip(scope.list(starts), scope.list(shape), scope.list(steps), whole_sizes, strict=True)
    for start, size, step, whole in grids:
        if is_zero(start) and size is whole:
            continue
        end = add(start, add(mul(sub(size, 1), step), 1))
        scope.require("le", const(0), start, f"{op.title}: slice starts before 0")
        scope.require("le", select(eq(size, 0), 0, end), whole, f"{op.title}: slice out of range")


def is_zero(expr: Expr) -> bool:
    return expr.is_const and expr.value == 0


@irdl_op_definition
class CopyOp(Move):
    """result[p] = x[p], in memory of its own and in the layout of the result's type.  Source: torch.clone, contiguous,
    a change of layout."""

    name = "dlcb.graph.copy"

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.of(self.src),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        return [Read(0, coords)]


@irdl_op_definition
class FlipOp(Move):
    """result[p] = x[size - 1 - p] in the dims `axes`.  Source: torch.flip."""

    name = "dlcb.graph.flip"
    axes = prop_def(ArrayAttr[IntAttr])

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.of(self.src),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        flipped = {a.data for a in self.axes.data}
        whole = sizes.of(self.src)
        return [Read(0, tuple(sub(sub(whole[i], 1), c) if i in flipped else c for i, c in enumerate(coords)))]


@irdl_op_definition
class PadOp(Move):
    """result[p] = x[p - low] where in range, else value; low and high are dims, ≥ 0.
    Source: torch.nn.functional.pad(mode='constant')."""

    name = "dlcb.graph.pad"
    low = prop_def(DimsAttr)
    high = prop_def(DimsAttr)
    value = prop_def(Attribute)

    @property
    def number(self) -> float | int:
        value = self.value
        assert isinstance(value, (FloatAttr, IntegerAttr))
        return value.value.data

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        around = zip(scope.of(self.src), scope.list(self.low), scope.list(self.high), strict=True)
        return (tuple(add(add(size, low), high) for size, low, high in around),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        moved: list[Expr] = []
        guard: list[Guard] = []
        around = zip(coords, sizes.of(self.src), sizes.list(self.low), sizes.list(self.high), strict=True)
        for c, size, low, high in around:
            moved.append(sub(c, low))
            if not is_zero(low):
                guard.append(("le", const(0), moved[-1]))
            if not is_zero(high):
                guard.append(("lt", moved[-1], size))
        return [Read(0, tuple(moved), tuple(guard))]

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        (read,) = self.reads(coords, b)
        fill = b.constant(self.number, compute_type(self.result_element))
        return b.read(self.src, read.coords, read.guard, fill)


@irdl_op_definition
class ConcatOp(GraphOp):
    """result[p] = the operand in whose part p[axis] falls, parts laid one after the other along `axis`.
    Source: torch.cat, stack."""

    name = "dlcb.graph.concat"
    FAMILY: ClassVar[str] = "move"
    args = var_operand_def(TensorType)
    res = result_def(TensorType)
    axis = prop_def(IntAttr)
    traits = traits_def(Pure())

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        axis = self.axis.data
        result = list(scope.of(self.operands[0]))
        for other in self.operands[1:]:
            for i, size in enumerate(scope.of(other)):
                if i == axis:
                    result[axis] = add(result[axis], size)
                elif size is not result[i]:
                    scope.require("eq", result[i], size, f"{self.title}: sizes of dim {i} differ")
                    result[i] = size if size.is_const else result[i]
        return (tuple(result),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        axis = self.axis.data
        start = const(0)
        reads: list[Read] = []
        for k, operand in enumerate(self.operands):
            size = sizes.of(operand)[axis]
            c = sub(coords[axis], start)
            guard: list[Guard] = []
            if k > 0:
                guard.append(("le", const(0), c))
            if k < len(self.operands) - 1:
                guard.append(("lt", c, size))
            reads.append(Read(k, (*coords[:axis], c, *coords[axis + 1 :]), tuple(guard)))
            start = add(start, size)
        return reads

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        value = b.constant(0, compute_type(self.result_element))
        for read in reversed(self.reads(coords, b)):
            value = b.read(self.operands[read.operand], read.coords, read.guard, value)
        return value


@irdl_op_definition
class InsertOp(GraphOp):
    """result[p] = src[(p - start) / step] where p lies on that grid, else base[p].  Source: assignment to a slice,
    slice_scatter."""

    name = "dlcb.graph.insert"
    FAMILY: ClassVar[str] = "move"
    base = operand_def(TensorType)
    src = operand_def(TensorType)
    res = result_def(TensorType)
    starts = prop_def(DimsAttr)
    steps = prop_def(DimsAttr)
    traits = traits_def(Pure())

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        shape = type_of(self.src).dims
        require_in_range(self, scope, self.starts, dims_attr(shape), self.steps)
        return (scope.of(self.base),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        inner: list[Expr] = []
        guard: list[Guard] = []
        grid = zip(
            sizes.list(self.starts), sizes.list(self.steps), sizes.of(self.src), sizes.of(self.base), strict=True
        )
        for c, (start, step, size, whole) in zip(coords, grid, strict=True):
            if is_zero(start) and size is whole:
                inner.append(c)
                continue
            moved = sub(c, start)
            guard.append(("le", const(0), moved))
            if not is_one(step):
                guard.append(("eq", mod(moved, step), const(0)))
                moved = floordiv(moved, step)
            guard.append(("lt", moved, size))
            inner.append(moved)
        return [Read(0, coords), Read(1, tuple(inner), tuple(guard))]

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        base, src = self.reads(coords, b)
        return b.read(self.src, src.coords, src.guard, b.read(self.base, base.coords))

    def written(self, coords: Coords, sizes: Sizes) -> Coords:
        """Where in the base the element of `src` at `coords` goes: an update in place writes only these."""
        grid = zip(coords, sizes.list(self.starts), sizes.list(self.steps), strict=True)
        return tuple(add(start, mul(c, step)) for c, start, step in grid)


OPS: list[type[Operation]] = [
    ReshapeOp,
    PermuteOp,
    ExpandOp,
    SliceOp,
    UnfoldOp,
    DiagonalOp,
    CopyOp,
    FlipOp,
    PadOp,
    ConcatOp,
    InsertOp,
]
