"""How large the elements of a value can be, where that follows from numbers that the program names."""

from __future__ import annotations

from typing import Final

from xdsl.ir import Operation, SSAValue

from dlcb.dialects.graph.creation import FullOp
from dlcb.dialects.graph.elementwise import SIMPLE, WhereOp
from dlcb.dialects.graph.view import ConcatOp, InsertOp, Move, PadOp

_FAR_BELOW_THE_LIMIT: Final = 2.0**15
"""Half of what the narrowest type of floats holds."""
_DEEPEST: Final = 200
_UNKNOWN: Final = float("inf")
_ADD, _SUB = SIMPLE["add"], SIMPLE["sub"]


def is_surely_finite(value: SSAValue) -> bool:
    """Is every element a finite number, whatever the inputs and weights are?"""
    return _largest(value, {}, _DEEPEST) < _FAR_BELOW_THE_LIMIT


def _largest(value: SSAValue, known: dict[SSAValue, float], depth: int) -> float:
    """A bound on the absolute values of the elements; infinity where none is known. NaN is infinite here."""
    if value not in known:
        op = value.owner
        known[value] = _of_result(op, known, depth - 1) if isinstance(op, Operation) and depth else _UNKNOWN
    return known[value]


def _of_result(op: Operation, known: dict[SSAValue, float], depth: int) -> float:
    if isinstance(op, FullOp):
        return _of_number(op.number)
    if isinstance(op, WhereOp):
        return max(_largest(v, known, depth) for v in op.operands[1:])
    if isinstance(op, (Move, ConcatOp, InsertOp)):
        fill = _of_number(op.number) if isinstance(op, PadOp) else 0.0
        return max(fill, *(_largest(v, known, depth) for v in op.operands))
    if isinstance(op, (_ADD, _SUB)):
        return sum(_largest(v, known, depth) for v in op.operands)
    return _UNKNOWN


def _of_number(number: float) -> float:
    return abs(number) if abs(number) < _UNKNOWN else _UNKNOWN
