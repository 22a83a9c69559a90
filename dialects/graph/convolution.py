"""Convolutions: library routines compute them, but for those that sum over no channels."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.graph.base import Coords, ElementBuilder, Guard, ShapeScope, Sizes
from dlcb.dialects.graph.contract import Contract
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.window import ints, window_reach, window_size
from dlcb.dialects.shape.expr import Expr, add, const, eq, floordiv, le, mod, mul, sub
from dlcb.dialects.types import compute_type


class Convolution(Contract):
    """Operands x, w and what the op says; all in `groups`, of which there are as many as the channels of x and w say
    where it is 0 (`transposed` has no such form)."""

    stride = prop_def(ArrayAttr[IntAttr])
    padding = prop_def(ArrayAttr[IntAttr])
    dilation = prop_def(ArrayAttr[IntAttr])
    groups = prop_def(IntAttr)
    transposed = opt_prop_def(UnitAttr)
    output_padding = opt_prop_def(ArrayAttr[IntAttr])

    @property
    def bias(self) -> SSAValue | None:
        return self.extra

    @property
    def is_of_points(self) -> bool:
        """Is it a product of matrices, a row for each place?"""
        return (
            type_of(self.operands[1]).dims[2:] == (1,) * len(self.stride)
            and {*ints(self.stride), *ints(self.dilation), self.groups.data} == {1}
            and not any(ints(self.padding))
            and self.transposed is None
        )

    def group_count(self, sizes: Sizes) -> Expr:
        given = self.groups.data
        return const(given) if given else floordiv(sizes.of(self.operands[0])[1], sizes.of(self.operands[1])[1])

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        x, w = scope.of(self.operands[0]), scope.of(self.operands[1])
        groups = self.group_count(scope)
        if len(x) != len(w) or len(x) != len(self.stride.data) + 2:
            raise VerifyException(f"{self.name}: input of rank {len(x)}, weight of rank {len(w)}")
        out = w[0] if self.transposed is None else mul(w[1], groups)
        channels = mul(w[1], groups) if self.transposed is None else w[0]
        if x[1] is not channels:
            scope.require("eq", x[1], channels, f"{self.title}: input channels differ")
        for size in w:
            scope.require("le", const(1), size, f"{self.title}: a weight without elements")
        if self.bias is not None:
            (size,) = scope.of(self.bias)
            if size is not out:
                scope.require("eq", size, out, f"{self.title}: size of the bias")
        return ((x[0], out, *self._spatial(x[0], x[2:], w[2:], scope)),)

    def library_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "stride": list(ints(self.stride)),
            "padding": list(ints(self.padding)),
            "dilation": list(ints(self.dilation)),
            "groups": self.groups.data,
        }
        if self.transposed is not None:
            options["transposed"] = True
            if self.output_padding is not None:
                options["output_padding"] = list(ints(self.output_padding))
        return options

    def _spatial(self, batch: Expr, x: tuple[Expr, ...], w: tuple[Expr, ...], scope: ShapeScope) -> list[Expr]:
        """Of an input without elements, at most the batch is 0, as torch has it."""
        sizes: list[Expr] = []
        extra = ints(self.output_padding) if self.output_padding is not None else (0,) * len(x)
        axes = zip(x, w, ints(self.stride), ints(self.padding), ints(self.dilation), extra, strict=True)
        for size, k, s, p, d, e in axes:
            reach = window_reach(k, d)
            if self.transposed is None:
                sizes.append(window_size(size, k, s, p, d, False))
                lhs, rhs, fits_nothing = reach, add(size, 2 * p), le(reach, 2 * p)
            else:
                sizes.append(add(mul(sub(size, 1), s), reach, e - 2 * p))
                lhs, rhs, fits_nothing = const(1), sizes[-1], le(1, add(reach, e - 2 * p - s))
            scope.require("le", lhs, rhs, f"{self.title}: the kernel is larger than the input")
            if fits_nothing.value != 0:
                scope.require("any_of", eq(batch, 0), le(1, size), f"{self.title}: an input without elements")
        return sizes

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        wanted = compute_type(self.result_element)
        x, w = self.operands[:2]
        groups = self.group_count(b)
        channels = b.of(w)[1] if self.transposed is None else floordiv(b.of(w)[0], groups)
        outputs = floordiv(b.of(w)[0], groups) if self.transposed is None else b.of(w)[1]
        group = floordiv(coords[1], outputs)

        def body(row: Coords) -> Any:
            channel = add(mul(group, channels), row[0])
            output = sub(coords[1], mul(group, outputs))
            tap = (coords[1], *row) if self.transposed is None else (channel, output, *row[1:])
            at, guard = self._source(b, coords[2:], row[1:])
            value = b.read(x, (coords[0], channel, *at), guard, b.constant(0, wanted))
            return b.call("mul", b.cast(value, wanted), b.cast(b.read(w, tap), wanted))

        sizes = (channels, *b.of(w)[2:])
        total = b.reduce("add", sizes, tuple(range(len(sizes))), body, 0, wanted)
        return total if self.bias is None else b.call("add", total, b.cast(b.read(self.bias, (coords[1],)), wanted))

    def _source(self, sizes: Sizes, coords: Coords, kernel: Coords) -> tuple[list[Expr], list[Guard]]:
        """Which spatial coordinates of x a tap of the kernel needs, and when they are in range."""
        at: list[Expr] = []
        guard: list[Guard] = []
        spatial = sizes.of(self.operands[0])[2:]
        axes = zip(coords, kernel, spatial, ints(self.stride), ints(self.padding), ints(self.dilation), strict=True)
        for c, k, size, s, p, d in axes:
            if self.transposed is None:
                at.append(sub(add(mul(c, s), mul(k, d)), p))
                reach = p > 0
            else:
                moved = sub(add(c, p), mul(k, d))
                at.append(floordiv(moved, s))
                guard.append(("eq", mod(moved, const(s)), const(0)))
                reach = True
            if reach:
                guard += [("le", const(0), at[-1]), ("lt", at[-1], size)]
        return at, guard


@irdl_op_definition
class ConvolutionOp(Convolution):
    """result[n, o, p..] = Σ_{c, k..} x[n, c, p·stride + k·dilation - padding] · w[o, c, k..] (+ bias[o]).

    `transposed` scatters instead: x[n, c, q] reaches result[q·stride + k·dilation - padding], w is [c, o, k..];
    `output_padding` is added to the result's size.  Source: torch.convolution."""

    name = "dlcb.graph.convolution"
    LIBRARY: ClassVar[str | None] = "convolution"
    REQUIRED: ClassVar[int] = 2


