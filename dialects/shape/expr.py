"""Integer expressions over named sizes: immutable, hash-consed, canonical.

Equal polynomials are the same object, so `is` is equality of expressions; everything that is no polynomial (`floordiv`,
`minimum`, `select`, comparisons, …) is an *atom* of polynomials. A condition is an expression whose value is 0 or 1.

`floordiv` and `mod` are Python's. A division by zero evaluates to 0, but an expression whose divisor is zero has no
meaning that simplification keeps: `n*m // m` is `n` here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from operator import attrgetter
from typing import TypeAlias
from weakref import ref

from dlcb.errors import InternalError

Monomial: TypeAlias = "tuple[Expr, ...]"
Term: TypeAlias = "tuple[int, Monomial]"
ExprLike: TypeAlias = "Expr | int"

_MEMO_SIZE = 1 << 16
_DIGEST_MASK = (1 << 60) - 1


class Expr:
    """One node. Made by the functions of this module only, which is what makes `is` mean equality.

    `op` is "constant", "symbol", "add", "mul" or a name in `FUNCTIONS`. Walk a tree through `op` and `args`, or take a
    polynomial apart with `terms`.
    """

    __slots__ = ("__weakref__", "_args", "_digest", "_text", "free", "key", "name", "op", "terms", "value")

    op: str
    value: int | None
    """The number, when the expression is a constant."""
    name: str
    """The symbol's name; empty for all other nodes."""
    terms: tuple[Term, ...]
    """The polynomial: coefficients and sorted atoms, in canonical order, the constant term last."""
    free: frozenset[str]
    key: str
    """Orders the atoms of a monomial; the same in every process."""
    _args: tuple[Expr, ...] | None
    _digest: int | None
    _text: str | None

    def __init__(self) -> None:
        self.value = self._args = self._digest = self._text = None
        self.name = ""

    @property
    def args(self) -> tuple[Expr, ...]:
        """Operands: of an `add` its products, of a `mul` its coefficient (unless 1) and its atoms."""
        if self._args is None:
            self._args = _polynomial_args(self)
        return self._args

    @property
    def is_const(self) -> bool:
        return self.value is not None

    @property
    def digest(self) -> int:
        """A structural hash that is the same in every process."""
        if self._digest is None:
            flat = [part for coefficient, atoms in self.terms for part in (_scramble(coefficient), *(a.digest for a in atoms), 7)]
            self._digest = hash((3, *flat)) & _DIGEST_MASK
        return self._digest

    def __str__(self) -> str:
        if self._text is None:
            for node in post_order((self,)):
                if node._text is None:
                    node._text = _text(node)
        return self._text or ""

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __reduce_ex__(self, protocol: object) -> str:
        raise TypeError(f"{self!r} can be neither copied nor pickled: equal expressions are one object")


# --- interning -----------------------------------------------------------------------------------------------------

_interned: dict[object, ref[Expr]] = {}
_lock = threading.RLock()
_NOTHING: frozenset[str] = frozenset()
_by_key = attrgetter("key")


def _find(identity: object) -> Expr | None:
    found = _interned.get(identity)
    return found() if found is not None else None


def _keep(identity: object, node: Expr) -> Expr:
    """The one node with this identity, which is `node` unless another thread was faster. It leaves the table when it dies."""
    with _lock:
        found = _find(identity)
        if found is None:
            _interned[identity] = ref(node, partial(_forget, identity))
            return node
        return found


def _forget(identity: object, dead: ref[Expr]) -> None:
    with _lock:
        if _interned.get(identity) is dead:
            del _interned[identity]


def _scramble(value: int) -> int:
    """A hash of an integer that tells -1 from -2, unlike Python's."""
    return (value * 0x9E3779B97F4A7C15 + 0x7F4A7C15) & _DIGEST_MASK


@lru_cache(_MEMO_SIZE)
def const(value: int) -> Expr:
    value = int(value)
    found = _find(value)
    if found is not None:
        return found
    node = Expr()
    node.op, node.value, node._args, node.free = "constant", value, (), _NOTHING
    node.terms = ((value, ()),) if value else ()
    node.key = f"~~{value}"
    node._digest = hash((1, _scramble(value))) & _DIGEST_MASK
    return _keep(value, node)


