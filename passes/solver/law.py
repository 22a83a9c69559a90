"""What a rule on expressions is, and where rules are found: one file each in `passes/rules/shape` (sizes) and
`passes/rules/coordinate` (coordinates of a kernel), registered nowhere else.

A rule may use whatever the facts of its vocabulary say, for that is true of every call that passes the checks which are
left. They hold no fact that comes from the requirement under way, so that none proves itself.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeVar

from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.requirement import Require

LEVELS: Final = ("shape", "coordinate")
POLYNOMIAL: Final = "polynomial"
"""What `ExprLaw.functions` calls a sum or product."""
_RULES: Final = "dlcb.passes.rules"
K = TypeVar("K", contravariant=True)
"""What is known in the vocabulary of a rule."""


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of a requirement: the `requires` that say the same in its place (none: it is proved), or else."""

    requires: tuple[Require, ...] = ()
    refuted: bool = False
    """Nothing meets it."""
    binding: tuple[str, Expr] | None = None
    """It says that the symbol is the expression, which is used everywhere from here on."""
    at_least: tuple[tuple[str, int], ...] = ()
    """It stays a check, and says that the symbols are at least that much."""

    def __str__(self) -> str:
        if self.binding is not None:
            symbol, value = self.binding
            return f"{symbol} is {value}"
        if self.at_least:
            return ", ".join(f"{symbol} is at least {least}" for symbol, least in self.at_least)
        return "never holds" if self.refuted else " and ".join(map(str, self.requires)) or "proved"


PROVED: Final = Step()
REFUTED: Final = Step(refuted=True)


class Law(ABC):
    """One law. `before` and `after` are in the syntax of `passes/solver/examples.py`: solving one gives the other."""

    level: ClassVar[str]
    """Its vocabulary, one of `LEVELS`; the folder it lies in has the same name."""
    priority: ClassVar[int] = 50
    """The rule of the smallest number comes first."""
    before: ClassVar[str]
    after: ClassVar[str]
    refused: ClassVar[dict[str, str]]
    """For each reason why it does not apply: an example that it leaves alone."""

    @property
    def name(self) -> str:
        return type(self).__name__


class RequireLaw(Law, Generic[K]):
    """Rewrites a requirement whose sides are simplified."""

    kinds: ClassVar[tuple[str, ...]]

    @abstractmethod
    def apply(self, require: Require, facts: K) -> Step | None:
        """None where the rule has nothing to say."""


class ExprLaw(Law, Generic[K]):
    """Rewrites an atom or polynomial, whose operands are simplified, to something simpler of the same value."""

    functions: ClassVar[tuple[str, ...]]
    """The functions at which it starts, by `Expr.op`, or `POLYNOMIAL`."""

    @abstractmethod
    def rewrite(self, e: Expr, facts: K) -> Expr | None:
        """None where the rule has nothing to say."""


@cache
def laws(level: str) -> tuple[Law, ...]:
    """Every rule of a vocabulary, by priority and name."""
    return tuple(sorted((rule() for rule in _find_rules(level)), key=lambda rule: (rule.priority, rule.name)))


def _find_rules(level: str) -> Iterator[type[Law]]:
    package = importlib.import_module(f"{_RULES}.{level}")
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        module = importlib.import_module(info.name)
        members: list[Any] = list(vars(module).values())
        for found in members:
            if inspect.isclass(found) and issubclass(found, Law) and found.__module__ == module.__name__:
                yield found
