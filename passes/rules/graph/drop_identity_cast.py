"""cast(x, the type of x) -> x.  Sound: every element stays.  Not worse: one op fewer.  Source: torch.Tensor.to."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.elementwise import CastOp
from dlcb.passes.rule import Rule


class DropIdentityCast(Rule):
    level = "graph"
    roots = (CastOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.cast %x : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    refused: ClassVar = {
        "the type changes": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.cast %x : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f16>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f16> }"""
    }

    def why_not(self, op: CastOp) -> str | None:
        return None if op.results[0].type == op.operands[0].type else "the type changes"

    def rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[0]])
