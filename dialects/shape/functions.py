"""Constructors of the functions that are no polynomials; each folds what is cheap to fold. Use it through `expr`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import gcd

from dlcb.dialects.shape import integers
from dlcb.dialects.shape.lists import concat, elements, is_list, permute, size_list
from dlcb.dialects.shape.nodes import (
    MEMO_SIZE,
    ONE,
    ZERO,
    Expr,
    ExprLike,
    Term,
    add,
    as_expr,
    const,
    from_terms,
    function_node,
    mul,
    sub,
)
from dlcb.errors import InternalError

_EXACT_NUMERATOR = 1 << 20
_EXACT_DENOMINATOR = 1 << 20
"""A size times such a ratio is exact in double precision: it is written as `floordiv`, which knows more laws."""

# --- division ---------------------------------------------------------------------------------------------------------


def _divide_term(term: Term, divisor: Term) -> Term | None:
    coefficient, atoms = divisor
    if term[0] % coefficient:
        return None
    rest = list(term[1])
    for atom in atoms:
        if atom not in rest:
            return None
        rest.remove(atom)
    return term[0] // coefficient, tuple(rest)


def _leading(e: Expr) -> Term:
    """The greatest term in an order that products keep (by degree, then by the atoms)."""
    if len(e.terms) == 1:
        return e.terms[0]
    return max(e.terms, key=lambda term: (len(term[1]), [atom.key for atom in term[1]]))


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """The polynomial q with a = q·b, if there is one: long division that gives up at the first remainder."""
    if b is ONE or a is ZERO:
        return a
    if b is ZERO:
        return None
    divisor = _leading(b)
    quotient: list[Term] = []
    if len(b.terms) == 1:
        for term in a.terms:
            divided = _divide_term(term, divisor)
            if divided is None:
                return None
            quotient.append(divided)
        return from_terms(quotient)
    while a is not ZERO:
        term = _divide_term(_leading(a), divisor)
        if term is None:
            return None
        quotient.append(term)
        a = sub(a, mul(from_terms((term,)), b))
    return from_terms(quotient)


@lru_cache(MEMO_SIZE)
def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """⌊a / b⌋. By a literal, what divides exactly is pulled out of the division."""
    a, b = as_expr(a), as_expr(b)
    if b is ZERO:
        return ZERO
    quotient = exact_quotient(a, b)
    if quotient is not None:
        return quotient
    if b.value is None:
        return function_node("floordiv", (a, b))
    if b.value < 0:
        return floordiv(mul(-1, a), -b.value)
    return _divide_by_literal(a, b.value)


def _divide_by_literal(a: Expr, divisor: int) -> Expr:
    whole: list[Term] = []
    rest: list[Term] = []
    for coefficient, atoms in a.terms:
        if not atoms:
            whole.append((coefficient // divisor, ()))
            rest.append((coefficient % divisor, ()))
        elif coefficient % divisor == 0:
            whole.append((coefficient // divisor, atoms))
        else:
            rest.append((coefficient, atoms))
    remainder = from_terms(rest)
    if remainder.value is not None:
        return add(from_terms(whole), remainder.value // divisor)
    quotient = function_node("floordiv", (remainder, const(divisor)))
    return add(from_terms(whole), quotient) if whole else quotient


@lru_cache(MEMO_SIZE)
def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """⌈a / b⌉; by a literal it is written as `floordiv`."""
    a, b = as_expr(a), as_expr(b)
    if b.value is not None:
        return floordiv(add(a, b.value - 1), b) if b.value >= 0 else ceildiv(mul(-1, a), -b.value)
    quotient = exact_quotient(a, b)
    return quotient if quotient is not None else function_node("ceildiv", (a, b))


@lru_cache(MEMO_SIZE)
def mod(a: ExprLike, b: ExprLike) -> Expr:
    """a - b·⌊a / b⌋, with b's sign. By a literal, multiples of it are dropped."""
    a, b = as_expr(a), as_expr(b)
    if b is ZERO or exact_quotient(a, b) is not None:
        return ZERO
    if b.value is None:
        return function_node("mod", (a, b))
    if b.value < 0:
        return mul(-1, mod(mul(-1, a), -b.value))
    divisor = b.value
    rest = from_terms([(c % divisor if c > 0 or not c % divisor or not atoms else c, atoms) for c, atoms in a.terms])
    return const(rest.value % divisor) if rest.value is not None else function_node("mod", (rest, b))


