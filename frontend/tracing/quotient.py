"""Floats that are divided by an expression of sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from dlcb.dialects.shape.expr import Expr
from dlcb.frontend.tracing.tracker import Ratio, Tracker


class TrackedQuotient(float):
    """numerator / denominator, rounded once to double precision: an operand of operations on tensors. Python itself
    can use it only as the number it is, which pins its sizes."""

    numerator: Expr
    denominator: Expr
    tracker: Tracker

    def __new__(cls, value: float, numerator: Expr, denominator: Expr, tracker: Tracker) -> Self:
        self = float.__new__(cls, value)
        self.numerator = numerator
        self.denominator = denominator
        self.tracker = tracker
        return self

    @property
    def ratio(self) -> Ratio:
        return Ratio(self.numerator, self.denominator)

    def pin(self, by: str) -> float:
        for expr in (self.numerator, self.denominator):
            self.tracker.pin(expr, self.tracker.value(expr), by)
        return float.__float__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (float.__float__(self),)


def _pinning(name: str) -> Callable[..., Any]:
    plain = getattr(float, name)

    def method(self: TrackedQuotient, *others: Any) -> Any:
        known = [other.pin("a quotient of sizes") if hasattr(other, "pin") else other for other in others]
        return plain(self.pin("a quotient of sizes"), *known)

    return method


_USES = """
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__
    __rmod__ __divmod__ __rdivmod__ __pow__ __rpow__ __eq__ __ne__ __lt__ __gt__ __le__ __ge__ __neg__ __pos__ __abs__
    __bool__ __int__ __float__ __trunc__ __floor__ __ceil__ __round__ is_integer as_integer_ratio hex
"""

for _name in _USES.split():
    setattr(TrackedQuotient, _name, _pinning(_name))
