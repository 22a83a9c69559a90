"""Which literal sizes in an op's properties follow from its operands, though the trace shows only numbers.

Torch's ops give sizes as numbers: `reshape(x, [2, 10, 4, 16])`. Where the sizes of the operand vary, such a number is
replaced by an expression, if the op leaves only one. Each replacement says why; without a reason the number stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.view import ExpandOp, ReshapeOp, SliceOp, product
from dlcb.dialects.shape.expr import Expr, const


@dataclass(frozen=True, slots=True)
class Derivation:
    """A number in the list `name` of an op's properties that is a size: `value`, because of `why`."""

    name: str
    index: int
    value: Expr
    why: str


@dataclass(frozen=True, slots=True)
class Operand:
    """The first operand's sizes: the numbers of the trace, and what they are now."""

    traced: tuple[int, ...]
    sizes: tuple[Expr, ...]


Traced: TypeAlias = Callable[[Expr], int]
"""The value of an expression in the trace."""
_Rule: TypeAlias = Callable[[Any, Operand, Traced], Iterator[Derivation]]


def derivations(op: GraphOp, operand: Operand, traced: Traced) -> list[Derivation]:
    """All that can be derived for the op, be it that a number is a constant."""
    rule = _RULES.get(type(op))
    return list(rule(op, operand, traced)) if rule is not None else []


def _slice(op: SliceOp, operand: Operand, traced: Traced) -> Iterator[Derivation]:
    grid = zip(op.starts.dims, op.shape.dims, op.steps.dims, strict=True)
    for i, (start, size, step) in enumerate(grid):
        if start == 0 and step == 1 and size == operand.traced[i]:
            yield Derivation("shape", i, operand.sizes[i], "the slice takes the whole dim")


def _expand(op: ExpandOp, operand: Operand, traced: Traced) -> Iterator[Derivation]:
    shape = op.shape.dims
    new = len(shape) - len(operand.traced)
    for i, size in enumerate(operand.traced):
        if size not in (0, 1) and shape[new + i] == size:
            yield Derivation("shape", new + i, operand.sizes[i], "expand keeps a size that is not 1")


def _reshape(op: ReshapeOp, operand: Operand, traced: Traced) -> Iterator[Derivation]:
    shape = tuple([d for d in op.shape.dims if isinstance(d, int)])
    if len(shape) != len(op.shape.dims) or 0 in shape or 0 in operand.traced:
        return
    for source, target in equal_runs(operand.traced, shape):
        whole = product([operand.sizes[i] for i in source])
        wide = [j for j in target if shape[j] != 1]
        if len(wide) == 1:
            why = "the dim stays" if len(source) == 1 else "these dims become one"
            yield Derivation("shape", wide[0], whole, why)
            continue
        for j, factor in _factors(whole, [shape[j] for j in wide], traced).items():
            yield Derivation("shape", wide[j], factor, "the dim is split into its factors")


def equal_runs(a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Split lists of numbers with equal products into the smallest runs with equal products; ones are left out."""
    left, right = ([i for i, n in enumerate(numbers) if n != 1] for numbers in (a, b))
    i = j = 0
    while i < len(left) and j < len(right):
        source, target = [left[i]], [right[j]]
        products = [a[left[i]], b[right[j]]]
        i, j = i + 1, j + 1
        while products[0] != products[1]:
            if products[0] < products[1]:
                source.append(left[i])
                products[0] *= a[left[i]]
                i += 1
            else:
                target.append(right[j])
                products[1] *= b[right[j]]
                j += 1
        yield source, target


def _factors(whole: Expr, numbers: Sequence[int], traced: Traced) -> Mapping[int, Expr]:
    """Which numbers are which factors of a product like `3*n*m`; nothing where the values don't tell them apart."""
    if len(whole.terms) != 1:
        return {}
    ((coefficient, atoms),) = whole.terms
    values = [traced(atom) for atom in atoms]
    rest = [n for n in numbers if n not in values]
    if len(set(values)) != len(values) or any(numbers.count(v) != 1 for v in values) or 1 in values:
        return {}
    if product([const(n) for n in rest]) is not const(coefficient):
        return {}
    return {numbers.index(value): atom for value, atom in zip(values, atoms, strict=True)}


_RULES: dict[type[GraphOp], _Rule] = {SliceOp: _slice, ExpandOp: _expand, ReshapeOp: _reshape}
