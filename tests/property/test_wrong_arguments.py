"""Calls with wrong arguments of every kind, drawn by hypothesis, to operations, random programs and models: what
comes is eager's result, or an error before anything is launched.

`DLCB_WRONG_ARGUMENTS=500` draws that many calls of each program, and also of the operations' neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest
import torch

import dlcb
from dlcb.benchmarks.zoo import SMALL
from dlcb.errors import UserError
from dlcb.tests.aten_samples import NEIGHBOURS, REACHED, AtenSample, Maker
from dlcb.tests.programs import program as programs
from dlcb.tests.programs.draw import draw_program
from dlcb.tests.wrong_arguments import Change, Subject, has_form, refusal_of, value_difference
from dlcb.tests.wrong_calls import COUNT, Explorer, refuses_or_agrees

SAMPLES = [*REACHED, *NEIGHBOURS] if os.environ.get("DLCB_WRONG_ARGUMENTS") else REACHED
MODELS = ("rows", "resnet18")
RANDOM_PROGRAMS = (0, 2, 3, 4, 5, 6)
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
EXPLORER = Explorer([*SUBJECTS], SUBJECTS.__getitem__, UNSET)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_refused_call_launches_nothing(name: str) -> None:
    EXPLORER.refuses_before_it_launches(name)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_call_that_is_taken_gives_what_eager_gives(name: str) -> None:
    EXPLORER.is_right_where_it_takes_a_call(name)


def test_both_ends_are_common() -> None:
    assert min(EXPLORER.counts()) > COUNT * len(SUBJECTS) // 5


def test_a_wrong_value_is_found() -> None:
    subject = Subject("sum", lambda x: x + 1, (torch.arange(6.0).reshape(2, 3),))
    call = subject.call([Change(0, "size", (0, 4))])
    eager = call.eager()
    assert isinstance(eager, list)
    assert value_difference(call, eager, eager) is None
    assert value_difference(call, [eager[0] + 1, *eager[1:]], eager) is not None
    assert not has_form([eager[0][:-1]], eager)


def test_an_answer_that_eager_does_not_give_is_a_defect() -> None:
    def two_only(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] != 2:
            raise ValueError("two rows")
        return x + 1

    example = (torch.ones(2, 3),)
    compiled = dlcb.compile(lambda x: x + 1, example, target="cpu")
    refuses_or_agrees(compiled, Subject("sum", lambda x: x + 1, example))
    with pytest.raises(AssertionError, match="leaf 0: row 0"):
        refuses_or_agrees(compiled, Subject("sum", lambda x: x + 2, example))
    with pytest.raises(AssertionError, match=r"eager raises .*two rows"):
        refuses_or_agrees(compiled, Subject("sum", two_only, example))


def test_an_error_after_a_launch_is_a_defect() -> None:
    subject = Subject("index", lambda x, i: (x * 2)[i], (torch.ones(4), torch.tensor([1, 2])))
    taken = dlcb.compile(subject.program, subject.args, target="cpu")
    assert isinstance(refusal_of(taken, subject.call([Change(0, "dtype", (torch.float64,))])), UserError)
    with pytest.raises(AssertionError, match="IndexError: index 1 is out of range"):
        refusal_of(taken, subject.call([Change(0, "size", (0, 1))]))
