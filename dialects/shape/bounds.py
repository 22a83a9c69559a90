"""What values an expression can take, from what its symbols can be. Sound, not complete: None means "not known"."""

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import TypeAlias

from dlcb.dialects.shape import integers
from dlcb.dialects.shape.expr import FUNCTIONS, Expr, Term, add, is_condition, is_list, mod, mul, post_order, sub

Bounds: TypeAlias = tuple[int | None, int | None]
"""Least and greatest value, both included; None where there is none or none is known."""

_UNKNOWN: Bounds = (None, None)


def bounds(e: Expr, at_least: Mapping[str, int], known: dict[Expr, Bounds] | None = None) -> Bounds:
    """Bounds of the value, where each symbol in `at_least` is an integer of at least that much, and others are any.

    A caller may keep `known`, for the same `at_least`, so that each shared part is looked at once.
    """
    if e.op == "symbol":
        return at_least.get(e.name), None
    known = {} if known is None else known
    found = known.get(e)
    if found is not None:
        return found
    for node in post_order((e,), known):
        known[node] = _node_bounds(node, known, at_least)
    return known[e]


def lower_bound(e: Expr, at_least: Mapping[str, int], known: dict[Expr, Bounds] | None = None) -> int | None:
    return bounds(e, at_least, known)[0]


def is_nonneg(e: Expr, at_least: Mapping[str, int], known: dict[Expr, Bounds] | None = None) -> bool:
    """Whether the value is proved to be at least 0 everywhere."""
    if e.value is not None:
        return e.value >= 0
    least = lower_bound(e, at_least, known)
    if least is None or least < 0:
        opened = _open_divisions(e)
        least = lower_bound(opened, at_least, known) if opened is not None else None
    return least is not None and least >= 0


def is_positive(e: Expr, at_least: Mapping[str, int], known: dict[Expr, Bounds] | None = None) -> bool:
    return e.value > 0 if e.value is not None else is_nonneg(sub(e, 1), at_least, known)


def is_at_most(a: Expr, b: Expr, at_least: Mapping[str, int], known: dict[Expr, Bounds] | None = None) -> bool:
    """Whether a ≤ b is proved everywhere. Beside a literal the bounds of the other side say it, with nothing built."""
    if a.value is not None and not _has_literal_division(b):
        least = bounds(b, at_least, known)[0]
        return least is not None and a.value <= least
    if b.value is not None and not _has_literal_division(a):
        greatest = bounds(a, at_least, known)[1]
        return greatest is not None and greatest <= b.value
    return is_nonneg(sub(b, a), at_least, known)


def _has_literal_division(e: Expr) -> bool:
    return any([_is_literal_division(atom) for _, atoms in e.terms for atom in atoms])


def _is_literal_division(atom: Expr) -> bool:
    return atom.op == "floordiv" and (atom.args[1].value or 0) > 0


def _open_divisions(e: Expr) -> Expr | None:
    """A positive multiple of e that has a - a mod c for c·⌊a / c⌋, which ties it to a; None without such a division."""
    divisors = {atom.args[1].value or 1 for _, atoms in e.terms for atom in atoms if _is_literal_division(atom)}
    if not divisors:
        return None
    factor = prod(divisors)
    opened: list[Expr] = []
    for coefficient, atoms in e.terms:
        division = next(filter(_is_literal_division, atoms), None)
        if division is None:
            opened.append(mul(factor * coefficient, *atoms))
            continue
        dividend, divisor = division.args
        rest = list(atoms)
        rest.remove(division)
        scale = factor * coefficient // (divisor.value or 1)
        opened.append(mul(scale, sub(dividend, mod(dividend, divisor)), *rest))
    return add(*opened)


# --- one node ------------------------------------------------------------------------------------------------------


