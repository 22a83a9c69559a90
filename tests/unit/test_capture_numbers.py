"""Tracked numbers: arithmetic keeps expressions, comparisons and uses are noted."""

import math
import operator
from collections.abc import Callable

import pytest
import torch

from dlcb.dialects.shape.expr import add, ceildiv, floordiv, mul, sym
from dlcb.frontend.capture import capture
from dlcb.frontend.tracing.python_numbers import tracking_python_numbers
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedSize, expr_of, symbol
from dlcb.frontend.tracing.tracker import Tracker

n = sym("n")


@pytest.fixture
def tracker() -> Tracker:
    return Tracker({})


@pytest.fixture
def eleven(tracker: Tracker) -> int:
    return symbol(tracker, "n", 11)


def test_arithmetic_has_pythons_value_and_its_expression(eleven: int) -> None:
    assert expr_of(2 * eleven + 1) is add(mul(2, n), 1)
    assert int.__int__(7 - eleven) == -4
    assert expr_of(eleven // 2) is floordiv(n, 2)
    assert expr_of(-eleven) is mul(-1, n)
    assert expr_of(eleven**2) is mul(n, n)
    assert expr_of(math.prod([2, eleven])) is mul(2, n)
    assert expr_of(sum([eleven, eleven])) is mul(2, n)


def test_a_literal_result_is_a_plain_int(eleven: int, tracker: Tracker) -> None:
    assert type(eleven - eleven) is int
    assert type(eleven * 0) is int
    assert not tracker.checks


def test_a_comparison_is_noted_by_its_answer(eleven: int, tracker: Tracker) -> None:
    assert eleven > 5
    assert not eleven == 5
    assert max(eleven, 20) == 20
    assert [str(c) for c in tracker.checks] == ["5 < n", "n != 5", "n < 20"]
    assert all(c.text.startswith("compared at test_capture_numbers.py:") for c in tracker.checks)


def test_a_comparison_that_always_holds_is_not_noted(eleven: int, tracker: Tracker) -> None:
    assert eleven < eleven + 1
    assert eleven >= 0
    assert eleven == eleven
    assert not tracker.checks


def test_given_answers_go_before_the_sizes() -> None:
    tracker = Tracker({("lt", sym("n"), expr_of(20)): False})
    assert not symbol(tracker, "n", 11) < 20
    assert [str(c) for c in tracker.checks] == ["20 <= n"]


@pytest.mark.parametrize(
    ("use", "by"),
    [
        (int, "int()"),
        (float, "float()"),
        (lambda x: [0] * x, "repetition"),
        (lambda x: list(range(x)), "range()"),
        (lambda x: math.sin(x), "math.sin()"),
        (lambda x: math.sin(x / 2), "math.sin()"),
        (lambda x: x & 1, "a bit operation"),
        (lambda x: 2**x, "a power"),
        (lambda x: x**7.0, "a power"),
        (lambda x: round(x * 0.1), "round()"),
        (lambda x: round(x / 3, 1), "round()"),
        (lambda x: int(x * 0.1 + 0.3), "int()"),
        (lambda x: math.sqrt(x) < 4, "a comparison"),
        (lambda x: 1 / (x * 0.1 - 0.3), "a division"),
        (lambda x: math.log(x * 0.1 - 0.3), "math.log()"),
    ],
)
def test_a_use_of_the_number_itself_pins_it(use: object, by: str, eleven: int, tracker: Tracker) -> None:
    with tracking_python_numbers():
        use(eleven)  # type: ignore[operator]
    (check,) = tracker.checks
    assert check.comparison is None
    assert check.text.startswith(f"pinned by {by} at test_capture_numbers.py:")


def test_floats_that_are_exact_ratios_stay_tracked(eleven: int, tracker: Tracker) -> None:
    assert expr_of(math.floor(eleven * 1.5)) is floordiv(mul(3, n), 2)
    assert expr_of(math.ceil(eleven / 3)) is ceildiv(n, 3)
    assert expr_of(math.floor((eleven + 0.5) * 2)) is add(mul(2, n), 1)
    assert type(eleven / 7) is TrackedFloat
    assert eleven / 7 < 2
    assert [str(c) for c in tracker.checks] == ["n < 14"]


def test_every_tracked_float_has_pythons_value() -> None:
    tracker = Tracker({})
    for size in range(200):
        tracked = symbol(tracker, "n", size)
        for factor in (0.5, 1.5, 0.25, 2.75):
            assert int.__int__(math.floor(tracked * factor)) == math.floor(size * factor)
            assert int.__int__(math.ceil(tracked * factor)) == math.ceil(size * factor)
        for divisor in (2, 3, 7, 10):
            assert int.__int__(math.floor(tracked / divisor)) == math.floor(size / divisor)
            assert int.__int__(math.ceil(tracked / divisor)) == math.ceil(size / divisor)
    assert not tracker.checks


def test_a_size_keeps_tracked_ints_through_slices_and_sums(eleven: int) -> None:
    size = TrackedSize((eleven, 3))
    assert type((size[:1] + TrackedSize((4,)))[0]) is TrackedInt
    assert type((TrackedSize((4,)) + size)[1]) is TrackedInt
    assert expr_of(size.numel()) is mul(3, n)


def test_range_stands_for_range_during_a_trace_only() -> None:
    real = range
    with tracking_python_numbers():
        assert isinstance(real(3), range)
        assert type(range(3)) is real
        assert list(range(1, 5, 2)) == [1, 3]
    assert range is real


def test_numbers_that_outlive_their_trace_are_plain(eleven: int, tracker: Tracker) -> None:
    tracker.active = False
    assert type(eleven + 1) is int
    assert eleven > 3
    assert not tracker.checks


@pytest.mark.parametrize(
    "factor",
    [
        lambda n: {3: 1.0, 5: 2.0}.get(n, 7.0),
        lambda n: float(len({n, 4})),
        lambda n: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0][operator.index(n)],
        lambda n: 2.0 if (n, 4) in {(5, 4), (7, 7)} else 3.0,
    ],
)
def test_a_size_that_is_looked_up_is_pinned(factor: Callable[[int], float]) -> None:
    captured = capture(lambda x: x * factor(x.shape[0]), (torch.randn(3, 4),))
    assert [(pin.symbol, pin.value) for pin in captured.pins] == [("x_0", 3)]


@pytest.mark.parametrize(
    "factor",
    [
        lambda n: [1.0, 2.0, 3.0][min(n, 2)],
        lambda n: [1.0, 2.0, 3.0][max(2 - n, 0)],
        lambda n: {2: 1.0, 1: 5.0}[min(2, n)],
    ],
)
def test_the_least_of_a_size_and_a_number_that_is_looked_up_is_checked(factor: Callable[[int], float]) -> None:
    """At most sizes it is the number."""
    captured = capture(lambda x: x * factor(x.shape[0]), (torch.randn(3, 4),))
    taken = {n for n in range(6) if all(check.holds({"x_0": n, "x_1": 4}) for check in captured.checks)}
    assert taken == {2, 3, 4, 5}
    assert not captured.pins


def test_the_least_of_a_size_and_a_number_that_is_followed_leaves_it_free() -> None:
    assert not capture(lambda x: x[: min(x.shape[0], 2)] * max(x.shape[1], 3), (torch.randn(3, 4),)).pins
