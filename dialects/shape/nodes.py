"""The nodes of size expressions: interning, polynomials, and what functions mean. Use it through `expr`."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from operator import attrgetter
from typing import TypeAlias
from weakref import ref

from dlcb.dialects.shape.integers import CALLS

MEMO_SIZE = 1 << 16
"""How many results each constructor remembers."""
_DIGEST_MASK = (1 << 60) - 1


_FUNCTION_NUMBER = {op: number for number, op in enumerate(CALLS, start=10)}


class Expr:
    """One node. Made by the functions of this module only, which is what makes `is` mean equality.

    `op` is "constant", "symbol", "add", "mul" or a name in `CALLS`. Walk a tree through `op` and `args`, or take a
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

    def __init__(self, op: str, free: frozenset[str], args: tuple[Expr, ...] | None, digest: int | None) -> None:
        self.op = op
        self.free = free
        self.value = None
        self.name = self.key = ""
        self._args = args
        self._digest = digest
        self._text = None

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
            flat = [
                part
                for coefficient, atoms in self.terms
                for part in (_scramble(coefficient), *(a.digest for a in atoms), 7)
            ]
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


Monomial: TypeAlias = tuple[Expr, ...]
Term: TypeAlias = tuple[int, Monomial]
ExprLike: TypeAlias = Expr | int

# --- interning -----------------------------------------------------------------------------------------------------

_interned: dict[object, ref[Expr]] = {}
_lock = threading.RLock()
_NOTHING: frozenset[str] = frozenset()
_by_key = attrgetter("key")


def _find(identity: object) -> Expr | None:
    found = _interned.get(identity)
    return found() if found is not None else None


def _keep(identity: object, node: Expr) -> Expr:
    """The one node with this identity: `node`, unless another thread was faster. It leaves the table when it dies."""
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


@lru_cache(MEMO_SIZE)
def const(value: int) -> Expr:
    value = int(value)
    found = _find(value)
    if found is not None:
        return found
    node = Expr("constant", _NOTHING, (), hash((1, _scramble(value))) & _DIGEST_MASK)
    node.value, node.key = value, f"~~{value}"
    node.terms = ((value, ()),) if value else ()
    return _keep(value, node)


@lru_cache(MEMO_SIZE)
def sym(name: str) -> Expr:
    found = _find(name)
    if found is not None:
        return found
    digest = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little") & _DIGEST_MASK
    node = Expr("symbol", frozenset((name,)), (), digest)
    node.name = node.key = name
    node.terms = ((1, (node,)),)
    return _keep(name, node)


def function_node(op: str, args: tuple[Expr, ...]) -> Expr:
    """The node of a function in `CALLS`, as it is: simplification is its constructor's."""
    identity = (op, args)
    found = _find(identity)
    if found is not None:
        return found
    digest = hash((_FUNCTION_NUMBER[op], *[a.digest for a in args])) & _DIGEST_MASK
    node = Expr(op, _NOTHING.union(*[a.free for a in args]), args, digest)
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
    polynomial = tuple([(coefficient, atoms) for atoms, coefficient in items])
    if constant:
        polynomial += ((constant, ()),)

    found = _find(polynomial)
    if found is not None:
        return found
    free = _NOTHING.union(*[atom.free for _, atoms in polynomial for atom in atoms])
    node = Expr("add" if len(polynomial) > 1 else "mul", free, None, None)
    node.terms = polynomial
    return _keep(polynomial, node)


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


@lru_cache(MEMO_SIZE)
def add(*args: ExprLike) -> Expr:
    sums: dict[Monomial, int] = {}
    for arg in args:
        if isinstance(arg, Expr):
            for coefficient, atoms in arg.terms:
                sums[atoms] = sums.get(atoms, 0) + coefficient
        else:
            sums[()] = sums.get((), 0) + arg
    return _polynomial(sums)


@lru_cache(MEMO_SIZE)
def sub(a: ExprLike, b: ExprLike) -> Expr:
    return add(a, mul(-1, b))


@lru_cache(MEMO_SIZE)
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


# --- walking and text ---------------------------------------------------------------------------------------------


def children(e: Expr) -> Sequence[Expr]:
    """The direct sub-expressions: operands of an atom, atoms of a polynomial."""
    if e.op in CALLS:
        return e.args
    if e.op in ("add", "mul"):
        return [atom for _, atoms in e.terms for atom in atoms]
    return ()


def post_order(roots: Iterable[Expr], known: Container[Expr] = ()) -> Iterator[Expr]:
    """Every distinct node below the roots once, operands first; without recursion, so of any depth.

    Nodes in `known`, and what only they use, are left out; it may grow meanwhile.
    """
    seen: set[Expr] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                yield node
            elif node not in seen and node not in known:
                seen.add(node)
                stack.append((node, True))
                stack.extend([(child, False) for child in reversed(children(node)) if child not in seen])


_INFIX = {
    "floordiv": "//",
    "mod": "%",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "logical_and": "and",
    "logical_or": "or",
}


def _text(e: Expr) -> str:
    if e.value is not None:
        return str(e.value)
    if e.op == "symbol":
        return e.name
    if e.op in _INFIX:
        return f" {_INFIX[e.op]} ".join(map(_in_parentheses, e.args))
    if e.op == "list":
        return f"[{', '.join(map(str, e.args))}]"
    if e.op in CALLS:
        return f"{e.op}({', '.join(map(str, e.args))})"
    text = ""
    for coefficient, atoms in e.terms:
        sign = (" - " if text else "-") if coefficient < 0 else " + " if text else ""
        factors = [str(abs(coefficient))] if abs(coefficient) != 1 or not atoms else []
        text += sign + "*".join(factors + [_in_parentheses(atom) for atom in atoms])
    return text


def _in_parentheses(e: Expr) -> str:
    return f"({e})" if e.op in _INFIX or e.op == "add" or (e.op == "mul") else str(e)
