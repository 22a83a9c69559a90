"""a ≤ b → never, where it holds for no coordinates;  a < b and a == b likewise. What is guarded is not made.

Sound: the ranges hold for every element that a kernel makes.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.ranges import Ranges
from dlcb.passes.solver.rule import REFUTED, GuardRule, Step


class GuardRefuted(GuardRule):
    kinds = ("eq", "le", "lt")
    before: ClassVar[str] = """
        i in n
        n <= i
    """
    after: ClassVar[str] = "never"
    refused: ClassVar = {
        "some coordinates meet it": "i in n\n2 <= i",
        "the sides can meet": "i in n\ni + 2 == n",
    }

    def apply(self, require: Require, facts: Ranges) -> Step | None:
        room = sub(require.rhs, require.lhs)
        match require.kind:
            case "le":
                never = facts.is_negative(room)
            case "lt":
                never = facts.is_negative(sub(room, 1))
            case _:
                never = facts.is_negative(room) or facts.is_negative(sub(0, room))
        return REFUTED if never else None
