"""Recorded calls, with a driver that records and replays on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from dlcb.dialects.host.attributes import InputAttr, WeightAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.work import Variant
from dlcb.dialects.types import f32, i64
from dlcb.lowering.host_to_json import program_to_json
from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.call import Target
from dlcb.runtime.graphs import graph_layout
from dlcb.runtime.memory import Allocator
from dlcb.runtime.plan import CallPlan, Launch
from dlcb.runtime.program import compile_program
from dlcb.runtime.rows import check_program
from dlcb.runtime.session import Limits, Session
from dlcb.runtime.weights import Weights
from dlcb.tests.replay import ReplayMachine, values_at

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


class _PythonKernels:
    def function(self, name: str) -> str:
        return name

    def activate(self) -> None: ...

    def launcher(self, function: str, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        return lambda: _RUN[function](values_at(pointers, _ARGUMENTS[function]))


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
        self.machine = ReplayMachine(_PythonKernels())
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
            Limits(plans=64, graphs=2),
            lambda device: self.machine,
        )

    def call(self, *arguments: Any) -> list[Any]:
        return self.session.run(*self.arguments.read(arguments), arguments)

    def check(self, n: int, cache: Tensor) -> list[Tensor]:
        """One call at that size, all of its results compared with torch."""
        x, y = torch.randn(n, 3), torch.randn(3, 3)
        expected_cache = cache + 1
        results: list[Any] = self.call(x, y, cache)
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


def test_only_nodes_of_moved_memory_are_updated(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    x, y = torch.randn(2, 3), torch.randn(3, 3)
    kept: list[Any] = []
    for _ in range(2):
        kept.append(setting.call(x, y, cache))
    setting.machine.updates = 0
    kept.append(setting.call(x, y, cache))
    assert setting.machine.updates == 3  # the fresh memory of a kernel's result and of two that are copied out
    x = torch.randn(2, 3)
    kept.append(setting.call(x, y, cache))
    assert setting.machine.updates == 3 + 3 + 1  # one kernel takes both the moved x and the fresh result
    y = torch.randn(3, 3)
    kept.append(setting.call(x, y, cache))
    assert setting.machine.updates == 7 + 3 + 1


def test_an_updated_argument_that_a_library_reads_is_not_copied_but_has_graphs_of_its_own(setting: _Setting) -> None:
    first, second = torch.zeros(3, 3), torch.zeros(3, 3)
    for _ in range(5):
        setting.check(2, first)
    assert setting.machine.records == 1
    for _ in range(5):
        setting.check(2, second)
    assert setting.machine.records == 2
    launches = setting.machine.launches
    for _ in range(3):
        setting.check(2, first)
        setting.check(2, second)
    assert (setting.machine.records, setting.machine.launches) == (2, launches)


def test_a_weight_that_a_library_reads_and_that_moved_is_launched_plainly_and_recorded_anew(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    for _ in range(5):
        setting.check(2, cache)
    old = setting.w.data
    setting.w.data = torch.randn(3, 3)
    for _ in range(5):
        setting.check(2, cache)
    assert setting.machine.records == 2
    assert old.data_ptr() != setting.w.data_ptr()


def test_a_cache_that_is_new_in_every_call_is_recorded_ever_less(setting: _Setting) -> None:
    caches = [torch.zeros(3, 3) for _ in range(100)]
    for cache in caches:
        setting.check(2, cache)
    assert setting.machine.records <= 4


def test_more_sizes_in_turn_than_graphs_are_kept_are_recorded_ever_less(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    records: list[int] = []
    for _ in range(24):
        for n in (1, 2, 3):
            setting.check(n, cache)
        records.append(setting.machine.records)
    assert records[1] == 3
    assert records[-1] <= 9
    assert setting.machine.replays > 24


def test_many_sizes_that_come_once_are_never_recorded(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    for n in range(48):
        setting.check(n, cache)
    assert setting.machine.records == 0


def test_strides_without_meaning_share_a_plan(setting: _Setting) -> None:
    cache, y = torch.zeros(3, 3), torch.randn(3, 3)
    for strides in ((3, 1), (7, 1), (1, 1), (100, 1)):
        setting.call(torch.randn(3).as_strided((1, 3), strides), y, cache)
    assert setting.machine.records == 1


def test_a_recording_that_fails_loses_no_call(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    setting.check(2, cache)
    setting.machine.fail_record = True
    with pytest.warns(UserWarning, match="mixed: a CUDA graph failed, calls with these sizes are launched plainly: no"):
        setting.check(2, cache)
    for _ in range(3):
        setting.check(2, cache)
    assert (setting.machine.records, setting.machine.replays) == (1, 0)


def test_an_update_that_fails_loses_no_call(setting: _Setting) -> None:
    cache = torch.zeros(3, 3)
    for _ in range(3):
        setting.check(2, cache)
    replays, setting.machine.fail_updates = setting.machine.replays, True
    with pytest.warns(UserWarning, match="mixed: a CUDA graph failed"):
        setting.check(2, cache)
    for _ in range(3):
        setting.check(2, cache)
    assert setting.machine.replays == replays


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


def _live_programs() -> tuple[Any, Any]:
    """main(x) = (2x) @ moved + doubled[0], with doubled = 2w, moved = w by a copy: weights that @weights makes of w."""
    derive = HostBuilder("weights", [WeightAttr.make("w", f32, [3, 3], [3, 1])], ["doubled", "moved"])
    w = derive.weight("w")
    doubled = derive.output([3, 3], [3, 1], f32)
    derive.launch([w, doubled], _variant(derive, "double", derive.constant(9)))
    moved = derive.output([3, 3], [3, 1], f32)
    derive.launch([w, moved], _variant(derive, "double", derive.constant(9)))
    derive.launch([moved], _variant(derive, "bump", derive.constant(9)))
    main = HostBuilder(
        "main",
        [
            InputAttr.make("x", f32, 2),
            WeightAttr.make("doubled", f32, [3, 3], [3, 1]),
            WeightAttr.make("moved", f32, [3, 3], [3, 1]),
            WeightAttr.make("w", f32, [3, 3], [3, 1]),
        ],
    )
    n = main.size("x", 0)
    z = main.output([n, 3], [3, 1], f32)
    bias = main.view(main.weight("doubled"), 0, [3], [1])
    main.library_into(z, "matmul", [main.argument("x"), main.weight("moved"), bias], {})
    again = main.output([3, 3], [3, 1], f32)
    main.launch([main.weight("w"), again], _variant(main, "double", main.constant(9)))
    return program_to_json(main.finish([z, again])), program_to_json(derive.finish([doubled, moved]))


class _LiveSetting:
    def __init__(self) -> None:
        main, derive = map(check_program, _live_programs())
        self.machine = ReplayMachine(_PythonKernels())
        target = Target(CPU, self.machine, Allocator())
        self.w = torch.nn.Parameter(torch.randn(3, 3))
        self.arguments = CallerArguments(main, CPU)
        self.weights = Weights({"w": self.w}, main, derive, target, "live")
        plan = compile_program(main)
        self.session = Session(
            main, plan, self.arguments, self.weights, target, 0, True, Limits(), lambda device: self.machine
        )

    def check(self) -> None:
        x, w = torch.randn(2, 3), self.w.detach()
        z, again = self.session.run(*self.arguments.read([x]), [x])
        torch.testing.assert_close(z, x @ (2 * w + 1) + 2 * w[0])
        torch.testing.assert_close(again, 2 * w)


def test_live_weights_are_derived_by_the_graph_of_the_call() -> None:
    setting = _LiveSetting()
    for _ in range(2):
        setting.check()
    machine, addresses = setting.machine, [t.data_ptr() for t in setting.weights.tensors]
    launches = machine.launches
    for _ in range(3):
        with torch.no_grad():
            setting.w.add_(1)
        setting.check()
    assert (machine.records, machine.replays, machine.launches) == (1, 4, launches)
    assert [t.data_ptr() for t in setting.weights.tensors] == addresses


def test_kernels_that_read_a_weight_which_moved_are_updated_and_no_graph_is_lost() -> None:
    setting = _LiveSetting()
    for _ in range(3):
        setting.check()
    old, launches = setting.w.data, setting.machine.launches
    setting.w.data = torch.randn(3, 3)
    updates = setting.machine.updates
    setting.check()
    assert setting.machine.updates == updates + 2 + 3  # two fresh results, three kernels that read w
    setting.w.data = old
    setting.check()
    assert (setting.machine.records, setting.machine.launches) == (1, launches)


def test_weights_with_another_alignment_are_planned_anew() -> None:
    setting = _LiveSetting()
    for _ in range(3):
        setting.check()
    setting.w.data = torch.randn(10)[1:].view(3, 3)
    for _ in range(3):
        setting.check()
    assert setting.machine.records == 2


def _plan() -> CallPlan:
    program = check_program(_mixed_program())
    arguments = CallerArguments(program, CPU)
    facts = arguments.facts([torch.zeros(2, 3), torch.zeros(3, 3), torch.zeros(3, 3)], [16], [3])
    return compile_program(program)(facts)


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
