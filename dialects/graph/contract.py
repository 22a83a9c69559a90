"""Contractions that library routines compute: matrix products, convolutions, attention."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.graph.base import Coords, GraphOp, Guard, ShapeScope
from dlcb.dialects.graph.types import TensorType, type_of
from dlcb.dialects.graph.window import ints, window_size
from dlcb.dialects.shape.expr import Expr, add, const, floordiv, mul, sub
from dlcb.dialects.types import compute_type


class Contract(GraphOp):
    """Operands: two or three tensors and an optional last one (bias or mask)."""

    FAMILY: ClassVar[str] = "contract"
    args = var_operand_def(TensorType)
    res = result_def(TensorType)
    traits = traits_def(Pure())
    REQUIRED: ClassVar[int]

    @property
    def extra(self) -> SSAValue | None:
        return self.operands[self.REQUIRED] if len(self.operands) > self.REQUIRED else None

    def verify_(self) -> None:
        if len(self.operands) not in (self.REQUIRED, self.REQUIRED + 1):
            raise VerifyException(f"{self.name}: {len(self.operands)} operands, expected {self.REQUIRED} or one more")
        super().verify_()


@irdl_op_definition
class MatmulOp(Contract):
    """result[.., m, n] = Σ_k lhs[.., m, k] · rhs[.., k, n] (+ bias[n]).  Leading dims are equal; either operand may lack them.  Source: torch.matmul, mm, bmm, addmm, linear."""

    name = "dlcb.graph.matmul"
    LIBRARY: ClassVar[str | None] = "matmul"
    REQUIRED: ClassVar[int] = 2

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        lhs, rhs = scope.of(self.operands[0]), scope.of(self.operands[1])
        if len(lhs) < 2 or len(rhs) < 2:
            raise VerifyException(f"{self.name}: operands of rank {len(lhs)} and {len(rhs)}, expected at least 2")
        if lhs[-1] is not rhs[-2]:
            scope.require("eq", lhs[-1], rhs[-2], f"{self.title}: inner sizes differ")
        lead = list(lhs[:-2] or rhs[:-2])
        if lhs[:-2] and rhs[:-2]:
            if len(lhs) != len(rhs):
                raise VerifyException(f"{self.name}: operands of rank {len(lhs)} and {len(rhs)}")
            for i, (a, c) in enumerate(zip(lhs[:-2], rhs[:-2], strict=True)):
                if a is not c:
                    scope.require("eq", a, c, f"{self.title}: sizes of dim {i} differ")
                    lead[i] = c if c.is_const else a
        if self.extra is not None:
            (n,) = scope.of(self.extra)
            if n is not rhs[-1]:
                scope.require("eq", n, rhs[-1], f"{self.title}: size of the bias")
        return ((*lead, lhs[-2], rhs[-1]),)

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        lhs, rhs = self.operands[:2]
        wanted = compute_type(self.result_element)
        lead, m, n = coords[:-2], coords[-2], coords[-1]
        inner = b.of(lhs)[-1]
        a_lead = lead if type_of(lhs).rank > 2 else ()
        c_lead = lead if type_of(rhs).rank > 2 else ()

        def body(row: Coords) -> Any:
            x = b.cast(b.read(lhs, (*a_lead, m, row[0])), wanted)
            return b.mul(x, b.cast(b.read(rhs, (*c_lead, row[0], n)), wanted))

        total = b.reduce("add", (inner,), (0,), body, 0, wanted)
        return total if self.extra is None else b.add(total, b.cast(b.read(self.extra, (n,)), wanted))


@irdl_op_definition
class ConvolutionOp(Contract):
    """result[n, o, p..] = Σ_{c, k..} x[n, c, p·stride + k·dilation - padding] · w[o, c, k..] (+ bias[o]), in `groups`.

    `transposed` scatters instead: x[n, c, q] reaches result[q·stride + k·dilation - padding], w is [c, o, k..]; `output_padding` is added to the result's size.  Source: torch.convolution."""

    name = "dlcb.graph.convolution"
    LIBRARY: ClassVar[str | None] = "convolution"
    REQUIRED: ClassVar[int] = 2
    stride = prop_def(ArrayAttr[IntAttr])
    padding = prop_def(ArrayAttr[IntAttr])
    dilation = prop_def(ArrayAttr[IntAttr])
    groups = prop_def(IntAttr)
    transposed = opt_prop_def(UnitAttr)
    output_padding = opt_prop_def(ArrayAttr[IntAttr])

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        x, w = scope.of(self.operands[0]), scope.of(self.operands[1])
        groups = self.groups.data
        if len(x) != len(w) or len(x) != len(self.stride.data) + 2:
            raise VerifyException(f"{self.name}: input of rank {len(x)}, weight of rank {len(w)}")
        out = w[0] if self.transposed is None else mul(w[1], groups)
        channels = mul(w[1], groups) if self.transposed is None else w[0]
        if x[1] is not channels:
            scope.require("eq", x[1], channels, f"{self.title}: input channels differ")
        if self.extra is not None:
            (size,) = scope.of(self.extra)
            if size is not out:
                scope.require("eq", size, out, f"{self.title}: size of the bias")
        return ((x[0], out, *self._spatial(x[2:], w[2:], scope)),)

    def _spatial(self, x: tuple[Expr, ...], w: tuple[Expr, ...], scope: ShapeScope) -> list[Expr]:
        sizes: list[Expr] = []
        extra = ints(self.output_padding) if self.output_padding is not None else (0,) * len(x)
        axes = zip(x, w, ints(self.stride), ints(self.padding), ints(self.dilation), extra, strict=True)
        for size, k, s, p, d, e in axes:
            if not k.is_const:
                raise VerifyException(f"{self.name}: the kernel's size {k} is not a literal")
            if self.transposed is None:
                sizes.append(window_size(size, k.value, s, p, d, False))
            else:
                sizes.append(add(mul(sub(size, 1), s), d * (k.value - 1) - 2 * p + e + 1))
            scope.require("le", const(1), sizes[-1], f"{self.title}: the kernel is larger than the input")
        return sizes

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        wanted = compute_type(self.result_element)
        x, w = self.operands[:2]
        channels, *kernel = b.of(w)[1:]
        outputs_a_group = floordiv(b.of(w)[0], self.groups.data)
        group = floordiv(coords[1], outputs_a_group)

        def body(row: Coords) -> Any:
            inner: list[Expr] = []
            guard: list[Guard] = []
            axes = zip(coords[2:], row[1:], b.of(x)[2:], ints(self.stride), ints(self.padding), ints(self.dilation), strict=True)
            for c, k, size, s, p, d in axes:
                at = sub(add(mul(c, s), mul(k, d)), p)
                inner.append(at)
                if p:
                    guard += [("le", const(0), at), ("lt", at, size)]
            channel = add(mul(group, channels), row[0])
            value = b.read(x, (coords[0], channel, *inner), guard, b.constant(0, wanted))
            return b.mul(b.cast(value, wanted), b.cast(b.read(w, (coords[1], *row)), wanted))

        sizes = (channels, *kernel)
        total = b.reduce("add", sizes, tuple(range(len(sizes))), body, 0, wanted)
        return total if self.extra is None else b.add(total, b.cast(b.read(self.extra, (coords[1],)), wanted))


