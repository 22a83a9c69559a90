"""How a compiled model is called: keywords and constants, weights that change, modules in threads, names of dims."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.errors import UserError
from dlcb.tests.end_to_end.agreement import compiled, rand


def close(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 10), nn.Linear(10, 6)
        self.norm = nn.BatchNorm1d(6)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)  # pyright: ignore[reportArgumentType]

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.down(torch.relu(self.up(x))))


def test_arguments_go_by_position_or_by_name() -> None:
    def program(x: Tensor, y: Tensor, *rest: Tensor, scale: float = 1.0, mask: Tensor | None = None) -> Tensor:
        total = x * scale + y + sum(rest)
        return total if mask is None else total * mask

    def function(x: Tensor, y: Tensor, scale: float = 1.0, mask: Tensor | None = None) -> Tensor:
        return program(x, y, scale=scale, mask=mask)

    model = compiled(function, {"x": rand(3, 4), "y": rand(3, 4), "mask": rand(4)})
    for n in (3, 1, 0, 5):
        x, y, mask = rand(n, 4), rand(n, 4), rand(4)
        expected = function(x, y, mask=mask)
        close(model(x, y, mask=mask), expected)
        close(model(x=x, mask=mask, y=y), expected)
        close(model(x, mask=mask, y=y), expected)
    many = compiled(program, (rand(3, 4), rand(3, 4), rand(3, 4), rand(3, 4)))
    given = [rand(5, 4) for _ in range(4)]
    close(many(*given), program(*given))


def test_constants_are_compiled_in_and_guarded() -> None:
    def program(x: Tensor, scale: float, double: bool, mode: str, nothing: None) -> Tensor:
        y = x * scale if mode == "scale" else x + scale
        return y * 2 if double else y

    model = compiled(program, (rand(3, 4), 0.5, True, "scale", None))
    x = rand(5, 2)
    close(model(x, 0.5, True, "scale", None), x)
    for wrong, text in (
        ((x, 0.6, True, "scale", None), "scale is 0.6, compiled for 0.5"),
        ((x, 0.5, False, "scale", None), "double is False, compiled for True"),
        ((x, 0.5, 1, "scale", None), "double is 1, compiled for True"),
        ((x, 0.5, True, "shift", None), "mode is 'shift', compiled for 'scale'"),
        ((x, 0.5, True, "scale", 0), "nothing is 0, compiled for None"),
        ((x, 0.5, True, "scale", x), "nothing is"),
    ):
        with pytest.raises(UserError, match=text):
            model(*wrong)


def test_nested_arguments() -> None:
    def program(parts: dict[str, Any], pair: tuple[Tensor, list[Tensor]]) -> Tensor:
        return parts["a"] + parts["b"]["c"] * pair[0] + sum(pair[1])

    def arguments(n: int) -> tuple[Any, ...]:
        return {"a": rand(n, 3), "b": {"c": rand(n, 1)}}, (rand(3), [rand(n, 3), rand(n, 3)])

    model = compiled(program, arguments(4))
    for n in (4, 1, 0, 7):
        given = arguments(n)
        close(model(*given), program(*given))


def test_live_weights_are_seen_whatever_changes_them() -> None:
    network = Mlp().eval()
    model = compiled(network, (rand(3, 6),))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)

    def step() -> None:
        network.train()
        network(rand(8, 6)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        network.eval()

    def data() -> None:
        network.up.weight.data = torch.randn(10, 6)

    def in_place() -> None:
        with torch.no_grad():
            network.down.bias.add_(1)
            network.norm.running_mean.mul_(2)  # pyright: ignore[reportOptionalMemberAccess]

    def loaded() -> None:
        network.load_state_dict(Mlp().state_dict())

    for change in (step, data, in_place, loaded, step):
        change()
        for n in (2, 1, 0, 5):
            x = rand(n, 6)
            with torch.no_grad():
                close(model(x), network(x))


def test_what_is_folded_of_frozen_weights_stays_until_it_is_refreshed() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)).eval()
    model = compiled(network, (rand(2, 3, 5, 5),), weights="frozen")
    x = rand(3, 3, 6, 4)
    with torch.no_grad():
        before = network(x)
        close(model(x), before)
        network[1].weight.mul_(3)  # pyright: ignore[reportCallIssue, reportArgumentType]
        network[1].running_mean.add_(1)  # pyright: ignore[reportCallIssue, reportArgumentType, reportOptionalMemberAccess]
        close(model(x), before)
        model.refresh_weights()
        close(model(x), network(x))


def test_tied_weights_are_one_weight() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids: Tensor) -> Tensor:
            return self.head(torch.tanh(self.embed(ids)))

    network = Tied().eval()
    model = compiled(network, (torch.randint(0, 11, (2, 3)),))
    for shape in ((2, 3), (1, 1), (0, 3), (4, 7)):
        ids = torch.randint(0, 11, shape)
        with torch.no_grad():
            network.embed.weight.mul_(1.1)
            close(model(ids), network(ids))


def test_buffers_that_the_program_updates() -> None:
    class Counter(nn.Module):
        count: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.count += x.sum(0)
            return x * self.count

    network, twin = Counter().eval(), Counter().eval()
    model = compiled(network, (rand(4, 3),))
    network.count.zero_()
    for n in (4, 1, 0, 6):
        x = rand(n, 3)
        close(model(x), twin(x))
        close(network.count, twin.count)


def test_results_are_never_overwritten_by_a_later_call() -> None:
    model = compiled(Mlp().eval(), (rand(3, 6),))
    first = model(rand(3, 6))
    kept = first.clone()
    model(rand(3, 6))
    assert torch.equal(first, kept)


def test_two_modules_in_threads() -> None:
    networks = [Mlp().eval() for _ in range(2)]
    models = [compiled(network, (rand(3, 6),)) for network in networks]
    wrong: list[str] = []

    def work(number: int) -> None:
        for i in range(60):
            x = rand(1 + (i + number) % 7, 6)
            for model, network in zip(models, networks, strict=True):
                with torch.no_grad():
                    if not torch.allclose(model(x), network(x), rtol=1e-4, atol=1e-5):
                        wrong.append(f"thread {number}, call {i}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_named_dims_vary_and_no_others() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    model = dlcb.compile(program, (rand(3, 4), rand(3, 4)), dynamic={"x": {0: "batch"}, "y": {0: "batch"}})
    assert [state.partition(" ")[0] for state in model.dimensions().values()] == ["free", "pinned", "equal", "pinned"]
    close(model(rand(7, 4) * 0 + 1, torch.ones(7, 4)), torch.full((7, 4), 2.0))
    with pytest.raises(UserError, match=r"x.shape\[1\] is 5 but must be 4: not named in dynamic"):
        model(rand(7, 5), rand(7, 5))
    static = dlcb.compile(program, (rand(3, 4), rand(3, 4)), dynamic=False)
    with pytest.raises(UserError, match=r"x.shape\[0\] is 2 but must be 3: dynamic=False"):
        static(rand(2, 4), rand(2, 4))


def test_keyword_arguments_come_in_any_order() -> None:
    def program(x: Tensor, y: Tensor, *, z: Tensor) -> Tensor:
        return x - 2 * y + 3 * z if x.shape[0] > 3 else x - z

    for compiled_by_name in (True, False):
        x, y, z = rand(4), rand(4), rand(4)
        given = {"z": z, "y": y, "x": x}
        model = dlcb.compile(program, given) if compiled_by_name else dlcb.compile(program)
        for size in (4, 6, 2, 3):
            x, y, z = rand(size), rand(size), rand(size)
            expected = program(x, y, z=z)
            torch.testing.assert_close(model(y=y, z=z, x=x), expected)
            torch.testing.assert_close(model(x, z=z, y=y), expected)
            torch.testing.assert_close(model(x, y, z=z), expected)


def test_keys_of_a_dict_come_in_any_order() -> None:
    def program(parts: dict[str, Tensor]) -> Tensor:
        return parts["x"] - 2 * parts["y"]

    x, y = rand(3), rand(3)
    for example in ({"x": x, "y": y}, {"y": y, "x": x}):
        model = dlcb.compile(program, (example,))
        for given in ({"x": x, "y": y}, {"y": y, "x": x}):
            torch.testing.assert_close(model(given), program(given))
        with pytest.raises(UserError, match="the arguments are"):
            model({"x": x, "z": y})
