"""Recorded calls, with a driver that records and replays on the CPU: kernels as nodes that can be updated, torch ops as
they were."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dlcb.dialects.host.attributes import InputAttr, WeightAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.types import f32, i64
from dlcb.lowering.host_to_json import program_to_json
from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.call import Target
from dlcb.runtime.graphs import graph_layout
from dlcb.runtime.memory import Allocator
from dlcb.runtime.plan import CallPlan, Launch, build_plan
from dlcb.runtime.program import compile_program
from dlcb.runtime.rows import check_program
from dlcb.runtime.session import Limits, Session
from dlcb.runtime.weights import Weights

CPU = torch.device("cpu")
_ARGUMENTS = {"double": 3, "bump": 2}
Node = list[int]


def _floats(address: int, count: int) -> Any:
    return (ctypes.c_float * count).from_address(address)


def _double(values: Node) -> None:
    source, target, count = values
    for i, value in enumerate(_floats(source, count)):
        _floats(target, count)[i] = value * 2


def _bump(values: Node) -> None:
    address, count = values
    for i, value in enumerate(_floats(address, count)):
        _floats(address, count)[i] = value + 1


_RUN: dict[str, Callable[[Node], None]] = {"double": _double, "bump": _bump}


class _Machine:
    """Kernels and graph driver in one: while it records, launches become nodes and torch ops are noted."""

    def __init__(self) -> None:
        self.recording: list[Any] | None = None
        self.caller_is_recording = False
        self.launches = self.records = self.replays = self.updates = 0

    def function(self, name: str) -> str:
        return name

    def activate(self) -> None: ...

    def launch(self, function: str, blocks: int, threads: int, pointers: int, stream: int) -> None:
        node = (function, self._values(function, pointers))
        if self.recording is None:
            self.launches += 1
            _RUN[function](node[1])
        else:
            self.recording.append(node)

    def caller_records(self) -> bool:
        return self.caller_is_recording

    def record(self, body: Callable[[int], None]) -> list[Any]:
        self.records += 1
        self.recording = graph = []
        with _Recorder(graph):
            body(1)
        self.recording = None
        return graph

    def last_node(self, stream: int) -> Node:
        assert self.recording is not None
        return self.recording[-1][1]

    def update(self, graph: Any, node: Node, function: str, step: Launch, pointers: int) -> None:
        self.updates += 1
        node[:] = self._values(function, pointers)

    def replay(self, graph: list[Any]) -> None:
        self.replays += 1
        for what, *rest in graph:
            if isinstance(what, str):
                _RUN[what](rest[0])
            else:
                _run_again(what, *rest)

    def _values(self, function: str, pointers: int) -> Node:
        array = (ctypes.c_uint64 * _ARGUMENTS[function]).from_address(pointers)
        return [ctypes.c_uint64.from_address(address).value for address in array]


class _Recorder(TorchDispatchMode):
    def __init__(self, graph: list[Any]) -> None:
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if "empty" not in str(func):
            self.graph.append((func, args, kwargs or {}, result))
        return result


def _run_again(func: Any, args: Any, kwargs: Any, result: Any) -> None:
    again = func(*args, **kwargs)
    if isinstance(result, Tensor) and again.data_ptr() != result.data_ptr():
        result.copy_(again)


def _variant(b: HostBuilder, kernel: str, count: Any) -> list[Variant]:
    return [Variant(kernel, 1, b.truth(True), b.constant(1), [(count, i64)])]


def _mixed_program() -> Any:
    """x, y, cache, w → out = 2x (a kernel's), z = (2x) @ w (a library call's `out`), p = cache_after @ y (allocated),
    cache += 1."""
    arguments = [
        InputAttr.make("x", f32, 2),
        InputAttr.make("y", f32, 2),
        InputAttr.make("cache", f32, 2, updated=True),
        WeightAttr.make("w", f32, [3, 3], [3, 1]),
    ]
    b = HostBuilder("mixed", arguments)
    n = b.size("x", 0)
    count = b.mul(n, 3)
    x, y, cache, w = b.argument("x"), b.argument("y"), b.argument("cache"), b.weight("w")
    arena = b.arena(b.mul(count, 4))
    temporary = b.buffer(arena, 0, [n, 3], [3, 1], f32)
    b.launch([x, temporary], _variant(b, "double", count))
    out = b.output([n, 3], [3, 1], f32)
    b.launch([x, out], _variant(b, "double", count))
    z = b.output([n, 3], [3, 1], f32)
    b.library_into(z, "matmul", [temporary, w], {})
    b.launch([cache], _variant(b, "bump", b.constant(9)))
    p = b.library("matmul", [cache, y], {}, f32)
    program = b.finish([out, z, p, cache, b.view(p, 3, [3], [1])])
    program.verify()
    return program_to_json(program)


class _Setting:
    def __init__(self) -> None:
        program = check_program(_mixed_program())
        self.machine = _Machine()
        target = Target(CPU, self.machine, Allocator())
        self.w = torch.randn(3, 3)
        self.arguments = CallerArguments(program, CPU)
        weights = Weights({"w": self.w}, program, None, target, "live")
        self.session = Session(
            program,
            compile_program(program),
            self.arguments,
            weights,
            target,
            0,
            True,
            Limits(plans=8, graphs=2),
            lambda device: self.machine,
        )

    def check(self, n: int, cache: Tensor) -> list[Tensor]:
        """One call at that size, all of its results compared with torch."""
        x, y = torch.randn(n, 3), torch.randn(3, 3)
        expected_cache = cache + 1
        results: list[Any] = self.session.run(self.arguments.key([x, y, cache]), [x, y, cache])
        out, z, p, same, row = results
        torch.testing.assert_close(out, 2 * x)
        torch.testing.assert_close(z, 2 * x @ self.w)
        torch.testing.assert_close(p, expected_cache @ y)
        torch.testing.assert_close(row, p[1])
        assert same is cache
        torch.testing.assert_close(cache, expected_cache)
        return results


@pytest.fixture
def setting() -> _Setting:
    return _Setting()


def test_the_first_call_launches_the_second_records_and_later_ones_replay(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    machine = setting.machine
    for records, replays in ((0, 0), (1, 1), (1, 2), (1, 3)):
        setting.check(2, cache)
        assert (machine.records, machine.replays) == (records, replays)
    assert machine.launches == 3
    setting.check(4, cache)
    assert machine.records == 1


def test_results_of_a_replay_are_not_touched_by_the_next(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    for _ in range(2):
        setting.check(2, cache)
    results = setting.check(2, cache)
    kept = [r.clone() for r in results]
    setting.check(2, cache)
    for number in (0, 1, 2, 4):
        torch.testing.assert_close(results[number], kept[number])


def test_only_kernel_nodes_of_moved_memory_are_updated(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    x, y = torch.randn(2, 3), torch.randn(3, 3)
    kept: list[Any] = []
    for _ in range(2):
        kept.append(setting.session.run(setting.arguments.key([x, y, cache]), [x, y, cache]))
    setting.machine.updates = 0
    kept.append(setting.session.run(setting.arguments.key([x, y, cache]), [x, y, cache]))
    assert setting.machine.updates == 1
    x = torch.randn(2, 3)
    kept.append(setting.session.run(setting.arguments.key([x, y, cache]), [x, y, cache]))
    assert setting.machine.updates == 3


def test_an_updated_argument_that_a_library_reads_is_not_copied_and_another_one_is_launched_plainly(
    setting: _Setting,
) -> None:
    first, second = torch.zeros(3, 3), torch.zeros(3, 3)
    for _ in range(3):
        setting.check(2, first)
    launches = setting.machine.launches
    setting.check(2, second)
    assert setting.machine.launches == launches + 3
    setting.check(2, second)
    assert setting.machine.records == 2


def test_a_weight_that_moved_is_launched_plainly_and_recorded_anew(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    for _ in range(3):
        setting.check(2, cache)
    old = setting.w.data
    setting.w.data = torch.randn(3, 3)
    for _ in range(3):
        setting.check(2, cache)
    assert setting.machine.records == 2
    assert old.data_ptr() != setting.w.data_ptr()


def test_a_plan_that_graphs_never_fit_is_not_recorded_for_ever(setting: _Setting) -> None:
    caches = [torch.zeros(3, 3) for _ in range(12)]
    for cache in caches:
        setting.check(2, cache)
    assert setting.machine.records == 3


def test_a_caller_that_records_gets_plain_launches(setting: _Setting) -> None:
    setting.machine.caller_is_recording = True
    cache = torch.zeros(3, 3)
    for _ in range(3):
        setting.check(2, cache)
    assert (setting.machine.records, setting.machine.launches) == (0, 9)


def test_the_number_of_graphs_is_bounded(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    for n in (1, 2, 3, 4):
        for _ in range(3):
            setting.check(n, cache)
    assert len(setting.session._graphs) == 2  # pyright: ignore


def _plan() -> CallPlan:
    program = check_program(_mixed_program())
    arguments = CallerArguments(program, CPU)
    facts = arguments.facts([torch.zeros(2, 3), torch.zeros(3, 3), torch.zeros(3, 3)], [16], [3])
    return build_plan(program, compile_program(program)(facts), facts)


def test_roots_fall_into_classes_by_who_touches_them() -> None:
    plan = _plan()
    layout = graph_layout(plan)

    def kinds(roots: tuple[int, ...]) -> list[tuple[str, int]]:
        return [(plan.roots[r].kind, plan.roots[r].number) for r in roots]

    assert kinds(layout.patched) == [("argument", 0), ("argument", 1), ("output", -1)]
    assert kinds(layout.staged) == [("argument", 1)]
    assert kinds(layout.fixed) == [("argument", 2), ("weight", 3)]
    assert kinds(layout.own) == [("arena", -1), ("output", -1)]
    assert kinds(layout.copied) == [("output", -1), ("result", -1)]
