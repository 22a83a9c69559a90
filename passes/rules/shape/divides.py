"""b divides q·b, and whatever another requirement says it divides;  b divides p + r  →  b divides r, where it divides p.

Sound, also for b = 0, which divides 0: what it divides then is 0.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import exact_quotient, from_terms
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import PROVED, RequireRule, Step


class Divides(RequireRule):
    kinds = ("divides",)
    before: ClassVar[str] = """
        divides(m, n*m + m)
        divides(m, n*m + h)
    """
    after: ClassVar[str] = "divides(m, h)"
    refused: ClassVar = {"it is no factor": "divides(m, n)", "it is a factor of no term": "divides(m, n + h)"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        divisor, multiple = require.lhs, require.rhs
        if exact_quotient(multiple, divisor) is not None:
            return PROVED
        rest = [term for term in multiple.terms if exact_quotient(from_terms((term,)), divisor) is None]
        if len(rest) == len(multiple.terms):
            return None
        return Step((Require("divides", divisor, from_terms(rest), require.text),))
