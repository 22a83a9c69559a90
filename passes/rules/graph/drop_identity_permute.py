"""permute(x, 0 1 2 ..) -> x.  Sound: every element stays.  Not worse: one op fewer.  Source: torch.permute."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import PermuteOp
from dlcb.passes.rule import Rule


class DropIdentityPermute(Rule):
    level = "graph"
    roots = (PermuteOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.permute %x {order = [#builtin.int<0>, #builtin.int<1>, #builtin.int<2>]} : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    refused: ClassVar = {
        "it moves dims": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %a = dlcb.graph.permute %x {order = [#builtin.int<2>, #builtin.int<0>, #builtin.int<1>]} : (tensor<[n, 3, m], f32>) -> tensor<[m, n, 3], f32>
        dlcb.graph.return %a : !dlcb.graph.tensor<[m, n, 3], f32> }"""
    }

    def why_not(self, op: PermuteOp) -> str | None:
        return None if op.axes == tuple(range(len(op.axes))) else "it moves dims"

    def rewrite(self, op: PermuteOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[0]])
