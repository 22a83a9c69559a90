"""Integers that know how they come from the sizes of the inputs.

`TrackedInt` is an `int` with the value of the trace and its `Expr`. Arithmetic gives tracked numbers again; a
comparison asks the `Tracker`, which notes the answer; whatever needs the number itself (`int()`, `range()`,
`math.sqrt`) *pins* it: the program holds only where the expression has the traced value.

Python has no hook for an `int` subclass that is the index of a list or goes into C code that is not torch's, and a text
of it is most often the message of an assertion; there the traced value is used unseen. Tracing again at other sizes
finds a program that goes by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import Any, Self, SupportsIndex, cast

from dlcb.dialects.shape.expr import Expr, add, ceildiv, const, floordiv, mod, mul, sub, sym
from dlcb.frontend.tracing.quotient import TrackedQuotient
from dlcb.frontend.tracing.tracker import Ratio, Tracker

_EXACT_FACTOR = 1 << 21
"""An integer below this times a size is exact in double precision."""


def symbol(tracker: Tracker, name: str, value: int, is_size: bool = True) -> int:
    """A new symbol of the trace."""
    tracker.traced[name] = value
    if is_size:
        tracker.at_least[name] = 0
    return number(tracker, sym(name), value)


def number(tracker: Tracker, expr: Expr, value: int) -> int:
    """A tracked int; a plain one where the expression is a literal."""
    return TrackedInt(value, expr, tracker) if tracker.active and expr.value is None else value


def expr_of(value: int) -> Expr:
    return value.expr if type(value) is TrackedInt else const(int(value))


def traced(value: Any) -> Any:
    """The number as it is in the trace, without a record of the use: for callers who record it otherwise."""
    if type(value) is TrackedInt:
        return int.__int__(value)
    return float.__float__(value) if type(value) in _FLOATS else value


def pinned(value: Any, by: str) -> Any:
    """The number as it is in the trace; a tracked one is recorded as used."""
    return value.pin(by) if type(value) is TrackedInt or type(value) in _FLOATS else value


def _arithmetic(compute: Callable[[int, int], int], build: Callable[[Expr, Expr], Expr], reverse: bool = False) -> Any:
    name = compute.__name__

    def operator(self: TrackedInt, other: Any) -> Any:
        a, b = (other, self) if reverse else (self, other)
        if isinstance(other, int):
            return number(self.tracker, build(expr_of(a), expr_of(b)), compute(traced(a), traced(b)))
        if isinstance(other, float):
            return getattr(_as_float(a, self.tracker), name)(_as_float(b, self.tracker))
        if name == "__mul__" and isinstance(other, (list, tuple, str, bytes)):
            return cast(Any, other) * self.pin("repetition")
        return NotImplemented

    return operator


def _comparison(compute: Callable[[int, int], bool], kind: str, swap: bool = False, negate: bool = False) -> Any:
    name = compute.__name__

    def operator(self: TrackedInt, other: Any) -> Any:
        if isinstance(other, int):
            lhs, rhs = (other, self) if swap else (self, other)
            return self.tracker.compare(kind, expr_of(lhs), expr_of(rhs), compute(self, other) != negate) != negate
        return getattr(_as_float(self, self.tracker), name)(other) if isinstance(other, float) else NotImplemented

    return operator


def _pinning(compute: Callable[[Any, Any], Any], by: str, reverse: bool = False) -> Any:
    def operator(self: Any, other: Any) -> Any:
        a, b = self.pin(by), pinned(other, by)
        return compute(b, a) if reverse else compute(a, b)

    return operator


class TrackedInt(int):
    """An integer of the trace together with its expression."""

    expr: Expr
    tracker: Tracker

    def __new__(cls, value: int, expr: Expr, tracker: Tracker) -> Self:
        self = int.__new__(cls, value)
        self.expr = expr
        self.tracker = tracker
        return self

    def pin(self, by: str) -> int:
        value = traced(self)
        self.tracker.pin(self.expr, value, by)
        return value

    __add__ = __radd__ = _arithmetic(int.__add__, add)
    __mul__ = __rmul__ = _arithmetic(int.__mul__, mul)
    __sub__ = _arithmetic(int.__sub__, sub)
    __rsub__ = _arithmetic(int.__sub__, sub, reverse=True)
    __floordiv__ = _arithmetic(int.__floordiv__, floordiv)
    __rfloordiv__ = _arithmetic(int.__floordiv__, floordiv, reverse=True)
    __mod__ = _arithmetic(int.__mod__, mod)
    __rmod__ = _arithmetic(int.__mod__, mod, reverse=True)

    __eq__ = _comparison(int.__eq__, "eq")
    __ne__ = _comparison(int.__ne__, "eq", negate=True)
    __lt__ = _comparison(int.__lt__, "lt")
    __gt__ = _comparison(int.__gt__, "lt", swap=True)
    __le__ = _comparison(int.__le__, "le")
    __ge__ = _comparison(int.__ge__, "le", swap=True)

    def __hash__(self) -> int:
        """A key that is not found says that the size is none of many, which no comparison asks."""
        return hash(self.pin("a look-up by its value"))

    __and__ = __rand__ = _pinning(int.__and__, "a bit operation")
    __or__ = __ror__ = _pinning(int.__or__, "a bit operation")
    __xor__ = __rxor__ = _pinning(int.__xor__, "a bit operation")
    __rlshift__ = _pinning(int.__lshift__, "a shift", reverse=True)
    __rrshift__ = _pinning(int.__rshift__, "a shift", reverse=True)
    __rpow__ = _pinning(pow, "a power", reverse=True)

    def __lshift__(self, other: int) -> int:
        return self * (1 << pinned(other, "a shift"))

    def __rshift__(self, other: int) -> int:
        return self // (1 << pinned(other, "a shift"))

    def __neg__(self) -> int:
        return self * -1

    def __pos__(self) -> int:
        return self

    def __abs__(self) -> int:
        return self if self >= 0 else -self

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> tuple[int, int]:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if type(other) is int and 0 <= other <= 4 and modulus is None:
            return math.prod(repeat(self, other))
        return cast(Any, pow(self.pin("a power"), pinned(other, "a power"), modulus))

    def __truediv__(self, other: Any) -> Any:
        return _as_float(self, self.tracker) / other if isinstance(other, (int, float)) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _as_float(other, self.tracker) / self if isinstance(other, (int, float)) else NotImplemented

    def __bool__(self) -> bool:
        return self != 0

    def __int__(self) -> int:
        return self.pin("int()")

    def __float__(self) -> float:
        return float(self.pin("float()"))

    def __trunc__(self) -> int:
        return self

    __floor__ = __ceil__ = __trunc__

    def __round__(self, digits: SupportsIndex | None = None) -> int:
        return self if digits is None else round(self.pin("round()"), digits)

    def bit_length(self) -> int:
        return self.pin("bit_length()").bit_length()

    def __repr__(self) -> str:
        return int.__repr__(self)

    def __deepcopy__(self, memo: object) -> int:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (traced(self),)


def _as_float(value: float, tracker: Tracker) -> TrackedFloat:
    """Any number as a ratio."""
    if type(value) is TrackedFloat:
        return value
    if isinstance(value, int):
        return TrackedFloat(float(traced(value)), expr_of(value), 1, tracker)
    value = pinned(value, "float arithmetic")
    if not math.isfinite(value):
        return TrackedFloat(value, const(0), 0, tracker)
    numerator, denominator = value.as_integer_ratio()
    return TrackedFloat(value, const(numerator), denominator, tracker)


def noticing(value: Any, other: Any) -> Any:
    """`value`, to stand on the left of `other`; a plain float there would read a tracked int unseen."""
    return _as_float(value, other.tracker) if type(value) is float and type(other) is TrackedInt else value


def _ratio(tracker: Tracker, numerator: Expr, denominator: int, value: float) -> float:
    """A tracked float; a plain one where the expression is a literal."""
    if not tracker.active or numerator.value is not None:
        return value
    return TrackedFloat(value, *_lowest_terms(numerator, denominator), tracker)


def _quotient(a: TrackedFloat, b: TrackedFloat, value: float) -> float:
    """a / b, both exact, which holds where b is not 0."""
    tracker = a.tracker
    if not tracker.active:
        return value
    tracker.compare("eq", b.numerator, const(0), False)
    return TrackedQuotient(value, mul(a.numerator, b.denominator), mul(b.numerator, a.denominator), tracker)


def _factors(e: Expr) -> list[int]:
    return [coefficient for coefficient, _ in e.terms]


def _lowest_terms(numerator: Expr, denominator: int) -> tuple[Expr, int]:
    common = math.gcd(denominator, *_factors(numerator))
    return (floordiv(numerator, common), denominator // common) if common > 1 else (numerator, denominator)


def _is_exact(numerator: Expr, denominator: int) -> bool:
    """Whether double precision holds the ratio exactly, for all sizes that a tensor can have."""
    power_of_two = denominator > 0 and denominator & (denominator - 1) == 0
    return power_of_two and all(abs(factor) < _EXACT_FACTOR for factor in _factors(numerator))


def _float_arithmetic(
    compute: Callable[[float, float], float], build: Callable[[TrackedFloat, TrackedFloat], Expr], reverse: bool = False
) -> Any:
    """Tracked while every step is exact: Python's result is then the ratio itself. The denominators multiply."""

    def operator(self: TrackedFloat, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        a, b = self, _as_float(other, self.tracker)
        if reverse:
            a, b = b, a
        value = compute(traced(a), traced(b))
        if a.is_exact and b.is_exact:
            numerator, denominator = _lowest_terms(build(a, b), a.denominator * b.denominator)
            if _is_exact(numerator, denominator):
                return _ratio(self.tracker, numerator, denominator, value)
        a.pin("float arithmetic")
        b.pin("float arithmetic")
        return value

    return operator


def _float_comparison(compute: Callable[[Any, Any], bool], kind: str, swap: bool = False, negate: bool = False) -> Any:
    def operator(self: TrackedFloat, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        b = _as_float(other, self.tracker)
        outcome = compute(traced(self), traced(b))
        if not b.denominator:
            return outcome
        lhs, rhs = mul(self.numerator, b.denominator), mul(b.numerator, self.denominator)
        if swap:
            lhs, rhs = rhs, lhs
        return self.tracker.compare(kind, lhs, rhs, outcome != negate) != negate

    return operator


class TrackedFloat(float):
    """numerator / denominator in double precision; the denominator is positive, or 0 for an infinity or NaN."""

    numerator: Expr
    denominator: int
    tracker: Tracker

    def __new__(cls, value: float, numerator: Expr, denominator: int, tracker: Tracker) -> Self:
        self = float.__new__(cls, value)
        self.numerator = numerator
        self.denominator = denominator
        self.tracker = tracker
        return self

    @property
    def is_exact(self) -> bool:
        return _is_exact(self.numerator, self.denominator)

    @property
    def ratio(self) -> Ratio:
        return Ratio(self.numerator, const(self.denominator))

    def pin(self, by: str) -> float:
        self.tracker.pin(self.numerator, self.tracker.value(self.numerator), by)
        return traced(self)

    __add__ = __radd__ = _float_arithmetic(
        float.__add__, lambda a, b: add(mul(a.numerator, b.denominator), mul(b.numerator, a.denominator))
    )
    __mul__ = __rmul__ = _float_arithmetic(float.__mul__, lambda a, b: mul(a.numerator, b.numerator))
    __sub__ = _float_arithmetic(
        float.__sub__, lambda a, b: sub(mul(a.numerator, b.denominator), mul(b.numerator, a.denominator))
    )
    __rsub__ = _float_arithmetic(
        float.__sub__, lambda a, b: sub(mul(a.numerator, b.denominator), mul(b.numerator, a.denominator)), reverse=True
    )

    __eq__ = _float_comparison(float.__eq__, "eq")
    __ne__ = _float_comparison(float.__ne__, "eq", negate=True)
    __lt__ = _float_comparison(float.__lt__, "lt")
    __gt__ = _float_comparison(float.__gt__, "lt", swap=True)
    __le__ = _float_comparison(float.__le__, "le")
    __ge__ = _float_comparison(float.__ge__, "le", swap=True)

    def __hash__(self) -> int:
        return hash(self.pin("a look-up by its value"))

    __floordiv__ = _pinning(float.__floordiv__, "a division")
    __rfloordiv__ = _pinning(float.__floordiv__, "a division", reverse=True)
    __mod__ = _pinning(float.__mod__, "a remainder")
    __rmod__ = _pinning(float.__mod__, "a remainder", reverse=True)
    __pow__ = _pinning(pow, "a power")
    __rpow__ = _pinning(pow, "a power", reverse=True)

    def __rtruediv__(self, other: Any) -> Any:
        return _as_float(other, self.tracker) / self if isinstance(other, (int, float)) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        """Dividing an exact ratio by an integer rounds once, which no floor, ceiling or comparison can see."""
        if not isinstance(other, (int, float)):
            return NotImplemented
        value = traced(self) / traced(other)
        if self.is_exact and type(other) in (int, float) and other > 0 and float(other).is_integer():
            return _ratio(self.tracker, self.numerator, self.denominator * int(other), value)
        if self.is_exact and type(other) in (TrackedInt, TrackedFloat):
            divisor = _as_float(other, self.tracker)
            if divisor.is_exact:
                return _quotient(self, divisor, value)
        self.pin("a division")
        pinned(other, "a division")
        return value

    def __neg__(self) -> float:
        return self * -1

    def __abs__(self) -> float:
        return self if self >= 0 else -self

    def __floor__(self) -> int:
        return number(self.tracker, floordiv(self.numerator, self.denominator), math.floor(traced(self)))

    def __ceil__(self) -> int:
        return number(self.tracker, ceildiv(self.numerator, self.denominator), math.ceil(traced(self)))

    def __trunc__(self) -> int:
        return math.floor(self) if self >= 0 else math.ceil(self)

    def __round__(self, digits: SupportsIndex | None = None) -> Any:
        return round(self.pin("round()"), digits)

    def __int__(self) -> int:
        return int(self.pin("int()"))

    def __float__(self) -> float:
        return self.pin("float()")

    def __bool__(self) -> bool:
        return self != 0

    def is_integer(self) -> bool:
        return self.pin("is_integer()").is_integer()

    def __repr__(self) -> str:
        return float.__repr__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (traced(self),)


_FLOATS = (TrackedFloat, TrackedQuotient)


class TrackedSize(tuple[int, ...]):
    """What `.shape` hands out: torch.Size without its C arithmetic, which forgets expressions."""

    def numel(self) -> int:
        return math.prod(self)

    def __getitem__(self, index: Any) -> Any:
        found = cast(Any, super().__getitem__(index))
        return TrackedSize(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> TrackedSize:
        return TrackedSize((*self, *other))

    def __radd__(self, other: Any) -> TrackedSize:
        return TrackedSize((*other, *self))
