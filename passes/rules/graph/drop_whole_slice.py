"""slice(x, all of it) -> x.  Sound: starts at 0 and keeps each size, so the step is 1 or there is one element.  Not worse: one op fewer.  Source: torch slicing."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import SliceOp
from dlcb.passes.rule import Rule


class DropWholeSlice(Rule):
    level = "graph"
    roots = (SliceOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.slice %x {starts = #dlcb.graph.dims<[0, 0, 0]>, shape = #dlcb.graph.dims<[n, 3, m]>, steps = #dlcb.graph.dims<[1, 1, 1]>} : (tensor<[n, 3, m], f32>) -> tensor<[n, 3, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n, 3, m], f32> }"""
    refused: ClassVar = {
        "it leaves elements out": """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.slice %x {starts = #dlcb.graph.dims<[0, 1, 0]>, shape = #dlcb.graph.dims<[n, 2, m]>, steps = #dlcb.graph.dims<[1, 1, 1]>} : (tensor<[n, 3, m], f32>) -> tensor<[n, 2, m], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 2, m], f32> }"""
    }

    def why_not(self, op: SliceOp) -> str | None:
        whole = op.res.type == op.src.type and not any(op.starts.dims)
        return None if whole else "it leaves elements out"

    def rewrite(self, op: SliceOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, [], [op.operands[0]])
