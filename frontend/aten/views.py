"""Operations that move elements: reshapes, permutations, slices, concatenation, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.creation import number_attr
from dlcb.dialects.graph.indexing import TakeOp
from dlcb.dialects.graph.reduce import SumOp
from dlcb.dialects.graph.types import dims_of, type_of
from dlcb.dialects.graph.view import ConcatOp, DiagonalOp, FlipOp, InsertOp, PadOp, UnfoldOp, product
from dlcb.dialects.shape.expr import Expr, ExprLike, add, as_expr, ceildiv, const, floordiv, maximum, minimum, mod, sub
from dlcb.dialects.types import i1, i64, is_float
from dlcb.frontend.aten import memory
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.table import Table, listed, several, spread
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
    """Sizes in which -1 stands for what is left."""
    sizes = [as_expr(s) for s in wanted]
    unknown = [at for at, s in enumerate(sizes) if s.value == -1]
    if unknown:
        known = product([s for at, s in enumerate(sizes) if at not in unknown])
        sizes[unknown[0]] = floordiv(product(have), known)
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
    candidates = i.axes(dim, len(sizes))
    gone = {axis for axis in candidates if i.traced(sizes[axis]) == 1}
    for axis in candidates:
        if sizes[axis].value is None:
            i.require("eq" if axis in gone else "ne", sizes[axis], 1, f"size of dim {axis}")
    return i.reshape(self, [s for axis, s in enumerate(sizes) if axis not in gone])


def _enter_at_least(rank: int) -> None:
    @TABLE.handles(f"atleast_{rank}d")
    def at_least(i: Builder, self: SSAValue) -> SSAValue:
        sizes = i.sizes(self)
        if len(sizes) == 2 and rank == 3:
            return i.reshape(self, (*sizes, 1))
        return (
            self if len(sizes) >= rank else i.reshape(self, ([(1,), (1, *sizes), (1, *(sizes or (1,)), 1)][rank - 1]))
        )


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


@TABLE.handles("diagonal")
def take_diagonal(i: Builder, self: SSAValue, offset: int = 0, dim1: int = 0, dim2: int = 1) -> SSAValue:
    rank = rank_of(self)
    attributes = {
        "offset": IntAttr(i.literal(offset, "the offset")),
        "first": IntAttr(i.axis(dim1, rank)),
        "second": IntAttr(i.axis(dim2, rank)),
    }
    return i.make(DiagonalOp, [self], i.like(self), **attributes)


@TABLE.handles("linalg_diagonal")
def last_diagonal(i: Builder, self: SSAValue, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> SSAValue:
    return take_diagonal(i, self, offset, dim1, dim2)


@TABLE.handles("trace")
def trace(i: Builder, self: SSAValue) -> SSAValue:
    return i.reduce(SumOp, i.cast(take_diagonal(i, self), i.element), (0,), keep=False)


@TABLE.handles("diag_embed")
def diag_embed(i: Builder, self: SSAValue, offset: int = 0, dim1: int = -2, dim2: int = -1) -> SSAValue:
    """The last dim along a diagonal of two new dims, which stand at the places dim1 and dim2 of the result."""
    rank = rank_of(self) + 1
    first, second = i.axis(dim1, rank), i.axis(dim2, rank)
    shift = i.literal(offset, "the offset")
    padded = pad(i, self, (max(shift, 0), max(-shift, 0)))
    size: Expr = i.sizes(padded)[-1]
    row = i.call("add", i.reshape(iota(i, size), (size, 1)), shift, element=i64)
    on = i.call("eq", row, iota(i, size), element=i1)
    square = i.where(on, i.unsqueeze(padded, rank - 2), i.number(0, i.element))
    order = [*range(rank - 2)]
    for axis, place in sorted(((first, rank - 2), (second, rank - 1))):
        order.insert(axis, place)
    return i.permute(square, order)


@TABLE.handles("diag")
def diag(i: Builder, self: SSAValue, diagonal: int = 0) -> SSAValue:
    return (diag_embed if rank_of(self) == 1 else take_diagonal)(i, self, diagonal)


@TABLE.handles("unfold")
def unfold(i: Builder, self: SSAValue, dimension: int, size: Any, step: Any, dilation: int = 1) -> SSAValue:
    """All windows along a dim, each laid along a new last dim."""
    rank = rank_of(self)
    if rank == 0:
        return i.reshape(self, (1,))
    numbers = {"size": i.literal(size, "a window's size"), "step": i.literal(step, "the step"), "dilation": dilation}
    attributes = {name: IntAttr(number) for name, number in numbers.items()}
    return i.make(UnfoldOp, [self], i.like(self), axis=IntAttr(i.axis(dimension, rank)), **attributes)


@TABLE.handles("im2col")
def im2col(i: Builder, self: SSAValue, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> SSAValue:
    """[.., c, h, w] -> [.., c · kernel, positions]: the windows of an image as columns."""
    kernel, dilations, pads, strides = (spread(v, 2) for v in (kernel_size, dilation, padding, stride))
    around = [n for p in reversed(pads) for n in (p, p)]
    rank = rank_of(self)
    windows = pad(i, self, around)
    for axis, k, d, s in zip((rank - 2, rank - 1), kernel, dilations, strides, strict=True):
        windows = unfold(i, windows, axis, k, s, d)
    *lead, channels, height, width, _, _ = i.sizes(windows)
    moved = i.permute(windows, [*range(rank - 2), rank, rank + 1, rank - 2, rank - 1])
    return i.reshape(moved, (*lead, product([channels, *map(as_expr, kernel)]), product([height, width])))


@TABLE.handles("select_scatter")
def select_scatter(i: Builder, self: SSAValue, src: SSAValue, dim: int, index: Any) -> SSAValue:
    sizes = i.sizes(self)
    at = i.axis(dim, len(sizes))
    return insert(i, self, i.unsqueeze(src, at), at, i.wrapped(index, sizes[at], "index"))


@TABLE.handles("slice_scatter")
def slice_scatter(
    i: Builder, self: SSAValue, src: SSAValue, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> SSAValue:
    sizes = i.sizes(self)
    at, stride = i.axis(dim, len(sizes)), i.literal(step, "the step")
    first, size = slice_bounds(i, sizes[at], start, end, stride)
    i.require("eq", i.sizes(src)[at], size, "size of the slice and of what is written to it")
    return insert(i, self, src, at, first, stride)


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


@TABLE.handles("roll")
def roll(i: Builder, self: SSAValue, shifts: Any, dims: Any = ()) -> SSAValue:
    if dims == ():
        sizes = i.sizes(self)
        return i.reshape(roll(i, flatten(i, self), shifts, 0), sizes)
    for amount, dim in zip(several(shifts), several(dims), strict=True):
        self = _rolled(i, self, amount, i.axis(dim, rank_of(self)))
    return self


def _rolled(i: Builder, self: SSAValue, amount: Any, axis: int) -> SSAValue:
    whole = i.sizes(self)[axis]
    cut = mod(sub(0, amount), maximum(whole, 1))
    if cut.value == 0:
        return self
    tail, head = i.slice(self, axis, cut, sub(whole, cut)), i.slice(self, axis, 0, cut)
    return concat(i, [tail, head], axis)


# Concatenation and padding


def concat(i: Builder, parts: Sequence[SSAValue], axis: int) -> SSAValue:
    element = i.element
    parts = [i.cast(p, element) for p in parts]
    return parts[0] if len(parts) == 1 else i.make(ConcatOp, parts, element, axis=IntAttr(axis))


@TABLE.handles("cat")
def cat(i: Builder, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    """Old torch lets an empty tensor of rank 1 stand among others."""
    rank = max(map(rank_of, tensors))
    parts = [p for p in tensors if not (rank > 1 and dims_of(p) == (0,))]
    return concat(i, parts, i.axis(dim, rank))


@TABLE.handles("stack")
def stack(i: Builder, tensors: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    axis = i.axis(dim, rank_of(tensors[0]) + 1)
    return concat(i, [i.unsqueeze(p, axis) for p in tensors], axis)


def _enter_stacks() -> None:
    """Parts of at least some rank, joined along one dim."""
    for name, least, axis in (("vstack", 2, 0), ("dstack", 3, 2), ("hstack", 1, 1)):

        @TABLE.handles(name)
        def joined(i: Builder, tensors: Sequence[SSAValue], least: int = least, axis: int = axis) -> SSAValue:
            parts = [TABLE[f"atleast_{least}d"](i, part) for part in tensors]
            return concat(i, parts, min(axis, rank_of(parts[0]) - 1))


_enter_stacks()
TABLE["row_stack"] = TABLE["vstack"]


@TABLE.handles("column_stack")
def column_stack(i: Builder, tensors: Sequence[SSAValue]) -> SSAValue:
    columns = [p if rank_of(p) > 1 else i.reshape(p, (product(i.sizes(p)), 1)) for p in tensors]
    return concat(i, columns, 1)


@TABLE.handles("block_diag")
def block_diag(i: Builder, tensors: Sequence[SSAValue]) -> SSAValue:
    """Each matrix among as many columns of zeros as the others have."""
    parts = [TABLE["atleast_2d"](i, part) for part in tensors]
    widths = [i.sizes(part)[1] for part in parts]
    rows: list[SSAValue] = []
    for at, part in enumerate(parts):
        before, after = (sum_of(sizes) for sizes in (widths[:at], widths[at + 1 :]))
        rows.append(pad(i, i.cast(part, i.element), (_plain(before), _plain(after))))
    return concat(i, rows, 0)


def sum_of(sizes: Sequence[Expr]) -> Expr:
    total = const(0)
    for size in sizes:
        total = add(total, size)
    return total


def _plain(size: Expr) -> ExprLike:
    return size if size.value is None else size.value


@TABLE.handles("pad", "constant_pad_nd")
def pad(i: Builder, self: SSAValue, pad: Sequence[Any], mode: Any = "constant", value: float | None = None) -> SSAValue:
    """Amounts in pairs, from the last dim on; a negative one cuts off."""
    if not isinstance(mode, str):
        mode, value = "constant", mode
    if mode != "constant":
        return _padded_with_own(i, self, pad, mode)
    sizes = i.sizes(self)
    low: list[ExprLike] = [0] * len(sizes)
    high: list[ExprLike] = [0] * len(sizes)
    for place in range(len(pad) // 2):
        axis = len(sizes) - 1 - place
        self, low[axis], high[axis] = _cut(i, self, axis, pad[2 * place], pad[2 * place + 1])
    if all(not isinstance(n, Expr) and n == 0 for n in (*low, *high)):
        return self
    fill = float(value or 0) if is_float(i.element) else int(value or 0)
    return i.make(PadOp, [self], i.element, low=i.dims_attr(low), high=i.dims_attr(high), value=number_attr(fill))


def _padded_with_own(i: Builder, self: SSAValue, pad: Sequence[Any], mode: str) -> SSAValue:
    """Padding with elements of the tensor itself; a negative amount cuts off."""
    for place in range(len(pad) // 2):
        axis, low, high = rank_of(self) - 1 - place, pad[2 * place], pad[2 * place + 1]
        if mode == "circular":
            self, low, high = _cut(i, self, axis, low, high)
        size: Expr = i.sizes(self)[axis]
        places = i.call("sub", iota(i, add(add(size, low), high)), low, element=i64)
        self = i.make(TakeOp, [self, _own_places(i, places, size, mode)], i.like(self), axis=IntAttr(axis))
    return self


def _own_places(i: Builder, places: SSAValue, size: Expr, mode: str) -> SSAValue:
    """Which element stands at places that may lie outside of [0, size)."""
    last = sub(size, 1)
    match mode:
        case "circular":
            return i.call("mod", places, size, element=i64)
        case "replicate":
            return i.call("minimum", i.call("maximum", places, 0, element=i64), i.number(last, i64), element=i64)
        case "reflect":
            from_end = i.call("sub", i.number(last, i64), i.call("abs", places, element=i64), element=i64)
            return i.call("sub", i.number(last, i64), i.call("abs", from_end, element=i64), element=i64)
        case _:
            i.unsupported(f"padding of mode '{mode}'")


def _enter_own_padding(name: str, mode: str) -> None:
    for spatial in (1, 2, 3):

        @TABLE.handles(f"{name}{spatial}d")
        def own_padding(i: Builder, self: SSAValue, padding: Sequence[Any]) -> SSAValue:
            return _padded_with_own(i, self, padding, mode)


_enter_own_padding("reflection_pad", "reflect")
_enter_own_padding("replication_pad", "replicate")


def _cut(i: Builder, self: SSAValue, axis: int, low: Any, high: Any) -> tuple[SSAValue, ExprLike, ExprLike]:
    """Cut off what negative amounts say; what is left to add."""
    less = [n if i.traced(n) < 0 else 0 for n in (low, high)]
    for amount, negative in zip((low, high), less, strict=True):
        if isinstance(amount, Expr):
            i.require("le" if negative == 0 else "lt", *((0, amount) if negative == 0 else (amount, 0)), "padding")
    if any(not isinstance(n, int) or n != 0 for n in less):
        start = sub(0, less[0])
        self = i.slice(self, axis, start, add(i.sizes(self)[axis], add(less[0], less[1])))
    more_low, more_high = (0 if n != 0 else amount for amount, n in zip((low, high), less, strict=True))
    return self, more_low, more_high


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


@TABLE.handles("diff")
def diff(
    i: Builder,
    self: SSAValue,
    n: int = 1,
    dim: int = -1,
    prepend: SSAValue | None = None,
    append: SSAValue | None = None,
) -> SSAValue:
    axis = i.axis(dim, rank_of(self))
    if n == 0:
        return self
    whole = concat(i, [v for v in (prepend, self, append) if v is not None], axis)
    for _ in range(n):
        size = maximum(sub(i.sizes(whole)[axis], 1), 0)
        name = "xor" if i.element == i1 else "sub"
        whole = i.call(name, i.slice(whole, axis, 1, size), i.slice(whole, axis, 0, size))
    return whole
