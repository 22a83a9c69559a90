"""What is known of a float of a trace: how it comes from the sizes, its sign, where it is zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from dlcb.dialects.shape.bounds import is_nonneg
from dlcb.dialects.shape.expr import (
    ONE,
    ZERO,
    Expr,
    add,
    ceildiv,
    const,
    eq,
    floordiv,
    isqrt,
    logical_and,
    lt,
    mod,
    mul,
    scaled,
    select,
    sub,
)
from dlcb.frontend.tracing.real import FUNCTIONS, Part, Real
from dlcb.frontend.tracing.tracker import Tracker

Ratio: TypeAlias = tuple[Expr, Expr]

_EXACT_FACTOR = 1 << 21
"""An integer below this times a size is exact in double precision."""
_LARGEST_EXPONENT = 4
_LARGEST_FACTOR, _LARGEST_DENOMINATOR = 1 << 20, 1 << 62
"""Of a float that scales a size to another size, which the host program computes."""


@dataclass(frozen=True, slots=True)
class Known:
    """A float of the trace. `zero`: it is zero exactly where this expression is; None where that is not known."""

    value: float
    part: Part
    zero: Expr | None
    nonneg: bool
    ratio: Ratio | None = None
    """It is this quotient, rounded once. A literal denominator is positive."""

    @property
    def is_exact(self) -> bool:
        """Whether double precision holds the ratio itself, for all sizes that a tensor can have."""
        if self.ratio is None or self.ratio[1].value is None:
            return False
        numerator, denominator = self.ratio[0], self.ratio[1].value
        return denominator & (denominator - 1) == 0 and all(abs(c) < _EXACT_FACTOR for c, _ in numerator.terms)

    @property
    def sign(self) -> Expr | None:
        """An expression of the same sign."""
        return self.ratio[0] if self.ratio and self.ratio[1].value is not None else None


def literal(value: float) -> Known:
    ratio = None
    if math.isfinite(value):
        numerator, denominator = value.as_integer_ratio()
        ratio = const(numerator), const(denominator)
    return Known(value, value, ONE if value else ZERO, value >= 0, ratio)


def integer(expr: Expr, value: int, tracker: Tracker) -> Known:
    """An integer as a float."""
    return _quotient(expr, ONE, float(value), tracker)


def _quotient(numerator: Expr, denominator: Expr, value: float, tracker: Tracker) -> Known:
    if denominator.value is not None:
        numerator, denominator = _lowest_terms(numerator, denominator.value)
        nonneg = is_nonneg(numerator, tracker.at_least)
    else:
        nonneg = is_nonneg(numerator, tracker.at_least) and is_nonneg(denominator, tracker.at_least)
    if numerator.value is not None and denominator.value is not None:
        return literal(value)
    part = numerator if denominator is ONE else Real("div", (numerator, _as_part(denominator)))
    return Known(value, part, numerator, nonneg, (numerator, denominator))


def _as_part(expr: Expr) -> Part:
    return expr if expr.value is None else float(expr.value)


def _lowest_terms(numerator: Expr, denominator: int) -> Ratio:
    common = math.gcd(denominator, *[factor for factor, _ in numerator.terms])
    common = -common if denominator < 0 else common
    return floordiv(numerator, common), const(denominator // common)


# --- arithmetic -------------------------------------------------------------------------------------------------------

_EXACT: dict[str, Callable[[Ratio, Ratio], tuple[Expr, Expr]]] = {
    "add": lambda a, b: (add(mul(a[0], b[1]), mul(b[0], a[1])), mul(a[1], b[1])),
    "sub": lambda a, b: (sub(mul(a[0], b[1]), mul(b[0], a[1])), mul(a[1], b[1])),
    "mul": lambda a, b: (mul(a[0], b[0]), mul(a[1], b[1])),
    "div": lambda a, b: (mul(a[0], b[1]), mul(a[1], b[0])),
}


def combined(tracker: Tracker, function: str, *operands: Known) -> Known | None:
    """The function of floats; None where it is not known to be defined at other sizes. Errors are Python's own."""
    value = FUNCTIONS[function](*[operand.value for operand in operands])
    signs = _SIGNS[function](tracker, *operands)
    if signs is None:
        return None
    if function in _EXACT and all(operand.is_exact for operand in operands):
        a, b = (operand.ratio for operand in operands)
        assert a is not None
        assert b is not None
        found = _quotient(*_EXACT[function](a, b), value, tracker)
        if function == "div" or found.is_exact or isinstance(found.part, float):
            return found
    return Known(value, Real(function, tuple([operand.part for operand in operands])), *signs)


_Signs: TypeAlias = "tuple[Expr | None, bool] | None"
"""`zero` and `nonneg` of a result."""


def _of_sum(tracker: Tracker, a: Known, b: Known) -> _Signs:
    return None, a.nonneg and b.nonneg


