"""Random lives and sizes: buffers that live at the same time never share a byte, and sharing never costs bytes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dlcb.dialects.shape.expr import Expr, add, const, evaluate, mul, sym
from dlcb.lowering.buffer_plan import ALIGNMENT_BYTES, Lifetime, plan_buffers

_SYMBOLS = ("n", "m", "k")
_SIZES = st.builds(
    lambda c, a, b, k: add(mul(c, sym(a), sym(b)), k),
    st.integers(0, 600),
    st.sampled_from(_SYMBOLS),
    st.sampled_from(_SYMBOLS),
    st.integers(0, 300),
) | st.builds(const, st.integers(0, 3000))


@st.composite
def lifetimes(draw: Any) -> Lifetime:
    first = draw(st.integers(0, 12))
    return Lifetime(first, first + draw(st.integers(0, 6)), draw(_SIZES))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


@given(st.lists(lifetimes(), max_size=12), st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_live_buffers_never_overlap_and_reuse_never_costs_bytes(buffers: list[Lifetime], values: list[int]) -> None:
    plan = plan_buffers(buffers)
    env: dict[str, int] = dict(zip(_SYMBOLS, values, strict=True))
    sizes = [evaluate(b.size_bytes, env) for b in buffers]
    offsets = [evaluate(o, env) for o in plan.offsets]
    total = evaluate(plan.total_bytes, env)
    assert all(o % ALIGNMENT_BYTES == 0 for o in offsets)
    assert all(o + s <= total for o, s in zip(offsets, sizes, strict=True))
    assert total <= sum(map(_aligned, sizes))
    for (a, x), (b, y) in combinations(enumerate(buffers), 2):
        if x.first <= y.last and y.first <= x.last:
            assert offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]


def _chain(*sizes: Expr) -> list[Lifetime]:
    return [Lifetime(i, i + 1, size) for i, size in enumerate(sizes)]


def test_a_chain_of_equal_sizes_needs_two_slots() -> None:
    size = mul(256, sym("n"))
    plan = plan_buffers(_chain(size, size, size, size, size))
    assert plan.total_bytes is mul(2, size)


def test_a_buffer_of_another_size_prefers_the_slot_of_its_own_size() -> None:
    n, m = mul(256, sym("n")), mul(256, sym("m"))
    plan = plan_buffers([Lifetime(0, 0, n), Lifetime(0, 0, m), Lifetime(1, 1, m), Lifetime(1, 1, n)])
    assert plan.offsets[2] is plan.offsets[1]
    assert plan.offsets[3] is plan.offsets[0]


def test_no_buffers_need_no_bytes() -> None:
    assert plan_buffers([]).total_bytes is const(0)
