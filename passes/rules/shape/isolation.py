"""p + s == q  →  s is q - p everywhere, for a symbol s that is in neither p nor q.

Sound: the same is subtracted from both sides. Only where s may be replaced (see `Substitution`), else nothing is won.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, mul, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class Isolation(RequireRule):
    kinds = ("eq",)
    priority = 60
    before: ClassVar[str] = """
        k = int(k)
        n + k == m*h
    """
    after: ClassVar[str] = """
        k == h*m - n
    """
    refused: ClassVar = {
        "the size could be negative": "n + k == m*h",
        "the symbol is on both sides": "k = int(k)\nn*k + k == m*h",
    }

    def apply(self, require: Require, facts: Facts) -> Step | None:
        if "symbol" in (require.lhs.op, require.rhs.op):
            return None
        difference = sub(require.lhs, require.rhs)
        solved = [
            (name, value)
            for c, atoms in difference.terms
            if c in (1, -1) and len(atoms) == 1 and (name := atoms[0].name)
            for value in [mul(-c, sub(difference, mul(c, atoms[0])))]
            if name not in value.free and facts.can_be(name, value)
        ]
        if not solved:
            return None

        def rank(solution: tuple[str, Expr]) -> int:
            return facts.rank[solution[0]]

        return Step(binding=max(solved, key=rank))