def _of_difference(tracker: Tracker, a: Known, b: Known) -> _Signs:
    return None, False


def _of_product(tracker: Tracker, a: Known, b: Known) -> _Signs:
    zero = None if a.zero is None or b.zero is None else mul(a.zero, b.zero)
    return zero, a.nonneg and b.nonneg


def _of_quotient(tracker: Tracker, a: Known, b: Known) -> _Signs:
    return (a.zero, a.nonneg and b.nonneg) if _is_not_zero(tracker, b) else None


def _of_root(tracker: Tracker, a: Known) -> _Signs:
    return (a.zero, True) if _is_nonneg(tracker, a) else None


def _of_logarithm(tracker: Tracker, a: Known) -> _Signs:
    return (None, False) if _is_nonneg(tracker, a) and _is_not_zero(tracker, a) else None


def _of_power(tracker: Tracker, base: Known, exponent: Known) -> _Signs:
    power = exponent.value
    if not isinstance(exponent.part, float) or not 0 < abs(power) <= _LARGEST_EXPONENT:
        return None
    if not power.is_integer() and not _is_nonneg(tracker, base):
        return None
    if power < 0 and not _is_not_zero(tracker, base):
        return None
    return base.zero if power > 0 else ONE, base.nonneg or not power.is_integer()


_SIGNS: dict[str, Callable[..., _Signs]] = {
    "add": _of_sum,
    "sub": _of_difference,
    "mul": _of_product,
    "div": _of_quotient,
    "pow": _of_power,
    "sqrt": _of_root,
    "log": _of_logarithm,
    "log2": _of_logarithm,
    "log10": _of_logarithm,
}


def _is_nonneg(tracker: Tracker, known: Known) -> bool:
    """Asks, where no more than a sign is to be known."""
    if known.nonneg:
        return True
    return known.sign is not None and tracker.compare("le", ZERO, known.sign, known.value >= 0)


def _is_not_zero(tracker: Tracker, known: Known) -> bool:
    return known.zero is not None and not tracker.compare("eq", known.zero, ZERO, known.value == 0)


# --- comparison and rounding ------------------------------------------------------------------------------------------


def cross_products(tracker: Tracker, a: Known, b: Known) -> tuple[Expr, Expr] | None:
    """Two expressions that compare as the floats do."""
    if a.ratio is None or b.ratio is None or not all(_is_positive(tracker, r[1]) for r in (a.ratio, b.ratio)):
        return None
    return mul(a.ratio[0], b.ratio[1]), mul(b.ratio[0], a.ratio[1])


def _is_positive(tracker: Tracker, expr: Expr) -> bool:
    if expr.value is not None:
        return expr.value > 0
    return tracker.compare("lt", ZERO, expr, tracker.value(expr) > 0)


def floor(tracker: Tracker, known: Known) -> Expr | None:
    """⌊float⌋, where that is a function of sizes that the host program has."""
    if known.ratio is not None:
        return floordiv(*known.ratio) if _is_positive(tracker, known.ratio[1]) else None
    match known.part:
        case Real("mul", (Expr() as size, float(factor)) | (float(factor), Expr() as size)):
            return _scaled(size, factor)
        case Real("sqrt", (Expr() as size,)) | Real("pow", (Expr() as size, 0.5)):
            return isqrt(size)
        case _:
            return None


def ceil(tracker: Tracker, known: Known) -> Expr | None:
    if known.ratio is not None:
        return ceildiv(*known.ratio) if _is_positive(tracker, known.ratio[1]) else None
    match known.part:
        case Real("mul", (Expr() as size, float(factor)) | (float(factor), Expr() as size)):
            below = _scaled(size, -factor)
            return None if below is None else mul(-1, below)
        case Real("sqrt", (Expr() as size,)) | Real("pow", (Expr() as size, 0.5)):
            return select(lt(0, size), add(isqrt(sub(size, 1)), 1), 0)
        case _:
            return None


def trunc(tracker: Tracker, known: Known) -> Expr | None:
    if known.nonneg:
        return floor(tracker, known)
    if known.sign is None:
        return None
    return floor(tracker, known) if _is_nonneg(tracker, known) else ceil(tracker, known)


def nearest(tracker: Tracker, known: Known) -> Expr | None:
    """Rounded to an integer, a half to the even one."""
    if known.ratio is None or known.ratio[1].value is None:
        return None
    numerator, denominator = known.ratio
    twice, double = add(mul(2, numerator), denominator), mul(2, denominator)
    up = floordiv(twice, double)
    return sub(up, logical_and(eq(mod(twice, double), 0), mod(up, 2)))


def _scaled(size: Expr, factor: float) -> Expr | None:
    numerator, denominator = factor.as_integer_ratio()
    if abs(factor) > _LARGEST_FACTOR or denominator > _LARGEST_DENOMINATOR:
        return None
    return scaled(size, numerator, denominator)