@lru_cache(_MEMO_SIZE)
def sym(name: str) -> Expr:
    found = _find(name)
    if found is not None:
        return found
    node = Expr()
    node.op, node.name, node._args, node.free, node.key = "symbol", name, (), frozenset((name,)), name
    node.terms = ((1, (node,)),)
    node._digest = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") & _DIGEST_MASK
    return _keep(name, node)


def _atom(op: str, args: tuple[Expr, ...]) -> Expr:
    identity = (op, args)
    found = _find(identity)
    if found is not None:
        return found
    node = Expr()
    node.op, node._args = op, args
    node.free = _NOTHING.union(*[a.free for a in args])
    node._digest = digest = hash((_OP_NUMBER[op], *[a.digest for a in args])) & _DIGEST_MASK
    node.key = f"~{op}{digest:015x}"
    node.terms = ((1, (node,)),)
    return _keep(identity, node)


ZERO = const(0)
ONE = const(1)


def as_expr(value: Expr | int | str) -> Expr:
    """An expression as it is, an integer as a constant, a string as the symbol of that name (so: any dim)."""
    if isinstance(value, Expr):
        return value
    return sym(value) if isinstance(value, str) else const(value)


# --- polynomials ---------------------------------------------------------------------------------------------------


def _monomial_key(item: tuple[Monomial, int]) -> list[str]:
    return [atom.key for atom in item[0]]


def _polynomial(sums: dict[Monomial, int]) -> Expr:
    constant = sums.pop((), 0)
    items = [item for item in sums.items() if item[1]]
    if not items:
        return const(constant)
    if len(items) > 1:
        items.sort(key=_monomial_key)
    elif not constant and items[0][1] == 1 and len(items[0][0]) == 1:
        return items[0][0][0]
    terms_ = tuple([(coefficient, atoms) for atoms, coefficient in items])
    if constant:
        terms_ += ((constant, ()),)

    found = _find(terms_)
    if found is not None:
        return found
    node = Expr()
    node.op = "add" if len(terms_) > 1 else "mul"
    node.terms = terms_
    node.free = _NOTHING.union(*[atom.free for _, atoms in terms_ for atom in atoms])
    node.key = ""
    return _keep(terms_, node)


def terms(e: Expr) -> list[Term]:
    """The sum as (coefficient, atoms) pairs; an atom stands as often as its power; constants have no atoms."""
    return list(e.terms)


def from_terms(terms: Iterable[tuple[int, Sequence[Expr]]]) -> Expr:
    """The inverse of `terms`; the factors may be in any order and any expressions."""
    return add(*[mul(coefficient, *factors) for coefficient, factors in terms])


def _polynomial_args(e: Expr) -> tuple[Expr, ...]:
    if e.op == "add":
        return tuple([_polynomial({atoms: coefficient}) for coefficient, atoms in e.terms])
    ((coefficient, atoms),) = e.terms
    return atoms if coefficient == 1 else (const(coefficient), *atoms)


@lru_cache(_MEMO_SIZE)
def add(*args: ExprLike) -> Expr:
    sums: dict[Monomial, int] = {}
    for arg in args:
        if isinstance(arg, Expr):
            for coefficient, atoms in arg.terms:
                sums[atoms] = sums.get(atoms, 0) + coefficient
        else:
            sums[()] = sums.get((), 0) + arg
    return _polynomial(sums)


@lru_cache(_MEMO_SIZE)
def sub(a: ExprLike, b: ExprLike) -> Expr:
    return add(a, mul(-1, b))


@lru_cache(_MEMO_SIZE)
def mul(*args: ExprLike) -> Expr:
    product: dict[Monomial, int] = {(): 1}
    for arg in args:
        factor = arg.terms if isinstance(arg, Expr) else ((arg, ()),)
        sums: dict[Monomial, int] = {}
        for left, left_coefficient in product.items():
            for coefficient, right in factor:
                atoms = tuple(sorted(left + right, key=_by_key)) if left and right else left or right
                sums[atoms] = sums.get(atoms, 0) + left_coefficient * coefficient
        product = sums
    return _polynomial(product)


