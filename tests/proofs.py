"""Expressions and requirements for z3, and what it proves of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import reduce
from typing import Any

import z3

from dlcb.dialects.shape.expr import Expr, elements, is_list, post_order, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import System

TIMEOUT_MS = 500


class Verdict(Enum):
    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


class Terms:
    """Expressions as terms of z3: a symbol is an integer, or the expression that it is defined by."""

    def __init__(self, defines: Mapping[str, Expr]) -> None:
        self._known: dict[Expr, Any] = {}
        self.divisors: list[Any] = []
        """No meaning is kept where one of these is not positive."""
        for name, expr in defines.items():
            self._known[sym(name)] = self.number(expr)

    def number(self, e: Expr) -> Any:
        for node in post_order((e,), self._known):
            self._known[node] = None if is_list(node) else self._node(node)
        return self._known[e]

    def truth(self, require: Require) -> Any:
        if is_list(require.lhs):
            pairs = zip(elements(require.lhs), elements(require.rhs), strict=True)
            return z3.And(*[self.number(a) == self.number(b) for a, b in pairs])
        return self.number(require.condition) != 0

    def _node(self, node: Expr) -> Any:
        if node.value is not None:
            return z3.IntVal(node.value)
        if node.op == "symbol":
            return z3.Int(node.name)
        if node.op in ("add", "mul"):
            total = z3.IntVal(0)
            for coefficient, atoms in node.terms:
                total = total + reduce(lambda x, atom: x * self._known[atom], atoms, z3.IntVal(coefficient))
            return total
        return self._function(node.op, [self._known[arg] for arg in node.args])

    def _function(self, function: str, args: list[Any]) -> Any:
        match function, args:
            case "floordiv" | "mod" | "ceildiv", [a, b]:
                self.divisors.append(b)
                return {"floordiv": a / b, "mod": a % b, "ceildiv": -(-a / b)}[function]
            case "scaled" | "isqrt", _:
                return z3.Function(function, *[z3.IntSort()] * (len(args) + 1))(*args)
            case "minimum", [first, *rest]:
                return reduce(lambda x, y: z3.If(x < y, x, y), rest, first)
            case "maximum", [first, *rest]:
                return reduce(lambda x, y: z3.If(x > y, x, y), rest, first)
            case "broadcast", [a, b]:
                return z3.If(a == 1, b, a)
            case "select", [condition, a, b]:
                return z3.If(condition != 0, a, b)
            case "logical_not", [a]:
                return _as_number(a == 0)
            case "logical_and", _:
                return _as_number(z3.And(*[a != 0 for a in args]))
            case "logical_or", _:
                return _as_number(z3.Or(*[a != 0 for a in args]))
            case _:
                a, b = args
                return _as_number({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b}[function])


def _as_number(truth: Any) -> Any:
    return z3.If(truth, z3.IntVal(1), z3.IntVal(0))


def sorts(system: System) -> list[Any]:
    """Sizes and strides are not negative."""
    return [z3.Int(name) >= source.at_least for name, source in system.symbols.items() if source.at_least is not None]


def proved(given: Iterable[Any], claim: Any) -> Verdict:
    """Does the claim hold wherever all that is given does?"""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*given, z3.Not(claim))
    found = solver.check()
    return Verdict.PROVED if found == z3.unsat else Verdict.REFUTED if found == z3.sat else Verdict.UNKNOWN


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return next((v for v in (Verdict.REFUTED, Verdict.UNKNOWN) if v in found), Verdict.PROVED)
