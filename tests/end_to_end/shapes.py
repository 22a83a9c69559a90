"""Holds a model of the zoo, compiled once, to eager at many shapes, by the error measure."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from dlcb.benchmarks.accuracy import as_float64, in_float64, judge_all, tensors_of
from dlcb.benchmarks.case import Case
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.retrace import retrace
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import compiled, hostile
from dlcb.tests.wrong_arguments import Subject
from dlcb.tests.wrong_calls import refuses_or_agrees

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
DRAWS = 16
"""Inputs of a shape that are judged together, at least."""
ROWS = 64
"""Rows of each result that are judged together, at least: the worst of few is mostly luck."""


class Judge:
    """Compares a compiled model with eager and with a float64 reference."""

    def __init__(self, model: Callable[..., Any], network: nn.Module) -> None:
        self.model, self.network, self.exact = model, network, in_float64(network)

    def check(self, *draws: dict[str, Any]) -> None:
        """Results of several draws of inputs are judged together."""
        with torch.no_grad():
            eager = [self.network(**inputs) for inputs in draws]
            exact = [self.exact(**as_float64(inputs)) for inputs in draws]
        assess([self.model(**inputs) for inputs in draws], eager, exact)

    def check_many(self, draw: Callable[[], dict[str, Any]], least: int = DRAWS) -> None:
        """Draws inputs of one shape, at least so often, until each result has enough rows."""
        first = draw()
        with torch.no_grad():
            rows = min(result[..., 0].numel() for result in tensors_of(self.network(**first)))
        draws = max(least, math.ceil(ROWS / rows)) if rows else least
        self.check(first, *(draw() for _ in range(1, draws)))


def assess(actual: list[Any], eager: list[Any], exact: list[Any]) -> None:
    """Several results of the same structure each."""
    stacked = [list(map(torch.stack, zip(*map(tensors_of, side), strict=True))) for side in (actual, eager, exact)]
    verdicts = judge_all(*stacked)
    assert verdicts
    assert all(v.ok for v in verdicts), [v for v in verdicts if not v.ok]


_COMPILED: dict[tuple[str, torch.dtype], tuple[nn.Module, CompiledModel]] = {}


def compiled_once(case: Case, dtype: torch.dtype) -> tuple[nn.Module, CompiledModel]:
    """A case's network, and what it is compiled to."""
    known = _COMPILED.get((case.name, dtype))
    if known is None:
        network = case.build().to(dtype)
        torch.manual_seed(0)
        known = network, compiled(network, case.inputs(case.example, dtype), case.name)
        _COMPILED[case.name, dtype] = known
    return known


def refuses_or_agrees_for_wrong_arguments(case: Case, dtype: torch.dtype = torch.float32) -> None:
    network, model = compiled_once(case, dtype)
    torch.manual_seed(0)
    refuses_or_agrees(model, Subject(case.name, network, (), case.inputs(case.example, dtype)))


def right_at_every_shape(case: Case, dtype: torch.dtype, fixed: dict[str, str]) -> None:
    """One compile at the example's shape is right at all of them. Every dim of the inputs is free but the fixed ones,
    which `explain` gives these reasons for."""
    network, model = compiled_once(case, dtype)
    is_free_or_fixed(model, fixed)
    assert len(case.shapes) >= 6
    judge = Judge(model, network)
    for number, shape in enumerate(case.shapes):
        torch.manual_seed(number)
        judge.check_many(partial(case.inputs, shape, dtype))
    if dtype == torch.float32:
        same_trace_elsewhere(network, case)
    inputs = case.inputs(case.shapes[1], dtype)
    usual = tensors_of(model(**inputs))
    hostile(model, seed=2)
    for one, other in zip(tensors_of(model(**inputs)), usual, strict=True):
        assert torch.equal(one, other)


def is_free_or_fixed(model: CompiledModel, fixed: dict[str, str]) -> None:
    """Every dim varies, alone or with another one, but those that the model fixes."""
    found = {d: s for d, s in model.dimensions().items() if not s.startswith(("free", "equal"))}
    assert found.keys() == fixed.keys(), found
    for dim, why in fixed.items():
        assert found[dim].startswith(why)
    assert "all native" in model.explain()


def same_trace_elsewhere(network: nn.Module, case: Case) -> None:
    captured = capture(network, (), case.inputs(case.example, torch.float32))
    for shape in case.shapes[1:3]:
        assert retrace(captured, network, (), case.inputs(shape, torch.float32)) is None
