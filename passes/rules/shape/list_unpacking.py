"""[a, b, …] == [c, d, …]  →  a == c, b == d, …, also through `concat` and `permute`;  different lengths are a contradiction.

Sound: that is what it means for lists to be equal.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import elements, is_list
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import REFUTED, RequireRule, Step


class ListUnpacking(RequireRule):
    kinds = ("eq",)
    priority = 7
    before: ClassVar[str] = """
        [n//2, 4] == [m//2, 4]
        permute(concat([h//2], [3]), 1, 0) == [3, w//2]
    """
    after: ClassVar[str] = """
        n//2 == m//2
        h//2 == w//2
    """
    refused: ClassVar = {"numbers": "n//2 == m//2"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        if not is_list(require.lhs) or not is_list(require.rhs):
            return None
        left, right = elements(require.lhs), elements(require.rhs)
        if len(left) != len(right):
            return REFUTED
        return Step(tuple([Require("eq", a, b, require.text) for a, b in zip(left, right, strict=True)]))
