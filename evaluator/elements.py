"""The element builder of the evaluator: an element is an array over the points of an iteration space.

Axes are symbols that stand for arrays of indices. A reduction puts its row as one more axis in front, so that what was
computed outside broadcasts into it; the row is walked in pieces that bound the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.base import Coords, ElementBuilder, GraphOp, Guard
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.shape.expr import Expr, as_expr, const, sym
from dlcb.dialects.types import common_compute_type, compute_type, i1
from dlcb.errors import InternalError
from dlcb.evaluator.coordinates import Indices, call, evaluate_indices
from dlcb.evaluator.scalars import Array, accumulate, apply, convert, fold

MAX_POINTS = 1 << 21
"""How many points of a space are computed at once, unless the space without its row is larger."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements at all points, and their type."""

    array: Array
    element: Attribute


Body = Callable[[Coords], Elements]


class ArrayBuilder(ElementBuilder):
    """Computes over the space of `sizes`, with the tensors that the operands are and the values of the symbols."""

    def __init__(self, tensors: Mapping[SSAValue, Array], symbols: Mapping[str, int], sizes: Sequence[int]) -> None:
        self._tensors = tensors
        self._env: dict[str, int | Indices] = dict(symbols)
        self._bound = 0
        self._rank: int = len(sizes)
        self._points: int = prod(sizes)
        indices = np.indices(sizes, sparse=True) if sizes else ()
        self.coords: Coords = tuple(self._bind(i) for i in indices)

    def value_of(self, expr: Expr) -> int | Indices:
        return evaluate_indices(expr, self._env)

    def _bind(self, indices: Indices) -> Expr:
        """The array as a symbol of coordinate expressions."""
        name = f"%{self._bound}"
        self._bound += 1
        self._env[name] = indices
        return sym(name)

    # --- scalars ---

    def call(self, function: str, *operands: Elements) -> Elements:
        values = operands[1:] if function == "select" else operands
        element = values[0].element
        if any(v.element != element for v in values) or element != compute_type(element):
            types = ", ".join(str(o.element) for o in operands)
            raise InternalError(f"{function} of {types}: expected one compute type")
        return Elements(*apply(function, element, *(o.array for o in operands)))

    def constant(self, value: float, element: Attribute) -> Elements:
        return Elements(convert(np.asarray(value), element), element)

    def cast(self, value: Elements, element: Attribute) -> Elements:
        return value if value.element == element else Elements(convert(value.array, element), element)

    def type_of(self, value: Elements) -> Attribute:
        return value.element

    # --- coordinates ---

    def index(self, expr: Expr, element: Attribute) -> Elements:
        return Elements(convert(np.asarray(self.value_of(expr)), element), element)

    def coordinate(self, value: Elements, extent: Expr, op: GraphOp, from_end: bool) -> Expr:
        given = np.asarray(value.array, dtype=np.int64)
        size = int(self.value_of(extent))
        at = np.where(given < 0, given + size, given) if from_end else given
        _all_hold((at >= 0) & (at < size), given, op, size)
        return self._bind(at)

    def nonzero(self, value: Elements, op: GraphOp) -> Elements:
        _all_hold(np.asarray(value.array != 0), value.array, op)
        return value

    def holds(self, guard: Sequence[Guard]) -> Elements:
        return Elements(np.asarray(self._mask(guard)), i1)

    def _mask(self, guard: Sequence[Guard]) -> Array:
        mask = np.asarray(True)
        for comparison, lhs, rhs in guard:
            mask = mask & np.not_equal(call(comparison, (self.value_of(lhs), self.value_of(rhs))), 0)
        return np.asarray(mask)

    def read(self, operand: SSAValue, coords: Coords, guard: Sequence[Guard] = (), other: Any = None) -> Elements:
        element = compute_type(type_of(operand).element)
        mask = self._mask(guard)
        taken = Elements(take(self._tensors[operand], [self.value_of(c) for c in coords], mask), element)
        if mask.all():
            return taken
        if other is None:
            raise InternalError("an element is read under a guard, and nothing says what it is outside")
        element = common_compute_type(element, other.element)
        inside, outside = self.cast(taken, element), self.cast(other, element)
        return Elements(np.where(mask, inside.array, outside.array), element)

    # --- loops ---

    def reduce(
        self, function: str, sizes: Sequence[Expr], axes: Sequence[int], body: Body, initial: float, element: Attribute
    ) -> Elements:
        extents = [int(self.value_of(as_expr(sizes[a]))) for a in axes]
        total = self.constant(initial, element)
        length = prod(extents)
        piece = max(1, MAX_POINTS // max(1, self._points))
        for start in range(0, length, piece):
            row = np.arange(start, min(start + piece, length))
            total = self.call(function, total, self._reduce_piece(function, row, extents, body))
        return total

    def _reduce_piece(self, function: str, row: Indices, extents: Sequence[int], body: Body) -> Elements:
        rank, points = self._rank, self._points
        self._rank, self._points = rank + 1, points * len(row)
        flat = row.reshape(-1, *[1] * rank)
        value = body(tuple(self._bind(i) for i in np.unravel_index(flat, extents)) if extents else ())
        self._rank, self._points = rank, points
        inner = value.array.reshape([1] * (rank + 1 - value.array.ndim) + list(value.array.shape)).shape[1:]
        return Elements(fold(function, np.broadcast_to(value.array, (len(row), *inner))), value.element)

    def scan(
        self,
        function: str,
        extent: Expr,
        at: Expr,
        body: Callable[[Expr], Elements],
        initial: float,
        element: Attribute,
    ) -> Elements:
        rank = self._rank
        self._rank += 1
        row = np.arange(int(self.value_of(extent))).reshape(-1, *[1] * rank)
        value = self.cast(body(self._bind(row)), element).array
        self._rank = rank
        inner = value.reshape([1] * (rank + 1 - value.ndim) + list(value.shape)).shape[1:]
        running = Elements(accumulate(function, np.broadcast_to(value, (len(row), *inner))), element)
        along = (np.asarray(self.value_of(at)), *np.indices(inner, sparse=True))
        return Elements(self.call(function, self.constant(initial, element), running).array[along], element)

    def loop(self, function: str, extents: Sequence[int], body: Body, initial: float, element: Attribute) -> Elements:
        total = self.constant(initial, element)
        for position in product(*map(range, extents)):
            total = self.call(function, total, body(tuple(map(const, position))))
        return total


def _all_hold(holds: Array, values: Array, op: GraphOp, size: int = 0) -> None:
    """Raise the failure of the op at the first value for which something does not hold."""
    if not holds.all():
        first = int(np.broadcast_to(values, holds.shape)[~holds].flat[0])
        failure = op.failure()
        if failure is None:
            raise InternalError(
                f"{op.title}: {first} is out of range for a size of {size}, which was taken for granted"
            )
        raise failure.error(first, size)


def take(tensor: Array, indices: Sequence[int | Indices], mask: Array) -> Array:
    """The elements at the indices; anything where the mask does not hold: only there may indices be outside."""
    inside: list[Array] = []
    for axis, (at, size) in enumerate(zip(map(np.asarray, indices), tensor.shape, strict=True)):
        outside = (at < 0) | (at >= size)
        if outside.any():
            wrong = outside & mask
            if wrong.any():
                first = np.broadcast_to(at, wrong.shape)[wrong].flat[0]
                raise InternalError(f"coordinate {first} of dim {axis} is outside of its size, {size}")
            at = np.clip(at, 0, max(size - 1, 0))
        inside.append(at)
    if tensor.size == 0:
        return np.zeros(np.broadcast_shapes(*(at.shape for at in inside)), tensor.dtype)
    return np.asarray(tensor[tuple(inside)])


def compute(
    op: GraphOp, result: int, tensors: Mapping[SSAValue, Array], symbols: Mapping[str, int], sizes: Sequence[int]
) -> Array:
    """A whole result of the op, whose sizes are given, from its elements."""
    element = type_of(op.results[result]).element
    if prod(sizes) == 0:
        return convert(np.zeros(sizes), element)
    b = ArrayBuilder(tensors, symbols, sizes)
    value: Elements = op.element(b, b.coords, result)
    return np.broadcast_to(convert(value.array, element), sizes)
