"""The `reference` target: the same interface, every op by its own rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.benchmarks.zoo import SMALL
from dlcb.errors import UserError
from dlcb.tests.end_to_end.agreement import rand


def close(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_programs_answer_as_in_eager() -> None:
    def program(x: Tensor, y: Tensor, k: int) -> dict[str, Any]:
        y[:k] = x[:k].softmax(-1)
        return {"sum": x.half() + y.half(), "size": x.shape[0] * 2, "ratio": k / 4, "all": (y > 0).all(), "none": None}

    model = dlcb.compile(program, (rand(3, 4), rand(3, 4), 2), target="reference", check=True)
    assert all(state.startswith(("free", "equal")) for state in model.dimensions().values())
    for n, m, k in ((3, 4, 2), (1, 5, 1), (2, 1, 0), (6, 3, 4)):
        x, y = rand(n, m), rand(n, m)
        twin = y.clone()
        expected, actual = program(x, twin, k), model(x, y, k)
        close(y, twin)
        assert actual.keys() == expected.keys()
        for key in ("sum", "all"):
            assert actual[key].dtype == expected[key].dtype
            torch.testing.assert_close(actual[key], expected[key], rtol=1e-3, atol=1e-3)
        assert (actual["size"], actual["ratio"], actual["none"]) == (expected["size"], expected["ratio"], None)


def test_a_model() -> None:
    case = SMALL["bert"]()
    network = case.build()
    model = dlcb.compile(network, case.inputs(case.example, torch.float32), target="reference")
    for shape in ((1, 1), (2, 7)):
        inputs = case.inputs(shape, torch.float32)
        with torch.no_grad():
            close(model(**inputs).last_hidden_state, network(**inputs).last_hidden_state)
    assert "reference" in model.explain()


def test_weights_are_live_or_frozen() -> None:
    network, x = nn.Linear(3, 4).eval(), rand(2, 3)
    live = dlcb.compile(network, (x,), target="reference")
    frozen = dlcb.compile(network, (x,), target="reference", weights="frozen")
    with torch.no_grad():
        before = network(x)
        network.weight.mul_(2)
        close(live(x), network(x))
        close(frozen(x), before)
        frozen.refresh_weights()
        close(frozen(x), network(x))
    with pytest.raises(UserError, match="live weights are always fresh"):
        live.refresh_weights()


def test_what_it_refuses(tmp_path: Path) -> None:
    model = dlcb.compile(nn.Linear(3, 4).eval(), (rand(2, 3),), target="reference", name="head")
    for wrong, text in (
        (rand(2, 5), r"head: .*3.*5|head: .*5.*3"),
        (rand(2, 3).half(), "head: input has dtype torch.float16, expected torch.float32"),
        (3, "head: input must be a tensor, got 3"),
        (rand(3), "head: input: got rank 1, expected 2"),
    ):
        with pytest.raises(UserError, match=text):
            model(wrong)
    with pytest.raises(UserError, match="no kernels to save"):
        model.save(tmp_path / "head.dlcb")
