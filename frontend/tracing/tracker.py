"""What a trace assumed about sizes: comparisons it relied on and numbers it used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlcb.dialects.shape.bounds import is_nonneg, is_positive
from dlcb.dialects.shape.expr import Expr, const, evaluate, sub
from dlcb.dialects.shape.requirement import REQUIREMENTS, Require
from dlcb.errors import UnsupportedError
from dlcb.frontend.tracing.source import source_line

USED = "pinned by "
"""How the text of a check begins where the program used the number itself."""

WAITS = (
    "Python would wait for elements of a tensor; DLCB compiles programs whose branches and sizes do not depend on"
    " elements"
)

COMPARED = "compared at "
"""How the text of a check begins that keeps an answer to a comparison."""

Comparison = tuple[str, Expr, Expr]
"""A question the program asked: eq, lt or le, and its two sides."""


@dataclass(frozen=True, slots=True)
class Check(Require):
    """A relation between sizes that must hold for the trace to be the program."""

    comparison: Comparison | None = None
    """The question whose answer it keeps; None where the program used the number itself (`rhs` is the traced value)."""

    @property
    def answer(self) -> bool:
        """What the program was told."""
        return self.comparison is not None and self.kind == self.comparison[0]

    def holds(self, values: Mapping[str, int]) -> bool:
        return bool(evaluate(self.condition, values))


class Tracker:
    """The checks of one trace, and the traced value of every symbol. Once inactive it records nothing: numbers that
    outlive their trace are plain ones."""

    def __init__(self, answers: Mapping[Comparison, bool]) -> None:
        """`answers` are given to the program whatever its sizes are."""
        self.traced: dict[str, int] = {}
        self.at_least: dict[str, int] = {}
        """Lower bounds of symbols: sizes are not negative, ints can be any."""
        self.elements: set[str] = set()
        """Symbols that stand for elements of tensors; those have no number in a trace."""
        self.active = True
        self.asked = 0
        """How often the numbers of the trace were compared or used, whether that makes a check or not."""
        self.extrema: set[Expr] = set()
        """The least and greatest of numbers that the program took."""
        self._answers = answers
        self._checks: dict[tuple[str, Expr, Expr], Check] = {}

    @property
    def checks(self) -> list[Check]:
        return list(self._checks.values())

    def compare(self, kind: str, lhs: Expr, rhs: Expr, holds: bool) -> bool:
        """The program asks whether `kind` (eq, lt or le) holds, and goes on by the answer."""
        comparison = (kind, lhs, rhs)
        answer = self._answers.get(comparison, holds)
        if answer:
            self._add(kind, lhs, rhs, f"{COMPARED}{{}}", comparison)
        elif kind == "eq":
            self._add("ne", lhs, rhs, f"{COMPARED}{{}}", comparison)
        else:
            self._add("le" if kind == "lt" else "lt", rhs, lhs, f"{COMPARED}{{}}", comparison)
        return answer

    def pin(self, expr: Expr, value: int, by: str) -> None:
        """The program uses the number itself."""
        if self.active and not self.elements.isdisjoint(expr.free):
            raise UnsupportedError(f"{by}: {source_line()}: {WAITS}")
        self._add("eq", expr, const(value), f"{USED}{by} at {{}}", None)

    def require(self, kind: str, lhs: Expr, rhs: int, text: str) -> None:
        """The trace is the program only where this holds."""
        self._add(kind, lhs, const(rhs), text, None)

    def value(self, expr: Expr) -> int:
        return evaluate(expr, self.traced)

    def _add(self, kind: str, lhs: Expr, rhs: Expr, text: str, comparison: Comparison | None) -> None:
        self.asked += 1
        key = (kind, lhs, rhs)
        if self.active and key not in self._checks and not self._always(kind, lhs, rhs):
            self._checks[key] = Check(*key, text.format(source_line()), comparison)

    def _always(self, kind: str, lhs: Expr, rhs: Expr) -> bool:
        if REQUIREMENTS[kind](lhs, rhs).value is not None:
            return True
        if kind == "le":
            return is_nonneg(sub(rhs, lhs), self.at_least)
        return kind == "lt" and is_positive(sub(rhs, lhs), self.at_least)
