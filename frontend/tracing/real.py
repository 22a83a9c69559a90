"""Floats that are computed from sizes, in double precision, step by step as Python does."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from dlcb.dialects.shape.expr import Expr, evaluate

Part: TypeAlias = "Real | Expr | float"


def _quotient(a: float, b: float) -> float:
    return a / b


def _power(a: float, b: float) -> float:
    return a**b


FUNCTIONS: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "pow": _power,
    "sqrt": math.sqrt,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
}
"""By the name of the elementwise operation of tensors that computes the same."""


@dataclass(frozen=True, slots=True)
class Real:
    """`function` of its parts, rounded once. Its value is never printed into a kernel: it follows the sizes."""

    function: str
    parts: tuple[Part, ...]

    def value(self, sizes: Mapping[str, int]) -> float:
        return FUNCTIONS[self.function](*[_value(part, sizes) for part in self.parts])

    def expressions(self) -> Iterator[Expr]:
        for part in self.parts:
            if isinstance(part, Real):
                yield from part.expressions()
            elif isinstance(part, Expr):
                yield part

    def replaced(self, replace: Callable[[Expr], Expr]) -> Real:
        """With each expression replaced."""

        def new(part: Part) -> Part:
            if isinstance(part, Real):
                return part.replaced(replace)
            return replace(part) if isinstance(part, Expr) else part

        return Real(self.function, tuple(map(new, self.parts)))

    @property
    def ratio(self) -> tuple[Expr, int] | None:
        """Numerator and denominator of an expression divided by an integer."""
        match self:
            case Real("div", (Expr() as numerator, float(denominator))) if denominator.is_integer():
                return numerator, int(denominator)
            case _:
                return None


def as_ratio(number: Expr | Real) -> tuple[Expr, int | None]:
    """An output that is a number: an expression, and what divides it where it is a float."""
    if isinstance(number, Expr):
        return number, None
    assert number.ratio is not None
    return number.ratio


def _value(part: Part, sizes: Mapping[str, int]) -> float:
    if isinstance(part, Real):
        return part.value(sizes)
    return float(evaluate(part, sizes)) if isinstance(part, Expr) else part
