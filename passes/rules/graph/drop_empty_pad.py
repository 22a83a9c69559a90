"""pad(x, nothing) -> x.  Sound: every element stays.  Not worse: one op fewer.  Source: torch.nn.functional.pad."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import PadOp
from dlcb.passes.rule import Rule


class DropEmptyPad(Rule):
    level = "graph"
    roots = (PadOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.pad %x {low = #dlcb.graph.dims<[0, 0, 0]>, high = #dlcb.graph.dims<[0, 0, 0]>, value = 0.0 : f64} : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    refused: ClassVar = {
        "it adds elements": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.pad %x {low = #dlcb.graph.dims<[0, 0, 0]>, high = #dlcb.graph.dims<[0, 1, 0]>, value = 0.0 : f64} : (tensor<[n, 3, m], f32>) -> tensor<[n, 4, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 4, m], f32> }"""
    }

    def why_not(self, op: PadOp) -> str | None:
        return "it adds elements" if any(op.low.dims) or any(op.high.dims) else None

    def rewrite(self, op: PadOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[0]])
