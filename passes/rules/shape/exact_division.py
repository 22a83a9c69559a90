"""⌊a / b⌋ == c  →  a == b·c, where a requirement says that b, or a multiple of it, divides a, and b is proved positive.

Sound: a is b times the quotient.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import mul
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class ExactDivision(RequireRule):
    kinds = ("eq",)
    priority = 26
    before: ClassVar[str] = """
        divides(4, n*m)
        n*m // 4 == h//2
    """
    after: ClassVar[str] = """
        divides(4, m*n)
        m*n == 4*(h//2)
    """
    refused: ClassVar = {
        "there can be a rest": "n // 4 == h*m",
        "the divisor can be 0": "divides(m, n)\nn // m == h//2",
    }

    def apply(self, require: Require, facts: Facts) -> Step | None:
        for division, other in ((require.lhs, require.rhs), (require.rhs, require.lhs)):
            if division.op != "floordiv":
                continue
            dividend, divisor = division.args
            if facts.is_positive(divisor) and facts.divides(divisor, dividend):
                return Step((Require("eq", dividend, mul(divisor, other), require.text),))
        return None
