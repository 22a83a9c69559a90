"""A requirement whose condition folds to 1 → nothing;  to 0 → a contradiction.

Sound: the condition is what the requirement says.
"""

from typing import ClassVar

from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import PROVED, REFUTED, RequireRule, Step


class Folding(RequireRule):
    kinds = ("eq", "ne", "lt", "le", "divides", "broadcastable", "expandable", "any_of")
    priority = 5
    before: ClassVar[str] = """
        broadcastable(1, n)
        expandable(4, 4)
        broadcastable(3, n)
    """
    after: ClassVar[str] = "broadcastable(3, n)"
    refused: ClassVar = {"it depends on a size": "expandable(3, n)"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        if require.lhs is not require.rhs and _varies(require):
            return None
        value = require.condition.value
        return None if value is None else PROVED if value else REFUTED


def _varies(require: Require) -> bool:
    """Can it be told without making the condition that it does not fold?"""
    literals = [side.value for side in (require.lhs, require.rhs) if side.value is not None]
    return require.kind != "any_of" and len(literals) < (2 if require.kind in ("eq", "ne", "lt", "le") else 1)
