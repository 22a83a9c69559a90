"""Elementwise ops: result[p] = f(operands[p]), with broadcasting.

Half precision is computed in f32; it is rounded when it is stored or cast, and where a function with jumps reads it.
Operands of one op may have different float types (a scalar constant keeps the precision torch computes with); they are
computed in the common compute type.
"""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from dlcb.dialects.failure import Failure
from dlcb.dialects.graph.base import (
    Coords,
    ElementBuilder,
    GraphOp,
    Read,
    ShapeScope,
    Sizes,
    broadcast_coords,
    read_rounded,
)
from dlcb.dialects.graph.types import TensorType, dims_of
from dlcb.dialects.scalar import ScalarBuilder
from dlcb.dialects.shape.expr import Expr, broadcast, const
from dlcb.dialects.types import is_float


def broadcast_sizes(op: GraphOp, scope: ShapeScope) -> tuple[Expr, ...]:
    """The sizes of all operands broadcast together, aligned at the last dim."""
    shapes = [scope.of(v) for v in op.operands]
    rank = max(map(len, shapes))
    sizes: list[Expr] = []
    for axis in range(-rank, 0):
        size = const(1)
        for shape in shapes:
            if len(shape) >= -axis:
                size = _broadcast_size(op, size, shape[axis], scope)
        sizes.append(size)
    return tuple(sizes)


def _broadcast_size(op: GraphOp, a: Expr, b: Expr, scope: ShapeScope) -> Expr:
    if a is b:
        return a
    one = const(1)
    if a is one or b is one:
        return b if a is one else a
    scope.require("broadcastable", a, b, f"{op.title}: sizes that do not broadcast")
    if a.is_const:
        return a
    return b if b.is_const else broadcast(a, b)