def _node_bounds(node: Expr, known: Mapping[Expr, Bounds], at_least: Mapping[str, int]) -> Bounds:
    if node.value is not None:
        return node.value, node.value
    if node.op == "symbol":
        return at_least.get(node.name), None
    if is_list(node):
        return _UNKNOWN
    if node.op not in FUNCTIONS:
        return _polynomial_bounds(node.terms, known)
    if is_condition(node):
        return 0, 1
    args = [known[arg] for arg in node.args]
    match node.op:
        case "floordiv":
            return _division_bounds(integers.floordiv, *args)
        case "ceildiv":
            return _division_bounds(integers.ceildiv, *args)
        case "mod":
            return _mod_bounds(*args)
        case "scaled":
            return _scaled_bounds(node, args[0])
        case "isqrt":
            low, high = args[0]
            return integers.isqrt(low or 0), None if high is None else integers.isqrt(high)
        case "minimum":
            return _least([low for low, _ in args]), min([high for _, high in args if high is not None], default=None)
        case "maximum":
            return max([low for low, _ in args if low is not None], default=None), _greatest([high for _, high in args])
        case "broadcast":
            return _least([low for low, _ in args]), _greatest([high for _, high in args])
        case "select":
            return _least([low for low, _ in args[1:]]), _greatest([high for _, high in args[1:]])
        case _:
            return _UNKNOWN


def _least(lows: Iterable[int | None]) -> int | None:
    known = list(lows)
    return None if None in known else min(low for low in known if low is not None)


def _greatest(highs: Iterable[int | None]) -> int | None:
    known = list(highs)
    return None if None in known else max(high for high in known if high is not None)


def _division_bounds(divide: Callable[[int, int], int], dividend: Bounds, divisor: Bounds) -> Bounds:
    """Of ⌊a / b⌋ (or ⌈a / b⌉) with b ≥ 0, where a division by zero gives 0."""
    (low, high), (least, greatest) = dividend, divisor
    if least is None or least < 0:
        return _UNKNOWN
    smallest = max(least, 1)
    lower = upper = None
    if low is not None:
        lower = divide(low, smallest) if low < 0 else 0 if least == 0 or greatest is None else divide(low, greatest)
    if high is not None:
        upper = divide(high, smallest) if high >= 0 else 0 if least == 0 or greatest is None else divide(high, greatest)
    return lower, upper


def _mod_bounds(dividend: Bounds, divisor: Bounds) -> Bounds:
    (low, high), (least, greatest) = dividend, divisor
    if least is None or least < 0:
        return _UNKNOWN
    uppers = [max(greatest - 1, 0)] if greatest is not None else []
    if low is not None and low >= 0 and high is not None:
        uppers.append(high)
    return 0, min(uppers, default=None)


def _scaled_bounds(node: Expr, x: Bounds) -> Bounds:
    num, den = node.args[1].value or 0, node.args[2].value or 1
    low, high = x if num >= 0 else (x[1], x[0])
    return (
        None if low is None else integers.scaled(low, num, den),
        None if high is None else integers.scaled(high, num, den),
    )


# --- polynomials ---------------------------------------------------------------------------------------------------

_Shift: TypeAlias = tuple[int, int, int | None]
"""An atom as base + sign·v, with 0 ≤ v ≤ span."""


def _shift(limits: Bounds) -> _Shift | None:
    low, high = limits
    if low is not None:
        return low, 1, None if high is None else high - low
    return None if high is None else (high, -1, None)


def _polynomial_bounds(terms: tuple[Term, ...], known: Mapping[Expr, Bounds]) -> Bounds:
    """Substitutes each atom by its distance to a bound, then adds up what each product of distances can reach."""
    sums: dict[tuple[Expr, ...], int] = {(): 0}
    spans: dict[Expr, int | None] = {}
    for coefficient, atoms in terms:
        product: dict[tuple[Expr, ...], int] = {(): coefficient}
        for atom in atoms:
            shift = _shift(known[atom])
            if shift is None:
                return _UNKNOWN
            base, sign, spans[atom] = shift
            grown: dict[tuple[Expr, ...], int] = {}
            for distances, factor in product.items():
                grown[distances] = grown.get(distances, 0) + factor * base
                grown[(*distances, atom)] = factor * sign
            product = grown
        for distances, factor in product.items():
            sums[distances] = sums.get(distances, 0) + factor
    low: int | None = sums.pop(())
    high = low
    for distances, factor in sums.items():
        reach = _reach(factor, [spans[atom] for atom in distances])
        if factor < 0:
            low = None if low is None or reach is None else low + reach
        elif factor > 0:
            high = None if high is None or reach is None else high + reach
    return low, high


def _reach(factor: int, spans: list[int | None]) -> int | None:
    """The value of factor · Π v that is farthest from 0."""
    if any(span == 0 for span in spans):
        return 0
    finite = [span for span in spans if span is not None]
    return factor * prod(finite) if len(finite) == len(spans) else None
