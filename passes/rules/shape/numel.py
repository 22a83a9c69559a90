"""b·⌊a / b⌋ == a  →  b divides a.  A reshape to an inferred size.

Sound, also for b = 0: both say then that a is 0.
"""

from typing import ClassVar

from dlcb.dialects.shape.expr import Expr, from_terms
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import RequireRule, Step


class Numel(RequireRule):
    kinds = ("eq",)
    priority = 25
    before: ClassVar[str] = """
        d = n*m // (3*h)
        n*m == 3*h*d
    """
    after: ClassVar[str] = """
        d = m*n // (3*h)
        divides(3*h, m*n)
    """
    refused: ClassVar = {"another divisor": "d = n*m // (3*h)\nn*m == 2*h*d"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        for whole, product in ((require.lhs, require.rhs), (require.rhs, require.lhs)):
            divisor = _inferred_divisor(product, whole)
            if divisor is not None:
                return Step((Require("divides", divisor, whole, require.text),))
        return None


def _inferred_divisor(product: Expr, whole: Expr) -> Expr | None:
    """b where the product is b·⌊whole / b⌋."""
    if len(product.terms) != 1:
        return None
    ((coefficient, atoms),) = product.terms
    for i, atom in enumerate(atoms):
        if atom.op == "floordiv" and atom.args[0] is whole:
            rest = from_terms([(coefficient, atoms[:i] + atoms[i + 1 :])])
            if rest is atom.args[1]:
                return rest
    return None
