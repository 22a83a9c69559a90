"""s ≤ k  →  s == k, where s is known to be at least k.

Sound: what says that s is at least k stands.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import add
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class Pinch(RequireRule):
    kinds = ("lt", "le")
    priority = 60
    before: ClassVar[str] = """
        maximum(n, 3) <= 3
        n*m < 1
    """
    after: ClassVar[str] = """
        maximum(n, 3) == 3
        m*n == 0
    """
    refused: ClassVar = {"there is room": "maximum(n, 3) <= 4", "an integer can be negative": "k = int(k)\nk <= 0"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        most = add(require.rhs, -1) if require.kind == "lt" else require.rhs
        if most.value is None or facts.compare("le", most, require.lhs) is not True:
            return None
        if facts.compare("lt", most, require.lhs):
            return None  # nothing meets it
        return Step((Require("eq", require.lhs, most, require.text),))
