"""A comparison inside an expression → 1 or 0, where bounds prove or refute it.

Sound: the bounds hold for all sizes that pass the checks.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, const
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import ExprRule


class DecidedCondition(ExprRule):
    functions = ("eq", "ne", "lt", "le")
    before: ClassVar[str] = """
        d0 = select(n + m < m, n, m)
        d1 = select(n < m, n, m)
    """
    after: ClassVar[str] = """
        d0 = m
        d1 = select(n < m, n, m)
    """
    refused: ClassVar = {"nothing relates the sides": "d1 = select(n < m, n, m)"}

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        truth = facts.compare(e.op, *e.args)
        return None if truth is None else const(truth)
