"""Numbers that know how they come from the sizes of the inputs.

`TrackedInt` is an `int` with the value of the trace and its `Expr`; `TrackedFloat` is a `float` and its `Known`. Their
arithmetic is tracked; a comparison asks the `Tracker`, which notes the answer; whatever needs the number itself
(`range()`, `math.sin`) *pins* it: the program holds only where the expression has the traced value.

Python has no hook for an `int` subclass that is the index of a list or goes into C code that is not torch's; there the
traced value is used unseen, but where the program's own code does so (`rewritten.py`, `blind_calls.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import Any, Self, SupportsIndex, cast

from dlcb.dialects.shape.expr import Expr, add, const, floordiv, mod, mul, sub, sym
from dlcb.frontend.tracing import floats
from dlcb.frontend.tracing.floats import Known
from dlcb.frontend.tracing.real import FUNCTIONS, Real
from dlcb.frontend.tracing.tracker import Tracker


def symbol(tracker: Tracker, name: str, value: int, is_size: bool = True) -> int:
    """A new symbol of the trace."""
    tracker.traced[name] = value
    if is_size:
        tracker.at_least[name] = 0
    return number(tracker, sym(name), value)


def number(tracker: Tracker, expr: Expr, value: int) -> int:
    """A tracked int; a plain one where the expression is a literal."""
    return TrackedInt(value, expr, tracker) if tracker.active and expr.value is None else value


def extremum(tracker: Tracker, expr: Expr, value: int) -> int:
    """The least or greatest of numbers. The trace has one of them; the others may be used unseen."""
    tracker.extrema.add(expr)
    return number(tracker, expr, value)


def expr_of(value: int) -> Expr:
    return value.expr if type(value) is TrackedInt else const(int(value))


def traced(value: Any) -> Any:
    """The number as it is in the trace, without a record of the use: for callers who record it otherwise."""
    if type(value) is TrackedInt:
        return int.__int__(value)
    return float.__float__(value) if type(value) is TrackedFloat else value


def pinned(value: Any, by: str) -> Any:
    """The number as it is in the trace; a tracked one is recorded as used."""
    return value.pin(by) if type(value) in (TrackedInt, TrackedFloat, TrackedText) else value


def _arithmetic(compute: Callable[[int, int], int], build: Callable[[Expr, Expr], Expr], reverse: bool = False) -> Any:
    name = compute.__name__

    def method(self: TrackedInt, other: Any) -> Any:
        a, b = (other, self) if reverse else (self, other)
        if isinstance(other, int):
            return number(self.tracker, build(expr_of(a), expr_of(b)), compute(traced(a), traced(b)))
        if isinstance(other, float):
            return getattr(_as_float(a, self.tracker), name)(_as_float(b, self.tracker))
        if name == "__mul__" and isinstance(other, (list, tuple, str, bytes)):
            return cast(Any, other) * self.pin("repetition")
        return NotImplemented

    return method


def _comparison(compute: Callable[[int, int], bool], kind: str, swap: bool = False, negate: bool = False) -> Any:
    name = compute.__name__

    def method(self: TrackedInt, other: Any) -> Any:
        if isinstance(other, int):
            lhs, rhs = (other, self) if swap else (self, other)
            return self.tracker.compare(kind, expr_of(lhs), expr_of(rhs), compute(self, other) != negate) != negate
        return getattr(_as_float(self, self.tracker), name)(other) if isinstance(other, float) else NotImplemented

    return method


def _pinning(compute: Callable[[Any, Any], Any], by: str, reverse: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        a, b = self.pin(by), pinned(other, by)
        return compute(b, a) if reverse else compute(a, b)

    return method


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
        if modulus is None and (type(other) is float or (type(other) is int and other < 0)):
            return _power(self, other)
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


def known_of(value: float, tracker: Tracker) -> Known:
    if type(value) is TrackedFloat:
        return value.known
    return floats.integer(expr_of(value), traced(value), tracker) if isinstance(value, int) else floats.literal(value)


def _as_float(value: float, tracker: Tracker) -> TrackedFloat:
    """Any number as a tracked float."""
    return value if type(value) is TrackedFloat else TrackedFloat(known_of(value, tracker), tracker)


def noticing(value: Any, other: Any) -> Any:
    """`value`, to stand on the left of `other`; a plain float there would read a tracked int unseen."""
    return _as_float(value, other.tracker) if type(value) is float and type(other) is TrackedInt else value


def to_int(value: Any) -> int:
    """What `int` makes of it; a tracked number stays one."""
    if type(value) is TrackedInt:
        return value
    return math.trunc(value) if type(value) is TrackedFloat else int(pinned(value, "int()"))


def to_float(value: Any) -> float:
    """What `float` makes of it; a tracked number stays one."""
    if type(value) is TrackedFloat:
        return value
    return value / 1 if type(value) is TrackedInt else float(pinned(value, "float()"))


def real_function(name: str, by: str, *operands: float) -> float:
    """A function of numbers of which one is tracked. Where what it is at other sizes is not known, they are pinned."""
    tracker = next(o.tracker for o in operands if type(o) is TrackedInt or type(o) is TrackedFloat)
    found = floats.combined(tracker, name, *[known_of(o, tracker) for o in operands]) if tracker.active else None
    if found is None:
        return FUNCTIONS[name](*[pinned(o, by) for o in operands])
    return found.value if isinstance(found.part, float) else TrackedFloat(found, tracker)


def _float_arithmetic(name: str, by: str = "float arithmetic", reverse: bool = False) -> Any:
    def method(self: TrackedFloat, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return real_function(name, by, other, self) if reverse else real_function(name, by, self, other)

    return method


def _float_comparison(compute: Callable[[Any, Any], bool], kind: str, swap: bool = False, negate: bool = False) -> Any:
    def method(self: TrackedFloat, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        a, b = self.known, known_of(other, self.tracker)
        outcome = compute(a.value, b.value)
        if not math.isfinite(b.value):
            return outcome
        sides = floats.cross_products(self.tracker, a, b)
        if sides is None:
            self.pin("a comparison")
            pinned(other, "a comparison")
            return outcome
        lhs, rhs = reversed(sides) if swap else sides
        return self.tracker.compare(kind, lhs, rhs, outcome != negate) != negate

    return method


def _rounding(find: Callable[[Tracker, Known], Expr | None], compute: Callable[[float], int], by: str) -> Any:
    def method(self: TrackedFloat) -> int:
        expr = find(self.tracker, self.known) if self.tracker.active else None
        if expr is None:
            return compute(self.pin(by))
        return number(self.tracker, expr, compute(traced(self)))

    return method


_nearest = _rounding(floats.nearest, round, "round()")


def _asking(function: Callable[..., Any]) -> Any:
    """A method of texts."""

    def method(self: Any, *args: Any) -> Any:
        return function(self.pin("a text"), *[pinned(a, "a text") for a in args])

    return method


class TrackedFloat(float):
    """A float that comes from sizes, computed in double precision."""

    known: Known
    tracker: Tracker

    def __new__(cls, known: Known, tracker: Tracker) -> Self:
        self = float.__new__(cls, known.value)
        self.known = known
        self.tracker = tracker
        return self

    @property
    def operand(self) -> Real:
        """As an operand of operations on tensors."""
        part = self.known.part
        return part if isinstance(part, Real) else Real("div", (part, 1.0))

    def pin(self, by: str) -> float:
        for expr in self.operand.expressions():
            self.tracker.pin(expr, self.tracker.value(expr), by)
        return traced(self)

    __add__ = _float_arithmetic("add")
    __radd__ = _float_arithmetic("add", reverse=True)
    __mul__ = _float_arithmetic("mul")
    __rmul__ = _float_arithmetic("mul", reverse=True)
    __sub__ = _float_arithmetic("sub")
    __rsub__ = _float_arithmetic("sub", reverse=True)
    __truediv__ = _float_arithmetic("div", "a division")
    __rtruediv__ = _float_arithmetic("div", "a division", reverse=True)

    __eq__ = _float_comparison(float.__eq__, "eq")
    __ne__ = _float_comparison(float.__ne__, "eq", negate=True)
    __lt__ = _float_comparison(float.__lt__, "lt")
    __gt__ = _float_comparison(float.__gt__, "lt", swap=True)
    __le__ = _float_comparison(float.__le__, "le")
    __ge__ = _float_comparison(float.__ge__, "le", swap=True)

    def __hash__(self) -> int:
        return hash(self.pin("a look-up by its value"))

    __floordiv__ = _pinning(lambda a, b: a // b, "a division")
    __rfloordiv__ = _pinning(lambda a, b: a // b, "a division", reverse=True)
    __mod__ = _pinning(lambda a, b: a % b, "a remainder")
    __rmod__ = _pinning(lambda a, b: a % b, "a remainder", reverse=True)
    __divmod__ = _pinning(divmod, "a division")
    __rdivmod__ = _pinning(divmod, "a division", reverse=True)
    __rpow__ = _pinning(pow, "a power", reverse=True)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return _power(self, other) if modulus is None else cast(Any, pow)(self.pin("a power"), other, modulus)

    def __neg__(self) -> float:
        return self * -1

    def __pos__(self) -> float:
        return self

    def __abs__(self) -> float:
        return self if self >= 0 else -self

    __floor__ = _rounding(floats.floor, math.floor, "math.floor()")
    __ceil__ = _rounding(floats.ceil, math.ceil, "math.ceil()")
    __trunc__ = _rounding(floats.trunc, math.trunc, "int()")

    def __round__(self, digits: SupportsIndex | None = None) -> Any:
        return _nearest(self) if digits is None else round(self.pin("round()"), digits)

    def __int__(self) -> int:
        return int(self.pin("int()"))

    def __float__(self) -> float:
        return self.pin("float()")

    def __bool__(self) -> bool:
        return self != 0

    def is_integer(self) -> bool:
        return self.pin("is_integer()").is_integer()

    def as_integer_ratio(self) -> tuple[int, int]:
        return self.pin("as_integer_ratio()").as_integer_ratio()

    def hex(self) -> str:
        return self.pin("hex()").hex()

    def __repr__(self) -> str:
        return float.__repr__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return float, (traced(self),)


def _power(base: Any, exponent: Any) -> Any:
    """A power that is no product of integers."""
    if type(exponent) in (int, float) and not (traced(base) < 0 and not float(exponent).is_integer()):
        return real_function("pow", "a power", base, exponent)
    return cast(Any, pow)(pinned(base, "a power"), pinned(exponent, "a power"))


class TrackedText(str):
    """A text with sizes written out. To tell it to people, as the message of an assertion, is no use of them; what asks
    for its characters pins them."""

    sources: tuple[Any, ...]

    def __new__(cls, text: str, sources: tuple[Any, ...]) -> Self:
        self = str.__new__(cls, text)
        self.sources = sources
        return self

    def pin(self, by: str) -> str:
        for source in self.sources:
            pinned(source, by)
        return str.__str__(self)

    __eq__ = _asking(str.__eq__)
    __ne__ = _asking(str.__ne__)
    __lt__ = _asking(str.__lt__)
    __le__ = _asking(str.__le__)
    __gt__ = _asking(str.__gt__)
    __ge__ = _asking(str.__ge__)
    __hash__ = _asking(str.__hash__)
    __len__ = _asking(str.__len__)
    __iter__ = _asking(str.__iter__)
    __contains__ = _asking(str.__contains__)
    __getitem__ = _asking(str.__getitem__)
    __add__ = _asking(str.__add__)
    __mul__ = __rmul__ = _asking(str.__mul__)
    __mod__ = _asking(str.__mod__)


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
