"""f(x) -> full 0, where the result has no elements.  Sound: there is nothing to compute.  Source: torch.softmax of an empty dim."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import Composite
from dlcb.dialects.graph.creation import FullOp, number_attr
from dlcb.dialects.graph.types import dims_attr, dims_of
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule


class FillEmpty(Rule):
    level = "graph"
    roots = (Composite,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 0], f32> input "x") {
        %r = dlcb.graph.softmax %x {axis = #builtin.int<1>} : (tensor<[n, 0], f32>) -> tensor<[n, 0], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 0], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 0], f32> input "x") {
        %r = dlcb.graph.full {shape = #dlcb.graph.dims<[n, 0]>, value = 0 : i64} : () -> tensor<[n, 0], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 0], f32> }"""
    refused: ClassVar = {"the result may have elements": before.replace("[n, 0]", "[n, m]")}

    def why_not(self, op: Composite) -> str | None:
        return None if 0 in dims_of(op.results[0]) else "the result may have elements"

    def rewrite(self, op: Composite, rewriter: PatternRewriter) -> None:
        b, dims = GraphBuilder(), dims_of(op.results[0])
        b.make(FullOp, [], dims, op.result_element, shape=dims_attr(dims), value=number_attr(0))
        rewriter.replace(op, b.ops)
