"""Random PyTorch programs, and those that failed once, compiled once and held to eager at sizes of all kinds.

`python -P -m dlcb.tests.fuzz` goes on where this stops. `DLCB_RANDOM_PROGRAMS=500` tries that many.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from random import Random

import pytest

from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.programs.check import Failure, check_calls, expected, failure_of
from dlcb.tests.programs.draw import draw_program
from dlcb.tests.programs.operations import OPERATIONS
from dlcb.tests.programs.program import Given, Program, Step, Subject
from dlcb.tests.programs.shrink import shrink
from dlcb.tests.programs.unit import Unit

COUNT = int(os.environ.get("DLCB_RANDOM_PROGRAMS", "20"))
STORED = sorted((Path(__file__).parent.parent / "regressions").glob("*.py"))
NAMES = [*(path.stem for path in STORED), *map(str, range(COUNT))]


@cache
def subject(name: str) -> Subject:
    if name.isdecimal():
        return Subject(draw_program(Random(int(name))).text())
    return Subject(next(path for path in STORED if path.stem == name).read_text())


@cache
def compiled() -> dict[str, CompiledModel | Failure | None]:
    unit = Unit()
    models = {name: unit.add(subject(name)) for name in NAMES}
    unit.collects = False
    return models


@pytest.mark.parametrize("name", NAMES)
def test_a_program_does_on_the_cpu_what_eager_does(name: str) -> None:
    model = compiled()[name]
    failure = check_calls(subject(name), model) if isinstance(model, CompiledModel) else model
    assert failure is None, f"{failure.kind}: {failure.text}\n{subject(name).text}"


@pytest.mark.parametrize("name", NAMES)
def test_the_evaluator_does_what_eager_does(name: str) -> None:
    failure = failure_of(subject(name), "reference")
    assert failure is None, f"{failure.kind}: {failure.text}\n{subject(name).text}"


def test_eager_takes_most_calls_of_random_programs() -> None:
    taken = [expected(subject(n), i) is not None for n in NAMES for i in range(len(subject(n).calls))]
    assert sum(taken) > 0.6 * len(taken)


def test_a_program_is_the_text_that_holds_it() -> None:
    program = draw_program(Random(3))
    again = Subject(program.text())
    assert dict(again.inputs) == dict(program.inputs)
    assert tuple(again.calls) == program.calls
    assert all(str(step) in again.text for step in program.steps)


def test_every_operation_can_be_drawn() -> None:
    drawn = "\n".join(step.code for seed in range(200) for step in draw_program(Random(seed)).steps)
    words = "conv2d max_pool2d interpolate F.pad gather embedding index_select cumsum softmax layer_norm matmul sort"
    missing = [word for word in words.split() if word not in drawn]
    assert not missing
    assert len(OPERATIONS) > 60


def test_a_failing_program_shrinks_to_what_makes_it_fail() -> None:
    inputs = {"x0": Given(("a", "b"), "float16", "stepped"), "x1": Given(("c",), "int64"), "k2": Given(("n",))}
    steps = (Step(("v0",), "x1 + k2"), Step(("v1",), "torch.exp(x0)"), Step(("v2",), "torch.sin(v1)"))
    calls = ({"a": 3, "b": 4, "c": 5, "n": 2}, {"a": 8, "b": 0, "c": 9, "n": 1}, {"a": 60, "b": 7, "c": 1, "n": 1})
    program = Program(inputs, (*steps, Step(("v3",), "v2 * v0.sum()")), ("v1", "v3"), calls)

    def fails(candidate: Program) -> bool:
        given, (*others, last) = candidate.inputs.get("x0"), candidate.calls
        depends = given is not None and "a" in given.dims and "torch.sin" in candidate.text()
        return bool(depends and others and last["a"] > 10)

    small = shrink(program, fails)
    assert [step.code for step in small.steps] == ["torch.sin(x0)"]
    assert small.inputs == {"x0": Given(("a",), "float32")}
    assert small.results == ("v2",)
    assert small.calls == ({"a": 3}, {"a": 15})
