"""cast(cast(x, wide), t) -> cast(x, t).  Sound: the wide type holds every value of the first.  Not worse: one op fewer.  Source: torch.Tensor.to."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.elementwise import CastOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import FLOATS, INTEGERS, bf16, f16, f32, f64, i1, i8, i16, i32, i64, ui8
from dlcb.passes.rule import Rule


class MergeCasts(Rule):
    level = "graph"
    roots = (CastOp,)
    before = """dlcb.graph.func @f(%x: tensor<[n], f16> input "x") {
        %a = dlcb.graph.cast %x : (tensor<[n], f16>) -> tensor<[n], f32>
        %r = dlcb.graph.cast %a : (tensor<[n], f32>) -> tensor<[n], f64>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n], f64> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n], f16> input "x") {
        %r = dlcb.graph.cast %x : (tensor<[n], f16>) -> tensor<[n], f64>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n], f64> }"""
    refused: ClassVar = {
        "the source is no cast": after,
        "the first cast rounds": before.replace("f16", "f64").replace("f32", "f16"),
    }

    def why_not(self, op: CastOp) -> str | None:
        inner = op.operands[0].owner
        if not isinstance(inner, CastOp):
            return "the source is no cast"
        return None if _holds(inner.result_element, type_of(inner.operands[0]).element) else "the first cast rounds"

    def rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        inner = op.operands[0].owner
        assert isinstance(inner, CastOp)
        rewriter.replace(op, [CastOp.make(inner.operands, [op.results[0].type])])


_WIDER: dict[Attribute, frozenset[Attribute]] = {
    i1: FLOATS.union(INTEGERS),
    ui8: FLOATS | {i16, i32, i64},
    i8: FLOATS | {i16, i32, i64},
    i16: frozenset({i32, i64, f32, f64}),
    i32: frozenset({i64, f64}),
    f16: frozenset({f32, f64}),
    bf16: frozenset({f32, f64}),
    f32: frozenset({f64}),
}
"""The types that hold every value of a type."""


def _holds(wide: Attribute, narrow: Attribute) -> bool:
    return wide == narrow or wide in _WIDER.get(narrow, ())
