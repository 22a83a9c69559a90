"""Reductions by several threads a column, and in steps over parts of rows: exact, the same every time, in steps only
where that pays, and wrong without any one of their barriers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial

import pytest
import torch
from hypothesis import given as examples
from hypothesis import strategies
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.cuda.ops import BarrierOp
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.shape.expr import Expr, add, const, mul, sym
from dlcb.passes.parts import SPLIT_BLOCKS, chunk_of, groups_of, may_be_cut, parts_of
from dlcb.passes.stages import Stage
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Case, Graph, Inputs, check_call

SIZES = strategies.integers(0, 2**33)
given = Inputs(11)


@examples(SIZES, SIZES, strategies.sampled_from((1, 32, 128)), strategies.booleans())
def test_parts_cover_rows_and_fill_the_device(rows: int, length: int, most: int, stored: bool) -> None:
    parts, groups = parts_of(const(rows), const(length), most, stored).value, groups_of(const(rows), most).value
    assert parts is not None
    assert groups is not None
    chunk = chunk_of(const(length), const(parts)).value or 0
    assert chunk % 8 == 0
    if parts:
        assert parts >= 2
        assert parts * groups <= SPLIT_BLOCKS
        assert parts * chunk >= length
        assert may_be_cut(const(rows), const(length), most, stored)


N, S, K = sym("n"), sym("s"), sym("k")


@pytest.mark.parametrize(
    ("rows", "length", "may"),
    [
        (mul(12, N, S), S, False),
        (mul(N, S, S), mul(2, S), False),
        (mul(12, N, S), K, True),
        (mul(N, S), add(S, K), True),
        (N, mul(S, K), True),
        (mul(N, S), const(4096), False),
        (const(255), const(12289), True),
        (const(256), const(12289), False),
        (const(255), const(12288), False),
    ],
)
def test_rows_that_a_long_sequence_makes_many_are_never_cut(rows: Expr, length: Expr, may: bool) -> None:
    assert may_be_cut(rows, length, most=1, stored=True) is may


def sums(g: Graph) -> None:
    x = g.input("x", "n", "m")
    g.give(g.sum(x, axes=[0]), g.sum(x, axes=[1]), g.sum(x, axes=[0, 1]))


CALLS = [(given(n, m) / 3 + 1,) for n, m in [(5000, 3), (100003, 2), (5000, 40), (40, 5000), (2, 100003)]]
SUMS = Case("sums", sums, CALLS, lambda x: (x.sum(0), x.sum(1), x.sum()))


@cache
def compiled_sums() -> Batch:
    batch = Batch()
    batch.rehearse(batch.add(SUMS.module()), CALLS)
    return batch


def worst(sum_: Tensor, exact: Tensor) -> float:
    return ((sum_.double() - exact).abs() / exact.abs()).max().item()


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(tuple(call[0].shape)))
def test_a_sum_of_many_is_as_exact_as_eager(call: Sequence[Tensor]) -> None:
    found = compiled_sums().module(0)(*call)
    wide = SUMS.witness(call[0].double())
    for have, eager, exact in zip(found, SUMS.witness(*call), wide, strict=True):
        assert isinstance(have, Tensor)
        assert worst(have, exact) <= max(1.5 * worst(eager, exact), 1e-6)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(tuple(call[0].shape)))
def test_equal_inputs_give_equal_bits_in_every_order(call: Sequence[Tensor]) -> None:
    results = [compiled_sums().module(0, seed)(*call) for seed in ORDER_SEEDS]
    for others in results[1:]:
        assert all(torch.equal(torch.as_tensor(a), torch.as_tensor(b)) for a, b in zip(results[0], others, strict=True))


def launched(build: Callable[[Graph], None], *call: Tensor) -> list[str]:
    """How the launched kernels walk rows."""
    batch = Batch()
    number = batch.add(Case("", build, [call], sums).module())
    batch.rehearse(number, [call])
    names = {unit: name for name, unit in reversed(batch.names[number].items())}
    return sorted(re.sub(r".*?_(?=thread|warp|column|block)", "", names[unit]) for unit in batch.needed)


def columns(g: Graph) -> None:
    g.give(g.sum(g.input("x", "n", "m"), axes=[0]))


def narrow_columns(g: Graph) -> None:
    g.give(g.sum(g.input("x", "n", "m", element="f16"), axes=[0]))


def rows(g: Graph) -> None:
    g.give(g.sum(g.input("x", "n", "m"), axes=[1]))


def softmax(g: Graph, axis: int) -> None:
    g.give(g.softmax_of(g.input("x", "n", "m"), axis))


def halves(g: Graph) -> None:
    """A whole row is stored, and a result that each of its items goes into."""
    y = g.silu(g.input("x", "n", "m", element="f16"))
    g.give(y, g.mean(y, axes=[0]))


@pytest.mark.parametrize(
    ("build", "sizes", "kernels"),
    [
        (columns, (16, 40), ["threadlong_v1"]),
        (columns, (17, 40), ["column4_v1"]),
        (columns, (700, 32), ["column4_v1"]),
        (columns, (800, 32), ["column4_step0_v1", "column4_step1_v1_i64"]),
        (columns, (50, 40000), ["column4_v1"]),
        (rows, (3, 24000), ["blocklong_v4"]),
        (rows, (3, 24580), ["blocklong_step0_v4_shifted_i64", "blocklong_step1_v1_i64"]),
        (rows, (3, 24581), ["blocklong_step0_v4_shifted_i64", "blocklong_step1_v1_i64"]),
        (rows, (513, 24580), ["blocklong_v4"]),
        (narrow_columns, (800, 128), ["column4_step0_v4", "column8_step1_v1_i64"]),
        (narrow_columns, (192, 128), ["column4_v1"]),
        (narrow_columns, (40, 32768), ["column4_v4"]),
        (narrow_columns, (40, 32640), ["column4_v1"]),
        (narrow_columns, (800, 129), ["column8_step0_v1", "column8_step1_v1_i64"]),
        (narrow_columns, (16, 128), ["threadlong_v1"]),
        (columns, (0, 40), ["threadlong_v1"]),
        (columns, (40, 0), []),
        (halves, (384, 32), ["column4_v1"]),
        (halves, (385, 32), ["column4_step0_v4", "column8_step1_v1_i64"]),
        (halves, (400, 8192), ["column4_v1"]),
        (partial(softmax, axis=0), (400, 32), [f"column4_step{i}_v1" for i in range(3)]),
        (partial(softmax, axis=1), (3, 12288), ["blocklong_v4"]),
        (partial(softmax, axis=1), (3, 12292), [f"blocklong_step{i}_v4_shifted_i64" for i in range(3)]),
        (partial(softmax, axis=1), (3, 12293), [f"blocklong_step{i}_v4_shifted_i64" for i in range(3)]),
        (partial(softmax, axis=1), (256, 12292), ["blocklong_v4"]),
    ],
)
def test_sizes_decide_how_rows_are_walked(
    build: Callable[[Graph], None], sizes: tuple[int, int], kernels: list[str]
) -> None:
    element = torch.float16 if build in (halves, narrow_columns) else torch.float32
    assert launched(build, torch.zeros(1, dtype=element).expand(sizes).contiguous()) == kernels


def scaled(g: Graph, length: int, width: int = 33, element: str = "f32") -> None:
    """Four reductions in one kernel: two, and two that need these."""
    x = g.op("cast", g.input("x", length, width, element=element), element="f32")
    low, high = g.amin(x, axes=[0], keep=True), g.amax(x, axes=[0], keep=True)
    away = g.div(g.sub(x, low), g.sub(high, low))
    total, squares = g.sum(away, axes=[0], keep=True), g.sum(g.mul(away, away), axes=[0], keep=True)
    g.give(g.reshape(g.div(squares, total), shape=(width,)))


def scaled_by_torch(x: Tensor) -> Tensor:
    x = x.float() if x.dtype is torch.float16 else x
    away = (x - x.amin(0)) / (x.amax(0) - x.amin(0))
    return (away * away).sum(0) / away.sum(0)


def mean_beside(g: Graph) -> None:
    y = g.silu(g.input("x", 700, 33))
    g.give(y, g.mean(y, axes=[0]))


def mean_beside_by_torch(x: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.nn.functional.silu(x)
    return y, y.mean(0)


def all_of(g: Graph) -> None:
    g.give(g.sum(g.input("x", 40000), axes=[0]))


SHORT = Case("columns", partial(scaled, length=40), [(given(40, 33),)], scaled_by_torch)
LONG = Case("columns in parts", partial(scaled, length=900), [(given(900, 33),)], scaled_by_torch)
HALVES, LONG_HALVES = (
    Case(
        "columns of halves",
        partial(scaled, length=length, width=width, element="f16"),
        [(given(length, width, element="f16"),)],
        scaled_by_torch,
        slack=1e-5,
    )
    for length, width in ((17, 32900), (900, 264))
)
WHOLE = Case("a row in parts", all_of, [(given(40000),)], torch.sum)
BESIDE = Case("columns stored in parts", mean_beside, [(given(700, 33),)], mean_beside_by_torch)
COLUMNS = Case("softmax of columns", partial(softmax, axis=0), [(given(700, 33),)], partial(torch.softmax, dim=0))
ROWS = Case("softmax of rows", partial(softmax, axis=1), [(given(2, 20011),)], partial(torch.softmax, dim=1))
BREAKABLE = {
    "column4_v1": (SHORT, 4),
    "column4_v4": (HALVES, 4),
    "column4_step0": (LONG, 2),
    "column4_step0_v4": (LONG_HALVES, 2),
    "column4_step1_v4": (LONG_HALVES, 4),
    "column4_step1": (LONG, 4),
    "column4_step2": (LONG, 2),
    "blocklong_step0": (WHOLE, 1),
    "blocklong_step1": (WHOLE, 1),
    "mean_column4_step0": (BESIDE, 1),
    "mean_column4_step1": (BESIDE, 1),
    "div_column4_step2": (COLUMNS, 2),
    "div_blocklong_step1": (ROWS, 2),
    "div_blocklong_step2": (ROWS, 2),
}
"""A part of kernels' names → a graph, and the barriers of the kernel."""
BROKEN = [(kernel, n) for kernel, (_, barriers) in BREAKABLE.items() for n in range(barriers)]


def break_kernels(part: str, number: int) -> Callable[[Stage, ModuleOp], None]:
    """Take a barrier out of the kernels of this name as soon as they are there."""

    def after(stage: Stage, module: ModuleOp) -> None:
        for kernel in module.body.block.ops if stage.name == "cuda" else ():
            if isinstance(kernel, CudaKernelOp) and part in kernel.sym_name.data:
                barriers = [op for op in kernel.walk() if isinstance(op, BarrierOp)]
                assert len(barriers) == BREAKABLE[part][1]
                barriers[number].detach()

    return after


@cache
def broken() -> Batch:
    batch = Batch()
    for part, number in BROKEN:
        case, _ = BREAKABLE[part]
        batch.rehearse(batch.add(case.module(), break_kernels(part, number)), case.calls)
    return batch


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=lambda i: f"{BROKEN[i][0]} {BROKEN[i][1]}")
def test_a_kernel_without_one_barrier_is_wrong_in_every_hostile_order(number: int) -> None:
    case, _ = BREAKABLE[BROKEN[number][0]]
    for seed in ORDER_SEEDS[1:]:
        with pytest.raises(AssertionError):
            check_call(broken().module(number, seed), case, case.calls[0])
