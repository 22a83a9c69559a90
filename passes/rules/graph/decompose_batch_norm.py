"""batch_norm(x) -> (x - mean) · (weight · rsqrt(var + eps)) + bias, each of size [c, 1, ..].  Sound: its definition.  In f32 for half precision, as eager does.
The scale of weights is computed in `@weights`, once and not at each element.  Source: torch.nn.functional.batch_norm in inference."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import BatchNormOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import dims_of, type_of
from dlcb.dialects.types import compute_type
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule
from dlcb.passes.weights import WeightFunction, weight_name, why_not_weights

_X = '%x: tensor<[n, 8, k], f16> input "x"'
_NORM = '%m: tensor<[8], f32> weight "bn.running_mean", %v: tensor<[8], f32> weight "bn.running_var", %g: tensor<[8], f16> weight "bn.weight", %b: tensor<[8], f16> weight "bn.bias"'
_TAIL = "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8, k], f16> }"


class DecomposeBatchNorm(Rule):
    level = "graph"
    roots = (BatchNormOp,)
    before = f"""dlcb.graph.func @main({_X}, {_NORM}) {{
        %r = dlcb.graph.batch_norm %x, %m, %v, %g, %b {{eps = 1.0e-05 : f64}} : (tensor<[n, 8, k], f16>, tensor<[8], f32>, tensor<[8], f32>, tensor<[8], f16>, tensor<[8], f16>) -> tensor<[n, 8, k], f16>
        {_TAIL}"""
    after = f"""dlcb.graph.func @weights(%v: tensor<[8], f32> weight "bn.running_var", %g: tensor<[8], f16> weight "bn.weight") {{
        %e = dlcb.graph.full {{shape = #dlcb.graph.dims<[]>, value = 1.0e-05 : f64}} : () -> tensor<[], f32>
        %a = dlcb.graph.add %v, %e : (tensor<[8], f32>, tensor<[], f32>) -> tensor<[8], f32>
        %i = dlcb.graph.rsqrt %a : (tensor<[8], f32>) -> tensor<[8], f32>
        %s = dlcb.graph.mul %i, %g : (tensor<[8], f32>, tensor<[8], f16>) -> tensor<[8], f32>
        dlcb.graph.return %s : !dlcb.graph.tensor<[8], f32> }}
      dlcb.graph.func @main({_X}, {_NORM}, %s: tensor<[8], f32> weight "bn|scale")
          attributes {{dlcb.derived = {{"bn|scale" = 0 : i64}}}} {{
        %m1 = dlcb.graph.reshape %m {{shape = #dlcb.graph.dims<[8, 1]>}} : (tensor<[8], f32>) -> tensor<[8, 1], f32>
        %d = dlcb.graph.sub %x, %m1 : (tensor<[n, 8, k], f16>, tensor<[8, 1], f32>) -> tensor<[n, 8, k], f32>
        %s1 = dlcb.graph.reshape %s {{shape = #dlcb.graph.dims<[8, 1]>}} : (tensor<[8], f32>) -> tensor<[8, 1], f32>
        %p = dlcb.graph.mul %d, %s1 : (tensor<[n, 8, k], f32>, tensor<[8, 1], f32>) -> tensor<[n, 8, k], f32>
        %b1 = dlcb.graph.reshape %b {{shape = #dlcb.graph.dims<[8, 1]>}} : (tensor<[8], f16>) -> tensor<[8, 1], f16>
        %r = dlcb.graph.add %p, %b1 : (tensor<[n, 8, k], f32>, tensor<[8, 1], f16>) -> tensor<[n, 8, k], f16>
        {_TAIL}"""

    def why_not(self, op: BatchNormOp) -> str | None:
        return None

    def rewrite(self, op: BatchNormOp, rewriter: PatternRewriter) -> None:
        b, narrow = GraphBuilder(), op.result_element
        wide = compute_type(narrow)
        x, mean, variance, *affine = op.operands
        trailing = (1,) * (type_of(x).rank - 2)

        def channel(value: SSAValue) -> SSAValue:
            if not trailing:
                return value
            return b.reshape(value, (*dims_of(value), *trailing), type_of(value).element)

        scale = _scale_of_weights(op, rewriter)
        if scale is None:
            scale = _scale(b, op, variance, affine)
        centred = b.call("sub", x, channel(mean), element=wide)
        value = b.call("mul", centred, channel(scale), element=wide if affine[1:] else narrow)
        if affine[1:]:
            value = b.call("add", value, channel(affine[1]), element=narrow)
        rewriter.replace(op, b.ops, [value])


def _scale(b: GraphBuilder, op: BatchNormOp, variance: SSAValue, affine: Sequence[SSAValue]) -> SSAValue:
    wide = compute_type(op.result_element)
    lifted = b.call("add", variance, b.constant(op.eps.value.data, wide), element=wide)
    scale = b.call("rsqrt", lifted, element=wide)
    return b.call("mul", scale, affine[0], element=wide) if affine else scale


def _scale_of_weights(op: BatchNormOp, rewriter: PatternRewriter) -> SSAValue | None:
    """The scale as a derived weight; None where it is not of weights alone."""
    main, used = op.parent_op(), op.operands[2:4]
    if why_not_weights(main, used) is not None:
        return None
    assert isinstance(main, FuncOp)
    weights, b = WeightFunction.of(main, rewriter), GraphBuilder()
    variance, *affine = weights.arguments(used)
    scale = _scale(b, op, variance, affine)
    weights.append(b.ops)
    (derived,) = weights.derive({f"{weight_name(op.operands[2]).rpartition('.')[0]}|scale": scale})
    return derived
