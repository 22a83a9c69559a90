"""Operations that move elements: reshapes, permutations, slices, concatenation, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import FlipOp, InsertOp, product
from dlcb.dialects.shape.expr import Expr, ExprLike, as_expr, ceildiv, const, floordiv, maximum, minimum, sub
from dlcb.frontend.aten import memory
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table, listed
from dlcb.passes.graph_builder import int_list

TABLE = Table(memory.TABLE)


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


# Reshapes


@TABLE.handles("view", "reshape", "_reshape_alias")
def view(i: Builder, self: SSAValue, *sizes: Any, size: Any = None, shape: Any = None) -> SSAValue:
    wanted = listed(sizes, shape if size is None else size)
    if len(wanted) == 1 and not isinstance(wanted[0], (int, Expr)):
        i.unsupported(f"a view as {wanted[0]}")
    return i.reshape(self, _completed(i, i.sizes(self), wanted))


def _completed(i: Builder, have: Sequence[Expr], wanted: Sequence[ExprLike]) -> list[Expr]:
    """Sizes in which -1 stands for what is left. Eager refuses it beside a size of 0."""
    sizes = [as_expr(s) for s in wanted]
    unknown = [at for at, s in enumerate(sizes) if s.value == -1]
    if unknown:
        known = [s for at, s in enumerate(sizes) if at not in unknown]
        for size in known:
            i.require("le", 1, size, "-1 beside a size of 0 can be any size")
        sizes[unknown[0]] = floordiv(product(have), product(known))
    return sizes


@TABLE.handles("view_as", "reshape_as")
def view_as(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    return i.reshape(self, i.sizes(other))


@TABLE.handles("flatten")
def flatten(i: Builder, self: SSAValue, start_dim: int = 0, end_dim: int = -1) -> SSAValue:
    sizes = i.sizes(self)
    start, end = i.axis(start_dim, len(sizes)), i.axis(end_dim, len(sizes))
    return i.reshape(self, (*sizes[:start], product(sizes[start : end + 1]), *sizes[end + 1 :]))


@TABLE.handles("unflatten")
def unflatten(i: Builder, self: SSAValue, dim: int, sizes: Sequence[Any]) -> SSAValue:
    have = i.sizes(self)
    at = i.axis(dim, len(have))
    return i.reshape(self, (*have[:at], *_completed(i, [have[at]], sizes), *have[at + 1 :]))


@TABLE.handles("unsqueeze")
def unsqueeze(i: Builder, self: SSAValue, dim: int) -> SSAValue:
    return i.unsqueeze(self, i.axis(dim, rank_of(self) + 1))


@TABLE.handles("squeeze")
def squeeze(i: Builder, self: SSAValue, dim: Any = None) -> SSAValue:
    """A dim vanishes where it had size 1 in the trace; that this is so, or not, must hold at launch."""
    sizes = i.sizes(self)
    candidates = () if dim == () else i.axes(dim, len(sizes))
    gone = {axis for axis in candidates if i.traced(sizes[axis]) == 1}
    for axis in candidates:
        if sizes[axis].value is None:
            i.require("eq" if axis in gone else "ne", sizes[axis], 1, f"size of dim {axis}")
    return i.reshape(self, [s for axis, s in enumerate(sizes) if axis not in gone])


def _enter_at_least(rank: int) -> None:
    @TABLE.handles(f"atleast_{rank}d")
    def at_least(i: Builder, self: Any) -> SSAValue:
        if isinstance(self, tuple):
            i.unsupported("several tensors at once")
        sizes = i.sizes(self)
        if len(sizes) >= rank:
            return self
        if len(sizes) == 2:
            return i.reshape(self, (*sizes, 1))
        shapes = [(1,), (1, *(sizes or (1,))), (1, *(sizes or (1,)), 1)]
        return i.reshape(self, shapes[rank - 1])


for _rank in (1, 2, 3):
    _enter_at_least(_rank)


# Permutations


@TABLE.handles("permute")
def permute(i: Builder, self: SSAValue, *order: Any, dims: Any = None) -> SSAValue:
    return i.permute(self, [i.axis(d, rank_of(self)) for d in listed(order, dims)])


@TABLE.handles("transpose")
def transpose(i: Builder, self: SSAValue, dim0: int, dim1: int) -> SSAValue:
    rank = rank_of(self)
    if rank == 0:
        return self
    order = list(range(rank))
    a, b = i.axis(dim0, rank), i.axis(dim1, rank)
    order[a], order[b] = order[b], order[a]
    return i.permute(self, order)


@TABLE.handles("t")
def t(i: Builder, self: SSAValue) -> SSAValue:
    return i.permute(self, list(reversed(range(rank_of(self)))))


# Expansion


@TABLE.handles("expand", "broadcast_to")
def expand(i: Builder, self: SSAValue, *given: Any, size: Any = None, implicit: bool = False) -> SSAValue:
    wanted = listed(given, size)
    have = i.sizes(self)
    new = len(wanted) - len(have)
    sizes = [have[at - new] if not isinstance(s, Expr) and s == -1 else s for at, s in enumerate(wanted)]
    return i.expand(self, sizes)


@TABLE.handles("copy")
def copy(i: Builder, self: SSAValue, src: SSAValue, non_blocking: bool = False) -> SSAValue:
    """The source as it is when written into `self`."""
    return i.expand(i.cast(src, i.element), i.sizes(self))


@TABLE.handles("expand_as")
def expand_as(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    return i.expand(self, i.sizes(other))


@TABLE.handles("repeat", "tile")
def repeat(i: Builder, self: SSAValue, *counts: Any, repeats: Any = None, dims: Any = None) -> SSAValue:
    times = listed(counts, dims if repeats is None else repeats)
    sizes = i.sizes(self)
    sizes = ((const(1),) * (len(times) - len(sizes))) + sizes
    times = ((1,) * (len(sizes) - len(times))) + times
    pairs: list[ExprLike] = []
    repeated: list[ExprLike] = []
    for count, size in zip(times, sizes, strict=True):
        pairs += [1, size]
        repeated += [count, size]
    expanded = i.expand(i.reshape(self, pairs), repeated)
    return i.reshape(expanded, [product([as_expr(n), s]) for n, s in zip(times, sizes, strict=True)])


@TABLE.handles("repeat_interleave")
def repeat_interleave(i: Builder, self: SSAValue, repeats: Any, dim: int | None = None, **_: Any) -> SSAValue:
    if isinstance(repeats, SSAValue):
        i.unsupported("the size of the result depends on elements")
    if dim is None:
        self, dim = flatten(i, self), 0
    sizes = i.sizes(self)
    at = i.axis(dim, len(sizes))
    expanded = i.expand(i.unsqueeze(self, at + 1), (*sizes[: at + 1], repeats, *sizes[at + 1 :]))
    return i.reshape(expanded, (*sizes[:at], product([sizes[at], as_expr(repeats)]), *sizes[at + 1 :]))


# Slices


@TABLE.handles("select")
def select(i: Builder, self: SSAValue, dim: int, index: Any) -> SSAValue:
    sizes = i.sizes(self)
    at = i.axis(dim, len(sizes))
    start = i.wrapped(index, sizes[at], "index")
    return i.without_axis(i.slice(self, at, start, 1), at)


_BEYOND = 1 << 62
"""No size is as large: a slice that ends there ends with its dim."""


def slice_bounds(i: Builder, whole: Expr, start: Any, end: Any, step: int) -> tuple[Expr, Expr]:
    """Start and size of a slice as Python clamps it. Literal bounds are clamped whatever the size; for a bound that is
    an expression the trace says whether it is clamped, and that is required."""
    literal = not isinstance(start, Expr) and not isinstance(end, Expr)
    first = i.wrapped(start or 0, whole, "start of a slice")
    end = None if isinstance(end, int) and end >= _BEYOND else end
    last = whole if end is None else i.wrapped(end, whole, "end of a slice")
    if isinstance(end, Expr):
        last = _clamped(i, last, whole)
    elif end is not None and end >= 0:
        last = minimum(last, whole)
    if not literal and i.traced(first) <= i.traced(last):
        i.require("le", first, last, "a slice ends before it starts")
        size = sub(last, first)
    else:
        first = maximum(first, 0)
        size = maximum(sub(last, first), 0)
    return first, ceildiv(size, step) if step != 1 else size


def _clamped(i: Builder, last: Expr, whole: Expr) -> Expr:
    if i.traced(last) <= i.traced(whole):
        i.require("le", last, whole, "a slice ends beyond its dim")
        return last
    i.require("le", whole, last, "a slice ends inside its dim")
    return whole


@TABLE.handles("slice")
def slice_(i: Builder, self: SSAValue, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> SSAValue:
    sizes = i.sizes(self)
    at, stride = i.axis(dim, len(sizes)), i.literal(step, "the step")
    first, size = slice_bounds(i, sizes[at], start, end, stride)
    return i.slice(self, at, first, size, stride)


@TABLE.handles("narrow")
def narrow(i: Builder, self: SSAValue, dim: int, start: Any, length: Any) -> SSAValue:
    return i.slice(self, i.axis(dim, rank_of(self)), start, length)


def insert(i: Builder, base: SSAValue, src: SSAValue, axis: int, start: ExprLike, step: int = 1) -> SSAValue:
    starts: list[ExprLike] = [0] * rank_of(base)
    steps: list[ExprLike] = [1] * rank_of(base)
    starts[axis], steps[axis] = start, step
    src = i.cast(src, i.like(base))
    return i.make(InsertOp, [base, src], i.like(base), starts=i.dims_attr(starts), steps=i.dims_attr(steps))


@TABLE.handles("select_scatter")
def select_scatter(i: Builder, self: SSAValue, src: SSAValue, dim: int, index: Any) -> SSAValue:
    sizes = i.sizes(self)
    at = i.axis(dim, len(sizes))
    row = i.unsqueeze(src, at)
    _require_alike_but(i, self, row, at)
    return insert(i, self, row, at, i.wrapped(index, sizes[at], "index"))


@TABLE.handles("slice_scatter")
def slice_scatter(
    i: Builder, self: SSAValue, src: SSAValue, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> SSAValue:
    sizes = i.sizes(self)
    at, stride = i.axis(dim, len(sizes)), i.literal(step, "the step")
    first, size = slice_bounds(i, sizes[at], start, end, stride)
    i.require("eq", i.sizes(src)[at], size, "size of the slice and of what is written to it")
    _require_alike_but(i, self, src, at)
    return insert(i, self, src, at, first, stride)


def _require_alike_but(i: Builder, self: SSAValue, src: SSAValue, but: int) -> None:
    """Both have the same sizes, that of one axis aside."""
    for axis, (whole, size) in enumerate(zip(i.sizes(self), i.sizes(src), strict=True)):
        if axis != but:
            i.require("eq", size, whole, "size of the slice and of what is written to it")


@TABLE.handles("flip")
def flip(i: Builder, self: SSAValue, *given: Any, dims: Any = None) -> SSAValue:
    axes = i.axes(listed(given, dims), rank_of(self)) if listed(given, dims) else ()
    return i.make(FlipOp, [self], i.like(self), axes=int_list(axes))


@TABLE.handles("fliplr")
def fliplr(i: Builder, self: SSAValue) -> SSAValue:
    return flip(i, self, 1)


@TABLE.handles("flipud")
def flipud(i: Builder, self: SSAValue) -> SSAValue:
    return flip(i, self, 0)


@TABLE.handles("rot90")
def rot90(i: Builder, self: SSAValue, k: int = 1, dims: Sequence[int] = (0, 1)) -> SSAValue:
    first, second = (i.axis(d, rank_of(self)) for d in dims)
    match k % 4:
        case 1:
            return transpose(i, flip(i, self, second), first, second)
        case 2:
            return flip(i, self, (first, second))
        case 3:
            return transpose(i, flip(i, self, first), first, second)
        case _:
            return self


# Shuffles


@TABLE.handles("pixel_shuffle")
def pixel_shuffle(i: Builder, self: SSAValue, upscale_factor: int) -> SSAValue:
    *lead, channels, height, width = i.sizes(self)
    r = i.literal(upscale_factor, "the factor")
    count, outer = len(lead), floordiv(channels, r * r)
    split = i.reshape(self, (*lead, outer, r, r, height, width))
    moved = i.permute(split, [*range(count + 1), count + 3, count + 1, count + 4, count + 2])
    return i.reshape(moved, (*lead, outer, product([height, const(r)]), product([width, const(r)])))


@TABLE.handles("pixel_unshuffle")
def pixel_unshuffle(i: Builder, self: SSAValue, downscale_factor: int) -> SSAValue:
    i.require_elements(i.sizes(self), "an image")  # which eager returns as it is
    *lead, channels, height, width = i.sizes(self)
    r = i.literal(downscale_factor, "the factor")
    count, rows, columns = len(lead), floordiv(height, r), floordiv(width, r)
    split = i.reshape(self, (*lead, channels, rows, r, columns, r))
    moved = i.permute(split, [*range(count + 1), count + 2, count + 4, count + 1, count + 3])
    return i.reshape(moved, (*lead, product([channels, const(r * r)]), rows, columns))


@TABLE.handles("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(i: Builder, self: SSAValue, groups: int) -> SSAValue:
    batch, channels, *rest = sizes = i.sizes(self)
    split = i.reshape(self, (batch, groups, floordiv(channels, groups), *rest))
    return i.reshape(i.permute(split, [0, 2, 1, *range(3, len(rest) + 3)]), sizes)
