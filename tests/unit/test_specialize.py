"""Programs for the sizes of one call: what they compute, which calls they refuse, and that a failure is a reason."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.frontend.build import Built, build
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.frontend.options import Options
from dlcb.frontend.specialize import Specializer, Template
from dlcb.frontend.workers import Workers
from dlcb.runtime.compiled import Program


def options_of(weights: Any, target: str) -> Options:
    return Options(torch.device("cuda" if target == "cuda" else "cpu"), target, weights)


def built(model: Callable[..., Any], *args: Any, target: str = "cpu", weights: Any = "live") -> tuple[Built, Template]:
    imported = import_captured(capture(model, args, {}, "auto"))
    template = Template.of(imported.module)
    return build(imported, "m", options_of(weights, target)), template


def specializer(
    made: tuple[Built, Template], *, weights: Any = "live", target: str = "cpu", workers: Workers | None = None
) -> Specializer:
    general, template = made
    options = options_of(weights, target)
    return Specializer(template, options, general.artifact, general.program, workers)


@cache
def mlp() -> tuple[nn.Module, tuple[Built, Template]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 5)).eval()
    return model, built(model, torch.randn(3, 8))


@pytest.fixture
def failing() -> Iterator[Callable[..., Specializer]]:
    """Specializers of the MLP whose process is another one."""
    pools: list[Workers] = []

    def make(command: list[str], **limits: Any) -> Specializer:
        pools.append(Workers(command=command, **limits))
        return specializer(mlp()[1], workers=pools[-1])

    yield make
    for workers in pools:
        workers.close()


class Answers:
    """What was called back."""

    def __init__(self) -> None:
        self.programs: list[Program | None] = []
        self.reasons: list[str] = []
        self.threads: set[int] = set()
        self.ready = threading.Event()

    def __call__(self, program: Program | None, reason: str) -> None:
        self.programs.append(program)
        self.reasons.append(reason)
        self.threads.add(threading.get_ident())
        self.ready.set()


def check_equal(program: Program, general: Program, model: Callable[..., Any], *args: Tensor) -> None:
    """Bitwise what the program for all sizes computes, and within tolerance what eager does."""
    (found,), (expected,) = program.run(args), general.run(args)
    assert torch.equal(found, expected)
    with torch.no_grad():
        torch.testing.assert_close(found, model(*args))


def test_two_threads_get_their_programs_and_each_takes_its_sizes_alone() -> None:
    model, made = mlp()
    maker, general = specializer(made), made[0].program
    inputs = [torch.randn(4, 8), torch.randn(7, 8)]
    programs: dict[int, Program] = {}

    def make(number: int) -> None:
        programs[number] = maker.now(maker.sizes_of([inputs[number]]))

    threads = [threading.Thread(target=make, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(maker.seconds) == ["start", "parse", "lower", "binary", "load"]
    for number, x in enumerate(inputs):
        check_equal(programs[number], general, model, x)
        with pytest.raises(UserError, match=rf"input.shape\[0\] is {len(inputs[1 - number])} but must be {len(x)}"):
            programs[number].run([inputs[1 - number]])
    check_live(programs[0], general, model, inputs[0])


def check_live(program: Program, general: Program, model: nn.Module, x: Tensor) -> None:
    """Live weights are the very tensors: a change is seen by both programs."""
    (before,) = program.run([x])
    with torch.no_grad():
        next(model.parameters()).mul_(2)
    check_equal(program, general, model, x)
    assert not torch.equal(before, program.run([x])[0])


def test_in_the_background_another_thread_calls_back() -> None:
    def repeated(x: Tensor, k: int) -> Tensor:
        return torch.softmax(x.repeat(k, 1), 0) + k

    maker = specializer(built(repeated, torch.randn(2, 3), 4))
    x = torch.randn(5, 6)
    sizes = maker.sizes_of([x, 3])
    assert sizes == {"x_0": 5, "x_1": 6, "k": 3}
    answers = Answers()
    maker.start(sizes, answers)
    assert answers.ready.wait(100)
    assert answers.reasons == [""]
    assert threading.get_ident() not in answers.threads
    (program,) = answers.programs
    assert program is not None
    torch.testing.assert_close(program.run([x, 3])[0], repeated(x, 3))
    with pytest.raises(UserError, match="k is 4 but must be 3: specialized to this size"):
        program.run([x, 4])


def test_frozen_weights_are_those_of_the_program_for_all_sizes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).eval()
    made = built(model, torch.randn(2, 3, 9, 12), weights="frozen")
    general, x = made[0].program, torch.randn(4, 3, 8, 10)
    (first,) = general.run([x])
    with torch.no_grad():
        next(model.parameters()).mul_(2)  # after the weights were folded, and not to be seen
    maker = specializer(made, weights="frozen")
    program = maker.now(maker.sizes_of([x]))
    torch.testing.assert_close(program.run([x])[0], first, rtol=0, atol=0)
    for refreshed in (general, program):
        refreshed.refresh_weights()
    check_equal(program, general, model, x)
    next(model.parameters()).data = torch.randn(4, 3, 3, 3)
    torch.testing.assert_close(program.run([x])[0], general.run([x])[0], rtol=0, atol=0)
    for refreshed in (general, program):
        refreshed.refresh_weights()
    check_equal(program, general, model, x)


@pytest.mark.gpu
@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_a_program_from_another_process_runs_on_the_gpu(weights: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).eval().cuda()
    made = built(model, torch.randn(2, 3, 9, 12, device="cuda"), target="cuda", weights=weights)
    maker, x = specializer(made, target="cuda", weights=weights), torch.randn(4, 3, 8, 10, device="cuda")
    answers = Answers()
    maker.start(maker.sizes_of([x]), answers)
    assert answers.ready.wait(100)
    assert answers.reasons == [""]
    (program,) = answers.programs
    assert program is not None
    for _ in range(4):  # launched, recorded, replayed
        torch.testing.assert_close(program.run([x])[0], made[0].program.run([x])[0])
        torch.testing.assert_close(program.run([x])[0], model(x).detach(), rtol=1e-3, atol=1e-3)
    with pytest.raises(UserError, match="specialized to this size"):
        program.run([x[:3]])


def test_weights_that_are_derived_otherwise_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)).eval()
    general, template = built(model, torch.randn(2, 3, 9, 12), weights="frozen")
    changed = replace(general.artifact, kernels=general.artifact.kernels.replace("sqrtf(", "cbrtf("))
    maker = specializer((replace(general, artifact=changed), template), weights="frozen")
    with pytest.raises(UnsupportedError, match="would derive other frozen weights"):
        maker.now(maker.sizes_of([torch.randn(4, 3, 8, 10)]))


def test_live_weights_can_not_be_shared_as_frozen_ones() -> None:
    program: Any = mlp()[1][0].program
    with pytest.raises(UserError, match=r"frozen_weights\(\) is for weights='frozen'"):
        program.frozen_weights()


def test_sizes_that_no_call_can_have_are_refused() -> None:
    with pytest.raises(UserError, match=r"m: no program for input_0 = 3, input_1 = 9: .* can not hold: it says 8 == 9"):
        specializer(mlp()[1]).now({"input_0": 3, "input_1": 9})


def test_text_that_is_no_ir_is_a_reason() -> None:
    general, template = mlp()[1]
    maker = specializer((general, replace(template, ir=template.ir[:200])))
    with pytest.raises(UserError, match="m: no program for these sizes: m: no valid IR"):
        maker.now({})


@pytest.mark.parametrize(
    ("code", "limits", "text"),
    [
        ("import os; os.kill(os.getpid(), 9)", {}, "the process that compiles ended with status -9 and no answer"),
        ("import time; time.sleep(60)", {"timeout_s": 0.3}, r"it took longer than 0.3 s"),
    ],
)
def test_a_process_that_dies_is_a_reason_and_calls_go_on(
    failing: Callable[..., Specializer], code: str, limits: dict[str, Any], text: str
) -> None:
    maker = failing([sys.executable, "-I", "-S", "-c", code], **limits)
    with pytest.raises((InternalError, UnsupportedError), match=text):
        maker.now({"input_0": 3})
    answers = Answers()
    maker.start({"input_0": 3}, answers)
    assert answers.ready.wait(30)
    assert answers.programs == [None]
    assert answers.reasons[0].startswith("m: no program for input_0 = 3: ")
    assert mlp()[1][0].program.run([torch.randn(3, 8)])[0].shape == (3, 5)


def test_more_requests_than_may_wait_are_refused_at_once(failing: Callable[..., Specializer]) -> None:
    maker = failing([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"], waiting=1)
    answers = Answers()
    taken = [maker.start({"input_0": 3}, answers) for _ in range(4)]  # one at work, one that waits
    assert taken[0]
    assert taken.count(False) in (2, 3)
    assert not answers.reasons


def test_a_program_without_kernels_can_not_be_specialized() -> None:
    general, template = built(nn.Linear(3, 4).eval(), torch.randn(2, 3), target="reference")
    with pytest.raises(UserError, match="target 'reference' has no kernels"):
        Specializer(template, Options(torch.device("cpu"), "reference"), general.artifact, general.program)
