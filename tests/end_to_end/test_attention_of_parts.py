"""Attention that is written out, in half precision, is one call of the library, and gives what eager gives."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import agrees, compiled, rand, same_answers

HALVES = (torch.float16, torch.bfloat16)
WINDOWS = ((3, 2), (2, 3), (1, 1), (1, 4), (0, 2), (7, 5))
"""Batch, and windows of a picture."""


class Windows(nn.Module):
    """Attention within windows, as in Swin transformers: a bias for every pair of places; with `shifted`, places of
    different regions do not see each other."""

    index: Tensor

    def __init__(self, dtype: torch.dtype, shifted: bool, side: int = 3, heads: int = 2, width: int = 8) -> None:
        super().__init__()
        self.heads, self.width, self.places, self.shifted = heads, width, side * side, shifted
        self.project = nn.Linear(heads * width, 3 * heads * width)
        self.table = nn.Parameter(rand((2 * side - 1) ** 2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)
        apart = at[:, :, None] - at[:, None, :] + side - 1
        self.register_buffer("index", (apart[0] * (2 * side - 1) + apart[1]).flatten())
        self.to(dtype).eval()

    def forward(self, x: Tensor) -> Tensor:
        batch, windows, places, channels = x.shape
        q, k, v = (
            self.project(x).reshape(batch * windows, places, 3, self.heads, self.width).permute(2, 0, 3, 1, 4).unbind()
        )
        scores = (q * self.width**-0.5) @ k.transpose(-2, -1)
        bias = self.table[self.index].view(places, places, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        if self.shifted:
            regions = x.new_zeros(windows, places)
            regions[:, : places // 2] = 1
            regions[0, 1] = 2
            mask = regions.unsqueeze(1) - regions.unsqueeze(2)
            mask = mask.masked_fill(mask != 0, -100.0).masked_fill(mask == 0, 0.0)
            scores = scores.view(batch, windows, self.heads, places, places) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, places, places)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, windows, places, channels)


def calls(model: CompiledModel) -> int:
    """Of attention, in the program."""
    return str(model.parts[0].programs["main"]).count("'attention'")


@pytest.mark.parametrize("weights", ["live", "frozen"])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("dtype", HALVES)
def test_windows_of_pictures_attend_as_in_eager(dtype: torch.dtype, shifted: bool, weights: str) -> None:
    network = Windows(dtype, shifted)

    def make(batch: int, windows: int) -> tuple[Tensor]:
        return (rand(batch, windows, 9, 16, dtype=dtype),)

    pinned = ("x.shape[2]", "x.shape[3]")
    model = agrees(network, make, WINDOWS, weights=weights, pinned=pinned)
    assert calls(model) == 1
    if weights == "live":
        with torch.no_grad():
            network.table.mul_(-2)
        same_answers(network, model, make, (2, 3), 20)


def heads(x: Tensor) -> Tensor:
    """Two of them, 16 wide."""
    return x.unflatten(-1, (2, 16)).transpose(1, 2)


def divided(x: Tensor, y: Tensor) -> Tensor:
    q, k, v = heads(x), heads(y), heads(y * 2)
    return ((q @ k.transpose(-2, -1)) / math.sqrt(16)).softmax(-1) @ v


def multiplied(x: Tensor, y: Tensor) -> Tensor:
    q, k, v = heads(x), heads(y), heads(y * 2)
    return (0.3 * (q @ k.permute(0, 1, 3, 2)) * 2).softmax(-1) @ v


def masked(x: Tensor, y: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
    return (mask + heads(x) @ heads(y).transpose(-2, -1)).softmax(3) @ heads(y.cos())


def masked_twice(x: Tensor, y: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
    scores = heads(x) @ heads(y).transpose(-2, -1)
    return (scores + keys + mask * 0.5).softmax(-1) @ heads(y)


def padded(x: Tensor, y: Tensor, mask: Tensor, keys: Tensor) -> Tensor:
    """In half precision -65504 · 2 is -infinity."""
    hidden = (keys > 0).to(x.dtype) * torch.finfo(torch.float16).min * 2
    return (heads(x) @ heads(y).transpose(-2, -1) + hidden).softmax(-1) @ heads(y)


def rows(dtype: torch.dtype, batch: int, length: int, others: int) -> tuple[Tensor, ...]:
    return rand(batch, length, 32, dtype=dtype), rand(batch, others, 32, dtype=dtype)


LENGTHS = ((2, 5, 7), (3, 8, 16), (1, 1, 1), (0, 4, 3), (2, 0, 3), (1, 33, 12))
WIDTHS = ("x.shape[2]", "y.shape[2]")


@pytest.mark.parametrize("program", [divided, multiplied])
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_without_a_mask_is_as_in_eager_at_all_lengths(program: Any, dtype: torch.dtype) -> None:
    model = agrees(program, lambda *sizes: rows(dtype, *sizes), LENGTHS, pinned=WIDTHS)
    assert calls(model) == 1


@pytest.mark.parametrize("program", [masked, masked_twice, padded])
@pytest.mark.parametrize("dtype", HALVES)
def test_a_row_that_attends_to_nothing_is_what_it_is_in_eager(program: Any, dtype: torch.dtype) -> None:
    def make(batch: int, length: int, others: int) -> tuple[Tensor, ...]:
        mask = rand(batch, 2, length, others, dtype=dtype)
        mask[:, 0, :1] = -math.inf
        mask[:, 1, :, 1:] = -math.inf
        mask[-1:, 1, -1:, :1] = math.inf
        keys = rand(batch, 1, 1, others, dtype=dtype)
        keys[:1] = 1
        keys[-1:, ..., :1] = -math.inf
        return (*rows(dtype, batch, length, others), mask, keys)

    model = dlcb.compile(program, make(2, 5, 7), check=True)
    assert calls(model) == 1
    for seed, sizes in enumerate(LENGTHS):
        same_answers(program, model, make, sizes, seed)


class Ahead(nn.Module):
    """A mask that the module holds: places see those before them, the first none at all."""

    mask: Tensor

    def __init__(self, places: int) -> None:
        super().__init__()
        hidden = torch.ones(places, places).triu(0).bool()
        self.register_buffer("mask", torch.zeros(places, places).masked_fill(hidden, -math.inf))
        self.half().eval()

    def forward(self, x: Tensor) -> Tensor:
        q = heads(x)
        return (q @ q.transpose(-2, -1) + self.mask).softmax(-1) @ q


@pytest.mark.parametrize("places", [7, 8])
def test_a_mask_that_is_a_weight_hides_what_it_hides_in_eager(places: int) -> None:
    def make(batch: int) -> tuple[Tensor]:
        return (rand(batch, places, 32, dtype=torch.float16),)

    network = Ahead(places)
    model = compiled(network, make(3))
    assert calls(model) == 1
    for batch in (3, 1, 0, 5):
        same_answers(network, model, make, (batch,), batch)
    with torch.no_grad():
        network.mask[0, 0] = 1
    same_answers(network, model, make, (2,), 9)
