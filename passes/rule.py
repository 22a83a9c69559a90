"""What a rewrite rule is, and where rules are found.

A rule is one file under `passes/rules/<level>/`, or a class or module that an installed package names in the
entry-point group `dlcb.rules`. It is not registered anywhere else.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar, Final

from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.errors import UserError

ENTRY_POINT_GROUP: Final = "dlcb.rules"


class Rule(ABC):
    """One rewrite within a level. `why_not` decides and never edits; `rewrite` edits and never decides.

    The laws: the result computes the same, is never worse, and a second run changes nothing. One generic test holds
    every rule to its own examples.
    """

    level: ClassVar[str]
    """The dialect it rewrites within: `graph`, `coord`, `cuda`, `host`."""
    roots: ClassVar[tuple[type[Operation], ...]]
    """The op classes (or their bases) at which it can start."""
    before: ClassVar[str]
    """IR text; one run of the rule makes `after` of it."""
    after: ClassVar[str]
    refused: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """For each reason that `why_not` can give: IR text in which it is given, so that nothing changes."""

    @abstractmethod
    def why_not(self, op: Any) -> str | None:
        """The reason why the rule does not apply at `op`, which is of one of the `roots`; None where it applies."""

    @abstractmethod
    def rewrite(self, op: Any, rewriter: PatternRewriter) -> None:
        """Rewrites at `op`, where `why_not` gave no reason, through the rewriter only."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @classmethod
    def text(cls) -> str:
        """The one sentence that says what it does: the first line of its file, or of its class where that has one."""
        document = cls.__doc__ if "__doc__" in cls.__dict__ and cls.__doc__ else inspect.getmodule(cls).__doc__
        return (document or "").strip().split("\n", 1)[0]


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the package and of installed plugins, by level and name."""
    classes = {*_own_rules(), *_plugin_rules()}
    return tuple(sorted((rule() for rule in classes), key=lambda rule: (rule.level, rule.name)))


@cache
def rules_of(level: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in all_rules() if rule.level == level)


def _own_rules() -> Iterator[type[Rule]]:
    package = importlib.import_module("dlcb.passes.rules")
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not info.ispkg:
            yield from _rules_in(importlib.import_module(info.name))


def _plugin_rules() -> Iterator[type[Rule]]:
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found: object = entry.load()
        if isinstance(found, ModuleType):
            yield from _rules_in(found)
        elif isinstance(found, type) and issubclass(found, Rule):
            yield found
        else:
            what = f"entry point '{entry.name}' of '{ENTRY_POINT_GROUP}'"
            raise UserError(f"{what} must name a Rule class or a module, got {found!r}")


def _rules_in(module: ModuleType) -> Iterable[type[Rule]]:
    members: list[object] = list(vars(module).values())
    return [
        member
        for member in members
        if isinstance(member, type)
        and issubclass(member, Rule)
        and member.__module__ == module.__name__
        and not inspect.isabstract(member)
    ]
