"""Programs without examples: one compile for each kind of arguments, for all sizes; bounded, shared by threads."""

from threading import Barrier, Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.errors import MachineError, UnsupportedError, UserError
from dlcb.frontend.jit import JitModel
from dlcb.tests.end_to_end.agreement import same_answers


def rand(*shape: int) -> Tensor:
    return torch.randn(shape)


def normalized(x: Tensor, y: Tensor | None = None, power: int = 1, scale: float = 1.0) -> Tensor:
    return torch.softmax(x * scale + (0 if y is None else y * power), -1)


def drawn(*shape: int) -> tuple[Tensor]:
    return (rand(*shape),)


def test_one_compile_serves_all_sizes_of_a_rank() -> None:
    model = dlcb.compile(normalized)
    assert isinstance(model, JitModel)
    for shape in ((3, 5), (1, 1), (0, 4), (7, 64), (2, 3, 5), (1, 0, 2), (4,), (1,)):
        for seed in range(2):
            same_answers(normalized, model, drawn, shape, seed)
    assert (model.stats()["compiles"], model.stats()["kinds"], model.stats()["calls"]) == (3, 3, 16)
    assert model.compile_seconds > 0
    assert "3 kinds" in model.explain()


def test_a_kind_is_a_rank_a_dtype_a_layout_and_a_structure() -> None:
    model = dlcb.compile(normalized)
    image = rand(2, 3, 4, 5)
    calls: list[tuple[tuple[Any, ...], dict[str, Any], int]] = [
        ((image,), {}, 1),
        ((rand(3, 2, 4, 4),), {}, 1),
        ((image.to(memory_format=torch.channels_last),), {}, 2),
        ((image.double(),), {}, 3),
        ((image[:1].expand(6, -1, -1, -1),), {}, 4),
        ((image, image), {}, 5),
        ((image,), {"y": image}, 5),
        ((), {"y": image, "x": image}, 5),
        ((image, image, 3), {}, 6),
        ((image, image, 5), {}, 6),
        ((image,), {"scale": 0.5}, 7),
        ((image,), {"scale": 0.25}, 8),
    ]
    for args, kwargs, compiles in calls:
        torch.testing.assert_close(model(*args, **kwargs), normalized(*args, **kwargs))
        assert model.stats()["compiles"] == compiles


@pytest.mark.parametrize("numbers", [(3, 5), (-3, -5), (2**39, 2**39 + 1), (2**50, 2**51), (2**61, 2**62)])
def test_integers_of_any_size_and_sign(numbers: tuple[int, ...]) -> None:
    def program(x: Tensor, number: int) -> Tensor:
        return x * number

    x = rand(3)
    model = dlcb.compile(program)
    for number in numbers:
        torch.testing.assert_close(model(x, number), program(x, number))
    assert model.stats()["compiles"] == (1 if 0 <= numbers[0] < 2**40 else len(numbers))


def test_an_integer_that_eager_does_not_take_is_refused() -> None:
    with pytest.raises(UserError, match="int too big"):
        dlcb.compile(torch.mul)(rand(3), 2**70)


def test_a_negative_zero_is_another_constant() -> None:
    def program(x: Tensor, zero: float) -> Tensor:
        return x / zero

    x = torch.ones(2)
    model = dlcb.compile(program)
    for zero in (0.0, -0.0, 0.0):
        assert torch.equal(model(x, zero), x / torch.tensor(zero))
    assert model.stats()["compiles"] == 2
    with pytest.raises(UserError, match=r"zero is -0\.0, compiled for 0\.0"):
        dlcb.compile(program, (x, 0.0))(x, -0.0)


def test_the_kinds_used_last_are_kept() -> None:
    model = dlcb.compile(normalized, kinds=2)
    for rank, compiles, left in ((1, 1, 0), (2, 2, 0), (1, 2, 0), (3, 3, 1), (1, 3, 1), (2, 4, 2)):
        model(rand(*[2] * rank))
        stats = model.stats()
        assert (stats["compiles"], stats["left"], stats["kinds"]) == (compiles, left, min(compiles, 2))


