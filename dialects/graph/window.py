"""Windows: pooling over the last dims of x: result[.., p] = f over k of x[.., p·stride + k·dilation - padding]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from dlcb.dialects.graph.base import Coords, ElementBuilder, GraphOp, Guard, ShapeScope, Sizes
from dlcb.dialects.graph.reduce import lowest
from dlcb.dialects.graph.types import TensorType, type_of
from dlcb.dialects.shape.expr import Expr, add, ceildiv, const, floordiv, lt, maximum, minimum, mul, select, sub
from dlcb.dialects.types import compute_type, i64, integer_limits, is_float


def ints(attr: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    return tuple(a.data for a in attr.data)


def window_reach(kernel: Expr | int, dilation: int) -> Expr:
    """How many elements a window spans."""
    return add(mul(dilation, sub(kernel, 1)), 1)


def window_size(size: Expr, kernel: Expr | int, stride: int, padding: int, dilation: int, ceil: bool) -> Expr:
    """The number of window positions.  With `ceil`, the last window must start inside the input or its left padding."""
    room = sub(add(size, 2 * padding), window_reach(kernel, dilation))
    if not ceil:
        return add(floordiv(room, stride), 1)
    count = add(ceildiv(room, stride), 1)
    return select(lt(mul(sub(count, 1), stride), add(size, padding)), count, sub(count, 1))


class Window(GraphOp):
    FAMILY: ClassVar[str] = "window"
    src = operand_def(TensorType)
    res = result_def(TensorType)
    kernel = prop_def(ArrayAttr[IntAttr])
    stride = prop_def(ArrayAttr[IntAttr])
    padding = prop_def(ArrayAttr[IntAttr])
    dilation = prop_def(ArrayAttr[IntAttr])
    ceil = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    FUNCTION: ClassVar[str]
    INITIAL: ClassVar[float | int] = 0

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.src)
        kernel, stride, padding, dilation = map(ints, (self.kernel, self.stride, self.padding, self.dilation))
        lead = len(sizes) - len(kernel)
        out: list[Expr] = []
        for size, k, s, p, d in zip(sizes[lead:], kernel, stride, padding, dilation, strict=True):
            out.append(window_size(size, k, s, p, d, self.ceil is not None))
            room = add(size, 2 * p + (s - 1 if self.ceil is not None else 0))
            scope.require("le", window_reach(k, d), room, f"{self.title}: the window is larger than the input")
        return ((*sizes[:lead], *out),)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        accumulate = compute_type(self.result_element)

        def at(position: Coords) -> Any:
            return b.cast(self._at(b, coords, position, accumulate), accumulate)

        total = b.loop(
            self.FUNCTION,
            ints(self.kernel),
            at,
            self.initial,
            accumulate,
        )
        return self.finish(b, total, coords)

    def _at(self, b: ElementBuilder, coords: Coords, position: Sequence[Expr], accumulate: Any) -> Any:
        inner, guard = self.place(b, coords, position)
        return b.read(self.src, inner, guard, b.constant(self.initial, accumulate))

    def place(self, sizes: Sizes, coords: Coords, position: Sequence[Expr]) -> tuple[Coords, list[Guard]]:
        """Where in the input a position of the window at `coords` lies, and when that is not padding."""
        stride, padding, dilation = map(ints, (self.stride, self.padding, self.dilation))
        whole = sizes.of(self.src)
        lead = len(whole) - len(stride)
        inner: list[Expr] = []
        guard: list[Guard] = []
        for c, k, size, s, p, d in zip(coords[lead:], position, whole[lead:], stride, padding, dilation, strict=True):
            at = sub(add(mul(c, s), mul(k, d)), p)
            inner.append(at)
            if p:
                guard.append(("le", const(0), at))
            if p or self.ceil is not None:
                guard.append(("lt", at, size))
        return (*coords[:lead], *inner), guard

    @property
    def initial(self) -> float | int:
        """The value of an empty window."""
        return self.INITIAL

    def finish(self, b: ElementBuilder, total: Any, coords: Coords) -> Any:
        return total


@irdl_op_definition
class MaxPoolOp(Window):
    """The largest of the window, padding left out; NaN if any is.  Source: torch.nn.functional.max_pool1d / 2d / 3d."""

    name = "dlcb.graph.max_pool"
    FUNCTION: ClassVar[str] = "maximum"

    @property
    def initial(self) -> float | int:
        return lowest(self.result_element)


@irdl_op_definition
class AvgPoolOp(Window):
    """The sum of the window over `divisor`, else over the number of its elements (with padding if `count_padding`).
    Source: torch.nn.functional.avg_pool1d / 2d / 3d."""

    name = "dlcb.graph.avg_pool"
    FUNCTION: ClassVar[str] = "add"
    INITIAL: ClassVar[float | int] = 0
    count_padding = opt_prop_def(UnitAttr)
    divisor = opt_prop_def(IntAttr)

    def finish(self, b: Any, total: Any, coords: Coords) -> Any:
        element = b.type_of(total)
        divide = b.div if is_float(element) else b.truncdiv
        if self.divisor is not None:
            return divide(total, b.constant(self.divisor.data, element))
        kernel, stride, padding = map(ints, (self.kernel, self.stride, self.padding))
        sizes = b.of(self.src)
        lead = len(sizes) - len(kernel)
        count = const(1)
        for c, size, k, s, p in zip(coords[lead:], sizes[lead:], kernel, stride, padding, strict=True):
            if not p and self.ceil is None:
                count = mul(count, k)
                continue
            first = sub(mul(c, s), p)
            end = minimum(add(first, k), add(size, p))
            if self.count_padding is None:
                first, end = maximum(first, 0), minimum(end, size)
            count = mul(count, sub(end, first))
        return divide(total, b.index(count, element))


@irdl_op_definition
class PoolPositionOp(Window):
    """result[p] = where in the pooled dims, counted in row-major order, the window has its largest element `pooled`[p]:
    the first place of it, or the last NaN; i64.  Source: torch.nn.functional.max_pool2d (indices)."""

    name = "dlcb.graph.pool_position"
    src = operand_def(TensorType)
    pooled = operand_def(TensorType)

    @property
    def initial(self) -> float | int:
        return lowest(type_of(self.src).element)

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        extents, nowhere = ints(self.kernel), integer_limits(i64)[1]
        source = type_of(self.src).element
        largest = _rounded(b, b.read(self.pooled, coords), source)
        outside = b.constant(self.initial, compute_type(source))
        whole = b.of(self.src)[len(coords) - len(extents) :]

        def element_and_place(position: Coords) -> tuple[Any, Any, list[Guard]]:
            inner, guard = self.place(b, coords, position)
            number = const(0)
            for at, size in zip(inner[-len(whole) :], whole, strict=True):
                number = add(mul(number, size), at)
            x = _rounded(b, b.read(self.src, inner, guard, outside), source)
            return x, b.index(number, i64), guard

        def first(position: Coords) -> Any:
            x, place, guard = element_and_place(position)
            found = b.eq(x, largest)
            return b.select(b.and_(found, b.holds(guard)) if guard else found, place, b.constant(nowhere, i64))

        def last_nan(position: Coords) -> Any:
            x, place, _ = element_and_place(position)
            return b.select(b.isnan(x), place, b.constant(-1, i64))

        at = b.loop("minimum", extents, first, nowhere, i64)
        if not is_float(source):
            return at
        nan = b.loop("maximum", extents, last_nan, -1, i64)
        return b.select(b.lt(nan, 0), at, nan)


def _rounded(b: ElementBuilder, value: Any, element: Attribute) -> Any:
    """As a tensor of this element type holds it, in the compute type."""
    return b.cast(b.cast(value, element), compute_type(element))


OPS: list[type[Operation]] = [MaxPoolOp, AvgPoolOp, PoolPositionOp]
