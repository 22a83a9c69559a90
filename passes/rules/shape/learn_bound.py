"""k ≤ a·s₁·s₂·…  →  a check, and each sᵢ is at least 1;  k ≤ a·s  →  s is at least ⌈k / a⌉.  For literals k, a > 0.

Sound: no factor is negative, so that none is 0 in a positive product. The requirement stays; others rest on it.
"""

from math import prod
from typing import ClassVar

from dlcb.dialects.shape.expr import constant_term, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.rule import PROVED, RequireRule, Step


class LearnBound(RequireRule):
    kinds = ("lt", "le")
    before: ClassVar[str] = """
        5 <= 2*n*n
        0 < m*h
        3 <= n
        1 <= m
        4 <= n
    """
    after: ClassVar[str] = """
        0 < m*h
        4 <= n
    """
    refused: ClassVar = {"a factor can be negative": "k = int(k)\n0 < n*k", "a sum": "3 <= n + m"}

    def apply(self, require: Require, facts: Facts) -> Step | None:
        difference = sub(require.rhs, require.lhs)
        least = (1 if require.kind == "lt" else 0) - constant_term(difference)
        terms = [term for term in difference.terms if term[1]]
        if len(terms) != 1 or terms[0][0] < 0 or least <= 0:
            return None
        coefficient, atoms = terms[0]
        known = [facts.at_least.get(atom.name, -1) for atom in atoms]
        if min(known) < 0:
            return None
        if coefficient * prod(known) >= least:
            return PROVED
        least = -(-least // coefficient) if len(atoms) == 1 else 1
        learned = [(atom.name, least) for atom in dict.fromkeys(atoms) if facts.at_least[atom.name] < least]
        return Step(at_least=tuple(learned)) if learned else None
