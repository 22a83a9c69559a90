"""How a run is led on a way through the program that its sizes alone would not take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from dlcb.dialects.shape.expr import Expr
from dlcb.errors import UnsupportedError
from dlcb.frontend.tracing.tracked import number
from dlcb.frontend.tracing.tracker import Comparison, Tracker

Site: TypeAlias = tuple[str, str, int]
"""A place where a run makes a value: source line, operation, and how many it made there before."""

Path: TypeAlias = tuple[int | str, ...]
"""Where an operand stands in a call: the place or name of an argument, then places in nested lists."""

Edits: TypeAlias = Mapping[Site, Mapping[Path, Expr]]


@dataclass(frozen=True, slots=True)
class Steering:
    answers: Mapping[Comparison, bool] = field(default_factory=dict[Comparison, bool])
    """Told to the program whatever its sizes are."""
    edits: Edits = field(default_factory=dict[Site, dict[Path, Expr]])
    """Integers that stand in place of those that the program hands to operations."""
    ids: Mapping[Site, int] = field(default_factory=dict[Site, int])
    """Of another run, which gives the values at equal sites equal numbers, and so sizes of results equal names."""

    def edited(
        self, site: Site, args: tuple[Any, ...], kwargs: dict[str, Any], tracker: Tracker
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with the integers of its edits."""
        for (head, *rest), expr in self.edits[site].items():
            if not expr.free <= tracker.traced.keys():
                raise UnsupportedError(f"{site[1]}: {site[0]}: the sizes in {expr} are not known before it")
            integer = number(tracker, expr, tracker.value(expr))
            if isinstance(head, str):
                kwargs = {**kwargs, head: _with_leaf(kwargs[head], rest, integer)}
            else:
                args = cast("tuple[Any, ...]", _with_leaf(args, (head, *rest), integer))
        return args, kwargs

    def replaced(self, site: Site, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Path, Any]:
        """What the program hands over where integers are edited."""
        return {path: _leaf(kwargs if isinstance(path[0], str) else args, path) for path in self.edits[site]}


FREE = Steering()


def _with_leaf(operand: Any, path: Sequence[int | str], leaf: int) -> Any:
    if not path:
        return leaf
    place, *rest = path
    items = list(operand)
    items[cast(int, place)] = _with_leaf(items[cast(int, place)], rest, leaf)
    return tuple(items) if isinstance(operand, tuple) else items


def _leaf(operand: Any, path: Path) -> Any:
    for place in path:
        operand = operand[place]
    return operand
