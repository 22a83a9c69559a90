"""reshape(reshape(x, a), b) -> reshape(x, b).  Sound: both keep the row-major order.  Not worse: one op fewer.  Source: torch.reshape."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import ReshapeOp
from dlcb.passes.rule import Rule


class MergeReshapes(Rule):
    level = "graph"
    roots = (ReshapeOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %a = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[n, d]>} : (tensor<[n, 3, m], f32>) -> tensor<[n, d], f32>
        %r = dlcb.graph.reshape %a {shape = #dlcb.graph.dims<[n, m, 3]>} : (tensor<[n, d], f32>) -> tensor<[n, m, 3], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, m, 3], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[n, m, 3]>} : (tensor<[n, 3, m], f32>) -> tensor<[n, m, 3], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, m, 3], f32> }"""
    refused: ClassVar = {"the source is no reshape": after}

    def why_not(self, op: ReshapeOp) -> str | None:
        return None if isinstance(op.src.owner, ReshapeOp) else "the source is no reshape"

    def rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        inner = op.src.owner
        assert isinstance(inner, ReshapeOp)
        rewriter.replace(op, [ReshapeOp.make([inner.src], [op.res.type], shape=op.shape)])
