"""The one driver of rules on expressions and requirements, for both vocabularies: sizes and coordinates.

An expression is rewritten from its operands up, each distinct node once; a requirement by the first rule that has a
step for it. What the symbols mean is not the engine's: rules ask the facts of their vocabulary (`Facts`, `Ranges`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar, cast

from dlcb.dialects.shape.expr import CALLS, Expr, call, from_terms, post_order
from dlcb.dialects.shape.requirement import Require
from dlcb.errors import InternalError
from dlcb.passes.rule_trace import Firing, listener
from dlcb.passes.solver.law import POLYNOMIAL, ExprLaw, Law, RequireLaw, Step

_DEEPEST = 60
"""How often what a rule made may be rewritten again, in a row: more says that rules undo one another."""


class Knowledge(Protocol):
    def where(self) -> str:
        """What is under way, for the trace: a source line, or an op."""
        ...


K = TypeVar("K", bound=Knowledge)


class Engine(Generic[K]):
    def __init__(self, rules: Iterable[Law], facts: K) -> None:
        self._facts = facts
        self._known: dict[Expr, Expr] = {}
        self._depth = 0
        self._listener = listener()
        self._of_function: dict[str, list[ExprLaw[K]]] = defaultdict(list)
        self._of_kind: dict[str, list[RequireLaw[K]]] = defaultdict(list)
        for rule in rules:
            if isinstance(rule, ExprLaw):
                of_functions = cast("ExprLaw[K]", rule)
                for function in of_functions.functions:
                    self._of_function[function].append(of_functions)
            elif isinstance(rule, RequireLaw):
                of_kinds = cast("RequireLaw[K]", rule)
                for kind in of_kinds.kinds:
                    self._of_kind[kind].append(of_kinds)

    def forget(self) -> None:
        """What was simplified is simplified anew, for the facts have changed."""
        self._known.clear()

    def simplify(self, e: Expr) -> Expr:
        """The expression with every atom rewritten until no rule applies."""
        if e.op == "symbol" or e.op == "constant":
            return e
        known = self._known
        found = known.get(e)
        if found is not None:
            return found
        compound = [atom for _, atoms in e.terms for atom in atoms if atom.op != "symbol"]
        if not compound:
            return e
        if e.op not in CALLS and all([atom in known for atom in compound]):
            known[e] = self._node(e)
            return known[e]
        for node in post_order((e,), known):
            known[node] = self._node(node)
        return known[e]

    def step(self, require: Require) -> tuple[Require, Step | None]:
        """The requirement with its sides simplified, and what a rule says of that; None where no rule applies."""
        lhs, rhs = self.simplify(require.lhs), self.simplify(require.rhs)
        if lhs is not require.lhs or rhs is not require.rhs:
            require = Require(require.kind, lhs, rhs, require.text)
        for rule in self._of_kind.get(require.kind, ()):
            step = rule.apply(require, self._facts)
            if step is not None:
                if self._listener is not None:
                    self._tell(rule, require, step)
                return require, step
        return require, None

    def _node(self, node: Expr) -> Expr:
        known = self._known
        if node.op in CALLS:
            return self._rewrite(call(node.op, *[known.get(a, a) for a in node.args]))
        if node.op in ("constant", "symbol"):
            return node
        return self._rewrite(
            from_terms([(c, [known.get(atom, atom) for atom in atoms]) for c, atoms in node.terms]), node
        )

    def _rewrite(self, e: Expr, polynomial: Expr | None = None) -> Expr:
        """One step at the node whose operands are simplified, and what follows from it."""
        function = e.op if e.op in CALLS else POLYNOMIAL
        if function is POLYNOMIAL and polynomial is not e:
            return self._again(e)
        for rule in self._of_function.get(function, ()):
            better = rule.rewrite(e, self._facts)
            if better is not None and better is not e:
                if self._listener is not None:
                    self._tell(rule, e, better)
                return self._again(better)
        return e

    def _again(self, e: Expr) -> Expr:
        if self._depth == _DEEPEST:
            raise InternalError(f"the rules do not come to an end; at: {e}")
        self._depth += 1
        try:
            return self.simplify(e)
        finally:
            self._depth -= 1

    def _tell(self, rule: Law, before: Expr | Require, after: Expr | Step) -> None:
        if self._listener is not None:
            self._listener(Firing(rule.level, rule.name, str(before), str(after), self._facts.where()))
