"""concat(x) -> x.  Sound: the one part is the whole.  Not worse: one op fewer.  Source: torch.cat."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import ConcatOp
from dlcb.passes.rule import Rule


class DropSingleConcat(Rule):
    level = "graph"
    roots = (ConcatOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.concat %x {axis = #builtin.int<0>} : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    refused: ClassVar = {
        "several parts": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.concat %x, %x {axis = #builtin.int<1>} : (tensor<[n, 3, m], f32>, tensor<[n, 3, m], f32>) -> tensor<[n, 6, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 6, m], f32> }""",
        "the element type changes": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.concat %x {axis = #builtin.int<0>} : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f64>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f64> }""",
    }

    def why_not(self, op: ConcatOp) -> str | None:
        if len(op.operands) != 1:
            return "several parts"
        return None if op.res.type == op.operands[0].type else "the element type changes"

    def rewrite(self, op: ConcatOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[0]])
