"""where(c, x, x) -> x.  Sound: both branches are the same element.  Not worse: one op fewer.  Source: torch.where."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.elementwise import WhereOp
from dlcb.passes.rule import Rule


class DropEqualWhere(Rule):
    level = "graph"
    roots = (WhereOp,)
    before = """dlcb.graph.func @f(%c: tensor<[n], i1> input "c", %x: tensor<[n], f32> input "x") {
        %r = dlcb.graph.where %c, %x, %x : (tensor<[n], i1>, tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n], f32> }"""
    after = """dlcb.graph.func @f(%c: tensor<[n], i1> input "c", %x: tensor<[n], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n], f32> }"""
    refused: ClassVar = {
        "the branches differ": before.replace(
            "%c: tensor<[n], i1>", '%y: tensor<[n], f32> input "y", %c: tensor<[n], i1>'
        ).replace("%x, %x", "%x, %y"),
        "the type changes": before.replace("-> tensor<[n], f32>", "-> tensor<[n], f64>").replace(
            "%r : !dlcb.graph.tensor<[n], f32>", "%r : !dlcb.graph.tensor<[n], f64>"
        ),
    }

    def why_not(self, op: WhereOp) -> str | None:
        _, lhs, rhs = op.operands
        if lhs is not rhs:
            return "the branches differ"
        return None if lhs.type == op.results[0].type else "the type changes"

    def rewrite(self, op: WhereOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[1]])
