"""Coordinates kept short: divisions that the range of a coordinate makes exact, guards that always or never hold.

Ranges: an axis coordinate lies in [0, size). An outer axis has a size ≥ 1, else the kernel is not launched; a row may
be empty. A polynomial's bounds come from the bounds of its coordinates, the sign of each term being that of its
coefficient (sizes are ≥ 0).
"""

from __future__ import annotations

from collections.abc import Iterable

from dlcb.dialects.graph.base import Guard
from dlcb.dialects.shape.bounds import is_nonneg
from dlcb.dialects.shape.expr import Expr, add, call, const, floordiv, from_terms, mod, mul, sub, terms

ZERO = const(0)


class Ranges:
    """The ranges of the coordinates of one kernel, and what they prove."""

    def __init__(self) -> None:
        self._size: dict[Expr, Expr] = {}
        self._at_least: dict[str, int] = {}
        self._memo: dict[Expr, Expr] = {}

    def axis(self, coordinate: Expr, size: Expr, least: int = 1) -> None:
        """`coordinate` lies in [0, size), and size is at least `least`."""
        self._size[coordinate] = size
        if len(size.terms) == 1:
            for name in size.free:
                self._at_least[name] = max(least, self._at_least.get(name, 0))

    def simplify(self, e: Expr) -> Expr:
        if e.op in ("constant", "symbol") or not any(a.op not in ("symbol",) for _, atoms in e.terms for a in atoms):
            return e
        known = self._memo.get(e)
        if known is None:
            known = self._memo[e] = self._simplify(e)
        return known

    def _simplify(self, e: Expr) -> Expr:
        total = ZERO
        for coefficient, atoms in e.terms:
            factor = const(coefficient)
            for atom in atoms:
                factor = mul(factor, self._atom(atom))
            total = add(total, factor)
        return total

    def _atom(self, atom: Expr) -> Expr:
        if atom.op == "symbol":
            return atom
        args = [self.simplify(a) for a in atom.args]
        if atom.op == "floordiv":
            return self._floordiv(args[0], args[1])
        if atom.op == "mod":
            return self._mod(args[0], args[1])
        if all(a is b for a, b in zip(args, atom.args, strict=True)):
            return atom
        return call(atom.op, *args)

    def _floordiv(self, x: Expr, d: Expr) -> Expr:
        quotient, rest = split(x, d)
        if rest is not x and quotient is not ZERO:
            return add(quotient, self._floordiv(rest, d))
        if self.within(x, d):
            return ZERO
        if x.op == "floordiv":
            return self._floordiv(x.args[0], mul(x.args[1], d))
        return floordiv(x, d)

    def _mod(self, x: Expr, d: Expr) -> Expr:
        _, rest = split(x, d)
        if self.within(rest, d):
            return rest
        return mod(rest, d)

    def within(self, x: Expr, size: Expr) -> bool:
        """Is 0 ≤ x < size proved?"""
        return self._extreme_holds(x, ZERO, size)

    def ends(self, x: Expr) -> tuple[Expr | None, Expr | None]:
        """The least and the largest value of x over all coordinates, as expressions of sizes; None where unknown."""
        return self._extreme(x, False), self._extreme(x, True)

    def _extreme_holds(self, x: Expr, low: Expr, end: Expr) -> bool:
        least, most = self._extreme(x, False), self._extreme(x, True)
        return (
            least is not None
            and most is not None
            and is_nonneg(sub(least, low), self._at_least)
            and is_nonneg(sub(sub(end, 1), most), self._at_least)
        )

    def _extreme(self, x: Expr, most: bool) -> Expr | None:
        """The largest (or smallest) value of x over all coordinates, as an expression of sizes; None where unknown."""
        total = ZERO
        for coefficient, atoms in x.terms:
            factor = const(coefficient)
            largest = most == (coefficient > 0)
            for atom in atoms:
                reach = self._reach(atom, largest)
                if reach is None:
                    return None
                factor = mul(factor, reach)
            total = add(total, factor)
        return total

    def _reach(self, atom: Expr, largest: bool) -> Expr | None:
        size = self._size.get(atom)
        if size is not None:
            return sub(size, 1) if largest else ZERO
        if atom.op == "mod":
            return sub(atom.args[1], 1) if largest else ZERO
        if atom.op == "floordiv":
            low = self._extreme(atom.args[0], False)
            if low is None or not is_nonneg(low, self._at_least):
                return None
            if not largest:
                return ZERO
            high = self._extreme(atom.args[0], True)
            return None if high is None else self._floordiv(high, atom.args[1])
        if any(name.startswith("$") for name in atom.free):
            return None
        return atom

    def guard(self, guards: Iterable[Guard]) -> tuple[Guard, ...] | None:
        """The comparisons that are not proved; None if one never holds."""
        kept: list[Guard] = []
        for kind, lhs, rhs in guards:
            lhs, rhs = self.simplify(lhs), self.simplify(rhs)
            if kind == "eq":
                if lhs is rhs:
                    continue
            else:
                room = sub(rhs, lhs) if kind == "le" else sub(sub(rhs, lhs), 1)
                least = self._extreme(room, False)
                if least is not None and is_nonneg(least, self._at_least):
                    continue
                most = self._extreme(room, True)
                if most is not None and is_nonneg(sub(-1, most), self._at_least):
                    return None
            kept.append((kind, lhs, rhs))
        return tuple(kept)


def split(x: Expr, d: Expr) -> tuple[Expr, Expr]:
    """x = quotient·d + rest, taking every term that d divides into the quotient."""
    if (d.is_const and d.value == 0) or len(d.terms) != 1:
        return ZERO, x
    ((d_coefficient, d_atoms),) = terms(d)
    taken: list[tuple[int, list[Expr]]] = []
    rest: list[tuple[int, tuple[Expr, ...]]] = []
    for coefficient, atoms in x.terms:
        left = list(atoms)
        fits = coefficient % d_coefficient == 0
        for atom in d_atoms:
            if fits and atom in left:
                left.remove(atom)
            else:
                fits = False
                break
        if fits:
            taken.append((coefficient // d_coefficient, left))
        else:
            rest.append((coefficient, atoms))
    return from_terms(taken), from_terms(rest)
