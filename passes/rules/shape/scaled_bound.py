"""k ≤ a·p  →  ⌈k / a⌉ ≤ p, for literals k and a > 1;  a·p ≤ k likewise.

Sound: p is an integer.
"""

from math import gcd
from typing import ClassVar

from dlcb.dialects.shape.expr import add, constant_term, from_terms, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class ScaledBound(RequireRule):
    kinds = ("lt", "le")
    priority = 45
    before: ClassVar[str] = """
        5 <= 2*n + 4*m
        3*h < 10
    """
    after: ClassVar[str] = """
        3 <= 2*m + n
        h <= 3
    """
    refused: ClassVar = {"no common factor": "5 <= 2*n + 3*m", "a factor that is no literal": "5 <= n*m"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        difference = sub(require.rhs, require.lhs)
        terms = [term for term in difference.terms if term[1]]
        factor = gcd(*[c for c, _ in terms])
        if factor < 2:
            return None
        room = constant_term(difference) - (1 if require.kind == "lt" else 0)
        spare = room // factor
        larger = from_terms([(c // factor, atoms) for c, atoms in terms if c > 0])
        smaller = from_terms([(-c // factor, atoms) for c, atoms in terms if c < 0])
        lhs, rhs = add(smaller, max(-spare, 0)), add(larger, max(spare, 0))
        return Step((Require("le", lhs, rhs, require.text),))
