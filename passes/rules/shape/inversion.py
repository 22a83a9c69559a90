"""a·p + b == a·q + c  →  p == q + (c - b)/a, for literals a, b, c.

Sound: both sides are integers. Where a does not divide c - b, no sizes meet the equation.
"""

from math import gcd
from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, add, constant_term, from_terms
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import REFUTED, RequireRule, Step


class Inversion(RequireRule):
    kinds = ("eq",)
    priority = 30
    before: ClassVar[str] = """
        6*n*m + 4 == 40
        4*(h//2) + 8 == 4*(m//2)
    """
    after: ClassVar[str] = """
        m*n == 6
        h//2 + 2 == m//2
    """
    refused: ClassVar = {"the literals have no common factor": "2*(n//2) == 3*(m//2)"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        lhs, rhs = require.lhs, require.rhs
        coefficients = [c for side in (lhs, rhs) for c, atoms in side.terms if atoms]
        if not coefficients:
            return None
        divisor = gcd(*coefficients) * (-1 if all(c < 0 for c in coefficients) else 1)
        rest, uneven = divmod(constant_term(rhs) - constant_term(lhs), divisor)
        if uneven:
            return REFUTED
        left = add(_divide_terms(lhs, divisor), max(-rest, 0))
        right = add(_divide_terms(rhs, divisor), max(rest, 0))
        if left is lhs and right is rhs:
            return None
        return Step((Require("eq", left, right, require.text),))


def _divide_terms(e: Expr, divisor: int) -> Expr:
    return from_terms([(c // divisor, atoms) for c, atoms in e.terms if atoms])
