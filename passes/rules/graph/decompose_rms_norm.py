"""rms_norm(x) -> x · rsqrt(mean x² + eps) · weight.  Sound: its definition.  In f32 for half precision, as eager does.  Source: torch.nn.functional.rms_norm."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import RmsNormOp
from dlcb.dialects.graph.reduce import MeanOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import compute_type
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule

_HEAD = 'dlcb.graph.func @f(%x: tensor<[n, 8], f16> input "x", %w: tensor<[8], f16> weight "w") {'
_TAIL = "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8], f16> }"


class DecomposeRmsNorm(Rule):
    level = "graph"
    roots = (RmsNormOp,)
    before = f"""{_HEAD}
        %r = dlcb.graph.rms_norm %x, %w {{axes = #builtin.int<1>, eps = 1.0e-06 : f64}} : (tensor<[n, 8], f16>, tensor<[8], f16>) -> tensor<[n, 8], f16>
        {_TAIL}"""
    after = f"""{_HEAD}
        %q = dlcb.graph.mul %x, %x : (tensor<[n, 8], f16>, tensor<[n, 8], f16>) -> tensor<[n, 8], f32>
        %v = dlcb.graph.mean %q {{axes = [#builtin.int<1>], keep}} : (tensor<[n, 8], f32>) -> tensor<[n, 1], f32>
        %e = dlcb.graph.full {{shape = #dlcb.graph.dims<[]>, value = 1.0e-06 : f64}} : () -> tensor<[], f32>
        %a = dlcb.graph.add %v, %e : (tensor<[n, 1], f32>, tensor<[], f32>) -> tensor<[n, 1], f32>
        %s = dlcb.graph.rsqrt %a : (tensor<[n, 1], f32>) -> tensor<[n, 1], f32>
        %p = dlcb.graph.mul %x, %s : (tensor<[n, 8], f16>, tensor<[n, 1], f32>) -> tensor<[n, 8], f32>
        %r = dlcb.graph.mul %p, %w : (tensor<[n, 8], f32>, tensor<[8], f16>) -> tensor<[n, 8], f16>
        {_TAIL}"""

    def why_not(self, op: RmsNormOp) -> str | None:
        return None

    def rewrite(self, op: RmsNormOp, rewriter: PatternRewriter) -> None:
        b, x = GraphBuilder(), op.operands[0]
        rank, narrow = type_of(x).rank, op.result_element
        wide = compute_type(narrow)
        squares = b.call("mul", x, x, element=wide)
        mean = b.reduce(MeanOp, squares, tuple(range(rank - op.axes.data, rank)), wide)
        inverse = b.call("rsqrt", b.call("add", mean, b.constant(op.eps.value.data, wide), element=wide), element=wide)
        weights = op.operands[1:]
        value = b.call("mul", x, inverse, element=wide if weights else narrow)
        for weight in weights:
            value = b.call("mul", value, weight, element=narrow)
        rewriter.replace(op, b.ops, [value])
