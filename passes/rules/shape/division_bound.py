"""k ≤ ⌊a / c⌋  →  k·c ≤ a, for literals k and c > 0.  A window fits its input.

Sound: an integer k is at most a / c exactly where it is at most a / c rounded down.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import const, constant_term, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class DivisionBound(RequireRule):
    kinds = ("lt", "le")
    before: ClassVar[str] = "1 <= (n - 3)//2 + 1"
    after: ClassVar[str] = "3 <= n"
    refused: ClassVar = {"the divisor is no literal": "1 <= n//m", "two divisions": "1 <= n//2 + n//3"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        difference = sub(require.rhs, require.lhs)
        least = (1 if require.kind == "lt" else 0) - constant_term(difference)
        terms = [term for term in difference.terms if term[1]]
        if len(terms) != 1 or terms[0][0] != 1 or len(terms[0][1]) != 1 or terms[0][1][0].op != "floordiv":
            return None
        dividend, divisor = terms[0][1][0].args
        if divisor.value is None:
            return None
        offset = constant_term(dividend)
        return Step((Require("le", const(least * divisor.value - offset), sub(dividend, offset), require.text),))
