"""permute(permute(x, a), b) -> permute(x, a∘b).  Sound: coordinates compose.  Not worse: one op fewer.  Source: torch.permute."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.view import PermuteOp
from dlcb.passes.graph_builder import int_list
from dlcb.passes.rule import Rule


class MergePermutes(Rule):
    level = "graph"
    roots = (PermuteOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %a = dlcb.graph.permute %x {order = [#builtin.int<2>, #builtin.int<0>, #builtin.int<1>]} : (tensor<[n, 3, m], f32>) -> tensor<[m, n, 3], f32>
        %r = dlcb.graph.permute %a {order = [#builtin.int<1>, #builtin.int<0>, #builtin.int<2>]} : (tensor<[m, n, 3], f32>) -> tensor<[n, m, 3], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, m, 3], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n, 3, m], f32> input "x") {
        %r = dlcb.graph.permute %x {order = [#builtin.int<0>, #builtin.int<2>, #builtin.int<1>]} : (tensor<[n, 3, m], f32>) -> tensor<[n, m, 3], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, m, 3], f32> }"""
    refused: ClassVar = {"the source is no permute": after}

    def why_not(self, op: PermuteOp) -> str | None:
        return None if isinstance(op.src.owner, PermuteOp) else "the source is no permute"

    def rewrite(self, op: PermuteOp, rewriter: PatternRewriter) -> None:
        inner = op.src.owner
        assert isinstance(inner, PermuteOp)
        order = int_list(tuple([inner.axes[a] for a in op.axes]))
        rewriter.replace(op, [PermuteOp.make([inner.src], [op.res.type], order=order)])