def constant_term(e: Expr) -> int:
    return e.terms[-1][0] if e.terms and not e.terms[-1][1] else 0


# --- atoms ---------------------------------------------------------------------------------------------------------


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
    return max(e.terms, key=lambda term: (len(term[1]), [atom.key for atom in term[1]]))


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """The polynomial q with a = q·b, if there is one: long division that gives up at the first remainder."""
    if b is ONE or a is ZERO:
        return a
    if b is ZERO:
        return None
    divisor = _leading(b)
    quotient: list[Term] = []
    while a is not ZERO:
        term = _divide_term(_leading(a), divisor)
        if term is None:
            return None
        quotient.append(term)
        a = sub(a, mul(from_terms((term,)), b))
    return from_terms(quotient)


@lru_cache(_MEMO_SIZE)
def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """⌊a / b⌋. By a literal, what divides exactly is pulled out of the division."""
    a, b = as_expr(a), as_expr(b)
    if b is ZERO:
        return ZERO
    quotient = exact_quotient(a, b)
    if quotient is not None:
        return quotient
    if b.value is None:
        return _atom("floordiv", (a, b))
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
    atom = _atom("floordiv", (remainder, const(divisor)))
    return add(from_terms(whole), atom) if whole else atom


@lru_cache(_MEMO_SIZE)
def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """⌈a / b⌉; by a literal it is written as `floordiv`."""
    a, b = as_expr(a), as_expr(b)
    if b.value is not None:
        return floordiv(add(a, b.value - 1), b) if b.value >= 0 else ceildiv(mul(-1, a), -b.value)
    quotient = exact_quotient(a, b)
    return quotient if quotient is not None else _atom("ceildiv", (a, b))


@lru_cache(_MEMO_SIZE)
def mod(a: ExprLike, b: ExprLike) -> Expr:
    """a - b·⌊a / b⌋, with b's sign. By a literal, multiples of it are dropped."""
    a, b = as_expr(a), as_expr(b)
    if b is ZERO or exact_quotient(a, b) is not None:
        return ZERO
    if b.value is None:
        return _atom("mod", (a, b))
    if b.value < 0:
        return mul(-1, mod(mul(-1, a), -b.value))
    divisor = b.value
    rest = from_terms([(c % divisor if c > 0 or not c % divisor or not atoms else c, atoms) for c, atoms in a.terms])
    return const(rest.value % divisor) if rest.value is not None else _atom("mod", (rest, b))