@irdl_op_definition
class ConvolutionReluOp(Convolution):
    """result = max(convolution(x, w, bias) + residual, 0), by one library call.

    Operands x, w, bias, and the residual (of the result's sizes) if there is one.
    Source: torch.relu of a convolution, or of its sum with another tensor."""

    name = "dlcb.graph.convolution_relu"
    LIBRARY: ClassVar[str | None] = "convolution_relu"
    REQUIRED: ClassVar[int] = 3

    @property
    def bias(self) -> SSAValue | None:
        return self.operands[2]

    @property
    def residual(self) -> SSAValue | None:
        return self.extra

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        (sizes,) = super().infer(scope)
        if self.residual is not None:
            for have, want in zip(scope.of(self.residual), sizes, strict=True):
                if have is not want:
                    scope.require("eq", have, want, f"{self.title}: size of the residual")
        return (sizes,)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        total = super().element(b, coords)
        if self.residual is not None:
            total = b.call("add", total, b.cast(b.read(self.residual, coords), b.type_of(total)))
        return b.call("maximum", total, b.constant(0, b.type_of(total)))


@irdl_op_definition
class DepthwiseOp(Convolution):
    """A convolution that sums over no channels, with windows of the sizes `kernel`: result[n, o, p..] = Σ_{k..} x[n, o,
    p·stride + k·dilation - padding] · w[o, 0, k..], by a generated kernel.

    Source: torch.convolution with as many groups as channels."""

    name = "dlcb.graph.depthwise"
    FAMILY: ClassVar[str] = "window"
    GUARDED: ClassVar[bool] = True
    REQUIRED: ClassVar[int] = 2
    kernel = prop_def(ArrayAttr[IntAttr])

    @property
    def block(self) -> int:
        """How many neighbours along the last dim a thread computes: of what it reads for one, it needs most for the
        next; more so where lines of the kernel are long."""
        return 8 if ints(self.kernel)[-1] >= 7 else 4

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.operands[1])
        if len(self.operands) != self.REQUIRED or self.transposed is not None or len(sizes) != len(self.kernel) + 2:
            raise VerifyException(f"{self.name}: a bias, transposed, or a kernel of another rank than the weight")
        for size, wanted in zip(sizes[1:], (1, *ints(self.kernel)), strict=True):
            if size.value != wanted:
                scope.require("eq", size, const(wanted), f"{self.title}: size of the weight")
        return super().infer(scope)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        """The innermost dim of the kernel is written out: neighbouring results share most of what they read there."""
        wanted = compute_type(self.result_element)
        x, w = self.operands[:2]
        *extents, columns = ints(self.kernel)

        def line(position: Coords) -> Any:
            total: Any = None
            for column in range(columns):
                kernel = (*position, const(column))
                at, guard = self._source(b, coords[2:], kernel)
                guard.append(("lt", at[-1], b.of(x)[-1]))
                value = b.cast(b.read(x, (coords[0], coords[1], *at), guard, b.constant(0, wanted)), wanted)
                weight = b.cast(b.read(w, (coords[1], const(0), *kernel)), wanted)
                total = b.call("mul", value, weight) if total is None else b.call("fma", value, weight, total)
            return total

        return b.loop("add", extents, line, 0, wanted)


OPS: list[type[Operation]] = [ConvolutionOp, ConvolutionReluOp, DepthwiseOp]
