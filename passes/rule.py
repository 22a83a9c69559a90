"""What a rewrite rule is, and where rules are found.

A rule is one file under `passes/rules/<level>/`, or a class or module that an installed package names in the
entry-point group `dlcb.rules`. It is not registered anywhere else.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
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
LEVELS: Final = ("graph", "coord", "cuda", "host")
_RULES: Final = "dlcb.passes.rules"


class Rule(ABC):
    """One rewrite within a level. `why_not` decides and never edits; `rewrite` edits and never decides.

    The laws: the result computes the same, is never worse, and a second run changes nothing. One generic test holds
    every rule to its own examples.
    """

    level: ClassVar[str]
    """The dialect it rewrites within, one of `LEVELS`; the folder it lies in has the same name."""
    priority: ClassVar[int] = 50
    """Of the rules that apply at one op, that of the smallest number comes first."""
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


def summary(rule: type) -> str:
    """What a rule does in one sentence: the first of its docstring, or of its file's where it has none."""
    module = inspect.getmodule(rule)
    document = rule.__dict__.get("__doc__") or (module and module.__doc__) or ""
    return re.split(r"\.\s|\n", document.strip(), maxsplit=1)[0].removesuffix(".")


@cache
def rules_of(level: str) -> tuple[Rule, ...]:
    """The rules of a level, of the package and of installed plugins, by priority and name."""
    plugins = [rule for rule in _plugin_rules() if rule.level == level]
    return tuple(
        sorted((rule() for rule in {*_own_rules(level), *plugins}), key=lambda rule: (rule.priority, rule.name))
    )


def decompositions() -> tuple[Rule, ...]:
    """The rules that say what composite ops are made of; named `Decompose…`."""
    return tuple(rule for rule in rules_of("graph") if rule.name.startswith("Decompose"))


def all_rules() -> tuple[Rule, ...]:
    return tuple(rule for level in LEVELS for rule in rules_of(level))


def _own_rules(level: str) -> Iterator[type[Rule]]:
    if importlib.util.find_spec(f"{_RULES}.{level}") is None:
        return
    package = importlib.import_module(f"{_RULES}.{level}")
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
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
