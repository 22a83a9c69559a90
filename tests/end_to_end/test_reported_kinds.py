"""Programs of the kinds that users report, through `torch.compile(backend="dlcb")` and in eager: values, types,
strides, who shares memory with whom, the arguments afterwards, and what raises."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.utils import _pytree as pytree

from dlcb.tests.cases.reported import CASES
from dlcb.tests.end_to_end.through_dynamo import Graphs, assert_same, memory_of

RAISED = "raised"


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    counters.clear()
    yield
    torch.compiler.reset()


def leaves(value: Any) -> list[Any]:
    return pytree.tree_leaves(value, is_leaf=lambda leaf: leaf is None)


def run(program: Any, calls: Sequence[Sequence[Any]]) -> list[Any]:
    """What each call gives. All calls are made before anything is compared, so memory used twice shows."""
    results: list[Any] = []
    for call in calls:
        with torch.no_grad():
            try:
                results.append(leaves(program(*call)))
            except Exception:
                results.append(RAISED)
    return results


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", CASES)
def test_every_call_is_as_in_eager(name: str) -> None:
    case = CASES[name]
    is_module = isinstance(case.program, type) and issubclass(case.program, nn.Module)
    programs = [case.program() if is_module else case.program for _ in range(2)]
    given, calls = copy.deepcopy(case.calls), copy.deepcopy(case.calls)
    expected = run(programs[0], calls)
    graphs = Graphs()
    got = run(torch.compile(programs[1], backend="dlcb", dynamic=True), given)
    for one, other, own, call in zip(got, expected, given, calls, strict=True):
        if other is RAISED:
            assert one is RAISED
            continue
        assert one is not RAISED
        assert_same(one, other)
        assert_signs(one, other)
        assert_same(leaves(own), leaves(call))
        assert memory_of(one, own) == memory_of(other, call)
    assert graphs.eager <= case.eager, graphs.eager
    assert case.graphs is None or counters["stats"]["unique_graphs"] <= case.graphs


def assert_signs(got: Sequence[Any], expected: Sequence[Any]) -> None:
    """-0.0 is -0.0."""
    for one, other in zip(got, expected, strict=True):
        if isinstance(other, Tensor) and other.is_floating_point():
            zero = other == 0
            assert torch.equal(one[zero].signbit(), other[zero].signbit())
