"""What each function of sizes computes from integers. A condition is 0 or 1; any other number counts as true."""

import math
from collections.abc import Callable
from typing import Any


def floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def ceildiv(a: int, b: int) -> int:
    return -(-a // b) if b else 0


def mod(a: int, b: int) -> int:
    return a % b if b else 0


def scaled(x: int, num: int, den: int) -> int:
    return math.floor(x * (num / den))


def isqrt(x: int) -> int:
    return math.isqrt(x) if x > 0 else 0


def broadcast(a: int, b: int) -> int:
    return b if a == 1 else a


def select(condition: int, a: int, b: int) -> int:
    return a if condition else b


def eq(a: int, b: int) -> int:
    return int(a == b)


def ne(a: int, b: int) -> int:
    return int(a != b)


def lt(a: int, b: int) -> int:
    return int(a < b)


def le(a: int, b: int) -> int:
    return int(a <= b)


def logical_and(*args: int) -> int:
    return int(all(args))


def logical_or(*args: int) -> int:
    return int(any(args))


def logical_not(a: int) -> int:
    return int(not a)


FUNCTIONS: dict[str, Callable[..., int]] = {
    "floordiv": floordiv,
    "ceildiv": ceildiv,
    "mod": mod,
    "scaled": scaled,
    "isqrt": isqrt,
    "minimum": min,
    "maximum": max,
    "broadcast": broadcast,
    "select": select,
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "le": le,
    "logical_and": logical_and,
    "logical_or": logical_or,
    "logical_not": logical_not,
}
"""By the name that an expression's `op` and the op of `dlcb.shape` have."""


def concat(*lists: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([element for part in lists for element in part])


def permute(of: tuple[int, ...], *order: int) -> tuple[int, ...]:
    return tuple([of[place] for place in order])


def size_list(*elements: int) -> tuple[int, ...]:
    return elements


LIST_FUNCTIONS: dict[str, Callable[..., tuple[int, ...]]] = {"list": size_list, "concat": concat, "permute": permute}
"""What makes lists, of numbers and of other lists. Of lists, `eq` alone is asked."""
CALLS: dict[str, Callable[..., Any]] = {**FUNCTIONS, **LIST_FUNCTIONS}
"""All that is no constant, symbol or polynomial."""
