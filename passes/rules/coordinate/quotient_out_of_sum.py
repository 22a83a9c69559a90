"""⌊(q·d + r) / d⌋ → q + ⌊r / d⌋ and (q·d + r) mod d → r mod d, for a product d: each term of the dividend that d divides leaves.

Sound: q is an integer, and d is not 0 where the division is made. The rest of the dividend has fewer terms.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import ZERO, Expr, Term, add, floordiv, from_terms, mod
from dlcb.passes.solver.ranges import Ranges
from dlcb.passes.solver.rule import CoordinateRule


class QuotientOutOfSum(CoordinateRule):
    functions = ("floordiv", "mod")
    priority = 10
    before: ClassVar[str] = """
        i in n
        d0 = (3*i*m + i) // m
        d1 = (i*m + 5) % m
    """
    after: ClassVar[str] = """
        d0 = 3*i + i // m
        d1 = 5 % m
    """
    refused: ClassVar = {
        "the divisor is a sum": "i in n\nd0 = (i*m + i + 7) // (m + 1)",
        "it divides no term": "i in n\nd0 = (3*i*m + i) // k",
    }

    def rewrite(self, e: Expr, facts: Ranges) -> Expr | None:
        dividend, divisor = e.args
        quotient, rest = split(dividend, divisor)
        if quotient is ZERO:
            return None
        return add(quotient, floordiv(rest, divisor)) if e.op == "floordiv" else mod(rest, divisor)


def split(x: Expr, d: Expr) -> tuple[Expr, Expr]:
    """x = quotient·d + rest, taking every term that d divides into the quotient."""
    if d is ZERO or len(d.terms) != 1:
        return ZERO, x
    (divisor,) = d.terms
    taken: list[Term] = []
    rest: list[Term] = []
    for term in x.terms:
        quotient = _divide(term, divisor)
        if quotient is None:
            rest.append(term)
        else:
            taken.append(quotient)
    return from_terms(taken), from_terms(rest)


def _divide(term: Term, divisor: Term) -> Term | None:
    if term[0] % divisor[0]:
        return None
    left = list(term[1])
    for atom in divisor[1]:
        if atom not in left:
            return None
        left.remove(atom)
    return term[0] // divisor[0], tuple(left)
