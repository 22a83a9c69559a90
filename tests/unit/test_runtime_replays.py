"""Compiled models through recorded calls: what the graphs of a GPU do, replayed on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.runtime import attention, beside, library
from dlcb.runtime.beside import LANES
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.session import QUICK_CALLS, Session
from dlcb.tests.replay import ReplayMachine, WaitNode


class _Net(nn.Module):
    """A convolution that a batch norm folds into, pooling, and a linear layer: kernels and library calls in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.relu(self.norm(self.conv(x)))
        return self.head(y.mean((2, 3))), y


def _net() -> _Net:
    torch.manual_seed(0)
    net = _Net().eval()
    for p in (net.norm.running_mean, net.norm.running_var):
        assert p is not None
        p.uniform_(0.5, 1.5)
    return net


Replayed = Callable[[Any], list[ReplayMachine]]


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Replayed:
    """Lets a model's sessions record; their machines in the order in which the sessions were made."""

    def turn_on(model: Any) -> list[ReplayMachine]:
        module: CompiledModule = model.module
        machines: list[ReplayMachine] = []
        original = Session.__init__

        def init(session: Session, *args: Any, **kwargs: Any) -> None:
            program, plan, arguments, weights, target, stream, _, limits = args
            machine = ReplayMachine(target.kernels)
            machines.append(machine)
            target = type(target)(target.device, machine, target.allocator)
            if weights.derivation is not None:
                weights.derivation._target = target
            original(session, program, plan, arguments, weights, target, stream, True, limits, lambda _: machine)

        monkeypatch.setattr(Session, "__init__", init)
        assert module.device.type == "cpu"
        return machines

    return turn_on


@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_a_model_is_right_in_every_replay(replayed: Replayed, weights: Any) -> None:
    net = _net()
    model = dlcb.compile(net, (torch.randn(2, 3, 9, 7),), weights=weights, target="cpu")
    machines = replayed(model)
    with torch.no_grad():
        for _ in range(4):
            for shape in ((1, 3, 8, 8), (3, 3, 5, 9), (2, 3, 16, 4)):
                x = torch.randn(shape)
                for result, expected in zip(model(x), net(x), strict=True):
                    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    assert [m.records for m in machines] == [3]
    assert [m.replays for m in machines] == [9]


def test_live_weights_are_seen_in_replays(replayed: Replayed) -> None:
    net = _net()
    model = dlcb.compile(net, (torch.randn(2, 3, 9, 7),), weights="live", target="cpu")
    machines = replayed(model)
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        for _ in range(5):
            for parameter in net.parameters():
                parameter.add_(0.1)
            torch.testing.assert_close(model(x)[0], net(x)[0], rtol=1e-4, atol=1e-5)
    assert machines[0].replays == 4


@pytest.mark.parametrize("stride", [1, 2, 100])
def test_each_weight_is_derived_before_the_call_needs_it(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """More weights than there are lanes; what is on them is done as late as may be."""
    monkeypatch.setattr(beside, "STRIDE", stride)

    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(
                nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)) for _ in range(19)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = x + torch.relu(layer(x))
            return x

    net = Deep().eval()
    model = dlcb.compile(net, (torch.randn(2, 4, 9, 7),), weights="live", target="cpu")
    machines = replayed(model)
    x = torch.randn(2, 4, 6, 6)
    with torch.no_grad():
        for _ in range(4):
            for parameter in net.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
            torch.testing.assert_close(model(x), net(x), rtol=1e-4, atol=1e-4)
    (machine,) = machines
    assert (machine.replays, machine.branched) == (3, LANES)
    (graph,) = machine.graphs
    waits = sum(isinstance(node, WaitNode) for node in graph[0])
    assert waits == LANES if stride == 100 else waits > LANES, "the call waits in the midst of it"
    assert all(map(len, graph))


def test_attention_begins_with_a_routine_that_needs_no_plan(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later it is recorded again, with the other one."""
    quick: list[tuple[int, ...]] = []

    def noted(q: Tensor, *others: Any) -> Tensor:
        quick.append(tuple(q.shape))
        return attention.quick_attention(q, *others)

    monkeypatch.setattr(library, "quick_attention", noted)

    def attend(x: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(torch.sin(x), x, x) + 1

    model = dlcb.compile(attend, (torch.randn(2, 3, 9, 8),), target="cpu")
    machines = replayed(model)
    for number in range(QUICK_CALLS + 8):
        x = torch.randn(2, 3, 70, 8)
        torch.testing.assert_close(model(x), attend(x))
        assert machines[0].records == (0 if number == 0 else 1 if number <= QUICK_CALLS else 2), number
    assert quick == [(2, 3, 70, 8)] * 2, "one call, one recording"


def test_a_parameter_with_other_memory_is_seen_in_replays(replayed: Replayed) -> None:
    net = _net()
    model = dlcb.compile(net, (torch.randn(2, 3, 9, 7),), weights="live", target="cpu")
    machines = replayed(model)
    x = torch.randn(2, 3, 6, 6)
    with torch.no_grad():
        for n in range(6):
            if n >= 3:
                net.conv.weight.data = torch.randn_like(net.conv.weight)
            torch.testing.assert_close(model(x)[0], net(x)[0], rtol=1e-4, atol=1e-5)
    assert (machines[0].records, machines[0].replays) == (1, 5)


def test_results_of_replays_stay(replayed: Replayed) -> None:
    net = _net()
    model = dlcb.compile(net, (torch.randn(2, 3, 9, 7),), weights="frozen", target="cpu")
    replayed(model)
    x = torch.randn(2, 3, 6, 6)
    results = [model(x + n) for n in range(6)]
    with torch.no_grad():
        for n, result in enumerate(results):
            torch.testing.assert_close(result, net(x + n), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_threads_on_streams_of_their_own_do_not_meet(
    replayed: Replayed, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = _net()
    model = dlcb.compile(net, (torch.randn(2, 3, 9, 7),), weights=weights, target="cpu")
    machines = replayed(model)
    streams = threading.local()
    assert isinstance(model.module, CompiledModule)
    monkeypatch.setattr(model.module._place, "stream", lambda: streams.handle)
    wrong: list[Any] = []

    def work(stream: int) -> None:
        streams.handle = stream
        generator = torch.Generator().manual_seed(stream)
        try:
            with torch.no_grad():
                for n in (1, 1, 1, 2, 2, 2, 1, 2):
                    x = torch.randn(n, 3, 5, 5, generator=generator)
                    torch.testing.assert_close(model(x), net(x), rtol=1e-4, atol=1e-5)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(stream % 4,)) for stream in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(machines) == 4
