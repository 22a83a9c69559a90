"""a ≤ b → nothing to test, where it holds for all coordinates;  a < b and a == a likewise.

Sound: the ranges hold for every element that a kernel makes.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.ranges import Ranges
from dlcb.passes.solver.rule import PROVED, GuardRule, Step


class GuardProved(GuardRule):
    kinds = ("eq", "le", "lt")
    before: ClassVar[str] = """
        i in n
        0 <= i
        i < n + 1
        i == i
        i < m
    """
    after: ClassVar[str] = "i < m"
    refused: ClassVar = {
        "some coordinates break it": "i in n\ni + 1 < n",
        "sides that are equal here and there": "i in n\ni == 2",
    }

    def apply(self, require: Require, facts: Ranges) -> Step | None:
        lhs, rhs = require.lhs, require.rhs
        if require.kind == "eq":
            return PROVED if lhs is rhs else None
        room = sub(rhs, lhs)
        return PROVED if facts.is_nonneg(room if require.kind == "le" else sub(room, 1)) else None