@irdl_op_definition
class AttentionOp(Contract):
    """result = softmax(q·kᵀ·scale + mask)·v over [batch, heads, length, width]; mask bool (true: attend) or float, broadcasting.

    `causal`: position i attends to positions ≤ i. k and v may have fewer heads that divide q's (`grouped`).  Source: torch.nn.functional.scaled_dot_product_attention."""

    name = "dlcb.graph.attention"
    LIBRARY: ClassVar[str | None] = "attention"
    REQUIRED: ClassVar[int] = 3
    scale = prop_def(FloatAttr)
    causal = opt_prop_def(UnitAttr)
    grouped = opt_prop_def(UnitAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        q, k, v = (scope.of(o) for o in self.operands[:3])
        pairs = [(q[-1], k[-1], "width of queries and keys"), (k[-2], v[-2], "length of keys and values")]
        pairs += [(k[i], v[i], f"dim {i} of keys and values") for i in range(len(k) - 2)]
        grouped = self.grouped is not None
        pairs += [(q[i], k[i], f"dim {i} of queries and keys") for i in range(len(q) - (3 if grouped else 2))]
        for a, c, what in pairs:
            if a is not c:
                scope.require("eq", a, c, f"{self.title}: {what} differ")
        if self.extra is not None:
            scores = (*q[:-1], k[-2])
            for have, want in zip(reversed(scope.of(self.extra)), reversed(scores), strict=False):
                if have is not want and not (have.is_const and have.value == 1):
                    scope.require("expandable", have, want, f"{self.title}: size of the mask")
        return ((*q[:-1], v[-1]),)


OPS: list[type[Operation]] = [MatmulOp, ConvolutionOp, AttentionOp]
