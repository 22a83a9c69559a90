"""⌊⌊x / a⌋ / b⌋ → ⌊x / (a·b)⌋.

Sound: ⌊⌊y⌋ / b⌋ = ⌊y / b⌋ for a positive integer b, and a divisor of coordinates is a size, or their product.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, floordiv, mul
from dlcb.passes.solver.ranges import Ranges
from dlcb.passes.solver.rule import CoordinateRule


class JoinedDivision(CoordinateRule):
    functions = ("floordiv",)
    priority = 30
    before: ClassVar[str] = """
        i in n
        d0 = i // m // k
    """
    after: ClassVar[str] = "d0 = i // (k*m)"
    refused: ClassVar = {"more than the inner quotient is divided": "i in n\nd0 = (i // m + 1) // k"}

    def rewrite(self, e: Expr, facts: Ranges) -> Expr | None:
        dividend, divisor = e.args
        if dividend.op != "floordiv":
            return None
        x, inner = dividend.args
        return floordiv(x, mul(inner, divisor))
