"""A program for sizes that come often, compiled in another process and swapped in while threads call."""

from __future__ import annotations

import threading
import time

import torch
from torch import Tensor, nn

import dlcb

LONGEST = 120.0
"""Seconds that the other process may take on a busy machine."""


def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    total = torch.softmax(x @ y, -1)
    return total * torch.sin(x[:, :1]), total.sum(0)


def test_each_call_has_all_its_results_of_one_tier() -> None:
    example = torch.randn(6, 8), torch.randn(8, 40)
    general = dlcb.compile(program, example)
    special = dlcb.compile(program, example, dynamic=False)
    hot = dlcb.compile(program, example, hot_shapes="on", hot_after=3)
    expected = [model(*example) for model in (general, special)]
    wrong: list[tuple[Tensor, Tensor]] = []
    calls, swapped, deadline = [0] * 4, threading.Event(), time.monotonic() + LONGEST

    def serve(number: int) -> None:
        while not swapped.is_set() and time.monotonic() < deadline:
            found = hot(*example)
            calls[number] += 1
            if not any(all(map(torch.equal, found, one)) for one in expected):
                wrong.append(found)

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    while hot.stats()["specialized"] == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    swapped.set()
    for thread in threads:
        thread.join()
    assert hot.stats()["specialized"] == 1
    assert not wrong
    assert min(calls) > 3
    assert all(map(torch.equal, hot(*example), expected[1]))


def test_a_model_without_examples_tells_of_the_dims_of_each_kind() -> None:
    model = dlcb.compile(nn.Linear(8, 3).eval())
    assert model.dimensions() == []
    model(torch.randn(4, 8))
    model(torch.randn(2, 5, 8))
    two, three = model.dimensions()
    assert two["input.shape[0]"].startswith("free")
    assert three["input.shape[1]"].startswith("free")
    assert all("8" in dims[f"input.shape[{len(dims) - 1}]"] for dims in (two, three))
