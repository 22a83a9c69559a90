"""Coordinate expressions on arrays of indices: `evaluate` of `dialects/shape/expr.py`, many points at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dlcb.dialects.shape.expr import FUNCTIONS, Expr, post_order
from dlcb.dialects.shape.integers import isqrt
from dlcb.errors import InternalError

Indices: TypeAlias = NDArray[np.int64]
Environment: TypeAlias = Mapping[str, "int | Indices"]


def _divide(function: Callable[[Any, Any], Indices]) -> Callable[[Any, Any], Indices]:
    """Division where dividing by 0 gives 0."""
    return lambda a, b: np.where(np.equal(b, 0), 0, function(a, np.where(np.equal(b, 0), 1, b)))


def _scaled(x: Indices, num: Indices, den: Indices) -> Indices:
    return np.floor(x * np.true_divide(num, den)).astype(np.int64)


def _isqrt(x: Indices) -> Indices:
    return np.vectorize(isqrt, otypes=[np.int64])(x)


def _broadcast(a: Indices, b: Indices) -> Indices:
    return np.where(np.equal(a, 1), b, a)


def _select(condition: Indices, a: Indices, b: Indices) -> Indices:
    return np.where(np.not_equal(condition, 0), a, b)


def _logical_not(a: Any) -> Any:
    return np.equal(a, 0)


ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": _divide(np.floor_divide),
    "ceildiv": _divide(lambda a, b: -np.floor_divide(-a, b)),
    "mod": _divide(np.remainder),
    "scaled": _scaled,
    "isqrt": _isqrt,
    "minimum": lambda *args: reduce(np.minimum, args),
    "maximum": lambda *args: reduce(np.maximum, args),
    "broadcast": _broadcast,
    "select": _select,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "logical_and": lambda *args: reduce(np.logical_and, [np.not_equal(a, 0) for a in args]),
    "logical_or": lambda *args: reduce(np.logical_or, [np.not_equal(a, 0) for a in args]),
    "logical_not": _logical_not,
}
"""`FUNCTIONS` on arrays."""


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": np.bitwise_and,
}


def call(function: str, operands: Sequence[int | Indices]) -> int | Indices:
    """A function of `dlcb.coord.index` or of `FUNCTIONS`."""
    if function in _ARITHMETIC:
        return _ARITHMETIC[function](*operands)
    if all(isinstance(o, int) for o in operands):
        return FUNCTIONS[function](*operands)
    return np.asarray(ARRAY_FUNCTIONS[function](*operands)).astype(np.int64, copy=False)


def evaluate_indices(expr: Expr, env: Environment) -> int | Indices:
    """The value of the expression; an array where one of its symbols is an array."""
    if expr.value is not None:
        return expr.value
    values: dict[Expr, int | Indices] = {}
    for node in post_order((expr,)):
        values[node] = _value(node, values, env)
    return values[expr]


def _value(node: Expr, values: Mapping[Expr, int | Indices], env: Environment) -> int | Indices:
    if node.value is not None:
        return node.value
    if node.op == "symbol":
        if node.name not in env:
            raise InternalError(f"symbol '{node.name}' has no value; known: {', '.join(sorted(env))}")
        return env[node.name]
    if node.op in FUNCTIONS:
        return call(node.op, [values[a] for a in node.args])
    total: int | Indices = 0
    for coefficient, atoms in node.terms:
        product: int | Indices = coefficient
        for atom in atoms:
            product = product * values[atom]
        total = total + product
    return total
