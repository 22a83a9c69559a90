"""Branches on sizes: one program for both ways, whichever way the example takes; checks where there is none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dlcb.errors import InternalError
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.retrace import retrace
from dlcb.frontend.capture.run import Session
from dlcb.frontend.tracing.replay import replay
from dlcb.frontend.tracing.steering import Steering

Program = Callable[[Tensor], Tensor]
EXAMPLES = ((2, 8, 12), (2, 7, 13))
SIZES = ((1, 1, 1), (3, 8, 5), (2, 5, 16), (4, 12, 100), (2, 9, 15), (1, 6, 10), (3, 16, 32), (2, 64, 3))


def pads_to_a_multiple(x: Tensor) -> Tensor:
    h, w = x.shape[1:]
    if h % 4 or w % 4:
        x = F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
    return x.view(x.shape[0], x.shape[1] // 4, 4, x.shape[2] // 4, 4).sum((2, 4))


def pads_by_what_is_no_zero_elsewhere(x: Tensor) -> Tensor:
    if x.shape[2] % 4 != 0:
        x = F.pad(x, (0, 4 - x.shape[2] % 4))
    if x.shape[1] % 3 != 0:
        x = F.pad(x, (0, 0, 3 - x.shape[1] % 3, 0), value=2.0)
    return x.reshape(x.shape[0], -1, 12).cumsum(-1)


def pads_odd_sizes(x: Tensor) -> Tensor:
    if (x.shape[1] % 2 == 1) or (x.shape[2] % 2 == 1):
        x = F.pad(x, (0, x.shape[2] % 2, 0, x.shape[1] % 2))
    return torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 1::2]], -1)


def halves(x: Tensor) -> Tensor:
    for _ in range(3):
        if x.shape[1] % 2 == 1:
            x = F.pad(x, (0, 0, 1, 0))
        x = x[:, ::2] + 1
    return x


def pads_as_tensorflow(x: Tensor) -> Tensor:
    h, w = x.shape[1:]
    high = max(3 - 2, 0) if h % 2 == 0 else max(3 - h % 2, 0)
    wide = max(5 - 3, 0) if w % 3 == 0 else max(5 - w % 3, 0)
    x = F.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
    return F.avg_pool2d(x, (3, 5), (2, 3))


def cuts_what_it_padded(x: Tensor) -> Tensor:
    w = x.shape[2]
    missing = (4 - w % 4) % 4
    y = F.pad(x, (0, missing)).unflatten(2, (-1, 4)).softmax(-1).flatten(2)
    if missing > 0:
        y = y[:, :, :w].contiguous()
    return y.view(x.shape[0], x.shape[1] * w)


def rolls_long_rows(x: Tensor) -> Tensor:
    if x.shape[2] % 2 == 0:
        x = torch.roll(x, shifts=(x.shape[2] // 2,), dims=(2,))
    return x * 2


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.parametrize(
    "program",
    [
        pads_to_a_multiple,
        pads_by_what_is_no_zero_elsewhere,
        pads_odd_sizes,
        halves,
        pads_as_tensorflow,
        cuts_what_it_padded,
        rolls_long_rows,
    ],
)
def test_both_ways_are_one_program(program: Program, example: tuple[int, ...]) -> None:
    captured = capture(program, (torch.randn(example),))
    assert not captured.pins
    assert not captured.checks
    for sizes in (*EXAMPLES, *SIZES):
        x = torch.randn(sizes)
        torch.testing.assert_close(replay(captured, (x,)), program(x))
    assert retrace(captured, program, (torch.randn(3, 4, 8),), {}) is None
    assert retrace(captured, program, (torch.randn(3, 5, 9),), {}) is None


def test_a_merged_program_takes_no_rows() -> None:
    captured = capture(pads_odd_sizes, (torch.randn(2, 8, 12),))
    for sizes in ((0, 4, 7), (2, 0, 3), (2, 5, 0)):
        x = torch.randn(sizes)
        torch.testing.assert_close(replay(captured, (x,)), pads_odd_sizes(x))


def doubles_rows_of_a_hundred(x: Tensor) -> Tensor:
    if x.shape[2] % 2:
        x = F.pad(x, (0, 1))
    elif x.shape[2] == 100:
        x = x * 2
    return x + 1


def counts_odd_sizes(x: Tensor) -> Tensor:
    odd = sum(1 for size in x.shape[1:] if size % 2)
    return F.pad(x, (0, odd)) if odd < 2 else x * 3


def pads_by_both(x: Tensor) -> Tensor:
    rows = 1 if x.shape[1] % 2 else 0
    columns = 2 if x.shape[2] % 2 else 0
    return F.pad(x, (0, rows * columns + rows))


def asks_for_both_at_once(x: Tensor) -> Tensor:
    rows = x.shape[1] == 64
    columns = x.shape[2] == 32
    return x * 2 if rows + columns == 2 else x


def pads_in_place_of_the_argument(x: Tensor) -> Tensor:
    y = F.pad(x, (0, x.shape[2] % 2)) if x.shape[2] % 2 else x
    y.add_(1)
    return y * 2


def gives_the_argument_or_a_copy(x: Tensor) -> Tensor:
    return F.pad(x, (0, 1)) if x.shape[2] % 2 else x


def scales_by_another_number(x: Tensor) -> Tensor:
    return x * (0.5 if x.shape[2] % 2 else 0.25)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.parametrize(
    "program",
    [
        doubles_rows_of_a_hundred,
        counts_odd_sizes,
        pads_by_both,
        asks_for_both_at_once,
        pads_in_place_of_the_argument,
        gives_the_argument_or_a_copy,
        scales_by_another_number,
    ],
)
def test_what_is_not_one_program_is_checked(program: Program, example: tuple[int, ...]) -> None:
    """Right wherever the checks hold, and they don't hold everywhere."""
    captured = capture(program, (torch.randn(example),))
    assert captured.checks
    refused = 0
    for sizes in (*EXAMPLES, *SIZES, (2, 64, 32), (3, 64, 100)):
        x = torch.randn(sizes)
        try:
            found = replay(captured, (x.clone(),))
        except InternalError:
            refused += 1
        else:
            torch.testing.assert_close(found, program(x))
    assert refused


