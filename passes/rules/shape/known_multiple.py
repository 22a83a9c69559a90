"""(q·m + r) mod d → r mod d and ⌊(q·m + r) / d⌋ → q·⌊m / d⌋ + ⌊r / d⌋, where a requirement says that d, or a multiple of it, divides m.

Sound: m is a multiple of d, which is not 0 where the division has a meaning.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import ZERO, Expr, Term, add, exact_quotient, floordiv, from_terms, mod, mul
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import ExprRule


class KnownMultiple(ExprRule):
    functions = ("floordiv", "mod")
    before: ClassVar[str] = """
        d0 = n % 4
        d1 = (3*n + h) // 4
        d2 = (n + h) % 8
        divides(8, n)
    """
    after: ClassVar[str] = """
        d0 = 0
        d1 = 3*(n // 4) + h // 4
        d2 = h % 8
        divides(8, n)
    """
    refused: ClassVar = {
        "another divisor is known": "d0 = n % 3\ndivides(8, n)",
        "nothing else is divided": "d0 = n // 8\ndivides(8, n)",
    }

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        dividend, divisor = e.args
        whole, rest = ZERO, list[Term]()
        for term in dividend.terms:
            part = from_terms((term,))
            multiple = facts.known_multiple(divisor, part)
            quotient = None if multiple is None else exact_quotient(part, multiple)
            if multiple is None or quotient is None:
                rest.append(term)
            else:
                whole = add(whole, mul(quotient, floordiv(multiple, divisor)))
        if whole is ZERO:
            return None
        return mod(from_terms(rest), divisor) if e.op == "mod" else add(whole, floordiv(from_terms(rest), divisor))
