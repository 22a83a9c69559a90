"""What the tables of operations are written with. Each operation is a function that draws a line of Python over the
values that are there. What eager refuses is dropped by who draws, so arguments need only be right most of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

import torch
from torch import Tensor


class Draft(Protocol):
    """A program under construction, which has run on its first call's arguments."""

    random: Random
    values: dict[str, Any]

    def tensor(self, test: Callable[[Tensor], bool] = ...) -> str: ...

    def like(self, name: str, test: Callable[[Tensor], bool] = ...) -> str: ...

    def new(self, sizes: Sequence[int], dtype: torch.dtype) -> str: ...


class NothingFits(Exception):
    """No value is of the kind that the operation takes."""


Operation = Callable[[Draft], str]
OPERATIONS: list[tuple[Operation, int]] = []
"""Each with how often it is drawn."""
DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()


def weight(often: int = 2) -> Callable[[Operation], Operation]:
    def add(operation: Operation) -> Operation:
        OPERATIONS.append((operation, often))
        return operation

    return add


def is_float(t: Tensor) -> bool:
    return t.is_floating_point()


def is_number(t: Tensor) -> bool:
    return t.dtype != torch.bool


def is_whole(t: Tensor) -> bool:
    return t.dtype in (torch.int64, torch.int32)


def is_bool(t: Tensor) -> bool:
    return t.dtype == torch.bool


def has_dims(t: Tensor) -> bool:
    return t.dim() > 0


def is_picture(t: Tensor) -> bool:
    return t.dim() == 4 and t.is_floating_point()


def axis_of(d: Draft, x: str) -> int:
    rank = d.values[x].dim()
    if not rank:
        raise NothingFits
    axis = d.random.randrange(rank)
    return axis - rank if d.random.random() < 0.3 else axis


def axes_of(d: Draft, x: str) -> str:
    rank = d.values[x].dim()
    count = d.random.randint(1, max(rank, 1))
    chosen = sorted(d.random.sample(range(rank), min(count, rank)))
    return repr(chosen[0]) if len(chosen) == 1 else repr(tuple(chosen))


def integer(d: Draft) -> str | None:
    """An integer argument, sometimes."""
    names = [n for n in d.values if n.startswith("k")]
    return d.random.choice(names) if names and d.random.random() < 0.4 else None


def keepdim(d: Draft) -> str:
    return d.random.choice(["", ", keepdim=True"])
