"""x · 1, x / 1, x - 0, x + -0.0 -> x, also with the operands of a commutative op swapped; for integers x + 0.  Sound: exact for every value, -0.0 and infinities too (x + 0.0 is not).  Not worse: one op fewer.  Source: IEEE 754."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.creation import FullOp
from dlcb.dialects.graph.elementwise import SIMPLE, Arithmetic
from dlcb.dialects.types import is_float
from dlcb.passes.rule import Rule


class DropNeutralOperand(Rule):
    level = "graph"
    roots = (Arithmetic,)
    before = """dlcb.graph.func @f(%x: tensor<[n], f32> input "x") {
        %k = dlcb.graph.full {shape = #dlcb.graph.dims<[]>, value = 1.0 : f64} : () -> tensor<[], f32>
        %r = dlcb.graph.mul %x, %k : (tensor<[n], f32>, tensor<[], f32>) -> tensor<[n], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n], f32> }"""
    after = """dlcb.graph.func @f(%x: tensor<[n], f32> input "x") {
        dlcb.graph.return %x : !dlcb.graph.tensor<[n], f32> }"""
    refused: ClassVar = {
        "no operand is neutral": """dlcb.graph.func @f(%x: tensor<[n], f32> input "x") {
        %k = dlcb.graph.full {shape = #dlcb.graph.dims<[]>, value = 0.0 : f64} : () -> tensor<[], f32>
        %r = dlcb.graph.add %x, %k : (tensor<[n], f32>, tensor<[], f32>) -> tensor<[n], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n], f32> }""",
        "the type changes": before.replace("[n], f32> input", "[n], f16> input").replace(
            "(tensor<[n], f32>", "(tensor<[n], f16>"
        ),
    }

    def why_not(self, op: Arithmetic) -> str | None:
        kept = _kept(op)
        if kept is None:
            return "no operand is neutral"
        return None if kept.type == op.results[0].type else "the type changes"

    def rewrite(self, op: Arithmetic, rewriter: PatternRewriter) -> None:
        kept = _kept(op)
        assert kept is not None
        rewriter.replace(op, [], [kept])


_ADD, _SUB, _MUL, _DIV = (SIMPLE[name] for name in ("add", "sub", "mul", "div"))


def _kept(op: Arithmetic) -> SSAValue | None:
    """The operand that is the result, because the other one is neutral."""
    kind = type(op)
    if kind not in (_ADD, _SUB, _MUL, _DIV):
        return None
    lhs, rhs = op.operands
    floats = is_float(op.result_element)
    if _is_neutral(kind, rhs.owner, floats):
        return lhs
    return rhs if kind in (_ADD, _MUL) and _is_neutral(kind, lhs.owner, floats) else None


def _is_neutral(kind: type[Operation], source: object, floats: bool) -> bool:
    if not isinstance(source, FullOp):
        return False
    number = source.number
    if kind is _MUL or kind is _DIV:
        return number == 1
    negative = math.copysign(1.0, number) < 0
    return number == 0 and (not floats or negative == (kind is _ADD))
