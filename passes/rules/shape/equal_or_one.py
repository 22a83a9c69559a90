"""broadcastable(a, b)  →  a == b where neither can be 1;  nothing where b is broadcast(a, c).  expandable likewise.

Sound: the alternatives that are left out are refuted by bounds; and broadcast(a, c), of sizes that a requirement calls
broadcastable, is a, or a is 1.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class EqualOrOne(RequireRule):
    kinds = ("broadcastable", "expandable")
    before: ClassVar[str] = """
        broadcastable(maximum(n, 2), maximum(m, 2))
        expandable(maximum(n, 3), h//2)
        broadcastable(n, m)
        broadcastable(broadcast(n, m), n)
        expandable(n, broadcast(n, m))
    """
    after: ClassVar[str] = """
        maximum(n, 2) == maximum(m, 2)
        maximum(n, 3) == h//2
        broadcastable(n, m)
    """
    refused: ClassVar = {
        "both sides can be 1": "broadcastable(n, m)",
        "the first side can be 1": "expandable(n, m + 2)",
    }

    def apply(self, require: Require, facts: Facts) -> Step | None:
        a, b = require.lhs, require.rhs
        if _is_part(a, b, facts) or (require.kind == "broadcastable" and _is_part(b, a, facts)):
            return Step()
        if facts.is_not_one(a) and (require.kind == "expandable" or facts.is_not_one(b)):
            return Step((Require("eq", a, b, require.text),))
        return None


def _is_part(a: Expr, whole: Expr, facts: Facts) -> bool:
    return whole.op == "broadcast" and a in whole.args and facts.broadcasts(*whole.args)
