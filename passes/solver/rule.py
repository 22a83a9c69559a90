"""What a rule on sizes is, and where rules are found: one file each in `passes/rules/shape`, registered nowhere else.

A rule may use whatever `Facts` says, for that is true of every call that passes the checks which are left. `Facts`
holds no fact that comes from the requirement under way, so that none proves itself.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.requirement import Require

if TYPE_CHECKING:
    from dlcb.passes.solver.facts import Facts


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of a requirement: the `requires` that say the same in its place (none: it is proved), or else."""

    requires: tuple[Require, ...] = ()
    binding: tuple[str, Expr] | None = None
    """It says that the symbol is the expression, which is used everywhere from here on."""
    at_least: tuple[tuple[str, int], ...] = ()
    """It stays a check, and says that the symbols are at least that much."""


class SizeRule(ABC):
    """One law. `before` and `after` are in the syntax of `dialects/shape/text.py`: solving one gives the other."""

    priority: ClassVar[int] = 50
    """The rule of the smallest number comes first."""
    before: ClassVar[str]
    after: ClassVar[str]

    @property
    def name(self) -> str:
        return type(self).__name__


class RequireRule(SizeRule):
    """Rewrites a requirement whose sides are simplified."""

    kinds: ClassVar[tuple[str, ...]]

    @abstractmethod
    def apply(self, require: Require, facts: Facts) -> Step | None:
        """None where the rule has nothing to say."""


class ExprRule(SizeRule):
    """Rewrites an atom, whose operands are simplified, to something simpler of the same value."""

    functions: ClassVar[tuple[str, ...]]

    @abstractmethod
    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        """None where the rule has nothing to say."""


@cache
def size_rules() -> tuple[SizeRule, ...]:
    """Every rule, by priority and name."""
    return tuple(sorted((rule() for rule in _find_rules()), key=lambda rule: (rule.priority, rule.name)))


def _find_rules() -> Iterator[type[SizeRule]]:
    package = importlib.import_module("dlcb.passes.rules.shape")
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        module = importlib.import_module(info.name)
        for _, found in inspect.getmembers(module, inspect.isclass):
            if issubclass(found, SizeRule) and found.__module__ == module.__name__:
                yield found
