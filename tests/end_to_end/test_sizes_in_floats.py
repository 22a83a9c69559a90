"""Sizes that go through floats, and sizes that Python hands on without asking: right at every size, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import dlcb
from dlcb.errors import UserError
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.retrace import retrace

SIZES = ((16, 8), (25, 8), (9, 5), (1, 1), (36, 4), (7, 12), (64, 3), (20, 8))
HALF = 0.5
NAMES = {16: 3.0}
WEIGHTS = [float(n) for n in range(200)]


def left_factor(x: Tensor) -> Tensor:
    return x * (0.5 * x.shape[0])


def left_sum(x: Tensor) -> Tensor:
    return torch.full((3,), 1.0 - x.shape[0])


def left_quotient(x: Tensor) -> Tensor:
    scale = 1.0 / x.shape[1]
    return x * scale


def left_power(x: Tensor) -> Tensor:
    return x * 0.9 ** x.shape[1]


def in_place(x: Tensor) -> Tensor:
    scale = 2.0
    scale *= x.shape[0]
    scale += x.shape[1]
    return x + scale


def left_comparison(x: Tensor) -> Tensor:
    return x + 1 if 18.5 < x.shape[0] else x - 1


def looked_up(x: Tensor) -> Tensor:
    return x * WEIGHTS[x.shape[0]]


def kept_tokens(x: Tensor) -> Tensor:
    return x[: math.ceil(0.7 * x.shape[0])]


def scaled_size(x: Tensor) -> Tensor:
    return x.new_ones(int(x.shape[0] * 0.3), round(x.shape[1] / 3)) * 2


def grid(x: Tensor) -> Tensor:
    side = int(x.shape[0] ** 0.5)
    return x.reshape(side, side, x.shape[1]).transpose(0, 1).contiguous()


def grid_by_math(x: Tensor) -> Tensor:
    side = math.isqrt(x.shape[0])
    if side * side != x.shape[0]:
        raise ValueError("no square")
    return x.reshape(side, side, -1).sum(0)


def attention_by_hand(x: Tensor) -> Tensor:
    scores = x @ x.transpose(0, 1) / math.sqrt(x.shape[-1])
    return torch.softmax(scores * math.log(x.shape[0] + 1) / math.log(512), -1) @ x


def attention_scale(x: Tensor) -> Tensor:
    q = x.reshape(1, 1, *x.shape)
    return F.scaled_dot_product_attention(q, q, q, scale=2 * x.shape[-1] ** -0.5)


def resized(x: Tensor) -> Tensor:
    return F.interpolate(x[None, None], scale_factor=0.7, mode="nearest")


def aspect(x: Tensor) -> Tensor:
    return x * (x.shape[1] / x.shape[0]) if x.shape[0] / x.shape[1] > 1.5 else x


PROGRAMS: list[Callable[[Tensor], Tensor]] = [
    left_factor, left_sum, left_quotient, in_place, kept_tokens, scaled_size, attention_by_hand, attention_scale,
    resized,
]  # fmt: skip


def outcome(program: Callable[[Tensor], Any], x: Tensor) -> Any:
    try:
        return program(x)
    except (UserError, RuntimeError, ValueError) as error:
        return error


def agree(program: Callable[[Tensor], Any], compiled: Callable[[Tensor], Any], size: tuple[int, int]) -> bool:
    """Both right, or both refused; whether they were right."""
    x = torch.randn(size)
    expected, found = outcome(program, x), outcome(compiled, x)
    if isinstance(expected, Tensor) and isinstance(found, Tensor):
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    return isinstance(found, Tensor)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_size_in_a_float_stays_free(program: Callable[[Tensor], Tensor]) -> None:
    compiled = dlcb.compile(program, (torch.randn(16, 8),))
    for size in SIZES:
        assert agree(program, compiled, size) or isinstance(outcome(program, torch.randn(size)), Exception)
    assert compiled.stats()["programs"] == 1


@pytest.mark.parametrize("program", [grid, grid_by_math], ids=lambda p: p.__name__)
def test_the_side_of_a_square_is_a_function_of_its_size(program: Callable[[Tensor], Tensor]) -> None:
    compiled = dlcb.compile(program, (torch.randn(16, 8),), branches=1)
    assert [agree(program, compiled, size) for size in SIZES] == [math.isqrt(n) ** 2 == n for n, _ in SIZES]


@pytest.mark.parametrize("program", [left_comparison, left_power, looked_up, aspect], ids=lambda p: p.__name__)
def test_other_uses_are_checked(program: Callable[[Tensor], Tensor]) -> None:
    """By ways of their own, or by a pin with the reason."""
    compiled = dlcb.compile(program, (torch.randn(16, 8),))
    assert agree(program, compiled, (16, 8))
    for size in SIZES:
        agree(program, compiled, size)


def test_a_use_that_is_never_seen_pins_the_size_and_says_so() -> None:
    """What goes on inside a function of C is nobody's to see."""

    def program(x: Tensor) -> Tensor:
        return x * (0.5).__mul__(x.shape[0])

    compiled = dlcb.compile(program, (torch.randn(16, 8),))
    assert compiled.dimensions()["x.shape[1]"] == "free as x_1"
    assert "used where it can't be followed" in compiled.dimensions()["x.shape[0]"]
    assert agree(program, compiled, (16, 3))
    with pytest.raises(UserError, match=r"x\.shape\[0\] is 17 but must be 16"):
        compiled(torch.randn(17, 8))
    with pytest.raises(UserError, match=r"dynamic lets x\.shape\[0\] vary"):
        dlcb.compile(program, (torch.randn(16, 8),), dynamic={"x": {0: "n"}})


class Local(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = 0.25

    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(x) + torch.zeros(1)

    def scaled(self, x: Tensor) -> Tensor:
        return x * (self.factor * x.shape[0]) + super().__getattribute__("factor")


def test_methods_closures_and_modules_are_seen_through() -> None:
    factor = 0.25

    def inner(x: Tensor) -> Tensor:
        return x * (factor * x.shape[0])

    def outer(x: Tensor) -> Tensor:
        return inner(x) + (lambda n: factor - n)(x.shape[1])

    for program in (Local().eval(), outer):
        before = Local.scaled.__code__, inner.__code__
        compiled = dlcb.compile(program, (torch.randn(16, 8),))
        assert (Local.scaled.__code__, inner.__code__) == before
        assert all(text.startswith("free") for text in compiled.dimensions().values())
        for size in SIZES:
            assert agree(program, compiled, size)


def test_a_program_that_draws_numbers_is_not_mistaken_for_one_that_goes_by_a_size() -> None:
    def program(x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], -1) + torch.tensor([torch.initial_seed() * 0.0, 1.0])[1]

    captured = capture(program, (torch.randn(16, 8),))
    assert not captured.pins


def test_a_second_trace_of_a_program_that_was_seen_through_agrees() -> None:
    captured = capture(left_factor, (torch.randn(16, 8),))
    assert captured.rewritten
    assert retrace(captured, left_factor, (torch.randn(5, 7),), {}) is None
