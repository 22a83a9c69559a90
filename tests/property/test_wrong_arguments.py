"""Calls with wrong arguments of every kind, drawn by hypothesis, to operations, random programs and models: what comes
is eager's result, or an error before anything is launched.

Kernels only note their launches while calls are drawn; then those that were needed are compiled at once, and the calls
that were taken run again, for their values. `DLCB_WRONG_ARGUMENTS=500` draws that many calls of each program, and
also of the operations' neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from torch import Tensor

import dlcb
from dlcb.benchmarks.zoo import SMALL
from dlcb.errors import UnsupportedError, UserError
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.aten_samples import NEIGHBOURS, REACHED, AtenSample, Maker
from dlcb.tests.programs import program as programs
from dlcb.tests.programs.draw import draw_program
from dlcb.tests.programs.unit import Unit
from dlcb.tests.wrong_arguments import (
    Call,
    Change,
    Subject,
    changes,
    has_form,
    plan_has_form,
    plan_or_refusal,
    refusal_of,
    value_difference,
    without_elements,
)

ASKED = os.environ.get("DLCB_WRONG_ARGUMENTS")
COUNT = int(ASKED or "24")
SAMPLES = [*REACHED, *NEIGHBOURS] if ASKED else REACHED
MODELS = ("rows", "resnet18")
RANDOM_PROGRAMS = (0, 2, 3, 4, 5, 6)
ONLY_EAGER_REFUSES = ("Expected X.is_contiguous",)
"""What a kernel of eager's can't take, by how its error begins: layouts that mean nothing to the operation."""
UNSET = ("native_layer_norm.default", "native_group_norm.default", "layer norm")
"""Operations of which eager leaves statistics of no elements as the memory was."""


def sampled(sample: AtenSample) -> Subject:
    for dtype in (torch.float32, torch.int64):
        try:
            with torch.no_grad():
                sample.program(*sample.calls[0](Maker(dtype)))
        except (RuntimeError, NotImplementedError):
            continue
        return Subject(sample.name, sample.program, sample.calls[0](Maker(dtype)), slack=sample.slack)
    raise AssertionError(f"eager takes no dtype of {sample.name}")


def drawn(number: int) -> Subject:
    subject = programs.Subject(draw_program(Random(number)).text())
    return Subject(f"random program {number}", subject.function, tuple(subject.arguments(0)), slack=2e-2)


def model(name: str) -> Subject:
    case = SMALL[name]()
    torch.manual_seed(0)
    return Subject(name, case.build(), (), case.inputs(case.example, torch.float32))


def subjects() -> Iterator[Subject]:
    yield from map(sampled, SAMPLES)
    yield from map(drawn, RANDOM_PROGRAMS)
    yield from map(model, MODELS)


SUBJECTS = {subject.name: subject for subject in subjects()}


@dataclass
class Explored:
    """What came of the calls of one program."""

    model: CompiledModel
    refused: int = 0
    taken: list[tuple[Call, list[Any]]] = field(default_factory=list[tuple[Call, list[Any]]])
    failure: AssertionError | None = None

    def look(self, call: Call) -> None:
        if call.is_huge:
            self._look_at_huge(call)
            return
        found = refusal_of(self.model, call)
        if isinstance(found, UserError):
            self.refused += 1
        else:
            self.taken.append((call, found))

    def _look_at_huge(self, call: Call) -> None:
        plan = plan_or_refusal(self.model, call)
        if isinstance(plan, UserError):
            self.refused += 1
            return
        eager = without_elements(call)
        assert not isinstance(eager, Exception), f"{call}: eager raises {eager}"
        assert plan_has_form(plan, eager), call


UNIT = Unit()


@cache
def explored(name: str) -> Explored:
    subject = SUBJECTS[name]
    try:
        found = Explored(UNIT.add_program(subject.program, subject.kwargs or subject.args))
    except UnsupportedError as unsupported:
        pytest.skip(str(unsupported))

    @seed(sum(map(ord, name)))
    @settings(max_examples=COUNT, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
    @given(changes(subject.leaves))
    def explore(made: list[Change]) -> None:
        found.look(subject.call(made))

    try:
        explore()
    except AssertionError as failure:
        found.failure = failure
    return found


@cache
def compiled() -> dict[str, Explored]:
    """All programs with their kernels."""
    found = {name: explored(name) for name in SUBJECTS}
    UNIT.collects = False
    return found


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_refused_call_launches_nothing(name: str) -> None:
    failure = explored(name).failure
    assert failure is None, failure


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_call_that_is_taken_gives_what_eager_gives(name: str) -> None:
    found = compiled()[name]
    for call, form in found.taken:
        eager = call.eager()
        if isinstance(eager, Exception):
            alone = str(eager).startswith(ONLY_EAGER_REFUSES)
            assert alone or fails(found.model, call), f"{call}: eager raises {type(eager).__name__}: {eager}"
            continue
        assert has_form(form, eager), f"{call}: {form}, eager gives {eager[: len(form)]}"
        results, arguments = call.run(found.model)
        wrong = value_difference(call, [*results, *arguments], eager)
        assert wrong is None or (name in UNSET and is_empty(call)), f"{call}: {wrong}"


def fails(compiled_model: CompiledModel, call: Call) -> bool:
    """Does an element turn out to be wrong?"""
    try:
        call.run(compiled_model)
    except (IndexError, RuntimeError):
        return True
    return False


def is_empty(call: Call) -> bool:
    return any(isinstance(leaf, Tensor) and not leaf.numel() for leaf in call.leaves())


def test_both_ends_are_common() -> None:
    found = compiled().values()
    refused, taken = sum(each.refused for each in found), sum(len(each.taken) for each in found)
    assert min(refused, taken) > COUNT * len(SUBJECTS) // 5


def test_a_wrong_value_is_found() -> None:
    subject = Subject("sum", lambda x: x + 1, (torch.arange(6.0).reshape(2, 3),))
    call = subject.call([Change(0, "size", (0, 4))])
    eager = call.eager()
    assert isinstance(eager, list)
    assert value_difference(call, eager, eager) is None
    assert value_difference(call, [eager[0] + 1, *eager[1:]], eager) is not None
    assert not has_form([eager[0][:-1]], eager)


def test_an_error_after_a_launch_is_a_defect() -> None:
    subject = Subject("index", lambda x, i: (x * 2)[i], (torch.ones(4), torch.tensor([1, 2])))
    taken = dlcb.compile(subject.program, subject.args, target="cpu")
    assert isinstance(refusal_of(taken, subject.call([Change(0, "dtype", (torch.float64,))])), UserError)
    with pytest.raises(AssertionError, match="IndexError: index 1 is out of range"):
        refusal_of(taken, subject.call([Change(0, "size", (0, 1))]))
