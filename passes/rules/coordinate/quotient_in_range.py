"""⌊x / d⌋ → 0, where 0 ≤ x < d over all coordinates.

Sound: the quotient of a number below the divisor is 0.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import ZERO, Expr
from dlcb.passes.solver.ranges import Ranges
from dlcb.passes.solver.rule import CoordinateRule


class QuotientInRange(CoordinateRule):
    functions = ("floordiv",)
    priority = 20
    before: ClassVar[str] = """
        i in n
        j in m
        d0 = i // n
        d1 = (2*j + 1) // (2*m)
    """
    after: ClassVar[str] = """
        d0 = 0
        d1 = 0
    """
    refused: ClassVar = {
        "it can reach the divisor": "i in n\nd0 = (i + 1) // n",
        "it can be negative": "i in n\nd0 = (i - 1) // n",
        "nothing is known of the coordinate": "i in n\nd0 = i // m",
    }

    def rewrite(self, e: Expr, facts: Ranges) -> Expr | None:
        return ZERO if facts.within(*e.args) else None
