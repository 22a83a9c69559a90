"""Models whose sizes do something: what may vary is kept, and one compile is right at every shape."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dlcb.benchmarks.dimensions import Found, by_dlcb, by_export
from dlcb.benchmarks.shape_models import SMALL
from dlcb.tests.end_to_end.agreement import agrees, compiled, same_answers
from dlcb.tests.end_to_end.shapes import (
    refuses_or_agrees_for_wrong_arguments,
    right_at_every_shape,
    same_trace_elsewhere,
)
from dlcb.tests.wrong_arguments import Subject
from dlcb.tests.wrong_calls import refuses_or_agrees

PAST = "past_0_0[a, 4, c, 8] past_0_1[a, 4, c, 8] past_1_0[a, 4, d, 8] past_1_1[a, 4, d, 8]"
CACHES = "keys_0[a, 4, c, 8] keys_1[a, 4, d, 8] values_0[a, 4, c, 8] values_1[a, 4, d, 8]"
KEPT = {
    "detector": "x[a, 3, b, c]",
    "segmenter": "x[a, 3, b, c]",
    "unet": "x[a, 3, b, c]",
    "selective_scan": "x[a, b, 16]",
    "step_in_place": f"ids[a, b] position[b] {CACHES}",
    "step_appending": f"ids[a, b] {PAST}",
    "switch": "x[a, b, 16]",
    "top_experts": "x[a, b, 16]",
}
"""What eager itself lets vary: equal letters must be equal."""
QUICK = ("unet", "step_in_place", "step_appending", "switch", "top_experts")
"""Those that torch exports in a second or two."""


def example_of(name: str) -> tuple[nn.Module, dict[str, Any]]:
    case = SMALL[name]()
    torch.manual_seed(1)
    return case.build(), case.inputs(case.example, torch.float32)


@cache
def found_by_dlcb(name: str) -> Found:
    return by_dlcb(*example_of(name))


@pytest.mark.parametrize("name", KEPT)
def test_sizes_that_are_equal_in_the_example_alone_are_not_tied(name: str) -> None:
    """A square picture's height is not its width, and a batch of four is not four heads."""
    assert str(found_by_dlcb(name)) == KEPT[name]


@pytest.mark.parametrize("name", QUICK)
def test_every_size_that_an_automatic_export_keeps_is_kept(name: str) -> None:
    case = SMALL[name]()
    mine, theirs = found_by_dlcb(name), by_export(*example_of(name))
    assert theirs.kept()
    assert theirs.kept() <= mine.kept()
    for shape in case.shapes:
        assert mine.takes(case.inputs(shape, torch.float32))


class Loop(nn.Module):
    """Its Python goes around once for each column."""

    def forward(self, x: Tensor) -> Tensor:
        total = x[:, 0]
        for column in range(1, x.shape[1]):
            total = total.tanh() + x[:, column]
        return total


class Product(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x @ x


@pytest.mark.parametrize(("model", "kept"), [(Loop().eval(), "x[a, 4]"), (Product().eval(), "x[a, a]")])
def test_what_the_program_fixes_or_ties_is_fixed_or_tied_by_both(model: nn.Module, kept: str) -> None:
    found = [way(model, {"x": torch.randn(4, 4)}) for way in (by_dlcb, by_export)]
    assert [str(one) for one in found] == [kept, kept]
    assert not any(one.takes({"x": torch.randn(4, 5)}) for one in found)
    assert all(one.takes({"x": torch.randn(4, 4)}) for one in found)


def test_sizes_and_their_limits_are_told_in_letters() -> None:
    found = Found({"x": ("s0", 3, "s1"), "y": ("s1", "2*s0 + 1")}, {"s0": "≥9"})
    assert str(found) == "x[a≥9, 3, b] y[b, 2*a + 1]"
    assert found.kept() == {("x", 0), ("x", 2), ("y", 0), ("y", 1)}


COLOURS = {"x.shape[1]": "pinned to 3 by convolution"}
WIDTH = {"x.shape[2]": "pinned to 16 by"}
FIXED = {"detector": COLOURS, "segmenter": COLOURS, "unet": COLOURS, "selective_scan": WIDTH, "switch": WIDTH}


@pytest.mark.parametrize("name", FIXED)
def test_a_model_compiled_once_is_right_at_every_shape(name: str) -> None:
    """In float64, where sizes decide and not rounding."""
    right_at_every_shape(SMALL[name](), torch.float64, FIXED[name])


@pytest.mark.parametrize("name", FIXED)
def test_wrong_arguments_are_refused_or_answered_as_in_eager(name: str) -> None:
    refuses_or_agrees_for_wrong_arguments(SMALL[name](), torch.float64)


@pytest.mark.parametrize("name", FIXED)
def test_a_model_traced_at_other_sizes_is_the_program_that_was_captured(name: str) -> None:
    same_trace_elsewhere(SMALL[name]().build(), SMALL[name]())


@pytest.mark.parametrize("name", ["step_in_place", "step_appending"])
def test_a_step_compiled_once_is_right_at_every_shape_as_are_its_caches_and_refuses_other_arguments(name: str) -> None:
    case = SMALL[name]()

    def make(*shape: int) -> tuple[Any, ...]:
        return tuple(case.inputs(shape, torch.float32).values())

    caches = re.findall(r"(\w+)\[a, 4, ", KEPT[name])
    heads = {f"{cache}.shape[{dim}]" for cache in caches for dim in (1, 3)}
    network = case.build()
    model = agrees(network, make, (case.example, *case.shapes), pinned=heads)
    refuses_or_agrees(model, Subject(name, network, make(*case.example)))


def test_experts_whose_choice_runs_in_eager_are_right_at_every_shape() -> None:
    case, (network, inputs) = SMALL["top_experts"](), example_of("top_experts")
    model = compiled(network, inputs, "top_experts", fullgraph=False)
    assert "topk" in model.explain()

    def make(*shape: int) -> tuple[Any, ...]:
        return tuple(case.inputs(shape, torch.float32).values())

    for seed, shape in enumerate(case.shapes):
        same_answers(network, model, make, shape, seed)
