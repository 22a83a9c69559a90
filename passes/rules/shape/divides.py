"""b divides q·b.

Sound, also for b = 0, which divides 0.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import exact_quotient
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class Divides(RequireRule):
    kinds = ("divides",)
    before: ClassVar[str] = """
        divides(m, n*m + m)
        divides(m, n)
    """
    after: ClassVar[str] = "divides(m, n)"
    refused: ClassVar = {"it is no factor": "divides(m, n)"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        return Step() if exact_quotient(require.rhs, require.lhs) is not None else None
