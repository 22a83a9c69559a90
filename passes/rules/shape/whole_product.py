"""q·d·⌊m / d⌋ → q·m, where a requirement says that d, or a multiple of it, divides m.

Sound: m is a multiple of d, which is not 0 where the division has a meaning.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, Term, exact_quotient, from_terms, mul
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.law import POLYNOMIAL
from dlcb.passes.solver.rule import ExprRule


class WholeProduct(ExprRule):
    functions = (POLYNOMIAL,)
    before: ClassVar[str] = """
        d0 = 8*(n // 4) + 1
        d1 = 3*(n // 4)
        divides(4, n)
    """
    after: ClassVar[str] = """
        d0 = 2*n + 1
        d1 = 3*(n // 4)
        divides(4, n)
    """
    refused: ClassVar = {
        "nothing says that it is a multiple": "d0 = 4*(n // 4)",
        "the factor is no multiple of the divisor": "d1 = 3*(n // 4)\ndivides(4, n)",
    }

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        terms = [_whole(term, facts) for term in e.terms]
        if all(new is None for new in terms):
            return None
        return from_terms(
            [(1, [from_terms((old,)) if new is None else new]) for old, new in zip(e.terms, terms, strict=True)]
        )


def _whole(term: Term, facts: Facts) -> Expr | None:
    coefficient, atoms = term
    for i, atom in enumerate(atoms):
        if atom.op != "floordiv":
            continue
        dividend, divisor = atom.args
        quotient = exact_quotient(from_terms([(coefficient, atoms[:i] + atoms[i + 1 :])]), divisor)
        if quotient is not None and facts.divides(divisor, dividend):
            return mul(quotient, dividend)
    return None