def test_a_branch_that_is_not_asked_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Steering] = []
    run = Session.run

    def counted(self: Session, plan: object, *steering: Steering) -> object:
        runs.extend(steering or [Steering()])
        return run(self, plan, *steering)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Session, "run", counted)
    capture(lambda x: (x @ x.mT).softmax(-1), (torch.randn(2, 3, 5),))
    assert len(runs) <= 2


def test_layers_that_ask_the_same_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(x: Tensor) -> Tensor:
        for _ in range(10):
            x = torch.cat((x.sin(), x.cos()), 1)[:, ::2]
            x = x.tanh() if x.shape[1] > 7 else x * 2
        return x

    runs: list[object] = []
    run = Session.run

    def counted(self: Session, *given: object) -> object:
        runs.append(given)
        return run(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Session, "run", counted)
    captured = capture(program, (torch.randn(2, 9),))
    assert len(captured.checks) == 10
    assert len(runs) < 12


@pytest.mark.parametrize(("height", "width"), [*product((7, 16), (8, 9))])
def test_padding_by_a_branch_is_the_same_compiled(height: int, width: int) -> None:
    import dlcb

    x = torch.randn(2, height, width)
    compiled = dlcb.compile(pads_to_a_multiple, (torch.randn(2, 8, 12),), target="reference", check=True)
    torch.testing.assert_close(compiled(x), pads_to_a_multiple(x))


def test_answers_that_only_together_change_nothing_are_checked() -> None:
    def program(x: Tensor) -> Tensor:
        return x * 3 if (x.shape[0] > 50) != (x.shape[1] > 50) else x + 1

    captured = capture(program, (torch.randn(4, 8),))
    assert {str(c) for c in captured.checks} == {"x_0 <= 50", "x_1 <= 50"}
