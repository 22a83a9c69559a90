"""⌊(q·b + r) / b⌋ → q and (q·b + r) mod b → r, where 0 ≤ r < b is proved.

Sound: q and r are the quotient and the remainder. Terms that a positive b divides leave the division in any case.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import ZERO, Expr, add, exact_quotient, floordiv, from_terms, mod, mul, sub
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import ExprRule


class DivisionRemainder(ExprRule):
    functions = ("floordiv", "mod")
    before: ClassVar[str] = """
        d0 = (n % 8) // 8
        d1 = (n*maximum(m, 1) + maximum(m, 1) - 1) // maximum(m, 1)
        d2 = (n % 3) % 5
        d3 = (n*m + h) // m
    """
    after: ClassVar[str] = """
        d0 = 0
        d1 = n
        d2 = n % 3
        d3 = (n*m + h) // m
    """
    refused: ClassVar = {
        "the rest can reach the divisor": "d3 = (n*m + h) // m",
        "the divisor can be 0": "d0 = (n % m) // m",
    }

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        dividend, divisor = e.args
        if not facts.is_positive(divisor):
            return None
        whole = ZERO
        for term in dividend.terms:
            quotient = exact_quotient(from_terms((term,)), divisor)
            whole = whole if quotient is None else add(whole, quotient)
        rest = sub(dividend, mul(whole, divisor))
        quotient, remainder = (whole, rest) if facts.is_nonneg(rest) else (sub(whole, 1), add(rest, divisor))
        if (remainder is rest or facts.is_nonneg(remainder)) and facts.is_less(remainder, divisor):
            return quotient if e.op == "floordiv" else remainder
        if whole is ZERO:
            return None
        return add(whole, floordiv(rest, divisor)) if e.op == "floordiv" else mod(rest, divisor)
