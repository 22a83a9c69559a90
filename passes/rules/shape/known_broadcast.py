"""broadcast(a, b) → b, where b can not be 1;  broadcast(a, broadcast(a, b)) → broadcast(a, b).

Sound where a requirement says that the operands broadcast: they are equal then, or a is 1.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import ExprRule


class KnownBroadcast(ExprRule):
    functions = ("broadcast",)
    before: ClassVar[str] = """
        d0 = broadcast(n, m + 2)
        d1 = broadcast(n, broadcast(h, n))
        d2 = broadcast(h, n)
        d3 = broadcast(h, m + 2)
        broadcastable(n, m + 2)
        broadcastable(n, h)
    """
    after: ClassVar[str] = """
        d2 = d1
        d0 = m + 2
        d1 = broadcast(n, h)
        d3 = broadcast(h, m + 2)
        broadcastable(n, m + 2)
        broadcastable(n, h)
    """
    refused: ClassVar = {
        "both can be 1": "d2 = broadcast(n, h)\nbroadcastable(n, h)",
        "nothing says that they broadcast": "d3 = broadcast(h, m + 2)",
    }

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        a, b = e.args
        for part, whole in ((a, b), (b, a)):
            if whole.op == "broadcast" and part in whole.args and facts.broadcasts(*whole.args):
                return whole
            if facts.is_not_one(whole) and facts.broadcasts(a, b):
                return whole
        return None
