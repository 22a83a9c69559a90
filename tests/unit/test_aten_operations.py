"""Calls of ATen's overloads, captured, imported natively, in every dtype that eager has: the evaluator and the CPU
target against eager, at other sizes than the example's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from dlcb.frontend import torch_private as private
from dlcb.frontend.aten.dtypes import ELEMENT_OF
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.lowering import pipeline
from dlcb.tests.aten_samples import NEIGHBOURS, REACHED, AtenSample, Maker
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Case, check_call, check_evaluator

KINDS = frozenset(
    {"scatter", "diagonals", "unfold", "pad reflect", "a table cut by a size", "as many groups as channels"}
)
"""Forms that make kernels unlike those of `REACHED`; these too run on the CPU target."""


@dataclass(frozen=True)
class Typed:
    """A sample in one dtype."""

    sample: AtenSample
    dtype: torch.dtype

    @property
    def name(self) -> str:
        return f"{self.sample.name} {str(self.dtype).removeprefix('torch.')}"

    @property
    def calls(self) -> list[tuple[Any, ...]]:
        return [make(Maker(self.dtype, seed)) for seed, make in enumerate(self.sample.calls)]

    def case(self) -> Case:
        return Case(self.name, _unused, self.calls, self.witness, self.sample.slack)

    def witness(self, *args: Any) -> list[Any]:
        with torch.no_grad():
            results = private.flatten(self.sample.program(*args))[0]
        return [r for r in results if isinstance(r, Tensor)]

    def is_eager(self) -> bool:
        """Does torch itself have it?"""
        try:
            for args in self.calls:
                self.witness(*args)
        except (RuntimeError, NotImplementedError):
            return False
        return True


DTYPES = tuple(ELEMENT_OF)


def _unused(_: Any) -> None: ...


def typed(sample: AtenSample, dtypes: Sequence[torch.dtype]) -> list[Typed]:
    """The sample in those of the dtypes that eager has."""
    return [t for t in (Typed(sample, dtype) for dtype in dtypes) if t.is_eager()]


def simplified(made: Typed) -> ModuleOp:
    """The program natively; an operation without a kernel would raise."""
    module = import_captured(capture(made.sample.program, made.calls[0])).module
    pipeline.run(module, Context(), until="simplify")
    return module


def ids(samples: Sequence[AtenSample]) -> list[str]:
    return [sample.name for sample in samples]


def test_every_overload_that_the_models_reach_has_a_sample() -> None:
    assert len(REACHED) == 82
    assert len(set(ids(REACHED))) == 82


@pytest.mark.parametrize("sample", REACHED, ids=ids(REACHED))
def test_the_evaluator_agrees_with_eager_in_every_dtype(sample: AtenSample) -> None:
    made = typed(sample, DTYPES)
    assert made
    for each in made:
        module = simplified(each)
        for args in each.calls[:2]:
            check_evaluator(module, each.case(), args)


@pytest.mark.parametrize("sample", NEIGHBOURS, ids=ids(NEIGHBOURS))
def test_the_evaluator_agrees_with_eager_on_other_forms(sample: AtenSample) -> None:
    (made,) = typed(sample, (torch.float32,))
    module = simplified(made)
    for args in made.calls:
        check_evaluator(module, made.case(), args)


ON_THE_CPU = [*REACHED, *(s for s in NEIGHBOURS if "," in s.name or s.name in KINDS)]


@cache
def batch() -> tuple[Batch, dict[str, tuple[int, Typed]]]:
    """Samples in one dtype as one translation unit."""
    made, numbers = Batch(), dict[str, tuple[int, Typed]]()
    for sample in ON_THE_CPU:
        first = typed(sample, (torch.float32, torch.int64))[0]
        numbers[sample.name] = made.add(simplified(first)), first
        made.rehearse(numbers[sample.name][0], first.calls)
    return made, numbers


@pytest.mark.parametrize("sample", ON_THE_CPU, ids=ids(ON_THE_CPU))
def test_the_cpu_target_agrees_with_eager(sample: AtenSample) -> None:
    made, numbers = batch()
    number, first = numbers[sample.name]
    for seed in ORDER_SEEDS[-2:]:
        for args in first.calls:
            check_call(made.module(number, seed), first.case(), args)