@lru_cache(MEMO_SIZE)
def scaled(x: ExprLike, num: int, den: int) -> Expr:
    """⌊x · f⌋ of a size and the float f = num / den, where the product is rounded to double precision before."""
    if den <= 0:
        raise InternalError(f"scaled: the denominator is {den}, expected a positive one")
    x, common = as_expr(x), gcd(num, den)
    num, den = num // common, den // common
    if x.value is not None:
        return const(integers.scaled(x.value, num, den))
    if abs(num) < _EXACT_NUMERATOR and den <= _EXACT_DENOMINATOR and den & (den - 1) == 0:
        return floordiv(mul(num, x), den)
    return function_node("scaled", (x, const(num), const(den)))


@lru_cache(MEMO_SIZE)
def isqrt(x: ExprLike) -> Expr:
    """⌊√x⌋; 0 where x is negative."""
    x = as_expr(x)
    return function_node("isqrt", (x,)) if x.value is None else const(integers.isqrt(x.value))


# --- choice -------------------------------------------------------------------------------------------------------


def _flatten(op: str, args: Iterable[ExprLike]) -> dict[Expr, None]:
    """The distinct operands of an associative, idempotent function."""
    flat: dict[Expr, None] = {}
    for arg in args:
        arg = as_expr(arg)
        flat.update(dict.fromkeys(arg.args) if arg.op == op else {arg: None})
    return flat


def _extremum(op: str, args: tuple[ExprLike, ...], better: Callable[[int], bool]) -> Expr:
    """Keeps, of operands that differ by a literal, the one for which `better(difference to the other)`."""
    kept: list[Expr] = []
    for arg in _flatten(op, args):
        for i, other in enumerate(kept):
            difference = sub(arg, other).value
            if difference is not None:
                kept[i] = arg if better(difference) else other
                break
        else:
            kept.append(arg)
    return kept[0] if len(kept) == 1 else function_node(op, tuple(sorted(kept, key=_order)))


def _order(e: Expr) -> tuple[str, int]:
    return e.key, e.digest


@lru_cache(MEMO_SIZE)
def minimum(*args: ExprLike) -> Expr:
    return _extremum("minimum", args, lambda difference: difference < 0)


@lru_cache(MEMO_SIZE)
def maximum(*args: ExprLike) -> Expr:
    return _extremum("maximum", args, lambda difference: difference > 0)


@lru_cache(MEMO_SIZE)
def broadcast(a: ExprLike, b: ExprLike) -> Expr:
    """The common size of two sizes that are equal or of which one is 1; without meaning for others."""
    a, b = as_expr(a), as_expr(b)
    if a is b or b is ONE:
        return a
    if a is ONE:
        return b
    a, b = sorted((a, b), key=_order)
    if a.value is not None and b.value is not None:
        return const(integers.broadcast(a.value, b.value))
    return function_node("broadcast", (a, b))


# --- conditions ----------------------------------------------------------------------------------------------------


@lru_cache(MEMO_SIZE)
def eq(a: ExprLike, b: ExprLike) -> Expr:
    """Of two lists: all elements are equal."""
    if isinstance(a, Expr) and isinstance(b, Expr) and is_list(a) and is_list(b):
        pairs = list(zip(elements(a), elements(b), strict=False))
        return logical_and(*[eq(x, y) for x, y in pairs]) if len(elements(a)) == len(elements(b)) else ZERO
    difference = sub(a, b).value
    if difference is not None:
        return const(difference == 0)
    return function_node("eq", tuple(sorted((as_expr(a), as_expr(b)), key=_order)))


