"""What is known of the coordinates of one kernel: the facts of the rules in `passes/rules/coordinate`.

An axis coordinate lies in [0, size). An outer axis has a size ≥ 1, else the kernel is not launched; a row may be empty.
A polynomial's bounds come from the bounds of its coordinates, the sign of each term being that of its coefficient
(sizes are ≥ 0).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dlcb.dialects.shape.bounds import Bounds, is_nonneg
from dlcb.dialects.shape.expr import ZERO, Expr, add, const, floordiv, mul, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.engine import Engine
from dlcb.passes.solver.law import Law, laws

if TYPE_CHECKING:
    from dlcb.dialects.graph.base import GraphOp, Guard


class Ranges:
    """The ranges of the coordinates of one kernel, and what they prove."""

    def __init__(self, rules: Iterable[Law] | None = None) -> None:
        self._size: dict[Expr, Expr] = {}
        self._at_least: dict[str, int] = {}
        self._bounds: dict[Expr, Bounds] = {}
        """Of what was asked about with these `_at_least`."""
        self._proved: dict[Guard, tuple[Guard, ...] | None] = {}
        """What is left of each comparison, as `guard` has it, with these sizes."""
        self._engine = Engine(laws("coordinate") if rules is None else rules, self)
        self.op: GraphOp | None = None
        """Whose elements are asked for at the moment."""

    def where(self) -> str:
        return "" if self.op is None else self.op.title

    def axis(self, coordinate: Expr, size: Expr, least: int = 1) -> None:
        """`coordinate` lies in [0, size), and size is at least `least`."""
        if self._size.get(coordinate) is not size:
            self._proved.clear()
        self._size[coordinate] = size
        if len(size.terms) == 1:
            for name in size.free:
                if self._at_least.get(name, -1) < least:
                    self._at_least[name] = least
                    self._bounds.clear()
                    self._proved.clear()

    def simplify(self, e: Expr) -> Expr:
        return self._engine.simplify(e)

    def guard(self, guards: Iterable[Guard]) -> tuple[Guard, ...] | None:
        """The comparisons that are not proved; None if one never holds."""
        kept: list[Guard] = []
        for guard in guards:
            if guard not in self._proved:
                self._proved[guard] = self._left_of(guard)
            left = self._proved[guard]
            if left is None:
                return None
            kept += left
        return tuple(kept)

    def _left_of(self, guard: Guard) -> tuple[Guard, ...] | None:
        """As `guard`, of one comparison."""
        pending = deque([Require(*guard)])
        kept: list[Guard] = []
        while pending:
            require, step = self._engine.step(pending.popleft())
            if step is None:
                kept.append((require.kind, require.lhs, require.rhs))
            elif step.refuted:
                return None
            else:
                pending.extendleft(reversed(step.requires))
        return tuple(kept)

    # --- what rules ask ----------------------------------------------------------------------------------------------

    def within(self, x: Expr, size: Expr) -> bool:
        """Is 0 ≤ x < size proved?"""
        if not self.is_nonneg(x):
            return False
        most = self._extreme(x, True)
        return most is not None and self._is_nonneg(sub(sub(size, 1), most))

    def is_nonneg(self, x: Expr) -> bool:
        """Is x ≥ 0 proved, for all coordinates and sizes?"""
        least = self._extreme(x, False)
        return least is not None and self._is_nonneg(least)

    def is_negative(self, x: Expr) -> bool:
        """Is x < 0 proved, for all coordinates and sizes?"""
        most = self._extreme(x, True)
        return most is not None and self._is_nonneg(sub(-1, most))

    def ends(self, x: Expr) -> tuple[Expr | None, Expr | None]:
        """The least and the largest value of x over all coordinates, as expressions of sizes; None where unknown."""
        return self._extreme(x, False), self._extreme(x, True)

    def _is_nonneg(self, size: Expr) -> bool:
        return is_nonneg(size, self._at_least, self._bounds)

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
            if low is None or not self._is_nonneg(low):
                return None
            if not largest:
                return ZERO
            high = self._extreme(atom.args[0], True)
            return None if high is None else self.simplify(floordiv(high, atom.args[1]))
        if any(name.startswith("$") for name in atom.free):
            return None
        return atom
