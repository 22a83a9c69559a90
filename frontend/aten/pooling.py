"""Pooling: by windows of one size, and by windows that divide the input into a number of parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.reduce import AmaxOp, MeanOp, Reduce, SumOp, lowest
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.window import AvgPoolOp, MaxPoolOp, PoolPositionOp, Window
from dlcb.dialects.shape.expr import Expr, as_expr
from dlcb.dialects.types import compute_type, i1, i64
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.creation import iota
from dlcb.frontend.aten.table import Table, spread
from dlcb.passes.graph_builder import int_list

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def _window(
    i: Builder,
    kind: type[Window],
    operands: Sequence[SSAValue],
    element: Attribute,
    spatial: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    **properties: Attribute,
) -> SSAValue:
    i.require_elements(_unbatched(i, operands[0], spatial), "an input")

    def numbers(value: Any) -> Any:
        return int_list(tuple(i.literal(n, "a window's numbers") for n in spread(value, spatial)))

    if ceil:
        properties["ceil"] = UnitAttr()
    return i.make(
        kind,
        operands,
        element,
        kernel=numbers(kernel),
        stride=numbers(stride if stride not in (None, ()) else kernel),
        padding=numbers(padding),
        dilation=numbers(dilation),
        **properties,
    )


def _enter_pools(spatial: int) -> None:
    @TABLE.handles(f"max_pool{spatial}d")
    def max_pool(
        i: Builder,
        self: SSAValue,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> SSAValue:
        return _window(i, MaxPoolOp, [self], i.element, spatial, kernel_size, stride, padding, dilation, ceil_mode)

    @TABLE.handles(f"max_pool{spatial}d_with_indices")
    def max_pool_with_indices(
        i: Builder,
        self: SSAValue,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[SSAValue, SSAValue]:
        how = (spatial, kernel_size, stride, padding, dilation, ceil_mode)
        pooled = _window(i, MaxPoolOp, [self], i.element, *how)
        return pooled, _window(i, PoolPositionOp, [self, pooled], i64, *how)

    @TABLE.handles(f"avg_pool{spatial}d")
    def avg_pool(
        i: Builder,
        self: SSAValue,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SSAValue:
        properties: dict[str, Attribute] = {"count_padding": UnitAttr()} if count_include_pad else {}
        if divisor_override is not None:
            properties["divisor"] = IntAttr(divisor_override)
        return _window(
            i, AvgPoolOp, [self], i.element, spatial, kernel_size, stride, padding, 1, ceil_mode, **properties
        )

    @TABLE.handles(f"adaptive_avg_pool{spatial}d", f"_adaptive_avg_pool{spatial}d")
    def adaptive_avg_pool(i: Builder, self: SSAValue, output_size: Any) -> SSAValue:
        """To size 1 it is a mean; a literal size is cut into equal windows where it can be."""
        rank = rank_of(self)
        wanted = _wanted(i, self, output_size, spatial)
        if all(size.value == 1 for size in wanted):
            return i.reduce(MeanOp, self, tuple(range(rank - spatial, rank)))
        i.require_elements(_unbatched(i, self, spatial)[spatial < 3 :], "an input")
        kernel = [_even_window(size, out) for size, out in zip(i.sizes(self)[rank - spatial :], wanted, strict=True)]
        if None not in kernel:
            return _window(i, AvgPoolOp, [self], i.element, spatial, tuple(kernel), None, 0, 1, False)
        for axis, size in enumerate(wanted, rank - spatial):
            self = _averaged_parts(i, self, axis, size)
        return i.cast(self, i.element)

    @TABLE.handles(f"adaptive_max_pool{spatial}d")
    def adaptive_max_pool(i: Builder, self: SSAValue, output_size: Any) -> tuple[SSAValue, None]:
        rank = rank_of(self)
        i.require_elements(_unbatched(i, self, spatial), "an input")
        for axis, size in enumerate(_wanted(i, self, output_size, spatial), rank - spatial):
            inside = _parts(i, i.sizes(self)[axis], size, rank - axis)
            self = _over_parts(i, AmaxOp, self, inside, axis, lowest(i.element), i.element)
        return self, None


for _spatial in (1, 2, 3):
    _enter_pools(_spatial)


def _unbatched(i: Builder, self: SSAValue, spatial: int) -> Sequence[Expr]:
    """The channels, then the dims that are pooled."""
    return i.sizes(self)[rank_of(self) - spatial - 1 :]


def _wanted(i: Builder, self: SSAValue, output_size: Any, spatial: int) -> list[Expr]:
    sizes = i.sizes(self)[rank_of(self) - spatial :]
    given = spread(output_size, spatial)
    return [size if out is None else as_expr(out) for size, out in zip(sizes, given, strict=True)]


def _even_window(size: Expr, out: Expr) -> int | None:
    """The size of the windows where all are alike and do not overlap."""
    if size is out:
        return 1
    if size.value is None or not out.value or size.value % out.value:
        return None
    return size.value // out.value or None


# Part `o` of `out` parts of a dim is [⌊o · size / out⌋, ⌈(o + 1) · size / out⌉).


def _bounds(i: Builder, size: Expr, out: Expr) -> tuple[SSAValue, SSAValue]:
    """Where each part starts and ends."""
    scaled = i.call("mul", iota(i, out), size, element=i64)
    end = i.call("add", scaled, i.number(size, i64), element=i64)
    up = i.call("sub", i.call("add", end, i.number(out, i64), element=i64), 1, element=i64)
    return i.call("floordiv", scaled, out, element=i64), i.call("floordiv", up, out, element=i64)


def _parts(i: Builder, size: Expr, out: Expr, from_end: int) -> SSAValue:
    """[out, size, 1, …]: which places of a dim, the `from_end`-th last one, lie in which part."""
    start, end = (i.reshape(bound, (out, 1, *[1] * (from_end - 1))) for bound in _bounds(i, size, out))
    place = i.reshape(iota(i, size), (size, *[1] * (from_end - 1)))
    return i.call("and", i.call("le", start, place, element=i1), i.call("lt", place, end, element=i1), element=i1)


def _over_parts(
    i: Builder, kind: type[Reduce], self: SSAValue, inside: SSAValue, axis: int, outside: float, element: Attribute
) -> SSAValue:
    """The reduction of each part of a dim, by one look at the whole dim for each."""
    whole = i.unsqueeze(self, axis)
    masked = i.where(inside, whole, i.number(outside, compute_type(i.like(self))), element=i.like(self))
    return i.reduce(kind, masked, (axis + 1,), keep=False, element=element)


def _averaged_parts(i: Builder, self: SSAValue, axis: int, out: Expr) -> SSAValue:
    size: Expr = i.sizes(self)[axis]
    if size is out:
        return self
    wide, from_end = compute_type(i.element), rank_of(self) - axis
    total = _over_parts(i, SumOp, self, _parts(i, size, out, from_end), axis, 0, wide)
    start, end = _bounds(i, size, out)
    count = i.reshape(i.cast(i.call("sub", end, start, element=i64), wide), (out, *[1] * (from_end - 1)))
    return i.call("div", total, count, element=wide)
