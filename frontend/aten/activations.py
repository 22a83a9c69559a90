"""Activations: formulas computed in the compute type, and the few that are ops."""

from __future__ import annotations

from xdsl.ir import SSAValue

from dlcb.dialects.graph.elementwise import GeluOp, GeluTanhOp, ReluOp, SigmoidOp, SiluOp
from dlcb.dialects.shape.expr import floordiv
from dlcb.dialects.types import compute_type, i1
from dlcb.frontend.aten.arithmetic import in_range, rank
from dlcb.frontend.aten.builder import Builder, Number, Operand
from dlcb.frontend.aten.choices import clamp
from dlcb.frontend.aten.table import Table

TABLE = Table()


def _against(i: Builder, name: str, value: SSAValue, bound: Number) -> SSAValue:
    """A comparison with a number that is not rounded to half precision."""
    return i.call(name, value, i.number(bound, compute_type(i.like(value))), element=i1)


@TABLE.handles("relu")
def relu(i: Builder, self: SSAValue) -> SSAValue:
    if i.element == i1:
        i.unsupported("relu of truth values")
    return i.apply(ReluOp, self)


@TABLE.handles("sigmoid")
def sigmoid(i: Builder, self: SSAValue) -> SSAValue:
    return i.apply(SigmoidOp, self)


@TABLE.handles("silu")
def silu(i: Builder, self: SSAValue) -> SSAValue:
    return i.apply(SiluOp, self)


@TABLE.handles("gelu")
def gelu(i: Builder, self: SSAValue, *, approximate: str = "none") -> SSAValue:
    return i.apply(GeluTanhOp if approximate == "tanh" else GeluOp, self)


@TABLE.handles("relu6")
def relu6(i: Builder, self: SSAValue) -> SSAValue:
    return clamp(i, self, 0, 6)


@TABLE.handles("hardtanh")
def hardtanh(i: Builder, self: SSAValue, min_val: float = -1.0, max_val: float = 1.0) -> SSAValue:
    return clamp(i, self, min_val, max_val)


@TABLE.handles("threshold")
def threshold(i: Builder, self: SSAValue, threshold: Number, value: Number) -> SSAValue:
    for number in (threshold, value):
        in_range(i, number, i.dtypes[0])
    return i.where(i.call("le", self, i.number(threshold, i.like(self)), element=i1), value, self)


def _leaky(i: Builder, self: SSAValue, slope: Operand) -> SSAValue:
    return i.where(_against(i, "gt", self, 0), self, i.call("mul", self, slope))


@TABLE.handles("leaky_relu")
def leaky_relu(i: Builder, self: SSAValue, negative_slope: float = 0.01) -> SSAValue:
    return _leaky(i, self, negative_slope)


