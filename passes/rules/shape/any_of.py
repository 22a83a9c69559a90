"""any_of(c)  →  c.

Sound: one alternative is left. The others were folded to 0 before.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import ONE, Expr
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class AnyOf(RequireRule):
    kinds = ("any_of",)
    before: ClassVar[str] = "any_of(n//2 == m//2, 2 == 3)"
    after: ClassVar[str] = "n//2 == m//2"
    refused: ClassVar = {"two alternatives are left": "any_of(n//2 == m//2, n//3 == m//3)"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        alternatives = require.alternatives
        return Step((_as_require(alternatives[0], require.text),)) if len(alternatives) == 1 else None


def _as_require(condition: Expr, text: str) -> Require:
    if condition.op in ("eq", "ne", "lt", "le"):
        lhs, rhs = condition.args
        return Require(condition.op, lhs, rhs, text)
    return Require("eq", condition, ONE, text)
