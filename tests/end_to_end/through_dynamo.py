"""Holds programs that go through `torch.compile(backend="dlcb")` to eager, and tells what became of their graphs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from dlcb.frontend import dynamo
from dlcb.frontend.graph_program import GraphProgram


class Graphs:
    """The programs that the backend has made since."""

    def __init__(self) -> None:
        known = dynamo.programs()
        self._last = known[-1] if known else None

    def __iter__(self) -> Iterator[GraphProgram]:
        programs = dynamo.programs()
        return iter(programs[programs.index(self._last) + 1 :] if self._last else programs)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def eager(self) -> set[str]:
        """The operations that ran in eager."""
        return {reason.partition(":")[0] for graph in self for report in graph.reports for reason in report.eager}

    def assert_native(self) -> None:
        assert len(self), "nothing was compiled"
        for graph in self:
            assert graph.refusals == [], graph.explain()
            assert graph.reports, graph.explain()
        assert self.eager == set()


def agree(program: Any, *calls: Sequence[Any], dynamic: bool | None = True, grad: bool = False, **words: Any) -> Graphs:
    """Every call gives what eager gives: values, dtypes, strides, which results lie in which argument, and the
    arguments afterwards."""
    torch.compiler.reset()
    graphs = Graphs()
    compiled = torch.compile(program, backend="dlcb", dynamic=dynamic, **words)
    for call in calls:
        own = copy.deepcopy(call)
        with torch.set_grad_enabled(grad):
            torch.manual_seed(7)
            expected = program(*own)
            torch.manual_seed(7)
            got = compiled(*call)
        assert_same(leaves(got), leaves(expected))
        assert_same(call, own)
        assert memory_of(leaves(got), call) == memory_of(leaves(expected), own)
    return graphs


def assert_same(got: Sequence[Any], expected: Sequence[Any]) -> None:
    """Strides of a tensor without elements mean nothing."""
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        if isinstance(other, Tensor):
            torch.testing.assert_close(one, other, equal_nan=True)
            assert one.stride() == other.stride() or not other.numel()
            assert one.requires_grad == other.requires_grad
        else:
            assert type(one) is type(other)
            assert one == other


def leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (tuple, list)) else [value]


def memory_of(results: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """For each result the first argument, or earlier result, in whose memory it lies."""
    places = [t.untyped_storage().data_ptr() if isinstance(t, Tensor) and t.numel() else None for t in arguments]
    found: list[Any] = []
    for number, result in enumerate(results):
        place = result.untyped_storage().data_ptr() if isinstance(result, Tensor) and result.numel() else None
        found.append(None if place is None or place not in places else places.index(place))
        places.append(place if found[number] is None else None)
    return found
