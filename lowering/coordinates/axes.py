"""The axes of a kernel: offsets as linear forms, and merging of axes that lie together in every operand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlcb.dialects.shape.expr import Expr, add, const, from_terms, mul

ZERO = const(0)


@dataclass(frozen=True, slots=True)
class Axis:
    """One coordinate (a symbol) and its extent."""

    name: str
    size: Expr


@dataclass(frozen=True, slots=True)
class Linear:
    """offset = Σ coordinate · strides[coordinate] + extra; `extra` is what is not linear in the axes."""

    strides: dict[str, Expr]
    extra: Expr


def linear_form(offset: Expr, axes: frozenset[str]) -> Linear:
    strides: dict[str, Expr] = {}
    extra: list[tuple[int, tuple[Expr, ...]]] = []
    for coefficient, atoms in offset.terms:
        moving = [a for a in atoms if not a.free.isdisjoint(axes)]
        if (
            len(moving) == 1
            and moving[0].op == "symbol"
            and not any(n.startswith("$") for a in atoms if a is not moving[0] for n in a.free)
        ):
            name = moving[0].name
            factor = from_terms([(coefficient, tuple(a for a in atoms if a is not moving[0]))])
            strides[name] = add(strides.get(name, ZERO), factor)
        else:
            extra.append((coefficient, atoms))
    return Linear(strides, from_terms(extra))


def merge(axes: Sequence[Axis], forms: Iterable[Linear], fixed: frozenset[str]) -> list[Axis]:
    """Drop axes of size 1 and merge neighbours (outer, inner) with stride(outer) = stride(inner) · size(inner) in every
    form; the merged axis has the inner one's name, so the strides of forms stay right. Axes in `fixed` are used other
    than linearly and stay as they are."""
    forms = list(forms)
    merged: list[Axis] = []
    for axis in axes:
        if axis.size.is_const and axis.size.value == 1 and axis.name not in fixed:
            continue
        if merged and axis.name not in fixed and merged[-1].name not in fixed:
            outer = merged[-1]
            if all(f.strides.get(outer.name, ZERO) is mul(f.strides.get(axis.name, ZERO), axis.size) for f in forms):
                merged[-1] = Axis(axis.name, mul(outer.size, axis.size))
                continue
        merged.append(axis)
    return merged
