"""⌊a / c⌋ == k  →  k·c ≤ a and a ≤ k·c + c - 1, for literals k and c > 0.  A convolution, pooling or slice of a known size.

Sound: the quotient grows with a, and is k exactly there. Bounds serve other rules; an equation of a quotient does not.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import add, const, constant_term, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class FloorInversion(RequireRule):
    kinds = ("eq",)
    priority = 35
    before: ClassVar[str] = "(n + m + 1)//2 == 6"
    after: ClassVar[str] = """
        11 <= m + n
        m + n <= 12
    """
    refused: ClassVar = {"both sides vary": "n//2 == m//2", "the divisor is no literal": "n//m == 3"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        for division, other in ((require.lhs, require.rhs), (require.rhs, require.lhs)):
            if division.op != "floordiv" or other.value is None:
                continue
            dividend, divisor = division.args
            if divisor.value is None or divisor.value <= 0:
                continue
            least = other.value * divisor.value - constant_term(dividend)
            varying = sub(dividend, constant_term(dividend))
            most = add(const(least), divisor.value - 1)
            low = Require("le", const(least), varying, require.text)
            return Step((low, Require("le", varying, most, require.text)))
        return None
