"""f·p == f·q  →  p == q, where f is proved positive.

Sound: f is not 0. A size that can be 0 is no such factor: with an empty batch, `b·n == b·m` says nothing of n and m.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, Term, exact_quotient, mul
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class CommonFactor(RequireRule):
    kinds = ("eq",)
    priority = 40
    before: ClassVar[str] = """
        maximum(b, 1)*(n//2) == maximum(b, 1)*(m//2)
        b*(n//3) == b*(m//3)
    """
    after: ClassVar[str] = """
        n//2 == m//2
        b*(n//3) == b*(m//3)
    """
    refused: ClassVar = {"the factor can be 0": "b*(n//3) == b*(m//3)", "no factor is common": "n//3 == m//3"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        terms = [*require.lhs.terms, *require.rhs.terms]
        if not terms:
            return None
        factors = [atom for atom in _common_atoms(terms) if facts.is_positive(atom)]
        if not factors:
            return None
        lhs, rhs = _without(require.lhs, factors), _without(require.rhs, factors)
        return Step((Require("eq", lhs, rhs, require.text),))


def _common_atoms(terms: list[Term]) -> list[Expr]:
    common = list(terms[0][1])
    for _, atoms in terms[1:]:
        rest = list(atoms)
        common = [atom for atom in common if atom in rest and not rest.remove(atom)]
    return common


def _without(e: Expr, factors: list[Expr]) -> Expr:
    quotient = exact_quotient(e, mul(*factors))
    assert quotient is not None
    return quotient
