"""Scans in kernels: as exact as eager's own, by the schedule that the row asks for, and wrong without any barrier."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.cuda.ops import BarrierOp, ShuffleXorOp
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.types import Dim
from dlcb.lowering import pipeline
from dlcb.passes.stages import Stage
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Case, Graph, Inputs, check_call, graph

given = Inputs(23)

Build = Callable[[Graph], None]


def running_sum(*dims: Dim, axis: int, element: str = "f32") -> Build:
    def build(g: Graph) -> None:
        g.give(g.cumsum(g.input("x", *dims, element=element), axis=axis))

    return build


# How exact


LONG = Case("long", running_sum("n", "m", axis=1), [(given(1, 300_001, low=0),)], lambda x: x.cumsum(1))
TALL = Case("tall", running_sum("n", "m", axis=0), [(given(40_001, 2, low=0),)], lambda x: x.cumsum(0))


@cache
def exact() -> Batch:
    batch = Batch()
    for case in (LONG, TALL):
        batch.rehearse(batch.add(case.module()), case.calls)
    return batch


@pytest.mark.parametrize(("number", "case"), [(0, LONG), (1, TALL)], ids=["long", "tall"])
def test_a_long_sum_is_as_exact_as_eagers_own(number: int, case: Case) -> None:
    (x,) = case.calls[0]
    (ours,) = exact().module(number)(x.clone())
    assert isinstance(ours, Tensor)
    truth = case.witness(x.double())
    wrong, eagers = (((t.double() - truth) / truth).abs().max().item() for t in (ours, case.witness(x)))
    assert wrong <= max(1.01 * eagers, 6e-8)


# Which schedule


def schedules(build: Build) -> list[tuple[str, int, int]]:
    """Of the form for contiguous inputs: row, threads and vector of those that need no 64 bits."""
    module = graph(build)
    pipeline.run(module, Context(), until="schedule")
    kernels = [op for op in module.body.block.ops if isinstance(op, KernelOp)]
    chosen = kernels[0].schedules
    assert chosen is not None
    assert chosen.data[-1].index == 64
    return [(s.row, s.threads, s.vector) for s in chosen.data if s.index == 32]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (running_sum("n", "m", axis=1), [("block", 32, 1), ("tile", 256, 4)]),
        (running_sum(8, 100, axis=1), [("block", 32, 1)]),
        (running_sum(8, 4096, axis=1, element="f16"), [("tile", 256, 8)]),
        (running_sum(8, 4097, axis=1), [("tile", 256, 1)]),
        (running_sum("n", "m", axis=0), [("walk", 128, 1)]),
        (running_sum(1000, 600, axis=0), [("walk", 128, 1)]),
        (running_sum(1000, 6, axis=0), [("tile", 256, 1)]),
    ],
    ids=["any", "short", "long", "odd length", "across", "many columns", "few columns"],
)
def test_rows_get_a_schedule_by_what_is_known_of_them(build: Build, expected: list[tuple[str, int, int]]) -> None:
    assert schedules(build) == expected


# What threads wait for


def extrema(g: Graph) -> None:
    x = g.input("x", 3, 5000)
    high = g.cummax(x, axis=1)
    g.give(high, g.last_position(x, high, axis=1, element="i64"))


EXTREMA = Case("extrema", extrema, [(given(3, 5000).mul(4).round(),)], lambda x: tuple(torch.cummax(x, 1)))
SUM = Case("sum", running_sum(3, 5000, axis=1), [(given(3, 5000),)], lambda x: x.cumsum(1))
WARP = Case("warp", running_sum(3, 100, axis=1), [(given(3, 100),)], lambda x: x.cumsum(1))
BREAKABLE = [(SUM, BarrierOp, 1), (EXTREMA, BarrierOp, 2), (WARP, ShuffleXorOp, 5)]
"""A graph of one kernel, and how many of these ops it has."""
BROKEN = [(case, kind, number) for case, kind, count in BREAKABLE for number in range(count)]


def without(kind: type[BarrierOp | ShuffleXorOp], number: int) -> Callable[[Stage, ModuleOp], None]:
    """Take one op out of the kernel as soon as it is there."""

    def after(stage: Stage, module: ModuleOp) -> None:
        for kernel in module.body.block.ops if stage.name == "cuda" else ():
            if isinstance(kernel, CudaKernelOp):
                [op for op in kernel.walk() if isinstance(op, kind)][number].detach()

    return after


@cache
def broken() -> Batch:
    batch = Batch()
    for case, kind, number in BROKEN:
        batch.rehearse(batch.add(case.module(), without(kind, number)), case.calls)
    return batch


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=lambda i: f"{BROKEN[i][0].name} {BROKEN[i][2]}")
def test_a_scan_without_one_meeting_of_its_threads_is_wrong_in_every_hostile_order(number: int) -> None:
    case = BROKEN[number][0]
    for seed in ORDER_SEEDS[1:]:
        with pytest.raises(AssertionError):
            check_call(broken().module(number, seed), case, case.calls[0])


@pytest.mark.parametrize(("case", "kind", "count"), BREAKABLE, ids=lambda v: getattr(v, "name", None))
def test_threads_meet_no_more_often_than_they_must(case: Case, kind: type[BarrierOp], count: int) -> None:
    module = case.module()
    pipeline.run(module, Context(), until="cuda")
    for kernel in [op for op in module.body.block.ops if isinstance(op, CudaKernelOp)]:
        assert sum(isinstance(op, kind) for op in kernel.walk()) == count