@lru_cache(_MEMO_SIZE)
def scaled(x: ExprLike, num: int, den: int) -> Expr:
    """⌊x·num / den⌋ in exact arithmetic: the product of a size and a float, rounded down."""
    x, common = as_expr(x), _gcd(num, den)
    num, den = num // common, den // common
    if x.value is not None:
        return const(x.value * num // den)
    if den <= 1 << 20:
        return floordiv(mul(num, x), den)
    return _atom("scaled", (x, const(num), const(den)))


def _gcd(num: int, den: int) -> int:
    if den <= 0:
        raise InternalError(f"scaled: the denominator is {den}, expected a positive one")
    while den:
        num, den = den, num % den
    return abs(num)


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
    return kept[0] if len(kept) == 1 else _atom(op, tuple(sorted(kept, key=_order)))


def _order(e: Expr) -> tuple[str, int]:
    return e.key, e.digest


@lru_cache(_MEMO_SIZE)
def minimum(*args: ExprLike) -> Expr:
    return _extremum("minimum", args, lambda difference: difference < 0)


@lru_cache(_MEMO_SIZE)
def maximum(*args: ExprLike) -> Expr:
    return _extremum("maximum", args, lambda difference: difference > 0)


@lru_cache(_MEMO_SIZE)
def broadcast(a: ExprLike, b: ExprLike) -> Expr:
    """The common size of two sizes that are equal or of which one is 1; without meaning for others."""
    a, b = as_expr(a), as_expr(b)
    if a is b or b is ONE:
        return a
    if a is ONE:
        return b
    a, b = sorted((a, b), key=_order)
    if a.value is not None and b.value is not None:
        return const(_broadcast(a.value, b.value))
    return _atom("broadcast", (a, b))


# --- conditions ----------------------------------------------------------------------------------------------------


@lru_cache(_MEMO_SIZE)
def eq(a: ExprLike, b: ExprLike) -> Expr:
    difference = sub(a, b).value
    if difference is not None:
        return const(difference == 0)
    return _atom("eq", tuple(sorted((as_expr(a), as_expr(b)), key=_order)))


@lru_cache(_MEMO_SIZE)
def ne(a: ExprLike, b: ExprLike) -> Expr:
    return logical_not(eq(a, b))


@lru_cache(_MEMO_SIZE)
def lt(a: ExprLike, b: ExprLike) -> Expr:
    difference = sub(a, b).value
    return const(difference < 0) if difference is not None else _atom("lt", (as_expr(a), as_expr(b)))


@lru_cache(_MEMO_SIZE)
def le(a: ExprLike, b: ExprLike) -> Expr:
    difference = sub(a, b).value
    return const(difference <= 0) if difference is not None else _atom("le", (as_expr(a), as_expr(b)))


def divides(a: ExprLike, b: ExprLike) -> Expr:
    """b is a multiple of a; zero divides zero only."""
    a, b = as_expr(a), as_expr(b)
    return select(eq(a, 0), eq(b, 0), eq(mod(b, a), 0))


def broadcastable(a: ExprLike, b: ExprLike) -> Expr:
    return logical_or(eq(a, b), eq(a, 1), eq(b, 1))


def is_condition(e: Expr) -> bool:
    """Whether the value is 0 or 1 by construction."""
    return e.op in _CONDITIONS or e is ZERO or e is ONE


def _truth(e: Expr) -> Expr:
    return e if is_condition(e) else ne(e, 0)


@lru_cache(_MEMO_SIZE)
def logical_not(a: ExprLike) -> Expr:
    a = as_expr(a)
    if a.value is not None:
        return const(a.value == 0)
    match a.op:
        case "eq":
            return _atom("ne", a.args)
        case "ne":
            return _atom("eq", a.args)
        case "lt":
            return _atom("le", (a.args[1], a.args[0]))
        case "le":
            return _atom("lt", (a.args[1], a.args[0]))
        case "logical_not":
            return a.args[0]
        case _:
            return _atom("logical_not", (a,)) if is_condition(a) else eq(a, 0)


def _connective(op: str, args: tuple[ExprLike, ...], neutral: Expr) -> Expr:
    absorbing = logical_not(neutral)
    parts = [part for part in _flatten(op, [_truth(as_expr(a)) for a in args]) if part is not neutral]
    if absorbing in parts or any(logical_not(part) in parts for part in parts):
        return absorbing
    if len(parts) < 2:
        return parts[0] if parts else neutral
    return _atom(op, tuple(sorted(parts, key=_order)))


@lru_cache(_MEMO_SIZE)
def logical_and(*args: ExprLike) -> Expr:
    return _connective("logical_and", args, ONE)


@lru_cache(_MEMO_SIZE)
def logical_or(*args: ExprLike) -> Expr:
    return _connective("logical_or", args, ZERO)


@lru_cache(_MEMO_SIZE)
def select(condition: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    condition, a, b = _truth(as_expr(condition)), as_expr(a), as_expr(b)
    if condition.value is not None:
        return a if condition.value else b
    return a if a is b else _atom("select", (condition, a, b))


# --- values --------------------------------------------------------------------------------------------------------


def _broadcast(a: int, b: int) -> int:
    return b if a == 1 else a


FUNCTIONS: dict[str, Callable[..., int]] = {
    "floordiv": lambda a, b: a // b if b else 0,
    "ceildiv": lambda a, b: -(-a // b) if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "scaled": lambda x, num, den: x * num // den,
    "minimum": min,
    "maximum": max,
    "broadcast": _broadcast,
    "select": lambda condition, a, b: a if condition else b,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "logical_and": lambda *args: int(all(args)),
    "logical_or": lambda *args: int(any(args)),
    "logical_not": lambda a: int(not a),
}
"""What each atom computes from the values of its operands."""

_OP_NUMBER = {op: number for number, op in enumerate(FUNCTIONS, start=10)}
_CONDITIONS = frozenset(("eq", "ne", "lt", "le", "logical_and", "logical_or", "logical_not"))

_CONSTRUCTORS: dict[str, Callable[..., Expr]] = {
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
    "minimum": minimum,
    "maximum": maximum,
    "broadcast": broadcast,
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
}


def call(op: str, *args: ExprLike) -> Expr:
    """The function of that name (`Expr.op`) applied to the operands."""
    if op == "scaled":
        x, num, den = args
        return scaled(x, as_expr(num).value or 0, as_expr(den).value or 0)
    return _CONSTRUCTORS[op](*args)


def children(e: Expr) -> Sequence[Expr]:
    """The direct sub-expressions: operands of an atom, atoms of a polynomial."""
    if e.op in FUNCTIONS:
        return e.args
    if e.op in ("add", "mul"):
        return [atom for _, atoms in e.terms for atom in atoms]
    return ()


def post_order(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Every distinct node below the roots once, operands first; without recursion, so of any depth."""
    seen: set[Expr] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                yield node
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend([(child, False) for child in reversed(children(node)) if child not in seen])


def evaluate(e: Expr, env: Mapping[str, int]) -> int:
    """The value where each symbol has its value in `env`."""
    if e.value is not None:
        return e.value
    values: dict[Expr, int] = {}
    for node in post_order((e,)):
        if node.value is not None:
            values[node] = node.value
        elif node.op == "symbol":
            if node.name not in env:
                raise InternalError(f"evaluate: symbol '{node.name}' of {e} has no value; given: {sorted(env)}")
            values[node] = int(env[node.name])
        elif node.op in FUNCTIONS:
            values[node] = FUNCTIONS[node.op](*[values[a] for a in node.args])
        else:
            values[node] = _evaluate_terms(node.terms, values)
    return values[e]


def _evaluate_terms(terms: tuple[Term, ...], values: Mapping[Expr, int]) -> int:
    total = 0
    for coefficient, atoms in terms:
        for atom in atoms:
            coefficient *= values[atom]
        total += coefficient
    return total


def substitute(e: Expr, env: Mapping[str, ExprLike]) -> Expr:
    """The expression with the symbols in `env` replaced, all at once."""
    names = env.keys()
    if e.free.isdisjoint(names):
        return e
    if e.op == "symbol":
        return as_expr(env[e.name])
    new: dict[Expr, Expr] = {}
    for node in post_order((e,)):
        if node.free.isdisjoint(names):
            new[node] = node
        elif node.op == "symbol":
            new[node] = as_expr(env[node.name])
        elif node.op in FUNCTIONS:
            new[node] = call(node.op, *[new[a] for a in node.args])
        else:
            new[node] = from_terms([(c, [new[atom] for atom in atoms]) for c, atoms in node.terms])
    return new[e]


# --- text ----------------------------------------------------------------------------------------------------------

_INFIX = {"floordiv": "//", "mod": "%", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "logical_and": "and", "logical_or": "or"}


def _text(e: Expr) -> str:
    if e.value is not None:
        return str(e.value)
    if e.op == "symbol":
        return e.name
    if e.op in _INFIX:
        return f" {_INFIX[e.op]} ".join(map(_in_parentheses, e.args))
    if e.op in FUNCTIONS:
        return f"{e.op}({', '.join(map(str, e.args))})"
    text = ""
    for coefficient, atoms in e.terms:
        sign = (" - " if text else "-") if coefficient < 0 else " + " if text else ""
        factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not atoms else []
        text += sign + "*".join(factors + [_in_parentheses(atom) for atom in atoms])
    return text


def _in_parentheses(e: Expr) -> str:
    return f"({e})" if e.op in _INFIX or e.op == "add" or (e.op == "mul") else str(e)
