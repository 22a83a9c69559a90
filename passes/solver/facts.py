"""What the solver knows at a moment: symbols that are expressions of others, least sizes, what broadcasts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from dlcb.dialects.shape import bounds
from dlcb.dialects.shape.expr import Expr, add, exact_quotient, from_terms, replace, sub, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.engine import Engine
from dlcb.passes.solver.law import Law


@dataclass(frozen=True, slots=True)
class Said:
    """A requirement as it was stated, and its place in the order of all."""

    order: int
    require: Require


@dataclass(slots=True)
class Binding:
    """A symbol that is an expression of other symbols."""

    value: Expr
    named: frozenset[str]
    """The symbols in what was said, some of which may have been replaced before it became a binding."""
    said_by: Said | None
    """Who says so; None for a definition."""


class Facts:
    def __init__(self, rules: Iterable[Law]) -> None:
        self.engine = Engine(rules, self)
        self.said_by = ""
        """Whose requirement is under way."""
        self.at_least: dict[str, int] = {}
        """The least value of symbols that have one."""
        self.rank: dict[str, int] = {}
        """The order of the input symbols; of two equal ones the earlier is kept."""
        self.bindings: dict[str, Binding] = {}
        self._claims: dict[str, dict[object, tuple[int, Said | None]]] = defaultdict(dict)
        self._multiples: dict[object, tuple[Expr, Expr]] = {}
        self._multiples_of: dict[str, dict[object, None]] = defaultdict(dict)
        self._broadcasts: list[tuple[Expr, Expr]] = []
        self._broadcast_pairs: set[tuple[Expr, Expr]] | None = None
        self._expanded: dict[Expr, Expr] = {}
        self._bounds: dict[Expr, bounds.Bounds] = {}

    def where(self) -> str:
        return self.said_by

    # --- what is told ----------------------------------------------------------------------------------------------

    def introduce(self, symbol: str, at_least: int | None) -> None:
        self.rank[symbol] = len(self.rank)
        if at_least is not None:
            self.claim(self, symbol, at_least)

    def bind(self, symbol: str, value: Expr, named: frozenset[str], said_by: Said | None = None) -> None:
        self.bindings[symbol] = Binding(value, named, said_by)
        self._expanded.clear()
        self._broadcast_pairs = None

    def claim(self, holder: object, symbol: str, at_least: int, said_by: Said | None = None) -> None:
        """`symbol` is at least that much, as long as the holder says so."""
        self._claims[symbol][holder] = at_least, said_by
        self._renew(symbol)

    def withdraw(self, holder: object, symbol: str) -> None:
        del self._claims[symbol][holder]
        self._renew(symbol)

    def _renew(self, symbol: str) -> None:
        claims = self._claims[symbol].values()
        if claims:
            self.at_least[symbol] = max([least for least, _ in claims])
        else:
            self.at_least.pop(symbol, None)
        self.engine.forget()
        self._bounds.clear()

    def claim_divides(self, holder: object, divisor: Expr, multiple: Expr) -> None:
        """The first divides the second, as long as the holder says so."""
        self._multiples[holder] = divisor, multiple
        self._multiples_of[min(multiple.free)][holder] = None
        self.engine.forget()

    def withdraw_divides(self, holder: object) -> None:
        _, multiple = self._multiples.pop(holder)
        del self._multiples_of[min(multiple.free)][holder]
        self.engine.forget()

    def state_broadcast(self, a: Expr, b: Expr) -> None:
        self._broadcasts.append((a, b))
        self._broadcast_pairs = None
        self.engine.forget()

    # --- what is asked ---------------------------------------------------------------------------------------------

    def expand(self, e: Expr) -> Expr:
        """The expression over symbols that are not bound."""
        bindings = self.bindings
        if e.op == "symbol":
            return self.value(e.name) if e.name in bindings else e
        bound = [name for name in e.free if name in bindings] if e.free else ()
        if not bound:
            return e
        if all([atom.op == "symbol" for _, atoms in e.terms for atom in atoms]):
            return from_terms(
                [(c, [self.value(a.name) if a.name in bindings else a for a in atoms]) for c, atoms in e.terms]
            )
        expanded = self._expanded
        for name in bound:
            expanded[sym(name)] = self.value(name)
        return replace(e, bindings, expanded)

    def value(self, symbol: str) -> Expr:
        binding = self.bindings[symbol]
        value = binding.value
        if value.free:
            value = binding.value = self.expand(value)
        return value

    def simplify(self, e: Expr) -> Expr:
        """Expanded, with every atom rewritten by the rules."""
        return self.engine.simplify(self.expand(e))

    def is_nonneg(self, e: Expr) -> bool:
        return bounds.is_nonneg(e, self.at_least, self._bounds)

    def is_positive(self, e: Expr) -> bool:
        return bounds.is_positive(e, self.at_least, self._bounds)

    def is_at_most(self, a: Expr, b: Expr) -> bool:
        return bounds.is_at_most(a, b, self.at_least, self._bounds)

    def is_less(self, a: Expr, b: Expr) -> bool:
        return self.is_at_most(a, sub(b, 1)) if b.is_const else self.is_at_most(add(a, 1), b)

    def is_not_one(self, e: Expr) -> bool:
        return e.value != 1 if e.is_const else self.is_nonneg(sub(e, 2))

    def can_be(self, symbol: str, value: Expr) -> bool:
        """Whether the symbol may be replaced by the value with no bound lost: a size by what is proved not negative."""
        return symbol not in self.at_least or self.is_nonneg(value)

    def compare(self, kind: str, lhs: Expr, rhs: Expr) -> bool | None:
        """The truth of an `eq`, `ne`, `lt` or `le` where bounds prove or refute it."""
        match kind:
            case "eq":
                difference = sub(lhs, rhs)
                if difference.is_const:
                    return difference.value == 0
                low, high = bounds.bounds(difference, self.at_least, self._bounds)
                return False if (low is not None and low > 0) or (high is not None and high < 0) else None
            case "ne":
                equal = self.compare("eq", lhs, rhs)
                return None if equal is None else not equal
            case "le":
                return True if self.is_at_most(lhs, rhs) else False if self.is_less(rhs, lhs) else None
            case "lt":
                return True if self.is_less(lhs, rhs) else False if self.is_at_most(rhs, lhs) else None
            case _:
                return None

    def known_multiple(self, divisor: Expr, term: Expr) -> Expr | None:
        """A factor of the term that a requirement says the divisor divides; None where none is known."""
        if not self._multiples:
            return None
        for symbol in sorted(term.free):
            for holder in self._multiples_of.get(symbol, ()):
                known, multiple = self._multiples[holder]
                if exact_quotient(known, divisor) is not None and exact_quotient(term, multiple) is not None:
                    return multiple
        return None

    def divides(self, divisor: Expr, e: Expr) -> bool:
        """Whether the divisor is proved to divide the expression: whole, or term by term."""
        if exact_quotient(e, divisor) is not None or self.known_multiple(divisor, e) is not None:
            return True
        terms = [from_terms((term,)) for term in e.terms]
        return all(exact_quotient(t, divisor) is not None or self.known_multiple(divisor, t) is not None for t in terms)

    def broadcasts(self, a: Expr, b: Expr) -> bool:
        """Whether a requirement says that the two sizes broadcast."""
        if self._broadcast_pairs is None:
            self._broadcast_pairs = {(self.expand(x), self.expand(y)) for x, y in self._broadcasts}
        return (a, b) in self._broadcast_pairs or (b, a) in self._broadcast_pairs

    def sayers(self, symbols: Iterable[str]) -> list[Said]:
        """The requirements on which the values of the symbols rest, or else their least values."""
        said: dict[Said, None] = {}
        seen: set[str] = set()
        pending = sorted(symbols, reverse=True)
        while pending:
            symbol = pending.pop()
            if symbol in seen:
                continue
            seen.add(symbol)
            binding = self.bindings.get(symbol)
            if binding is None:
                said |= {
                    by: None for least, by in self._claims[symbol].values() if by and least == self.at_least[symbol]
                }
                continue
            if binding.said_by is not None:
                said[binding.said_by] = None
            pending += sorted(binding.named, reverse=True)
        return list(said)
