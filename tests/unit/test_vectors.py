"""Which loads and stores of a kernel move vectors, and what that demands of a call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
import torch
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from dlcb.dialects.coord.ops import AccessOp, KernelOp, ScanOp
from dlcb.dialects.coord.vectors import Along, memory_ops, shift_of, vector_facts
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.shape.expr import floordiv, sym
from dlcb.errors import InternalError
from dlcb.lowering import pipeline
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.passes.uses import needs_wide, uses_of
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.plan import Launch
from dlcb.tests.graphs import Graph, graph


def lowered(build: Callable[[Graph], None]) -> ModuleOp:
    module = graph(build)
    pipeline.run(module, Context(), until="coordinates")
    return module


def kernel_of(build: Callable[[Graph, SSAValue], SSAValue], *dims: Dim) -> tuple[ModuleOp, KernelOp]:
    """The kernel of what is computed of a product of these sizes, its first form."""

    def whole(g: Graph) -> None:
        g.give(build(g, g.matmul(g.input("x", dims[0], 8, element="f16"), g.input("w", 8, dims[1], element="f16"))))

    module = lowered(whole)
    kernel, *_ = [op for op in module.walk() if isinstance(op, KernelOp)]
    return module, kernel


def is_moved(kernel: KernelOp) -> bool:
    """Is all that it reads of floats moved in vectors?"""
    along = Along(kernel)
    found = [op for op in memory_ops(kernel) if isinstance(op, AccessOp) and str(op.res.type) == "f16"]
    assert found
    return all(along.demands(op) is not None for op in found)


def test_a_part_of_rows_is_read_in_vectors_where_it_starts_at_a_multiple() -> None:
    def widest(start: int) -> int:
        _, kernel = kernel_of(lambda g, x: g.exp(g.slice(x, (0, start), ("n", 64))), "n", 96)
        return vector_facts(kernel).widest

    def read_in_vectors(start: int) -> bool:
        _, kernel = kernel_of(lambda g, x: g.exp(g.slice(x, (0, start), ("n", 64))), "n", 96)
        return is_moved(kernel)

    assert list(map(widest, (0, 32, 4, 6, 5))) == [8, 8, 4, 2, 8]
    assert list(map(read_in_vectors, (32, 6, 5))) == [True, True, False]


def test_the_place_of_a_part_is_looked_at_in_a_call_where_it_is_free() -> None:
    def halves(g: Graph, x: SSAValue) -> SSAValue:
        half = g.dim(floordiv(sym("m"), 2))
        return g.mul(g.slice(x, (0, 0), ("n", half)), g.slice(x, (0, half), ("n", half)))

    module, kernel = kernel_of(halves, "n", "m")
    facts = vector_facts(kernel)
    (use,) = uses_of(module)[kernel.symbol]
    (shift,) = {shift_of(op) for op in memory_ops(kernel)} - {0}
    assert isinstance(shift, str)
    assert facts.widest == 8
    assert shift in facts.divisible
    assert use.bound[shift] is sym("d0")


def test_a_literal_place_does_not_ask_for_64_bits() -> None:
    for rows, wide in ((1000, False), (2**25, True)):
        module, kernel = kernel_of(lambda g, x, rows=rows: g.exp(g.slice(x, (0, 32), (rows, 64))), rows, 96)
        assert needs_wide(kernel, uses_of(module)[kernel.symbol]) is wide


def padded(g: Graph, x: SSAValue, low: tuple[int, int]) -> SSAValue:
    return g.pad(g.exp(x), low=low, high=(0, 0), value=0.0)


@pytest.mark.parametrize(
    ("build", "moved"),
    [
        (lambda g, x: padded(g, x, (3, 0)), True),
        (lambda g, x: padded(g, x, (0, 8)), False),
        (lambda g, x: g.take(x, g.input("i", "k", element="i64"), axis=0), True),
        (lambda g, x: g.take(x, g.input("i", "k", element="i64"), axis=1), False),
        (lambda g, x: g.concat(g.slice(x, (2, 0), (5, 64)), g.slice(x, (0, 0), (2, 64)), axis=0), True),
        (lambda g, x: g.flip(x, axes=[0]), True),
        (lambda g, x: g.flip(x, axes=[1]), False),
    ],
    ids=[
        "rows padded",
        "columns padded",
        "rows by index",
        "columns by index",
        "rows rolled",
        "rows flipped",
        "flipped",
    ],
)
def test_a_guard_or_a_place_that_neighbours_share_leaves_them_a_vector(
    build: Callable[[Graph, SSAValue], SSAValue], moved: bool
) -> None:
    _, kernel = kernel_of(build, 7, 64)
    assert is_moved(kernel) is moved


def test_running_values_differ_along_their_row() -> None:
    def running(g: Graph, x: SSAValue) -> SSAValue:
        return g.cumsum(g.expand(g.slice(x, (0, 0), (7, 1)), shape=(7, 64)), axis=1)

    _, kernel = kernel_of(running, 7, 64)
    (scan,) = [op for op in kernel.body.walk() if isinstance(op, ScanOp)]
    assert scan.results[0] in Along(kernel).varying


TEXT = """DLCB_KERNEL(copied, 1, float *x, float *y) {
  DLCB_WARPS DLCB_THREADS { dlcb_store_vector(y, 0, dlcb_load_vector<4>(x, 0)); }
}
"""


@pytest.mark.parametrize(("moved", "over"), [(0, 0), (1, 4), (2, 8), (4, 0)])
def test_the_cpu_target_moves_no_vector_that_a_gpu_would_not(moved: int, over: int) -> None:
    x, y = torch.arange(16.0), torch.zeros(4)
    kernels = CpuKernels(compile_cpu(TEXT), 0)
    addresses = [ctypes.c_void_p(x[moved:].data_ptr()), ctypes.c_void_p(y.data_ptr())]
    given = (ctypes.c_void_p * 2)(*map(ctypes.addressof, addresses))
    launch = kernels.launcher(kernels.function("copied"), Launch("copied", 1, 1, (), ()), ctypes.addressof(given), 0)
    if over:
        with pytest.raises(InternalError, match=f"copied: moves 16 bytes at an address that is {over} past a multiple"):
            launch()
    else:
        launch()
        assert y.equal(x[moved : moved + 4])
