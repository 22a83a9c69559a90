"""Programs of numbers, traced at some sizes: what they came to is Python's at all others that the checks let pass and
where Python has a number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dlcb.dialects.shape.expr import evaluate
from dlcb.frontend.tracing.python_numbers import tracking_python_numbers
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, noticing, symbol, to_int
from dlcb.frontend.tracing.tracker import Tracker

_UNARY: dict[str, Callable[[Any], Any]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "int": to_int,
    "neg": operator.neg,
    "abs": abs,
    "sqrt": lambda x: math.sqrt(x),
    "isqrt": lambda x: math.isqrt(x) if isinstance(x, int) else math.isqrt(to_int(x)),
    "log": lambda x: math.log(x),
    "log2": lambda x: math.log2(x),
    "root": lambda x: x**0.5,
    "inverse root": lambda x: x**-0.5,
    "inverse": lambda x: x**-1,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "min": lambda a, b: a if a < b else b,
}
_ERRORS = (ZeroDivisionError, ValueError, OverflowError, TypeError)
_LITERALS = st.sampled_from([1, 2, 3, 7, 0.5, 1.5, 0.7, 0.1, 1 / 3, -1, -0.3, 100])

recipes: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["n", "m"]) | _LITERALS,
    lambda inner: (
        st.tuples(st.sampled_from(sorted(_UNARY)), inner) | st.tuples(st.sampled_from(sorted(_BINARY)), inner, inner)
    ),
    max_leaves=6,
)
sizes = st.fixed_dictionaries({name: st.integers(0, 40) | st.integers(0, 3000) for name in ("n", "m")})


def run(recipe: Any, numbers: dict[str, int]) -> Any:
    if isinstance(recipe, str):
        return numbers[recipe]
    if not isinstance(recipe, tuple):
        return recipe
    function, *operands = recipe
    values = [run(operand, numbers) for operand in operands]
    if len(values) == 1:
        return _UNARY[function](*values)
    left, right = values
    return _BINARY[function](noticing(left, right), right)


def outcome(recipe: Any, numbers: dict[str, int]) -> Any:
    try:
        result = run(recipe, numbers)
    except _ERRORS as error:
        return type(error)
    return complex if isinstance(result, complex) else result


def value(result: Any, at: dict[str, int]) -> Any:
    if type(result) is TrackedInt:
        return evaluate(result.expr, at)
    return result.operand.value(at) if type(result) is TrackedFloat else result


@given(recipes, sizes, st.lists(sizes, min_size=1, max_size=6))
@settings(max_examples=600, deadline=None)
def test_what_a_trace_came_to_is_pythons_at_all_sizes_that_pass(
    recipe: Any, at: dict[str, int], others: list[dict[str, int]]
) -> None:
    tracker = Tracker({})
    with tracking_python_numbers():
        traced = outcome(recipe, {name: symbol(tracker, name, number) for name, number in at.items()})
    plain = outcome(recipe, at)
    if isinstance(traced, type):
        assert traced is plain
        assume(False)
    assert value(traced, at) == plain
    for sizes in others:
        if all(check.holds(sizes) for check in tracker.checks):
            found, expected = value(traced, sizes), outcome(recipe, sizes)
            assert found == expected or isinstance(expected, type), [str(check) for check in tracker.checks]


def test_a_program_of_sizes_is_tracked_where_it_can_be() -> None:
    tracker = Tracker({})
    n = symbol(tracker, "n", 196)
    with tracking_python_numbers():
        found = {
            "keep": to_int(n * 0.7),
            "keep, rounded up": math.ceil((n - 1) * 0.7),
            "side": to_int(n**0.5),
            "side of math": to_int(math.sqrt(n)),
            "side, up": math.ceil(n**0.5),
            "rounded": round(n / 3),
            "scale": 1 / math.sqrt(n),
            "power": n**-0.5,
            "entropy": math.log(n) / math.log(512),
        }
    assert {name: str(v.expr) for name, v in found.items() if type(v) is TrackedInt} == {
        "keep": "scaled(n, 3152519739159347, 4503599627370496)",
        "keep, rounded up": "-scaled(n - 1, -3152519739159347, 4503599627370496)",
        "side": "isqrt(n)",
        "side of math": "isqrt(n)",
        "side, up": "select(0 < n, isqrt(n - 1) + 1, 0)",
        "rounded": "((2*n + 3) // 6) - ((((2*n + 3) % 6) == 0) and ((((2*n + 3) // 6) % 2) != 0))",
    }
    assert all(type(found[name]) is TrackedFloat for name in ("scale", "power", "entropy"))
    assert [str(check) for check in tracker.checks] == ["n != 0"]
