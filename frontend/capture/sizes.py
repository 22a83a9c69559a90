"""The sizes at which a program is traced.

Sizes of the trace are primes, pairwise different, at least 2, in the order of the example's sizes, and no number that
the model itself has: so no relation between sizes holds by accident. Where the model refuses them, dims that are equal
in the example share a size, or sizes are multiples of the example's, or differ from it by multiples of a power of two,
or are squares where it is one; where it still refuses, single dims keep the example's size: those that broadcast stay
free, the others are pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import isqrt
from types import CodeType
from typing import Any, TypeVar, cast

import torch

from dlcb.errors import InternalError
from dlcb.frontend.tracing.primes import primes_from

_SMALLEST = 11
_PERIOD = 64
T = TypeVar("T")


class Spread(Enum):
    """Which sizes are made of primes."""

    PRIMES = auto()
    MULTIPLES = auto()
    """Of the example's size: for a model that divides a size."""
    CONGRUENT = auto()
    """To the example's size: for a model that halves a size again and again, and asks if it is even."""
    SQUARES = auto()
    """Where the example's size is one: for a model that makes a square of a row."""

    def size(self, example: int, prime: int) -> int:
        match self:
            case Spread.PRIMES:
                return prime
            case Spread.MULTIPLES:
                return max(1, example) * prime
            case Spread.CONGRUENT:
                return example + _PERIOD * prime
            case Spread.SQUARES:
                return prime * prime if is_square(example) else prime


def is_square(size: int) -> bool:
    """Of a number above 1."""
    return size > 1 and isqrt(size) ** 2 == size


@dataclass(frozen=True, slots=True)
class Plan:
    """Traced values of all symbols, and the symbols that keep the example's value."""

    values: Mapping[str, int]
    pinned: frozenset[str]
    held: frozenset[str] = frozenset()
    """Symbols that have the example's value in every trace, and are free all the same: they are broadcast."""

    def __post_init__(self) -> None:
        if both := self.pinned & self.held:
            raise InternalError(f"sizes are pinned and free at once: {sorted(both)}")

    @property
    def kept(self) -> frozenset[str]:
        """The symbols that have the example's value."""
        return self.pinned | self.held


@dataclass(frozen=True, slots=True)
class Choice:
    """How sizes are chosen."""

    groups: tuple[frozenset[str], ...] = ()
    """Symbols that share a size."""
    spread: Spread = Spread.PRIMES
    held: frozenset[str] = frozenset()
    """Symbols that keep the example's size, and are free."""


def plan_sizes(example: Mapping[str, int], pinned: Iterable[str], choice: Choice, taken: set[int]) -> Plan:
    """Fresh sizes for all symbols that are not pinned."""
    pins = frozenset(pinned)
    held = choice.held - pins
    kept = pins | held
    used = taken | {example[name] for name in kept}
    values = {name: example[name] for name in kept}
    group_of = {name: group for group in choice.groups for name in group}
    start = _SMALLEST
    for name in sorted(example, key=example.__getitem__):
        if name not in values:
            start = max(start, example[name] if choice.spread is Spread.PRIMES else 1)
            sizes = ((p, choice.spread.size(example[name], p)) for p in primes_from(start))
            prime, size = next((p, size) for p, size in sizes if size not in used)
            start = prime + 1
            used.add(size)
            values |= dict.fromkeys(group_of.get(name, {name}) - kept, size)
    return Plan(values, pins, held)


def plan_below(plan: Plan, taken: set[int]) -> Plan:
    """The next sizes below those of a plan, for all that are not kept; pairwise different where these are."""
    used = taken | {plan.values[name] for name in plan.kept}
    below: dict[int, int] = {}
    for size in sorted({size for name, size in plan.values.items() if name not in plan.kept}):
        below[size] = next((n for n in reversed(range(2, size)) if n not in used), size)
        used.add(below[size])
    values = {name: size if name in plan.kept else below[size] for name, size in plan.values.items()}
    return Plan(values, plan.pinned, plan.held)


def equal_groups(classes: Mapping[str, Hashable]) -> list[frozenset[str]]:
    """Symbols of equal class, in order."""
    groups: dict[Hashable, list[str]] = {}
    for name, its_class in classes.items():
        groups.setdefault(its_class, []).append(name)
    return [frozenset(group) for group in groups.values()]


def numbers_of(program: Callable[..., Any]) -> set[int]:
    """Integers that a program mentions: in its code, its modules' attributes and configurations, its weights' sizes."""
    found: set[int] = set()
    if not isinstance(program, torch.nn.Module):
        _numbers_of_code(getattr(program, "__code__", None), found)
        return found
    for tensor in (*program.parameters(), *program.buffers()):
        found.update(tensor.shape)
    for module in program.modules():
        _numbers_of_code(type(module).forward.__code__, found)
        for name, value in vars(module).items():
            if not name.startswith("_"):
                _numbers_in(value, found)
    return found


def _numbers_of_code(code: CodeType | None, found: set[int]) -> None:
    if code is not None:
        _numbers_in(code.co_consts, found)


def _numbers_in(value: Any, found: set[int]) -> None:
    items: Iterable[Any] = ()
    if type(value) is int:
        found.add(value)
    elif isinstance(value, (tuple, list)):
        items = cast(Sequence[Any], value)
    elif hasattr(value, "to_dict") and hasattr(value, "model_type"):
        items = cast(dict[str, Any], vars(value)).values()
    for item in items:
        _numbers_in(item, found)


def joined(groups: Iterable[frozenset[T]]) -> tuple[frozenset[T], ...]:
    """Groups that have a member in common are one."""
    found: list[frozenset[T]] = []
    for group in groups:
        touching = [other for other in found if other & group]
        found = [other for other in found if not other & group]
        found.append(group.union(*touching))
    return tuple(found)
