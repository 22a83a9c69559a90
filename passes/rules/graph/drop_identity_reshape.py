"""reshape(x, the shape of x) -> x.  Sound: every element stays.  Not worse: one op fewer.  Source: torch.reshape."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import ReshapeOp
from dlcb.passes.rule import Rule


class DropIdentityReshape(Rule):
    level = "graph"
    roots = (ReshapeOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[n, 3, m]>} : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    refused: ClassVar = {
        "the shape changes": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %a = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[n, d]>} : (tensor<[n, 3, m], f32>) -> tensor<[n, d], f32>
        dlcb.graph.return %a : !dlcb.graph.tensor<[n, d], f32> }"""
    }

    def why_not(self, op: ReshapeOp) -> str | None:
        return None if op.res.type == op.src.type else "the shape changes"

    def rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[0]])
