"""Guards that hold for an interval of an axis: which coordinates, in terms of values that are the same for all of
them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from dlcb.dialects.coord.ops import IndexOp

_FLIPPED = {"add": -1, "sub": 1}


@dataclass(frozen=True, slots=True)
class Bound:
    """start + Σ sign · value + more"""

    start: SSAValue
    terms: tuple[tuple[int, SSAValue], ...]
    more: int


@dataclass(frozen=True, slots=True)
class Interval:
    """The coordinates from each of `lower` on and below each of `upper`, where all `conditions` hold."""

    lower: tuple[Bound, ...] = ()
    upper: tuple[Bound, ...] = ()
    conditions: tuple[SSAValue, ...] = ()


def interval_of(guard: SSAValue, axis: SSAValue, varying: set[SSAValue]) -> Interval | None:
    """Where the guard holds; None where that is not seen. `varying` are the values that differ along the axis."""
    if guard not in varying:
        return Interval(conditions=(guard,))
    op = guard.owner
    if not isinstance(op, IndexOp):
        return None
    lhs, *others = op.args
    match op.function.data:
        case "and":
            return _both(*(interval_of(arg, axis, varying) for arg in op.args))
        case "lt" | "le" as function:
            (rhs,) = others
            closed = function == "le"
            if lhs in varying and rhs not in varying and (terms := _beside(lhs, axis, varying)) is not None:
                return Interval(upper=(Bound(rhs, terms, int(closed)),))
            if rhs in varying and lhs not in varying and (terms := _beside(rhs, axis, varying)) is not None:
                return Interval(lower=(Bound(lhs, terms, int(not closed)),))
            return None
        case _:
            return None


def _both(one: Interval | None, other: Interval | None) -> Interval | None:
    if one is None or other is None:
        return None
    return Interval(one.lower + other.lower, one.upper + other.upper, one.conditions + other.conditions)


def _beside(value: SSAValue, axis: SSAValue, varying: set[SSAValue]) -> tuple[tuple[int, SSAValue], ...] | None:
    """What to add to the other side of a comparison so that the axis stands alone on this one; None where the value is
    not the axis and something beside it."""
    terms: list[tuple[int, SSAValue]] = []
    while value is not axis:
        op = value.owner
        if not isinstance(op, IndexOp) or op.function.data not in _FLIPPED:
            return None
        lhs, rhs = op.args
        if rhs in varying and op.function.data == "add":
            lhs, rhs = rhs, lhs
        if rhs in varying:
            return None
        terms.append((_FLIPPED[op.function.data], rhs))
        value = lhs
    return tuple(terms)
