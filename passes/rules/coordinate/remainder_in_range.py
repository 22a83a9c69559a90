"""x mod d → x, where 0 ≤ x < d over all coordinates.

Sound: a number below the divisor is its own remainder.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr
from dlcb.passes.solver.ranges import Ranges
from dlcb.passes.solver.rule import CoordinateRule


class RemainderInRange(CoordinateRule):
    functions = ("mod",)
    priority = 20
    before: ClassVar[str] = """
        i in n
        j in 4
        d0 = i % n
        d1 = (3*j + 2) % 12
    """
    after: ClassVar[str] = """
        d0 = i
        d1 = 3*j + 2
    """
    refused: ClassVar = {
        "it can reach the divisor": "j in 4\nd0 = (3*j + 3) % 12",
        "it can be negative": "i in n\nd0 = (i - 1) % n",
    }

    def rewrite(self, e: Expr, facts: Ranges) -> Expr | None:
        return e.args[0] if facts.within(*e.args) else None
