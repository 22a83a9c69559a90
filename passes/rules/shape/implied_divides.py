"""b divides p + r  →  b divides r, where another requirement says that b, or a multiple of it, divides p.

Sound, also for b = 0: its multiples are 0, and p is too. The other requirement stands.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import from_terms
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import PROVED, RequireRule, Step


class ImpliedDivides(RequireRule):
    kinds = ("divides",)
    priority = 60
    before: ClassVar[str] = """
        divides(8, n)
        divides(4, n*m + h)
    """
    after: ClassVar[str] = """
        divides(8, n)
        divides(4, h)
    """
    refused: ClassVar = {
        "another divisor is known": "divides(8, n)\ndivides(3, n)",
        "nothing is known": "divides(8, n)",
    }

    def apply(self, require: Require, facts: Facts) -> Step | None:
        divisor, multiple = require.lhs, require.rhs
        if facts.divides(divisor, multiple):
            return PROVED
        rest = [term for term in multiple.terms if facts.known_multiple(divisor, from_terms((term,))) is None]
        if len(rest) == len(multiple.terms):
            return None
        return Step((Require("divides", divisor, from_terms(rest), require.text),))