class Elementwise(GraphOp):
    """result[p] = scalar(operands[p]); sizes by broadcasting."""

    FAMILY: ClassVar[str] = "elementwise"
    AS_STORED: ClassVar[bool] = False
    """Does it read half precision rounded, as the tensors hold it? A function with jumps must, and a cast: what eager
    rounds to 3 has the floor 3, and what it rounds to infinity stays infinite in f32."""
    args = var_operand_def(TensorType)
    res = result_def(TensorType)
    traits = traits_def(Pure())

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        first = dims_of(self.operands[0])
        if all(dims_of(v) == first for v in self.operands):
            return (scope.of(self.operands[0]),)
        return (broadcast_sizes(self, scope),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        result = sizes.of(self.results[0])
        return [Read(i, broadcast_coords(coords, sizes.of(v), result)) for i, v in enumerate(self.operands)]

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        if not self.AS_STORED:
            return super().element(b, coords, result)
        reads = self.reads(coords, b)
        return self.scalar(b, *(read_rounded(b, self.operands[r.operand], r.coords, r.guard) for r in reads))


class Arithmetic(Elementwise):
    """Computed in the compute type of the result."""

    def scalar(self, b: ScalarBuilder, *elements: Any) -> Any:
        wanted = self.compute_element
        return self.formula(b, *(e if b.type_of(e) == wanted else b.cast(e, wanted) for e in elements))

    def formula(self, b: Any, *elements: Any) -> Any:
        return b.call(self.name.rpartition(".")[2], *elements)


class Division(Arithmetic):
    """An integer divided by 0 is a failure, as in eager; a float is not."""

    def failure(self) -> Failure | None:
        if is_float(self.compute_element):
            return None
        return Failure(
            "RuntimeError",
            f"ZeroDivisionError: an integer is divided by 0: {self.name.rpartition('.')[2]}, {self.line}",
        )

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        lhs, rhs = (
            b.cast(read_rounded(b, self.operands[r.operand], r.coords), self.compute_element)
            for r in self.reads(coords, b)
        )
        if not is_float(self.compute_element):
            rhs = b.nonzero(rhs, self)
        return self.formula(b, lhs, rhs)


class Step(Arithmetic):
    """A function with jumps."""

    AS_STORED: ClassVar[bool] = True


class Comparison(Elementwise):
    """A truth value, compared in the common compute type of the operands."""

    AS_STORED: ClassVar[bool] = True

    def scalar(self, b: Any, *elements: Any) -> Any:
        return getattr(b, self.name.rpartition(".")[2] + "_")(*elements)


def _simple(base: type[Elementwise], name: str, doc: str) -> type[Operation]:
    """An op whose element is the scalar function of its own name."""
    class_name = "".join(part.capitalize() for part in name.split("_")) + "Op"
    body = {"name": f"dlcb.graph.{name}", "__doc__": doc, "__module__": __name__}
    return irdl_op_definition(type(class_name, (base,), body))


_BINARY = {
    "add": "lhs + rhs.  Source: torch.add (alpha is multiplied at import).",
    "sub": "lhs - rhs.  Source: torch.sub.",
    "mul": "lhs · rhs.  Source: torch.mul.",
    "div": "lhs / rhs, floats.  Source: torch.div.",
    "pow": "lhs ^ rhs.  Source: torch.pow.",
    "atan2": "the angle of (rhs, lhs).  Source: torch.atan2.",
    "hypot": "√(lhs² + rhs²).  Source: torch.hypot.",
    "copysign": "|lhs| with the sign of rhs.  Source: torch.copysign.",
    "maximum": "the larger; NaN if either is.  Source: torch.maximum.",
    "minimum": "the smaller; NaN if either is.  Source: torch.minimum.",
    "and": "bitwise or logical and.  Source: torch.bitwise_and, torch.logical_and.",
    "or": "bitwise or logical or.  Source: torch.bitwise_or, torch.logical_or.",
    "xor": "bitwise or logical exclusive or.  Source: torch.bitwise_xor, torch.logical_xor.",
    "shl": "lhs · 2^rhs; 0 where rhs is no number of a bit.  Source: torch.bitwise_left_shift.",
    "shr": "⌊lhs / 2^rhs⌋; the sign's bit only where rhs is no number of a bit.  Source: torch.bitwise_right_shift.",
}
_DIVISIONS = {
    "floordiv": "⌊lhs / rhs⌋.  Source: torch.floor_divide, torch.div(rounding_mode='floor').",
    "truncdiv": "lhs / rhs rounded towards zero.  Source: torch.div(rounding_mode='trunc').",
    "mod": "the remainder with the sign of the divisor.  Source: torch.remainder.",
    "fmod": "the remainder with the sign of the dividend.  Source: torch.fmod.",
}
_UNARY = {
    "neg": "-x.  Source: torch.neg.",
    "abs": "|x|.  Source: torch.abs.",
    "exp": "e^x.  Source: torch.exp.",
    "exp2": "2^x.  Source: torch.exp2.",
    "expm1": "e^x - 1.  Source: torch.expm1.",
    "log": "ln x.  Source: torch.log.",
    "log2": "log₂ x.  Source: torch.log2.",
    "log10": "log₁₀ x.  Source: torch.log10.",
    "log1p": "ln(1 + x).  Source: torch.log1p.",
    "sqrt": "√x.  Source: torch.sqrt.",
    "rsqrt": "1/√x.  Source: torch.rsqrt.",
    "sin": "sin x.  Source: torch.sin.",
    "cos": "cos x.  Source: torch.cos.",
    "tan": "tan x.  Source: torch.tan.",
    "asin": "the angle in [-π/2, π/2] whose sine is x.  Source: torch.asin.",
    "acos": "the angle in [0, π] whose cosine is x.  Source: torch.acos.",
    "atan": "the angle in (-π/2, π/2) whose tangent is x.  Source: torch.atan.",
    "sinh": "sinh x.  Source: torch.sinh.",
    "cosh": "cosh x.  Source: torch.cosh.",
    "tanh": "tanh x.  Source: torch.tanh.",
    "asinh": "the number whose sinh is x.  Source: torch.asinh.",
    "acosh": "the number whose cosh is x.  Source: torch.acosh.",
    "atanh": "the number whose tanh is x.  Source: torch.atanh.",
    "erf": "erf x.  Source: torch.erf.",
    "erfc": "1 - erf x.  Source: torch.erfc.",
    "lgamma": "ln |Γ(x)|.  Source: torch.lgamma.",
    "not": "bitwise or logical not.  Source: torch.bitwise_not, torch.logical_not.",
}
_STEPS = {
    "sign": "-1, 0 or 1; 0 for NaN.  Source: torch.sign.",
    "floor": "⌊x⌋.  Source: torch.floor.",
    "ceil": "⌈x⌉.  Source: torch.ceil.",
    "trunc": "x rounded towards zero.  Source: torch.trunc.",
    "round": "x to the nearest integer, ties to even.  Source: torch.round.",
}
_TERNARY = {
    "fma": "a · b + c, rounded once, floats.  Source: torch.add with alpha, torch.addcmul, torch.lerp.",
}
_COMPARISONS = {
    "eq": "lhs = rhs.  Source: torch.eq.",
    "ne": "lhs ≠ rhs.  Source: torch.ne.",
    "lt": "lhs < rhs.  Source: torch.lt.",
    "le": "lhs ≤ rhs.  Source: torch.le.",
    "gt": "lhs > rhs.  Source: torch.gt.",
    "ge": "lhs ≥ rhs.  Source: torch.ge.",
}

SIMPLE: dict[str, type[Operation]] = {
    **{name: _simple(Arithmetic, name, doc) for name, doc in _BINARY.items()},
    **{name: _simple(Division, name, doc) for name, doc in _DIVISIONS.items()},
    **{name: _simple(Arithmetic, name, doc) for name, doc in _UNARY.items()},
    **{name: _simple(Step, name, doc) for name, doc in _STEPS.items()},
    **{name: _simple(Arithmetic, name, doc) for name, doc in _TERNARY.items()},
    **{name: _simple(Comparison, name, doc) for name, doc in _COMPARISONS.items()},
}
"""The ops whose element is the scalar function of the same name, by that name."""


@irdl_op_definition
class CastOp(Elementwise):
    """result[p] = x[p] in the result's element type; a float to a half precision is rounded here, and half precision
    before it becomes another type.  Source: torch.Tensor.to."""

    name = "dlcb.graph.cast"
    AS_STORED: ClassVar[bool] = True

    def scalar(self, b: ScalarBuilder, *elements: Any) -> Any:
        return b.cast(elements[0], self.result_element)


@irdl_op_definition
class WhereOp(Elementwise):
    """result[p] = lhs[p] if condition[p] else rhs[p].  Source: torch.where."""

    name = "dlcb.graph.where"

    def scalar(self, b: Any, *elements: Any) -> Any:
        wanted = self.compute_element
        condition, lhs, rhs = elements
        return b.select(condition, b.cast(lhs, wanted), b.cast(rhs, wanted))


@irdl_op_definition
class IsNanOp(Elementwise):
    """result[p] = x[p] is NaN.  Source: torch.isnan."""

    name = "dlcb.graph.isnan"
    AS_STORED: ClassVar[bool] = True

    def scalar(self, b: Any, *elements: Any) -> Any:
        return b.isnan(elements[0])


@irdl_op_definition
class ReluOp(Arithmetic):
    """result[p] = max(x[p], 0); NaN stays.  Source: torch.relu."""

    name = "dlcb.graph.relu"

    def formula(self, b: Any, *elements: Any) -> Any:
        return b.maximum(elements[0], 0)


@irdl_op_definition
class SigmoidOp(Arithmetic):
    """result[p] = 1 / (1 + e^-x[p]).  Source: torch.sigmoid."""

    name = "dlcb.graph.sigmoid"

    def formula(self, b: Any, *elements: Any) -> Any:
        return _sigmoid(b, elements[0])


@irdl_op_definition
class SiluOp(Arithmetic):
    """result[p] = x[p] / (1 + e^-x[p]).  Source: torch.nn.functional.silu."""

    name = "dlcb.graph.silu"

    def formula(self, b: Any, *elements: Any) -> Any:
        return b.div(elements[0], b.add(b.exp(b.neg(elements[0])), 1.0))


@irdl_op_definition
class GeluOp(Arithmetic):
    """result[p] = x[p]/2 · (1 + erf(x[p]/√2)).  Source: torch.nn.functional.gelu(approximate='none')."""

    name = "dlcb.graph.gelu"

    def formula(self, b: Any, *elements: Any) -> Any:
        x = elements[0]
        return b.mul(b.mul(x, 0.5), b.add(b.erf(b.mul(x, 0.7071067811865476)), 1.0))


@irdl_op_definition
class GeluTanhOp(Arithmetic):
    """result[p] = x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))), x = x[p].
    Source: torch.nn.functional.gelu(approximate='tanh')."""

    name = "dlcb.graph.gelu_tanh"

    def formula(self, b: Any, *elements: Any) -> Any:
        x = elements[0]
        cubic = b.mul(b.mul(b.mul(x, x), x), 0.044715)
        inner = b.mul(b.add(x, cubic), 0.7978845608028654)
        return b.mul(b.mul(x, 0.5), b.add(b.tanh(inner), 1.0))


def _sigmoid(b: Any, x: Any) -> Any:
    return b.div(1.0, b.add(b.exp(b.neg(x)), 1.0))


OPS: list[type[Operation]] = [
    *SIMPLE.values(),
    CastOp,
    WhereOp,
    IsNanOp,
    ReluOp,
    SigmoidOp,
    SiluOp,
    GeluOp,
    GeluTanhOp,
]
