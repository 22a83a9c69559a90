"""Programs for sizes that come often: when they are asked for, which one answers, what a failure does."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.errors import UnsupportedError, UserError
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.hot_shapes import HotShapes
from dlcb.runtime.module import CompiledModule

Done = Callable[[CompiledModule | None, str], None]


def rand(*shape: int) -> Tensor:
    return torch.randn(shape)


def program(x: Tensor) -> Tensor:
    return torch.softmax(x * 2, -1)


class Desk:
    """Compiles nothing: hands out one program, when it is told to."""

    def __init__(self, given: CompiledModule | None) -> None:
        self.given = given
        self.asked: list[dict[str, int]] = []
        self.waiting: list[Done] = []
        self.is_busy = False

    def sizes_of(self, arguments: Sequence[Any]) -> dict[str, int]:
        return dict(enumerate(arguments[0].shape))  # pyright: ignore[reportReturnType]

    def start(self, sizes: Mapping[str, int], done: Done) -> bool:
        self.asked.append(dict(sizes))
        if not self.is_busy:
            self.waiting.append(done)
        return not self.is_busy

    def now(self, sizes: Mapping[str, int]) -> CompiledModule:
        self.asked.append(dict(sizes))
        if self.given is None:
            raise UnsupportedError("no program today")
        return self.given

    def deliver(self) -> None:
        for done in self.waiting:
            done(self.given, "" if self.given else "no program today")
        self.waiting.clear()


@pytest.fixture(scope="module")
def model() -> CompiledModel:
    return dlcb.compile(program, (rand(3, 5),))


class Counting(CompiledModule):
    """A program that counts its calls."""

    calls = 0

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        self.calls += 1
        return super().run(arguments)


def counting(model: CompiledModel) -> Counting:
    module = model.module
    assert isinstance(module, CompiledModule)
    copy = object.__new__(Counting)
    vars(copy).update(vars(module))
    return copy


def test_the_program_of_fixed_sizes_answers_once_it_is_there(model: CompiledModel) -> None:
    general, special = counting(model), counting(model)
    desk = Desk(special)
    hot = HotShapes(general, desk, after=3, is_synchronous=False)
    x = rand(4, 6)
    for _ in range(5):
        hot.run([x])
    assert (general.calls, special.calls, desk.asked) == (5, 0, [{0: 4, 1: 6}])
    desk.deliver()
    hot.run([x])
    hot.run([rand(4, 7)])
    assert (general.calls, special.calls) == (6, 1)
    assert hot.stats()["specialized"] == 1


def test_a_request_that_can_not_be_taken_on_is_made_again_later(model: CompiledModel) -> None:
    special = counting(model)
    desk = Desk(special)
    desk.is_busy = True
    hot = HotShapes(counting(model), desk, after=3, is_synchronous=False)
    for _ in range(5):
        hot.run([rand(4, 6)])
    assert len(desk.asked) == 1
    desk.is_busy = False
    hot.run([rand(4, 6)])
    desk.deliver()
    hot.run([rand(4, 6)])
    assert (len(desk.asked), special.calls, hot.stats()["failed"]) == (2, 1, 0)


def test_in_synchronous_mode_the_next_call_has_it(model: CompiledModel) -> None:
    general, special = counting(model), counting(model)
    hot = HotShapes(general, Desk(special), after=2, is_synchronous=True)
    for _ in range(3):
        hot.run([rand(4, 6)])
    assert (general.calls, special.calls) == (2, 1)


@pytest.mark.parametrize("is_synchronous", [True, False])
def test_a_failure_is_told_once_and_harms_nothing(model: CompiledModel, is_synchronous: bool) -> None:
    desk = Desk(None)
    hot = HotShapes(counting(model), desk, after=1, is_synchronous=is_synchronous)

    def calls() -> None:
        for width in (4, 4, 5, 6):
            x = rand(2, width)
            (result,) = hot.run([x])
            desk.deliver()
            torch.testing.assert_close(result, program(x))

    with pytest.warns(UserWarning, match="no program today") as caught:
        calls()
    assert len(caught) == 1
    assert len(desk.asked) == 3
    assert hot.stats()["failed"] == 3


def test_a_refused_call_counts_for_nothing(model: CompiledModel) -> None:
    desk = Desk(counting(model))
    hot = HotShapes(counting(model), desk, after=1, is_synchronous=True)
    with pytest.raises(UserError, match="float32"):
        hot.run([torch.zeros(2, 3, dtype=torch.int64)])
    assert not desk.asked


def test_the_number_of_programs_is_bounded(model: CompiledModel) -> None:
    special = counting(model)
    hot = HotShapes(counting(model), Desk(special), after=1, is_synchronous=True)
    for width in range(1, 40):
        hot.run([rand(1, width)])
    assert hot.stats()["specialized"] == 16
    special.calls = 0
    hot.run([rand(1, 39)])
    assert special.calls == 1
    hot.run([rand(1, 1)])
    assert special.calls == 1


def test_threads_ask_for_sizes_once(model: CompiledModel) -> None:
    desk = Desk(counting(model))
    hot = HotShapes(counting(model), desk, after=5, is_synchronous=False)
    threads = [Thread(target=lambda: [hot.run([rand(2, 3)]) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(desk.asked) == 1


@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_a_model_with_hot_shapes_answers_as_before(weights: Any) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU()).eval()
    model = dlcb.compile(net, (rand(3, 8),), weights=weights, hot_shapes="sync", hot_after=2)
    x = rand(5, 8)
    before = [model(x) for _ in range(2)]
    after = [model(x) for _ in range(2)]
    assert model.stats()["specialized"] == 1
    for result in (*before, *after):
        torch.testing.assert_close(result, net(x))
    with torch.no_grad():
        next(net.parameters()).mul_(2)
    if weights == "frozen":
        model.refresh_weights()
    torch.testing.assert_close(model(x), net(x))
    with pytest.raises(UserError, match=r"input\.shape\[1\] is 9"):
        model(rand(5, 9))


def test_without_hot_shapes_there_are_none(model: CompiledModel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(70):
            model(rand(2, 3))
    assert "specialized" not in model.stats()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hot_shapes": "always"}, "'off', 'on', 'sync'"),
        ({"hot_shapes": "on", "hot_after": 0}, "at least 1"),
        ({"hot_shapes": "on", "target": "reference"}, "no kernels"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UserError, match=text):
        dlcb.compile(program, (rand(2, 3),), **options)
