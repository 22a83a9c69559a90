"""Division by multiplication and shift: the constants, and the form that kernels run, on all the edges."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlcb.dialects.cuda.builder import CudaBuilder
from dlcb.dialects.cuda.ops import KernelOp
from dlcb.dialects.cuda.types import ptr
from dlcb.dialects.types import i32, i64
from dlcb.lowering.cuda_to_text import kernels_to_text
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.magic import Bits, magic_constants, magic_divide

BITS: tuple[Bits, ...] = (32, 64)
TYPES = {32: (i32, torch.int32, ctypes.c_int), 64: (i64, torch.int64, ctypes.c_longlong)}


def limit(bits: Bits) -> int:
    return 1 << (bits - 1)


def edge_divisors(bits: Bits) -> list[int]:
    """Powers of two and their neighbours, the ends of the range, and a few others."""
    powers = [1 << k for k in range(bits - 1)]
    near = {p + d for p in powers for d in (-1, 0, 1)} | {limit(bits) - 1, limit(bits) - 2, 3, 7, 10, 641, 1000003}
    return sorted(d for d in near if 0 <= d < limit(bits))


def edge_dividends(divisor: int, bits: Bits) -> list[int]:
    """Where the quotient steps: k d - 1, k d, k d + 1, at the start, in the middle and at the end of the range."""
    steps = [0, 1, 2, limit(bits) // max(divisor, 1) // 2, (limit(bits) - 1) // max(divisor, 1)]
    near = {k * divisor + d for k in steps for d in (-1, 0, 1)} | {limit(bits) - 1, limit(bits) // 2}
    return sorted(n for n in near if 0 <= n < limit(bits))


def quotient(dividend: int, divisor: int) -> int:
    return dividend // divisor if divisor else 0


@pytest.mark.parametrize("bits", BITS)
def test_every_edge_divides_exactly(bits: Bits) -> None:
    for divisor in edge_divisors(bits):
        mul, shift = magic_constants(divisor, bits)
        for dividend in edge_dividends(divisor, bits):
            assert magic_divide(dividend, mul, shift, bits) == quotient(dividend, divisor), (dividend, divisor)


@given(st.data(), st.sampled_from(BITS))
def test_any_dividend_divides_exactly(data: st.DataObject, bits: Bits) -> None:
    divisor = data.draw(st.integers(0, limit(bits) - 1) | st.integers(0, 4096))
    dividend = data.draw(st.integers(0, limit(bits) - 1) | st.sampled_from(edge_dividends(divisor, bits)))
    assert magic_divide(dividend, *magic_constants(divisor, bits), bits) == quotient(dividend, divisor)


@given(st.data(), st.sampled_from(BITS))
def test_the_constants_travel_as_signed_integers_of_their_width(data: st.DataObject, bits: Bits) -> None:
    mul, shift = magic_constants(data.draw(st.integers(0, limit(bits) - 1)), bits)
    assert -limit(bits) <= mul < limit(bits)
    assert 0 <= shift < bits


@pytest.mark.parametrize("bits", BITS)
def test_a_divisor_outside_the_range_is_refused(bits: Bits) -> None:
    for divisor in (-1, limit(bits)):
        with pytest.raises(ValueError, match=f"divisor {divisor} is not in"):
            magic_constants(divisor, bits)


def divide(bits: Bits) -> KernelOp:
    """q[i] = n[i] // the divisor of (mul, shift)"""
    kind = TYPES[bits][0]
    b = CudaBuilder(
        f"divide{bits}", 32, [("n", ptr(kind)), ("q", ptr(kind)), ("mul", kind), ("shift", kind), ("size", i32)]
    )
    n, q, mul, shift, size = b.parameters
    i = b.add(b.mul(b.block_idx(), 32), b.thread_idx())
    with b.if_(b.lt(i, size)):
        b.store(b.magic_div(b.load(n, i), mul, shift), q, i)
    return b.finish()


@pytest.fixture(scope="module")
def library() -> Path:
    return compile_cpu(kernels_to_text(divide(bits) for bits in BITS))


@pytest.mark.parametrize("bits", BITS)
def test_kernels_divide_every_edge_exactly(library: Path, launch_cpu: Callable[..., None], bits: Bits) -> None:
    _, dtype, number = TYPES[bits]
    for divisor in edge_divisors(bits):
        edges = edge_dividends(divisor, bits)
        dividends = torch.tensor(edges, dtype=dtype)
        quotients = torch.full_like(dividends, -1)
        mul, shift = magic_constants(divisor, bits)
        arguments = (dividends, quotients, number(mul), number(shift), ctypes.c_int(len(dividends)))
        launch_cpu(library, f"divide{bits}", arguments, -(-len(dividends) // 32))
        expected = torch.tensor([quotient(n, divisor) for n in edges], dtype=dtype)
        assert torch.equal(quotients, expected), divisor
