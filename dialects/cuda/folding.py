"""Integer arithmetic on constants that the kernel builder does itself. Floats are left to the device compiler."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute

from dlcb.dialects.types import wrapped

Number = int | float | bool

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_DIVISION: dict[str, Callable[[int, int], int]] = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}
_UNCHANGED_BY = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1, "or": 0, "xor": 0}
"""x function c is x"""
_COMMUTES = frozenset({"add", "mul", "or", "xor", "and"})


def fold_constants(function: str, lhs: int, rhs: int) -> int | None:
    """`function(lhs, rhs)` before wrapping, or None if it stays in the kernel."""
    if function in _DIVISION:
        return _DIVISION[function](lhs, rhs) if rhs else None
    fold = _ARITHMETIC.get(function)
    return None if fold is None else int(fold(lhs, rhs))


def unchanged(function: str, element: Attribute, lhs: Number | None, rhs: Number | None) -> int | None:
    """Which operand (0 or 1) the result equals when the other one is this constant; None if neither."""
    neutral = wrapped(-1, element) if function == "and" else _UNCHANGED_BY.get(function)
    if neutral is None:
        return None
    if rhs is not None and rhs == neutral:
        return 0
    return 1 if lhs is not None and lhs == neutral and function in _COMMUTES else None


def absorbed(function: str, lhs: Number | None, rhs: Number | None) -> bool:
    """Is the result zero whatever the other operand is?"""
    return (function in ("mul", "and") and (lhs == 0 or rhs == 0)) or (function == "mod" and rhs == 1)
