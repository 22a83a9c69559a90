"""layer_norm(x) -> (x - mean) · rsqrt(mean (x - mean)² + eps) · weight + bias.  Sound: its definition.  Statistics in f32 for half precision, as eager does; two passes, so no cancellation.  Source: torch.nn.functional.layer_norm."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import LayerNormOp
from dlcb.dialects.graph.reduce import MeanOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import compute_type
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule

_HEAD = """dlcb.graph.func @f(%x: tensor<[n, 8], f16> input "x", %w: tensor<[8], f16> weight "w", %b: tensor<[8], f16> weight "b") {"""
_TAIL = "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8], f16> }"


class DecomposeLayerNorm(Rule):
    level = "graph"
    roots = (LayerNormOp,)
    before = f"""{_HEAD}
        %r = dlcb.graph.layer_norm %x, %w, %b {{axes = #builtin.int<1>, eps = 1.0e-05 : f64}} : (tensor<[n, 8], f16>, tensor<[8], f16>, tensor<[8], f16>) -> tensor<[n, 8], f16>
        {_TAIL}"""
    after = f"""{_HEAD}
        %m = dlcb.graph.mean %x {{axes = [#builtin.int<1>], keep}} : (tensor<[n, 8], f16>) -> tensor<[n, 1], f32>
        %d = dlcb.graph.sub %x, %m : (tensor<[n, 8], f16>, tensor<[n, 1], f32>) -> tensor<[n, 8], f32>
        %q = dlcb.graph.mul %d, %d : (tensor<[n, 8], f32>, tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
        %v = dlcb.graph.mean %q {{axes = [#builtin.int<1>], keep}} : (tensor<[n, 8], f32>) -> tensor<[n, 1], f32>
        %e = dlcb.graph.full {{shape = #dlcb.graph.dims<[]>, value = 1.0e-05 : f64}} : () -> tensor<[], f32>
        %a = dlcb.graph.add %v, %e : (tensor<[n, 1], f32>, tensor<[], f32>) -> tensor<[n, 1], f32>
        %s = dlcb.graph.rsqrt %a : (tensor<[n, 1], f32>) -> tensor<[n, 1], f32>
        %p = dlcb.graph.mul %d, %s : (tensor<[n, 8], f32>, tensor<[n, 1], f32>) -> tensor<[n, 8], f32>
        %t = dlcb.graph.mul %p, %w : (tensor<[n, 8], f32>, tensor<[8], f16>) -> tensor<[n, 8], f32>
        %r = dlcb.graph.add %t, %b : (tensor<[n, 8], f32>, tensor<[8], f16>) -> tensor<[n, 8], f16>
        {_TAIL}"""

    def why_not(self, op: LayerNormOp) -> str | None:
        return None

    def rewrite(self, op: LayerNormOp, rewriter: PatternRewriter) -> None:
        b, rank = GraphBuilder(), type_of(op.operands[0]).rank
        axes = tuple(range(rank - op.axes.data, rank))
        narrow = op.result_element
        wide = compute_type(narrow)
        centred = b.call("sub", op.operands[0], b.reduce(MeanOp, op.operands[0], axes, wide), element=wide)
        variance = b.reduce(MeanOp, b.call("mul", centred, centred, element=wide), axes, wide)
        lifted = b.call("add", variance, b.constant(op.eps.value.data, wide), element=wide)
        affine = list(zip(("mul", "add"), op.operands[1:], strict=False))
        inverse = b.call("rsqrt", lifted, element=wide)
        value = b.call("mul", centred, inverse, element=wide if affine else narrow)
        for i, (name, operand) in enumerate(affine):
            value = b.call(name, value, operand, element=narrow if i == len(affine) - 1 else wide)
        rewriter.replace(op, b.ops, [value])
