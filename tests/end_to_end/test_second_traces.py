"""Python that branches on sizes: each way is traced when a call goes it, behind one interface."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.errors import UserError
from dlcb.runtime.branches import BranchingModel
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import compiled, same_answers

Program = Callable[..., Any]


def by_length(x: Tensor) -> Tensor:
    return torch.cumsum(x, 1) * 2 if x.shape[1] > 512 else x.relu()


def by_count(x: Tensor) -> Any:
    count = x.shape[0]
    if count == 1:
        return x.sum(0)
    if count == 2:
        return x.mean(0), count
    return {"most": x.amax(0)} if count > 10 else [x.amin(0)]


def squeezed(x: Tensor) -> Tensor:
    return x.squeeze() * 2


def squeezed_first(x: Tensor) -> Tensor:
    return x.squeeze(0) + 1


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.short, self.long = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.long(x.cumsum(0)) if x.shape[0] > 16 else self.short(x))


PROGRAMS: dict[str, tuple[Program, tuple[int, ...], list[tuple[int, ...]], int]] = {
    "length": (by_length, (2, 8), [(3, 9), (3, 600), (1, 513), (1, 512), (2, 0), (0, 700)], 2),
    "count": (by_count, (2, 8), [(1, 5), (2, 5), (3, 5), (10, 5), (11, 5), (50, 5), (1, 7)], 4),
    "squeeze": (squeezed, (1, 8), [(1, 3), (4, 5), (4, 1), (1, 1), (0, 3), (7, 5)], 4),
    "squeeze one": (squeezed_first, (1, 8), [(1, 3), (4, 5), (0, 3)], 2),
    "modules": (Gated().eval(), (3, 4), [(3, 4), (17, 4), (16, 4), (100, 4), (1, 4)], 2),
}


def rand(*shape: int) -> Tensor:
    return torch.randn(shape)


def drawn(*shape: int) -> tuple[Tensor]:
    return (rand(*shape),)


def ways(model: CompiledModel) -> list[CompiledModel]:
    assert isinstance(model, BranchingModel)
    return model.branches


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_is_compiled_when_a_call_goes_it(name: str) -> None:
    program, example, shapes, count = PROGRAMS[name]
    model = compiled(program, drawn(*example), name)
    assert len(ways(model)) == 1
    for round_ in range(2):
        for seed, shape in enumerate(shapes):
            same_answers(program, model, drawn, shape, seed + round_)
    assert len(ways(model)) == count
    assert model.explain().count("way ") == count


def test_a_program_without_branches_is_one() -> None:
    assert not isinstance(dlcb.compile(torch.relu, (rand(2, 3),)), BranchingModel)


def test_the_number_of_ways_is_bounded() -> None:
    def program(x: Tensor) -> Tensor:
        for limit in (8, 16, 32, 64):
            if x.shape[0] <= limit:
                return x * limit
        return x

    model = dlcb.compile(program, (rand(3, 2),), branches=3)
    for count in (9, 17, 3, 12, 25):
        x = rand(count, 2)
        torch.testing.assert_close(model(x), program(x))
    with pytest.raises(UserError, match=r"x\.shape\[0\] is 33 .*3 ways through the program are compiled"):
        model(rand(33, 2))
    assert len(ways(model)) == 3


def test_what_the_program_refuses_is_refused_once_and_for_all() -> None:
    traces: list[int] = []

    def program(x: Tensor) -> Tensor:
        traces.append(1)
        assert x.shape[0] % 2 == 0, "an even number"
        return x.reshape(2, -1)

    model = dlcb.compile(program, (rand(4, 2),))
    before = len(traces)
    for _ in range(3):
        with pytest.raises(UserError, match="even"):
            model(rand(5, 2))
    tried = len(traces) - before
    with pytest.raises(UserError, match="even"):
        model(rand(5, 2))
    assert len(traces) - before == tried


@pytest.mark.parametrize("count", [4, 5, 600])
def test_a_wrong_dtype_or_rank_goes_no_way(count: int) -> None:
    model = dlcb.compile(by_length, (rand(2, 8),))
    with pytest.raises(UserError, match="float32"):
        model(torch.zeros(2, count, dtype=torch.int64))
    with pytest.raises(UserError, match="expected rank 2"):
        model(rand(2, count, 1))
    assert len(ways(model)) == 1


def test_what_no_comparison_explains_is_traced_no_second_time() -> None:
    traces: list[int] = []
    layer = nn.Linear(4, 4)

    def program(x: Tensor) -> Tensor:
        traces.append(1)
        return layer(x) if x.shape[0] > 2 else x

    model = dlcb.compile(program, (rand(8, 4),))
    before = len(traces)
    with pytest.raises(UserError, match=r"x\.shape\[1\] is 5"):
        model(rand(8, 5))
    assert len(traces) == before


def test_threads_that_go_another_way_at_once_compile_it_once() -> None:
    model = compiled(by_length, drawn(2, 8))
    results: dict[int, bool] = {}

    def call(number: int) -> None:
        x = rand(2, 600 + number)
        results[number] = torch.equal(model(x), by_length(x)) or torch.allclose(model(x), by_length(x), atol=1e-4)

    threads = [Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)
    assert len(ways(model)) == 2


def test_a_saved_file_holds_all_ways_and_each_weight_once(tmp_path: Path) -> None:
    class Net(Gated):
        def forward(self, x: Tensor) -> Tensor:
            return self.norm(self.short(x).relu() if x.shape[0] > 16 else self.short(x))

    net = Net().eval()
    model = dlcb.compile(net, (rand(3, 4),))
    model(rand(20, 4))
    model.save(tmp_path / "net.dlcb")
    loaded = dlcb.load(tmp_path / "net.dlcb")
    for count in (2, 17, 5):
        x = rand(count, 4)
        assert torch.equal(loaded(x), model(x))
    first, second = ways(loaded)
    assert first.weights["short.weight"].data_ptr() == second.weights["short.weight"].data_ptr()


def test_a_saved_file_refuses_a_way_that_it_does_not_hold(tmp_path: Path) -> None:
    model = dlcb.compile(by_count, (rand(2, 8),))
    model(rand(1, 8))
    model.save(tmp_path / "count.dlcb")
    loaded = dlcb.load(tmp_path / "count.dlcb")
    assert torch.equal(loaded(rand(1, 3).fill_(1)), torch.ones(3))
    with pytest.raises(UserError, match=r"x\.shape\[0\] is 5"):
        loaded(rand(5, 3))


def test_frozen_weights_are_refreshed_on_every_way() -> None:
    net = Gated().eval()
    model = dlcb.compile(net, (rand(3, 4),), weights="frozen")
    inputs = rand(3, 4), rand(20, 4)
    for x in inputs:
        torch.testing.assert_close(model(x), net(x))
    with torch.no_grad():
        net.norm.weight.fill_(3.0)
    model.refresh_weights()
    for x in inputs:
        torch.testing.assert_close(model(x), net(x))


def asks_twice(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] == 5 and x.shape[1] == 4 else x * 3


def asks_the_second_only_where_the_first_holds(x: Tensor) -> Tensor:
    if x.shape[0] < 3 and x.shape[1] == 7:
        return x * 2
    return x * 3


def compares_all_sizes(x: Tensor) -> Tensor:
    return x * 2 if list(x.shape) == [5, 4] or x.size() == torch.Size([2, 7]) else x * 3


def counts_answers(x: Tensor) -> Tensor:
    return x * 2 if x.shape.count(4) == 2 or (x.shape[0] == 7) + (x.shape[1] == 7) == 2 else x * 3


def compares_what_it_computed(x: Tensor) -> Tensor:
    y = x + 1
    return y * 2 if list(y.shape) == [5, 4] else y * 3


@pytest.mark.parametrize("example", [(3, 4), (5, 4), (4, 4)])
@pytest.mark.parametrize(
    "program",
    [
        asks_twice,
        asks_the_second_only_where_the_first_holds,
        compares_all_sizes,
        counts_answers,
        compares_what_it_computed,
    ],
)
def test_questions_that_only_some_sizes_lead_to_are_checked(program: Program, example: tuple[int, int]) -> None:
    model = compiled(program, drawn(*example))
    for shape in [(3, 4), (5, 4), (5, 6), (1, 4), (1, 7), (2, 7), (2, 6), (7, 7), (4, 4)]:
        x = rand(*shape)
        assert torch.equal(model(x), program(x)), shape


def test_a_program_that_calls_itself_compiled_is_refused() -> None:
    def program(x: Tensor) -> Tensor:
        return x if x.shape[0] <= 1 else compiled_program(x[1:]) + 1

    compiled_program = dlcb.compile(program)
    with pytest.raises(UserError, match="compiled already"):
        compiled_program(rand(3, 2))
    net = Gated().eval()
    model = dlcb.compile(net, (rand(3, 4),))
    net.forward = model  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UserError):
        model(rand(20, 4))


def test_what_eager_refuses_of_one_layout_is_taken_of_another() -> None:
    def program(x: Tensor) -> Tensor:
        return x.view(-1) if x.shape[0] > 8 else x.relu().view(-1)

    model = dlcb.compile(program, (rand(3, 4),))
    with pytest.raises(UserError, match="view"):
        model(rand(4, 20).t())
    x = rand(20, 4)
    assert torch.equal(model(x), program(x))


def test_an_integer_of_another_kind_goes_no_way() -> None:
    def program(x: Tensor, n: int) -> Tensor:
        return x * n if n > 0 else x - n

    model = dlcb.compile(program, (rand(3), 3), branches=2)
    for _ in range(3):
        with pytest.raises(UserError, match="n is -2"):
            model(rand(3), -2)
    x = rand(3)
    assert torch.equal(model(x, 0), program(x, 0))
