"""s == e  →  s is e everywhere.

Sound: the equation stays as a check of the input symbol s. Where s is a size, e must be proved not negative, so that no
bound is lost. Of two symbols the later one is replaced.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class Substitution(RequireRule):
    kinds = ("eq",)
    priority = 10
    before: ClassVar[str] = """
        a == b
        b == c
        d = c + 1
    """
    after: ClassVar[str] = """
        b = a
        c = a
        d = a + 1
        b == a
        c == a
    """
    refused: ClassVar = {
        "the size could be negative": "k = int(k)\nn == k*m",
        "the symbol is on both sides": "n == m*n",
    }

    def apply(self, require: Require, facts: Facts) -> Step | None:
        candidates = [
            (symbol.name, value)
            for symbol, value in ((require.lhs, require.rhs), (require.rhs, require.lhs))
            if symbol.op == "symbol" and symbol.name not in value.free and facts.can_be(symbol.name, value)
        ]
        if not candidates:
            return None

        def rank(candidate: tuple[str, Expr]) -> int:
            return facts.rank[candidate[0]]

        return Step(binding=max(candidates, key=rank))
