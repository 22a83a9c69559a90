"""maximum(a, b, …) → without b, where a ≥ b is proved;  minimum likewise.

Sound: another operand is never worse.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, call, sub
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import ExprRule


class Extremum(ExprRule):
    functions = ("maximum", "minimum")
    before: ClassVar[str] = """
        d0 = maximum(n + m, n, h)
        d1 = minimum(n + m, n)
    """
    after: ClassVar[str] = """
        d1 = n
        d0 = maximum(n + m, h)
    """
    refused: ClassVar = {"none is proved to be larger": "d0 = maximum(n, m)"}

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        kept = list(e.args)
        for arg in e.args:
            others = [other for other in kept if other is not arg]
            if any(_covers(other, arg, e.op, facts) for other in others):
                kept = others
        return None if len(kept) == len(e.args) else call(e.op, *kept)


def _covers(other: Expr, arg: Expr, function: str, facts: Facts) -> bool:
    return facts.is_nonneg(sub(other, arg) if function == "maximum" else sub(arg, other))