@TABLE.handles("rrelu")
def rrelu(
    i: Builder, self: SSAValue, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> SSAValue:
    if training:
        i.unsupported("random numbers; call .eval()")
    return _leaky(i, self, (lower + upper) / 2)


@TABLE.handles("prelu")
def prelu(i: Builder, self: SSAValue, weight: SSAValue) -> SSAValue:
    """One slope for all, or one for each size of dim 1."""
    if rank(self) < 2:
        sizes = i.sizes(weight)
        if sizes:
            i.require("eq", sizes[0], 1, "a slope for each channel of a tensor without channels")
            weight = i.without_axis(weight, 0)
    elif rank(weight) == 1:
        weight = i.reshape(weight, (*i.sizes(weight), *[1] * (rank(self) - 2)))
    return _leaky(i, self, weight)


@TABLE.handles("_prelu_kernel")
def prelu_kernel(i: Builder, self: SSAValue, weight: SSAValue) -> SSAValue:
    return _leaky(i, self, weight)


@TABLE.handles("elu")
def elu(i: Builder, self: SSAValue, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> SSAValue:
    wide = compute_type(i.element)
    inner = i.call("expm1", i.call("mul", self, input_scale, element=wide), element=wide)
    negative = i.call("mul", inner, alpha * scale, element=wide)
    return i.where(_against(i, "gt", self, 0), i.call("mul", self, scale, element=wide), negative)


@TABLE.handles("selu")
def selu(i: Builder, self: SSAValue) -> SSAValue:
    return elu(i, self, 1.6732632423543772, 1.0507009873554805)


@TABLE.handles("celu")
def celu(i: Builder, self: SSAValue, alpha: float = 1.0) -> SSAValue:
    return elu(i, self, alpha, 1.0, 1.0 / alpha)


def _hard_gate(i: Builder, self: SSAValue) -> SSAValue:
    """min(max(x + 3, 0), 6)."""
    wide = compute_type(i.element)
    shifted = i.call("add", self, 3.0, element=wide)
    return i.call("minimum", i.call("maximum", shifted, 0.0, element=wide), 6.0, element=wide)


@TABLE.handles("hardsigmoid")
def hardsigmoid(i: Builder, self: SSAValue) -> SSAValue:
    return i.call("div", _hard_gate(i, self), 6.0)


@TABLE.handles("hardswish")
def hardswish(i: Builder, self: SSAValue) -> SSAValue:
    wide = compute_type(i.element)
    return i.call("div", i.call("mul", self, _hard_gate(i, self), element=wide), 6.0)


@TABLE.handles("hardshrink")
def hardshrink(i: Builder, self: SSAValue, lambd: float = 0.5) -> SSAValue:
    inside = i.call("and", _against(i, "ge", self, -lambd), _against(i, "le", self, lambd), element=i1)
    return i.where(inside, 0.0, self)


@TABLE.handles("softshrink")
def softshrink(i: Builder, self: SSAValue, lambd: float = 0.5) -> SSAValue:
    """Between the bounds 0 of the element's sign, or NaN."""
    wide = compute_type(i.element)
    above = i.call("sub", self, lambd, element=wide)
    below = i.where(_against(i, "lt", self, -lambd), i.call("add", self, lambd, element=wide), i.call("mul", self, 0.0))
    return i.where(_against(i, "gt", self, lambd), above, below)


@TABLE.handles("softplus")
def softplus(i: Builder, self: SSAValue, beta: float = 1.0, threshold: float = 20.0) -> SSAValue:
    wide = compute_type(i.element)
    x = i.call("mul", self, beta, element=wide)
    soft = i.call("div", i.call("log1p", i.call("exp", x, element=wide), element=wide), beta, element=wide)
    return i.where(i.call("gt", x, threshold, element=i1), self, soft)


@TABLE.handles("mish")
def mish(i: Builder, self: SSAValue) -> SSAValue:
    wide = compute_type(i.element)
    soft = i.call("log1p", i.call("exp", self, element=wide), element=wide)
    gate = i.call("tanh", i.where(_against(i, "gt", self, 20.0), self, soft, element=wide), element=wide)
    return i.call("mul", self, gate)


@TABLE.handles("log_sigmoid")
def log_sigmoid(i: Builder, self: SSAValue) -> SSAValue:
    wide = compute_type(i.element)
    far = i.call("exp", i.call("neg", i.call("abs", self, element=wide), element=wide), element=wide)
    return i.call("sub", i.call("minimum", self, 0.0, element=wide), i.call("log1p", far, element=wide))


@TABLE.handles("glu")
def glu(i: Builder, self: SSAValue, dim: int = -1) -> SSAValue:
    axis = i.axis(dim, rank(self))
    size = i.sizes(self)[axis]
    i.require("divides", 2, size, "the halves of an odd size")
    half = floordiv(size, 2)
    first, second = i.slice(self, axis, 0, half), i.slice(self, axis, half, half)
    return i.call("mul", first, i.apply(SigmoidOp, second, element=compute_type(i.element)))