@lru_cache(MEMO_SIZE)
def ne(a: ExprLike, b: ExprLike) -> Expr:
    return logical_not(eq(a, b))


@lru_cache(MEMO_SIZE)
def lt(a: ExprLike, b: ExprLike) -> Expr:
    difference = sub(a, b).value
    return const(difference < 0) if difference is not None else function_node("lt", (as_expr(a), as_expr(b)))


@lru_cache(MEMO_SIZE)
def le(a: ExprLike, b: ExprLike) -> Expr:
    difference = sub(a, b).value
    return const(difference <= 0) if difference is not None else function_node("le", (as_expr(a), as_expr(b)))


def divides(a: ExprLike, b: ExprLike) -> Expr:
    """b is a multiple of a; zero divides zero only."""
    a, b = as_expr(a), as_expr(b)
    return select(eq(a, 0), eq(b, 0), eq(mod(b, a), 0))


def broadcastable(a: ExprLike, b: ExprLike) -> Expr:
    return logical_or(eq(a, b), eq(a, 1), eq(b, 1))


def expandable(a: ExprLike, b: ExprLike) -> Expr:
    """Whether size a becomes b by repetition: it is b, or 1."""
    return logical_or(eq(a, b), eq(a, 1))


_CONDITIONS = frozenset(("eq", "ne", "lt", "le", "logical_and", "logical_or", "logical_not"))


def is_condition(e: Expr) -> bool:
    """Whether the value is 0 or 1 by construction."""
    return e.op in _CONDITIONS or e is ZERO or e is ONE


def _truth(e: Expr) -> Expr:
    return e if is_condition(e) else ne(e, 0)


@lru_cache(MEMO_SIZE)
def logical_not(a: ExprLike) -> Expr:
    a = as_expr(a)
    if a.value is not None:
        return const(a.value == 0)
    match a.op:
        case "eq":
            return function_node("ne", a.args)
        case "ne":
            return function_node("eq", a.args)
        case "lt":
            return function_node("le", (a.args[1], a.args[0]))
        case "le":
            return function_node("lt", (a.args[1], a.args[0]))
        case "logical_not":
            return a.args[0]
        case _:
            return function_node("logical_not", (a,)) if is_condition(a) else eq(a, 0)


def _connective(op: str, args: tuple[ExprLike, ...], neutral: Expr) -> Expr:
    absorbing = logical_not(neutral)
    parts = [part for part in _flatten(op, [_truth(as_expr(a)) for a in args]) if part is not neutral]
    if absorbing in parts or any(logical_not(part) in parts for part in parts):
        return absorbing
    if len(parts) < 2:
        return parts[0] if parts else neutral
    return function_node(op, tuple(sorted(parts, key=_order)))


@lru_cache(MEMO_SIZE)
def logical_and(*args: ExprLike) -> Expr:
    return _connective("logical_and", args, ONE)


@lru_cache(MEMO_SIZE)
def logical_or(*args: ExprLike) -> Expr:
    return _connective("logical_or", args, ZERO)


@lru_cache(MEMO_SIZE)
def select(condition: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    condition, a, b = _truth(as_expr(condition)), as_expr(a), as_expr(b)
    if condition.value is not None:
        return a if condition.value else b
    return a if a is b else function_node("select", (condition, a, b))


# --- by name ------------------------------------------------------------------------------------------------------

_CONSTRUCTORS: dict[str, Callable[..., Expr]] = {
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
    "minimum": minimum,
    "maximum": maximum,
    "broadcast": broadcast,
    "isqrt": isqrt,
    "select": select,
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "le": le,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "logical_not": logical_not,
    "add": add,
    "mul": mul,
    "list": size_list,
    "concat": concat,
    "permute": permute,
}


def call(op: str, *args: ExprLike) -> Expr:
    """The function of that name (`Expr.op`) applied to the operands."""
    if op == "scaled":
        x, num, den = args
        return scaled(x, as_expr(num).value or 0, as_expr(den).value or 0)
    return _CONSTRUCTORS[op](*args)
