"""a ≤ b → nothing, where bounds prove it;  a contradiction, where they refute it;  `==`, `!=` and `<` likewise.

Sound: the bounds hold for all sizes that pass the checks: a size is ≥ 0, and ≥ 1 or more where a check says so.
"""

from typing import ClassVar

from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import PROVED, REFUTED, RequireRule, Step


class Bounds(RequireRule):
    kinds = ("eq", "ne", "lt", "le")
    priority = 90
    before: ClassVar[str] = """
        0 <= n*m
        n < n + m + 1
        n + 1 != 0
        n < m
    """
    after: ClassVar[str] = "n < m"
    refused: ClassVar = {
        "an integer can be negative": "k = int(k)\n0 <= n*k",
        "nothing relates the sides": "n != m",
    }

    def apply(self, require: Require, facts: Facts) -> Step | None:
        truth = facts.compare(require.kind, require.lhs, require.rhs)
        return None if truth is None else PROVED if truth else REFUTED
