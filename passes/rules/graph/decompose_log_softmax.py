"""log_softmax(x) -> d - ln Σ e^d, d = x - max.  Sound: the logarithm of the softmax.  In f32 for half precision, as eager does.  Source: torch.log_softmax."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import LogSoftmaxOp
from dlcb.dialects.graph.reduce import AmaxOp, SumOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import compute_type
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule

_HEAD = 'dlcb.graph.func @f(%x: tensor<[n, 8], f16> input "x") {'
_TAIL = "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8], f16> }"


class DecomposeLogSoftmax(Rule):
    level = "graph"
    roots = (LogSoftmaxOp,)
    before = f"""{_HEAD}
        %r = dlcb.graph.log_softmax %x {{axis = #builtin.int<1>}} : (tensor<[n, 8], f16>) -> tensor<[n, 8], f16>
        {_TAIL}"""
    after = f"""{_HEAD}
        %m = dlcb.graph.amax %x {{axes = [#builtin.int<1>], empty, keep}} : (tensor<[n, 8], f16>) -> tensor<[n, 1], f32>
        %d = dlcb.graph.sub %x, %m : (tensor<[n, 8], f16>, tensor<[n, 1], f32>) -> tensor<[n, 8], f32>
        %e = dlcb.graph.exp %d : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
        %s = dlcb.graph.sum %e {{axes = [#builtin.int<1>], keep}} : (tensor<[n, 8], f32>) -> tensor<[n, 1], f32>
        %l = dlcb.graph.log %s : (tensor<[n, 1], f32>) -> tensor<[n, 1], f32>
        %r = dlcb.graph.sub %d, %l : (tensor<[n, 8], f32>, tensor<[n, 1], f32>) -> tensor<[n, 8], f16>
        {_TAIL}"""
    refused: ClassVar = {"nothing to take the largest of": before.replace("[n, 8]", "[n, 0]")}

    def why_not(self, op: LogSoftmaxOp) -> str | None:
        return "nothing to take the largest of" if type_of(op.src).dims[op.axis.data] == 0 else None

    def rewrite(self, op: LogSoftmaxOp, rewriter: PatternRewriter) -> None:
        b, axes = GraphBuilder(), (op.axis.data,)
        wide = compute_type(op.result_element)
        shifted = b.call("sub", op.src, b.reduce(AmaxOp, op.src, axes, wide), element=wide)
        total = b.reduce(SumOp, b.call("exp", shifted, element=wide), axes, wide)
        rewriter.replace(
            op, b.ops, [b.call("sub", shifted, b.call("log", total, element=wide), element=op.result_element)]
        )
