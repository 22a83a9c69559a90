"""What capture says of the sizes of results without asking torch is what torch makes of them, at other sizes too."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dlcb.dialects.shape.expr import evaluate
from dlcb.frontend.capture.inputs import read_arguments
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.result_sizes import RULES, Unknown, sizes_of_result
from dlcb.frontend.tracing.tracked import expr_of

Program = Callable[..., Any]

WEIGHT, WIDE = torch.randn(7, 6), torch.randn(6, 7)
SQUARE, CHANNELS = torch.randn(6, 6), torch.randn(6)
FILTER = torch.randn(8, 6, 3, 3)
TABLE = torch.randn(40, 5)

ROWS: dict[str, tuple[Program, str]] = {
    "relu": (torch.relu, "a b 6"),
    "softmax": (lambda x: x.softmax(-1), "a b 6"),
    "to": (lambda x: x.half(), "a b 6"),
    "add a number": (lambda x: x + 1, "a b 6"),
    "add a tensor": (lambda x: x + x.sin(), "a b 6"),
    "add a row": (lambda x: x + CHANNELS, "a b 6"),
    "add a column": (lambda x: torch.ones(3, 1, 1, 1) * x, "3 a b 6"),
    "a number of rows": (lambda x: x.sum(1, keepdim=True) + torch.ones(3, 1), "a 3 6"),
    "sizes that may differ": (lambda x: x + x[:, :1000], "a ? 6"),
    "where": (lambda x: torch.where(x > 0, x, CHANNELS), "a b 6"),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 0.0), "a b 6"),
    "clamp": (lambda x: x.clamp(min=CHANNELS), "a b 6"),
    "linear": (lambda x: functional.linear(x, WEIGHT), "a b 7"),
    "matmul": (lambda x: x @ WIDE, "a b 7"),
    "matmul of two": (lambda x: x @ x.transpose(1, 2), "a b b"),
    "matmul with a vector": (lambda x: x @ CHANNELS, "a b"),
    "a vector with matmul": (lambda x: torch.ones(6) @ x.transpose(1, 2), "a b"),
    "bmm": (lambda x: torch.bmm(x, x.transpose(1, 2)), "a b b"),
    "addmm": (lambda x: torch.addmm(torch.ones(7), x[0], WIDE), "b 7"),
    "baddbmm": (lambda x: torch.baddbmm(torch.ones(1), x, x.transpose(1, 2)), "a b b"),
    "embedding": (lambda x: functional.embedding(x.long() * 0, TABLE), "a b 6 5"),
    "attention": (lambda x: functional.scaled_dot_product_attention(x, x.sin(), x[..., :4]), "a b 4"),
    "permute": (lambda x: x.permute(2, 0, 1), "6 a b"),
    "unsqueeze": (lambda x: x.unsqueeze(-2), "a b 1 6"),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1), "a b 6"),
    "select": (lambda x: x[:, 2], "a 6"),
    "slice of a number": (lambda x: x[..., 1:5:2], "a b 2"),
    "slice of a size": (lambda x: x[:, 1:], "a ? 6"),
    "expand": (lambda x: x[:1].expand(4, 3, -1, -1), "4 3 b 6"),
    "expand to a size": (lambda x: torch.ones(1, 1).expand(x.shape[1], 5), "b 5"),
    "view": (lambda x: x.view(x.shape[0], x.shape[1], 2, 3), "a b 2 3"),
    "view with a rest": (lambda x: x.view(*x.shape[:-1], -1, 3), "a b 2 3"),
    "view with a size as the rest": (lambda x: x.view(-1, x.shape[1], 6), "a b 6"),
    "view with a product as the rest": (lambda x: x.reshape(-1, 2), "3*a*b 2"),
    "view with a rest that is not known": (lambda x: x[:, 1:].reshape(x.shape[0], -1, 6), "a ? 6"),
    "view of bytes": (lambda x: x.view(torch.int16), "? ? ?"),
    "flatten": (lambda x: x.flatten(0, 1), "a*b 6"),
    "flatten of one": (lambda x: x.flatten(1, 1), "a b 6"),
    "flatten of a number": (lambda x: x[0, 0, 0].flatten(), "1"),
    "unflatten": (lambda x: x.unflatten(-1, (-1, 2)), "a b 3 2"),
    "expand_as": (lambda x: torch.ones(6).expand_as(x), "a b 6"),
    "pad by numbers": (lambda x: functional.pad(x, (1, 2, 0, -1)), "a b-1 9"),
    "pad by sizes": (lambda x: functional.pad(x, (1, x.shape[0])), "a b ?"),
    "cat": (lambda x: torch.cat([x, x, x.new_empty(0)], 1), "a 2*b 6"),
    "cat of what is not known": (lambda x: torch.cat([x, x[:, 1:]], 1), "a ? 6"),
    "stack": (lambda x: torch.stack([x, x], -2), "a b 2 6"),
    "mean": (lambda x: x.mean((0, 2)), "b"),
    "sum of all": (lambda x: x.sum(), ""),
    "amax": (lambda x: x.amax(-1, keepdim=True), "a b 1"),
    "argmax of all": (lambda x: x.argmax(), ""),
    "arange": (lambda x: torch.arange(x.shape[0]), "a"),
    "arange from a number": (lambda x: torch.arange(1, x.shape[0]), "?"),
    "zeros": (lambda x: torch.zeros(x.shape[1], 3), "b 3"),
    "zeros of a list": (lambda x: torch.zeros((3, x.shape[1]), dtype=torch.int64), "3 b"),
    "full": (lambda x: torch.full((x.shape[1],), 2), "b"),
    "new_zeros": (lambda x: x.new_zeros(2, x.shape[1]), "2 b"),
    "gather": (lambda x: x.gather(1, torch.zeros(x.shape[0], 2, 6, dtype=torch.int64)), "a 2 6"),
    "in place": (lambda x: x.clone().add_(CHANNELS), "a b 6"),
    "layer_norm": (lambda x: functional.layer_norm(x, (6,)), "a b 6"),
    "no rule": (lambda x: x.repeat(1, 2, 1), "? ? ?"),
}
PICTURES: dict[str, tuple[Program, str]] = {
    "convolution": (lambda x: functional.conv2d(x, FILTER), "a 8 ? ?"),
    "convolution of one picture": (lambda x: functional.conv2d(x[0], FILTER), "8 ? ?"),
    "batch_norm": (lambda x: functional.batch_norm(x, CHANNELS, CHANNELS.abs()), "a 6 b c"),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 2), "a 6 ? ?"),
    "adaptive_avg_pool2d": (lambda x: functional.adaptive_avg_pool2d(x, (None, 3)), "a 6 b 3"),
    "adaptive_avg_pool2d to one": (lambda x: functional.adaptive_avg_pool2d(x, 1), "a 6 1 1"),
    "roll": (lambda x: x.roll((1, 2), (2, 3)), "a 6 b c"),
}


LITERAL: dict[str, tuple[Program, str]] = {
    "convolution": (lambda x: functional.conv2d(x, FILTER, stride=2), "a 8 2 5"),
    "max_pool2d": (lambda x: functional.max_pool2d(x, 2, stride=(1, 3)), "a 6 5 4"),
    "weights alone": (lambda x: x.new_zeros(2, 3).repeat(4, 2), "8 6"),
    "several results": (lambda x: FILTER.topk(2)[0], "8 6 3 2"),
    "what takes a size": (lambda x: FILTER.repeat_interleave(x.shape[0], 0), "? ? ? ?"),
    "the places of elements": (lambda x: FILTER.nonzero(), "? ?"),
}
"""Where only the number of pictures may vary."""


def run(program: Program, x: Tensor, pinned: Collection[int] = (6,)) -> Run:
    """`pinned`: the sizes that may not vary."""
    session = Session(program, read_arguments(program, (x,), {}))
    fixed = frozenset(symbol for symbol, size in session.arguments.example_sizes.items() if size in pinned)
    return session.run(Plan(session.arguments.example_sizes, fixed))


def check(program: Program, sizes: str, one: Tensor, other: Tensor, pinned: Collection[int] = (6,)) -> None:
    here, there = run(program, one, pinned), run(program, other, pinned)
    letters = dict(zip("abc", (s for s in here.inputs[0].symbols if here.traced[str(s)] not in pinned), strict=False))
    for mine, theirs in zip(here.records, there.records, strict=True):
        for dim, size in zip(here.sizes[mine.results[0]], theirs.results[0].shape, strict=True):
            assert isinstance(dim, Unknown) or evaluate(expr_of(dim), there.traced) == size, mine
    dims = here.sizes[here.outputs[0]]
    found = " ".join("?" if isinstance(dim, Unknown) else str(expr_of(dim)).replace(" ", "") for dim in dims)
    for letter, symbol in letters.items():
        found = found.replace(str(symbol), letter)
    assert found.replace("(", "").replace(")", "") == sizes


@pytest.mark.parametrize("name", ROWS)
def test_sizes_of_rows_are_torchs(name: str) -> None:
    check(*ROWS[name], torch.randn(5, 4, 6), torch.randn(11, 13, 6))


@pytest.mark.parametrize("name", PICTURES)
def test_sizes_of_pictures_are_torchs(name: str) -> None:
    check(*PICTURES[name], torch.randn(5, 6, 9, 12), torch.randn(11, 6, 13, 8))


@pytest.mark.parametrize("name", LITERAL)
def test_what_follows_from_numbers_alone_is_a_number(name: str) -> None:
    program, sizes = LITERAL[name]
    check(program, sizes, torch.randn(5, 6, 6, 12), torch.randn(11, 6, 6, 12), pinned=(6, 12))


def test_a_program_of_fixed_sizes_asks_nothing_and_hands_out_numbers() -> None:
    def program(x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.conv2d(x, FILTER), 2)
        return x.flatten(2) if x.shape[-1] > 3 else x * x.shape[0]

    found = run(program, torch.randn(6, 6, 6, 12), pinned=(6, 12))
    assert found.checks == []
    assert found.result_dims == {}
    assert not found.hands_out_sizes


def test_a_call_in_a_form_without_a_rule_says_nothing() -> None:
    assert sizes_of_result("permute", (), {"other": 1}) is None
    assert sizes_of_result("an operation of the program's own", (), {}) is None
    assert "where" in RULES


def test_layers_that_ask_for_their_width_ask_nothing_of_sizes() -> None:
    def program(x: Tensor) -> Tensor:
        for _ in range(3):
            x = functional.linear(x, SQUARE)
            assert x.shape[-1] == 6
            x = x.view(*x.shape[:-1], -1, 3).transpose(1, 2).flatten(2)
            assert x.shape[-1] % 3 == 0
            x = x.reshape(x.shape[0], -1, 6)
        return x

    assert run(program, torch.randn(5, 4, 6)).checks == []
