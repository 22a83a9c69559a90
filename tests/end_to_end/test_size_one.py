"""A dim that is 1 in the example may be broadcast in the program: it is free all the same, and goes both ways."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.tests.end_to_end.agreement import compiled, same_answers

Program = Callable[..., Any]
Shapes = tuple[tuple[int, ...], ...]


def masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.softmax(x.masked_fill(mask == 0, -1e9), -1)


def attended(q: Tensor, k: Tensor, bias: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) + bias, -1)


def scaled(x: Tensor, factor: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x * factor, (8,)) + factor.sum(0)


def expanded(x: Tensor) -> Tensor:
    return x.expand(4, -1) * torch.arange(4.0)[:, None]


def drawn(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(map(R, shapes))


R = torch.randn
CASES: dict[str, tuple[Program, tuple[Tensor, ...], list[Shapes]]] = {
    "add": (
        torch.add,
        (R(4, 8), R(1, 8)),
        [((5, 8), (1, 8)), ((5, 8), (5, 8)), ((1, 8), (3, 8)), ((0, 8), (1, 8)), ((0, 8), (0, 8)), ((5, 1), (5, 8))],
    ),
    "mask": (
        masked,
        (R(4, 6, 6), R(1, 6, 6)),
        [((3, 5, 5), (3, 5, 5)), ((3, 5, 5), (1, 5, 5)), ((0, 5, 5), (1, 5, 5))],
    ),
    "bias": (
        attended,
        (R(2, 4, 6, 8), R(2, 4, 7, 8), R(1, 1, 6, 7)),
        [
            ((3, 2, 5, 8), (3, 2, 9, 8), (1, 1, 5, 9)),
            ((3, 2, 5, 8), (3, 2, 9, 8), (3, 2, 5, 9)),
            ((3, 2, 5, 8), (1, 2, 9, 8), (3, 1, 1, 9)),
        ],
    ),
    "scale": (scaled, (R(4, 8), R(1, 8)), [((5, 8), (5, 8)), ((1, 8), (1, 8)), ((5, 8), (1, 1))]),
    "expand": (expanded, (R(1, 8),), [((1, 3),), ((4, 3),), ((1, 0),)]),
    "batch of one": (lambda x: x.relu().mean(0), (R(1, 1, 8),), [((3, 2, 5),), ((1, 0, 1),)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_dim_of_size_one_takes_other_sizes(name: str) -> None:
    program, example, calls = CASES[name]
    model = compiled(program, example, name)
    assert all(state.startswith(("free", "equal", "tied")) or "to 8" in state for state in model.dimensions().values())
    for seed, shapes in enumerate(calls):
        same_answers(program, model, drawn, shapes, seed)


@pytest.mark.parametrize(
    ("name", "shapes", "text"),
    [
        ("add", ((5, 8), (3, 8)), "sizes that do not broadcast"),
        ("mask", ((3, 5, 5), (2, 5, 5)), "mask.shape"),
        ("expand", ((3, 8),), "x.shape\\[0\\] is 3"),
        ("bias", ((3, 2, 5, 8), (3, 2, 9, 8), (1, 1, 4, 9)), "bias.shape"),
    ],
)
def test_sizes_that_do_not_broadcast_are_refused(name: str, shapes: Shapes, text: str) -> None:
    program, example, _ = CASES[name]
    model = compiled(program, example, name)
    with pytest.raises(UserError, match=text):
        model(*drawn(*shapes))


def test_a_size_that_is_used_unseen_is_not_taken_for_one_that_broadcasts() -> None:
    factors = [1.0, 2.0]

    def program(x: Tensor, y: Tensor) -> Tensor:
        return x * factors[x.shape[0]] + y

    model = compiled(program, (R(1, 8), R(1, 8)), "unseen")
    assert model.dimensions()["x.shape[0]"].startswith("pinned to 1")
    with pytest.raises(UserError, match=r"x\.shape\[0\] is 2"):
        model(R(2, 8), R(2, 8))
