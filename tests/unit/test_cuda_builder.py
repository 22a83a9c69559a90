"""What the kernel builder does on its own: folding, one copy of pure values, phases."""

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.ir import SSAValue

from dlcb.dialects.cuda.builder import CudaBuilder
from dlcb.dialects.cuda.ops import ConstantOp, KernelOp, ScalarOp, ThreadIdxOp
from dlcb.dialects.cuda.types import ptr
from dlcb.dialects.types import f32, i1, i32, i64
from dlcb.errors import InternalError

UNCHANGING: list[Callable[[CudaBuilder, SSAValue], SSAValue]] = [
    lambda b, n: b.add(n, 0),
    lambda b, n: b.add(0, n),
    lambda b, n: b.sub(n, 0),
    lambda b, n: b.mul(n, 1),
    lambda b, n: b.mul(1, n),
    lambda b, n: b.floordiv(n, 1),
    lambda b, n: b.cast(n, i32),
]


@pytest.fixture
def b() -> CudaBuilder:
    return CudaBuilder("k", 64, [("x", ptr(f32)), ("n", i32)])


def constant_of(value: SSAValue) -> Any:
    assert isinstance(value.owner, ConstantOp)
    return value.owner.value.value.data


def count(kernel: KernelOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in kernel.walk())


@pytest.mark.parametrize(
    ("function", "lhs", "rhs", "expected"),
    [
        ("add", 3, 4, 7),
        ("sub", 3, 4, -1),
        ("mul", 2**31 - 1, 2, -2),
        ("floordiv", -7, 2, -4),
        ("mod", -7, 2, 1),
        ("minimum", 3, 4, 3),
    ],
)
def test_constants_fold_as_the_device_computes(
    b: CudaBuilder, function: str, lhs: int, rhs: int, expected: int
) -> None:
    assert constant_of(b.scalar(function, b.constant(lhs, i32), b.constant(rhs, i32))) == expected


def test_comparisons_of_constants_fold_to_truth_values(b: CudaBuilder) -> None:
    folded = b.lt(b.constant(3, i64), b.constant(4, i64))
    assert folded.type == i1
    assert b.and_(folded, b.eq(b.parameters[1], 0)).owner.name == "dlcb.cuda.scalar"
    assert b.select(folded, b.parameters[1], b.constant(0, i32)) is b.parameters[1]


@pytest.mark.parametrize("build", UNCHANGING)
def test_an_operation_that_changes_nothing_is_not_built(
    b: CudaBuilder, build: Callable[[CudaBuilder, SSAValue], SSAValue]
) -> None:
    n = b.parameters[1]
    assert build(b, n) is n


def test_what_only_looks_neutral_is_built(b: CudaBuilder) -> None:
    n = b.parameters[1]
    for value in (b.sub(0, n), b.floordiv(1, n), b.floordiv(n, 0), b.add(b.load(b.parameters[0], 0), 0.0)):
        assert isinstance(value.owner, ScalarOp)


def test_division_of_constants_by_zero_stays_in_the_kernel(b: CudaBuilder) -> None:
    assert isinstance(b.floordiv(b.constant(1, i32), b.constant(0, i32)).owner, ScalarOp)


def test_zero_and_negative_zero_are_two_constants(b: CudaBuilder) -> None:
    assert b.constant(0.0, f32) is not b.constant(-0.0, f32)
    assert b.constant(0.0, f32) is b.constant(0.0, f32)
    assert b.constant(float("nan"), f32) is b.constant(float("nan"), f32)


def test_pure_values_are_built_once_a_scope(b: CudaBuilder) -> None:
    n = b.parameters[1]
    outside = b.add(n, b.thread_idx())
    with b.if_(b.lt(outside, n)):
        assert b.add(n, b.thread_idx()) is outside
        inside = b.add(n, 5)
    assert b.add(n, 5) is not inside


def test_a_value_of_an_earlier_phase_is_computed_again(b: CudaBuilder) -> None:
    x, n = b.parameters
    i = b.add(b.mul(b.block_idx(), 64), b.thread_idx())
    b.store(b.load(x, i), x, i)
    b.barrier()
    b.store(b.load(x, i), x, i)
    b.store(b.load(x, n), x, i)
    kernel = b.finish()
    kernel.verify()
    assert count(kernel, ThreadIdxOp) == 2


def test_what_the_block_agrees_on_is_computed_once_for_all_phases(b: CudaBuilder) -> None:
    start = b.mul(b.block_idx(), 64)
    b.barrier()
    assert b.mul(b.block_idx(), 64) is start


def test_a_loaded_value_does_not_cross_a_barrier(b: CudaBuilder) -> None:
    x, _ = b.parameters
    loaded = b.load(x, b.thread_idx())
    b.barrier()
    with pytest.raises(InternalError, match=r"kernel k: the value of dlcb\.cuda\.load is used in a later phase"):
        b.store(loaded, x, 0)


def test_numbers_as_bounds_take_the_type_of_the_other_bounds() -> None:
    b = CudaBuilder("k", 64, [("x", ptr(f32)), ("n", i64)])
    x, n = b.parameters
    with b.for_(0, n, 2, unroll=True) as k:
        b.store(b.load(x, k), x, k)
    b.finish().verify()
    assert k.type == i64
