"""A table of operations by ATen's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast


class Table(dict[str, Callable[..., Any]]):
    """`@TABLE.handles("view")` enters a function `f(i, self, *size)`: `i` builds ops, then ATen's arguments by name.
    It gives the result's value, or a tuple of them for an operation of several results."""

    def handles(self, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def enter(function: Callable[..., Any]) -> Callable[..., Any]:
            self.update(dict.fromkeys(names, function))
            return function

        return enter


def listed(items: tuple[Any, ...], named: Any = None) -> tuple[Any, ...]:
    """ATen takes a list as one argument, spread over several, or by its name."""
    if named is not None:
        return several(named)
    return several(items[0]) if len(items) == 1 else items


def spread(value: Any, count: int) -> tuple[Any, ...]:
    """One number for all spatial dims, or one for each."""
    items = several(value)
    return items * count if len(items) == 1 else items


def several(value: Any) -> tuple[Any, ...]:
    """The items of a list, or the one thing."""
    return tuple(cast(Sequence[Any], value)) if isinstance(value, (tuple, list)) else (value,)
