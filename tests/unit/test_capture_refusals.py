"""Operations that refuse the sizes of a trace say which sizes must be equal, and no others are tied."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dlcb
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.refusals import Guess, Refused, lesson
from dlcb.frontend.capture.sizes import joined
from dlcb.frontend.tracing.records import Record, Value

WEIGHT = torch.randn(32, 32)


def write(x: Tensor, position: Tensor, kept: Tensor) -> Tensor:
    """Batch, heads and number of positions are all 4 in the example."""
    found = (x @ WEIGHT).view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2)
    return kept.index_copy(2, position, found)


def test_a_batch_heads_and_positions_of_one_size_are_told_apart() -> None:
    states = dlcb.compile(write, (torch.randn(4, 4, 32), torch.arange(4), torch.randn(4, 4, 16, 8))).dimensions()
    fixed = {dim for dim, state in states.items() if state.startswith("pinned")}
    assert fixed == {"x.shape[2]", "kept.shape[1]", "kept.shape[3]"}
    assert all("test_capture_refusals.py" in states[dim] for dim in fixed)
    assert states["kept.shape[0]"].startswith("equal to x_0")
    assert states["position.shape[0]"].startswith("equal to x_1")


SYMBOLS = {11: "q_0", 13: "q_1", 17: "q_2", 19: "k_0", 23: "k_1", 29: "k_2"}
EXAMPLE = {"q_0": 2, "q_1": 3, "q_2": 8, "k_0": 2, "k_1": 8, "k_2": 8}


def product(truth: set[Guess], position_after: int) -> list[Guess]:
    """What a refused product of q and k teaches, if these guesses are those that let the trace go on."""
    operands = tuple(
        Value(n, s, torch.float32, torch.device("cpu")) for n, s in enumerate([(11, 13, 17), (19, 23, 29)])
    )
    refused = Refused(Record("matmul", operands, {}, (), "model.py:1"), 5)
    after = Refused(refused.record, position_after)
    return lesson(refused, SYMBOLS, EXAMPLE, lambda guesses: after if truth <= set(guesses) else refused)


def test_no_more_is_learned_than_the_operation_needs() -> None:
    """The width of q is as large as both sizes of k."""
    truth = {Guess("q_0", "k_0"), Guess("q_2", "k_1")}
    assert set(product(truth, 6)) == truth


def test_nothing_is_learned_where_no_guess_helps() -> None:
    assert not product(set(), 5)
    assert not product({Guess("q_1", "k_1")}, 6)


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (lambda x, y: x + y, ((5, 1), (5, 7))),
        (lambda x, y: torch.cat((x, y)), ((1, 3), (1, 3))),
    ],
)
def test_sizes_of_one_are_left_to_broadcast(program: Callable[..., Any], sizes: tuple[tuple[int, ...], ...]) -> None:
    assert not capture(program, tuple(map(torch.randn, sizes))).pins


def test_groups_that_share_a_symbol_are_one() -> None:
    groups = map(frozenset, ({"a", "b"}, {"c", "d"}, {"e"}, {"d", "a"}))
    assert set(joined(groups)) == {frozenset("abcd"), frozenset("e")}
