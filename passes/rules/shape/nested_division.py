"""⌊(⌊a / b⌋ + k) / c⌋ → ⌊(a + k·b) / (b·c)⌋ and (x + m·(a mod b)) mod c → (x + m·a) mod c if c divides b.

For literals b, c > 0.  Sound: ⌊y / c⌋ = ⌊⌊y⌋ / c⌋ for a positive integer c; and a mod b differs from a by a multiple of
b, so of c.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, add, constant_term, floordiv, from_terms, mod, mul
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import ExprRule


class NestedDivision(ExprRule):
    functions = ("floordiv", "mod")
    before: ClassVar[str] = """
        d0 = ((n - 1)//2 + 2) // 2
        d1 = (3*(n % 8) + m) % 4
    """
    after: ClassVar[str] = """
        d0 = (n + 3) // 4
        d1 = (3*n + m) % 4
    """
    refused: ClassVar = {
        "the inner division has a factor": "d0 = 3*(n//2) // 4",
        "the divisors do not divide one another": "d1 = (n % 6) % 4",
    }

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        dividend, divisor = e.args
        if divisor.value is None or divisor.value <= 0:
            return None
        return _join(dividend, divisor) if e.op == "floordiv" else _drop_inner(dividend, divisor.value)


def _join(dividend: Expr, divisor: Expr) -> Expr | None:
    terms = [term for term in dividend.terms if term[1]]
    if len(terms) != 1 or terms[0][0] != 1 or len(terms[0][1]) != 1:
        return None
    (inner,) = terms[0][1]
    if inner.op != "floordiv" or inner.args[1].value is None:
        return None
    numerator, denominator = inner.args
    return floordiv(add(numerator, mul(constant_term(dividend), denominator)), mul(denominator, divisor))


def _drop_inner(dividend: Expr, divisor: int) -> Expr | None:
    opened = from_terms([(c, [_open(atom, divisor) for atom in atoms]) for c, atoms in dividend.terms])
    return None if opened is dividend else mod(opened, divisor)


def _open(atom: Expr, divisor: int) -> Expr:
    if atom.op == "mod" and atom.args[1].value is not None and atom.args[1].value % divisor == 0:
        return atom.args[0]
    return atom
