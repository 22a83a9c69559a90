"""p + t == q + t  →  p == q, each term on the side where its coefficient is positive.

Sound: the same is subtracted from both sides.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import add, constant_term, from_terms, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class Cancellation(RequireRule):
    kinds = ("eq",)
    priority = 20
    before: ClassVar[str] = "n*m + h//2 == n*m + w//3"
    after: ClassVar[str] = "h//2 == w//3"
    refused: ClassVar = {"no term is on both sides": "h//2 == w//3"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        mine, theirs = ([term for term in side.terms if term[1]] for side in (require.lhs, require.rhs))
        if all(c > 0 for c, _ in mine + theirs) and {atoms for _, atoms in mine}.isdisjoint(
            atoms for _, atoms in theirs
        ):
            return None
        terms = [term for term in sub(require.lhs, require.rhs).terms if term[1]]
        lhs = add(from_terms([(c, atoms) for c, atoms in terms if c > 0]), constant_term(require.lhs))
        rhs = add(from_terms([(-c, atoms) for c, atoms in terms if c < 0]), constant_term(require.rhs))
        if lhs is require.lhs and rhs is require.rhs:
            return None
        return Step((Require("eq", lhs, rhs, require.text),))