def test_many_threads_that_ask_at_once_compile_once() -> None:
    model = dlcb.compile(normalized)
    start, results = Barrier(6), list[bool]()

    def call() -> None:
        x = rand(3, 5)
        start.wait()
        results.append(torch.allclose(model(x), normalized(x), atol=1e-6))

    threads = [Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6
    assert (model.stats()["compiles"], model.stats()["calls"]) == (1, 6)


def test_a_failure_is_remembered_for_calls_like_it() -> None:
    model = dlcb.compile(lambda x: torch.sort(x)[0])
    errors: list[UnsupportedError] = []
    for _ in range(3):
        with pytest.raises(UnsupportedError, match="sort") as caught:
            model(rand(3))
        errors.append(caught.value)
    assert {str(error) for error in errors} == {str(errors[0])}
    assert len({id(error) for error in errors}) == 3  # each with a traceback of its own
    with pytest.raises(UnsupportedError, match="sort"):
        model(rand(3, 2))
    stats = model.stats()
    assert [stats[k] for k in ("calls", "compiles", "failures", "repeated", "kinds")] == [4, 0, 2, 2, 0]
    assert model.models() == []


def test_other_sizes_of_a_kind_that_failed_are_tried() -> None:
    layer = nn.Linear(4, 3).eval()
    model = dlcb.compile(layer)
    for _ in range(2):
        with pytest.raises(UserError, match="the program fails on its example inputs"):
            model(rand(2, 5))
    x = rand(2, 4)
    torch.testing.assert_close(model(x), layer(x))
    with pytest.raises(UserError, match=r"input\.shape\[1\] is 5"):
        model(rand(2, 5))
    stats = model.stats()
    assert [stats[k] for k in ("calls", "compiles", "failures", "repeated")] == [4, 1, 1, 1]


def test_a_failure_is_forgotten_where_the_program_is_another_and_where_there_are_too_many() -> None:
    layer = nn.Sequential(nn.Linear(4, 3), nn.Dropout())
    model = dlcb.compile(layer, kinds=2)
    with pytest.raises(UserError, match="training mode"):
        model(rand(2, 4))
    layer.eval()
    x = rand(2, 4)
    torch.testing.assert_close(model(x), layer(x))
    other = dlcb.compile(torch.sort, kinds=2)
    for rank, failures in ((1, 1), (2, 2), (3, 3), (3, 3), (1, 4)):
        with pytest.raises(UnsupportedError):
            other(rand(*[2] * rank))
        assert other.stats()["failures"] == failures


def test_what_the_machine_lacks_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = dlcb.compile(normalized), rand(3, 5)
    with monkeypatch.context() as broken:
        broken.setenv("CXX", "no-such-compiler")
        with pytest.raises(MachineError, match="no-such-compiler"):
            model(x)
    torch.testing.assert_close(model(x), normalized(x))


def test_who_waits_for_a_call_that_fails_is_tried_itself() -> None:
    layer = nn.Linear(4, 3).eval()
    model = dlcb.compile(layer)
    start, answers, refused = Barrier(6), list[bool](), list[str]()

    def call(width: int) -> None:
        x = rand(2, width)
        start.wait()
        try:
            answers.append(torch.allclose(model(x), layer(x), atol=1e-6))
        except UserError as error:
            refused.append(str(error))

    threads = [Thread(target=call, args=(width,)) for width in (5, 4, 5, 4, 6, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers, len(refused)) == ([True] * 3, 3)


def test_wrong_sizes_of_a_known_kind_are_refused() -> None:
    layer = nn.Linear(4, 3)
    model = dlcb.compile(layer.eval())
    x = rand(2, 4)
    torch.testing.assert_close(model(x), layer(x))
    with pytest.raises(UserError, match=r"input\.shape\[1\] is 5"):
        model(rand(2, 5))
    assert model.stats()["compiles"] == 1
    with torch.no_grad():
        layer.weight.mul_(2)
    torch.testing.assert_close(model(x), layer(x))


def test_branches_on_sizes_are_ways_of_one_kind() -> None:
    def program(x: Tensor) -> Tensor:
        return x.cumsum(0) if x.shape[0] > 8 else x.relu()

    model = dlcb.compile(program)
    for count in (3, 9, 4, 20):
        x = rand(count, 2)
        torch.testing.assert_close(model(x), program(x))
    assert (model.stats()["compiles"], model.stats()["programs"]) == (1, 2)


def test_nested_arguments_are_told_apart_by_their_structure() -> None:
    def program(parts: Any) -> Tensor:
        return parts["a"] + sum(parts["b"])

    model = dlcb.compile(program)
    for count in (1, 2, 1, 2):
        parts = {"a": rand(3), "b": [rand(3) for _ in range(count)]}
        torch.testing.assert_close(model(parts), program(parts))
    assert model.stats()["compiles"] == 2


@pytest.mark.parametrize("options", [{"kinds": 0}, {"branches": 0}, {"branches": "many"}])
def test_wrong_bounds_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="at least 1"):
        dlcb.compile(normalized, **options)
