"""Rows that start anywhere in memory: vectors start where memory is aligned, their ends touch no memory outside a row
and count for nothing, and a call whose memory starts elsewhere still gets what torch computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from xdsl.ir import SSAValue

from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Case, Graph, Inputs, check_call, misaligned

given = Inputs(23)
LENGTHS = (513, 520, 1021, 2047, 4095, 4601)
"""Rows that a block holds."""
LONG = (4603, 4999)
"""Rows that go by in a loop."""
SIZES = [*zip((1, 2, 3, 9, 17, 5), LENGTHS, strict=True), *zip((17, 2), LONG, strict=True)]


def calls(element: str = "f16") -> list[tuple[Tensor]]:
    return [(given(n, m, element=element),) for n, m in SIZES]


def softmax(g: Graph, element: str, n: int | str = "n", m: int | str = "m") -> None:
    g.give(g.softmax_of(g.input("x", n, m, element=element), 1))


def wide(g: Graph, x: SSAValue) -> SSAValue:
    return g.op("cast", x, element="f32")


def layer_norm(g: Graph, m: int | str = "m", n: int | str = "n", weights: str = "f16") -> None:
    x = wide(g, g.input("x", n, m, element="f16"))
    weight, bias = (wide(g, g.input(name, m, element=weights)) for name in ("weight", "bias"))
    away = g.sub(x, g.mean(x, axes=[1], keep=True))
    spread = g.rsqrt(g.add(g.mean(g.mul(away, away), axes=[1], keep=True), g.number(1e-5)))
    g.give(g.op("cast", g.add(g.mul(g.mul(away, spread), weight), bias), element="f16"))


def layer_norm_by_torch(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    made = F.layer_norm(x.double(), x.shape[-1:], weight.double(), bias.double())
    return made.to(x.dtype)


def norm_calls(sizes: Sequence[tuple[int, int]], weights: str = "f16") -> list[tuple[Tensor, ...]]:
    return [(given(n, m, element="f16"), *(given(m, element=weights) for _ in range(2))) for n, m in sizes]


def residual(g: Graph) -> None:
    """Two whole rows are stored, the first of them before the reduction."""
    x, y = (g.input(name, "n", "m", element="f16") for name in "xy")
    total = g.add(x, y)
    scale = g.rsqrt(g.mean(g.mul(wide(g, total), wide(g, total)), axes=[1], keep=True))
    g.give(g.op("cast", g.mul(wide(g, total), scale), element="f16"), total)


def residual_by_torch(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    total = x + y
    wide = total.double()
    return (wide * wide.square().mean(1, keepdim=True).rsqrt()).to(x.dtype), total


def extrema(g: Graph, element: str) -> None:
    x = g.input("x", "n", "m", element=element)
    g.give(*(g.op(name, x, axes=[1]) for name in ("amax", "amin", "sum")))


def masked(g: Graph) -> None:
    """Rows of the mask lie otherwise than those of what it is added to."""
    x, mask = g.input("x", "a", "b", "m", element="f16"), g.input("mask", "b", "m", element="f16")
    g.give(g.softmax_of(g.add(x, mask), 2))


def places(g: Graph) -> None:
    """Coordinates are computed with."""
    x = g.input("x", "n", "m", element="f16")
    place = wide(g, g.iota(element="i64", start=0, step=1, shape=("m",)))
    g.give(g.sum(g.mul(wide(g, x), place), axes=[1]))


def widened(g: Graph) -> None:
    """What is stored is wider than what is loaded."""
    x = wide(g, g.input("x", "n", "m", element="f16"))
    g.give(g.sub(x, g.amax(x, axes=[1], keep=True)))


def pointwise(g: Graph, n: int | str = "n", m: int | str = "m") -> None:
    """No reduction: operands of a row and of a column beside a whole one."""
    x, row, column = (
        g.input(name, *sizes, element="f16") for name, sizes in [("x", (n, m)), ("r", (m,)), ("c", (n, 1))]
    )
    g.give(g.add(g.silu(g.add(g.mul(x, row), column)), x))


def pointwise_by_torch(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return F.silu(x * row + column) + x


def pointwise_calls(sizes: Sequence[tuple[int, int]]) -> list[tuple[Tensor, ...]]:
    return [tuple(given(*s, element="f16") for s in ((n, m), (m,), (n, 1))) for n, m in sizes]


def joined(g: Graph, n: int | str, parts: Sequence[int | str]) -> None:
    g.give(g.concat(*[g.input(f"x{i}", n, m, element="f16") for i, m in enumerate(parts)], axis=1))


def joined_calls(sizes: Sequence[tuple[int, ...]]) -> list[tuple[Tensor, ...]]:
    return [tuple(given(n, m, element="f16") for m in parts) for n, *parts in sizes]


def looked_up(g: Graph) -> None:
    """What each row adds lies in a row by index."""
    ids = g.input("ids", "n", element="i64")
    g.give(g.add(g.take(g.input("table", "k", "m", element="f16"), ids, axis=0), g.input("x", "n", "m", element="f16")))


def padded(g: Graph) -> None:
    g.give(g.exp(g.pad(g.input("x", "n", "m", element="f16"), low=(1, 3), high=(0, 6), value=0.5)))


def special(n: int, m: int, element: str) -> Tensor:
    """NaN and infinities at the ends of rows, and rows of nothing but -inf."""
    x = given(n, m, element=element)
    x[0, -1], x[1, 0], x[2, -1], x[3, 0] = float("nan"), float("nan"), float("inf"), -float("inf")
    x[4] = -float("inf")
    return x


def spaced(x: Tensor, stride: int, offset: int) -> Tensor:
    """The same values, rows so far apart, in a memory of NaN."""
    memory = torch.full((x.shape[0] * stride + offset,), float("nan"), dtype=x.dtype)
    return memory.as_strided(x.shape, (stride, 1), offset).copy_(x)


FREE = {
    **{
        f"softmax {element}": Case(
            "softmax",
            partial(softmax, element=element),
            [*calls(element), (special(7, 1021, element),)],
            lambda x: x.softmax(1),
        )
        for element in ("f16", "bf16", "f32", "f64")
    },
    **{
        f"layer norm, weights {weights}": Case(
            "layer norm",
            partial(layer_norm, weights=weights),
            [
                *norm_calls(SIZES, weights),
                *[(x, misaligned(w), misaligned(b)) for x, w, b in norm_calls([(9, 4095), (9, 1021)], weights)],
            ],
            layer_norm_by_torch,
        )
        for weights in ("f16", "f32")
    },
    "residual": Case(
        "residual",
        residual,
        [(given(n, m, element="f16"), given(n, m, element="f16")) for n, m in [(3, 1021), (9, 4095), (5, 4999)]],
        residual_by_torch,
    ),
    **{
        f"extrema {element}": Case(
            "extrema",
            partial(extrema, element=element),
            calls(element),
            lambda x: (x.amax(1), x.amin(1), x.sum(1, dtype=x.dtype)),
        )
        for element in ("f32", "i32", "i64")
    },
    "extrema of NaN": Case(
        "extrema",
        partial(extrema, element="f16"),
        [(special(7, m, "f16"),) for m in (1021, 4999)],
        lambda x: (x.amax(1), x.amin(1), x.sum(1)),
    ),
    "masked": Case(
        "masked",
        masked,
        [(given(a, b, m, element="f16"), given(b, m, element="f16")) for a, b, m in [(2, 3, 1021), (3, 5, 4999)]],
        lambda x, mask: (x + mask).softmax(2),
    ),
    "places": Case(
        "places",
        places,
        calls(),
        lambda x: (x.double() * torch.arange(x.shape[1]).double()).sum(1).float(),
        slack=1e-5,
    ),
    "widened": Case("widened", widened, calls(), lambda x: x.float() - x.float().amax(1, keepdim=True), slack=1e-6),
    "few long rows": Case(
        "softmax",
        partial(softmax, element="f16"),
        [(given(n, m, element="f16"),) for n, m in [(1, 12293), (3, 12299), (2, 40008), (1, 100003)]],
        lambda x: x.softmax(1),
    ),
    "all of it": Case(
        "extrema",
        lambda g: g.give(g.sum(g.input("x", "n", element="f16"), axes=[0])),
        [(given(n, element="f16"),) for n in (1, 7, 4095, 100003)],
        lambda x: x.sum(),
    ),
    "pointwise": Case(
        "pointwise",
        pointwise,
        [
            *pointwise_calls([*SIZES, (3, 127), (3, 129), (0, 700)]),
            *[(misaligned(x), row, column) for x, row, column in pointwise_calls([(3, 1021)])],
            *[(spaced(x, 1027, 3), misaligned(row), column) for x, row, column in pointwise_calls([(9, 1021)])],
            *[(spaced(x, 1032, 0), misaligned(row), column) for x, row, column in pointwise_calls([(9, 1021)])],
        ],
        pointwise_by_torch,
    ),
    "joined": Case(
        "joined",
        partial(joined, n="n", parts=("a", "b", "c")),
        joined_calls(
            [(9, 1365, 1023, 1707), (3, 0, 129, 5), (9, 7, 1, 600), (2, 1024, 8, 3), (5, 3, 0, 0), (9, 257, 255, 1)]
        ),
        lambda *parts: torch.cat(parts, 1),
    ),
    "looked up": Case(
        "looked up",
        looked_up,
        [
            (torch.arange(n) * 3 % 7, given(7, m, element="f16"), given(n, m, element="f16"))
            for n, m in [(9, 1021), (3, 4095), (1, 520), (17, 129), (5, 31)]
        ],
        lambda ids, table, x: table[ids] + x,
    ),
    "padded": Case("padded", padded, calls(), lambda x: F.pad(x, (3, 6, 1, 0), value=0.5).exp()),
    "other layouts": Case(
        "softmax",
        partial(softmax, element="f16"),
        [
            *[(misaligned(given(n, m, element="f16")),) for n, m in [(3, 600), (5, 1021), (3, 4999), (7, 17)]],
            *[(spaced(given(5, 1021, element="f16"), *how),) for how in [(1022, 0), (1024, 0), (1027, 3), (1040, 8)]],
        ],
        lambda x: x.softmax(1),
    ),
    "short": Case(
        "softmax",
        partial(softmax, element="f16"),
        [(given(n, m, element="f16"),) for m in (1, 7, 8, 9, 15, 16, 17, 31) for n in (1, 5)]
        + [(given(n, m, element="f16"),) for n, m in [(0, 5), (0, 1021), (3, 512)]],
        lambda x: x.softmax(1),
    ),
    "empty": Case(
        "extrema",
        lambda g: g.give(g.sum(g.input("x", "n", "m", element="f16"), axes=[1])),
        [(given(n, m, element="f16"),) for n, m in [(3, 0), (0, 0), (2, 1021)]],
        lambda x: x.sum(1),
    ),
}
"""Sizes that only a call tells."""


def fixed(n: int, m: int, element: str) -> Case:
    build = partial(softmax, n=n, m=m, element=element)
    return Case(f"softmax of {n} x {m}", build, [(given(n, m, element=element),)], lambda x: x.softmax(1))


FIXED = {
    "warp": fixed(8011, 131, "f16"),
    "warp, full": fixed(1049, 1017, "f16"),
    "block": fixed(1033, 1018, "f16"),
    "block of 257 vectors": fixed(515, 2047, "f16"),
    "block, two vectors": fixed(257, 4095, "f16"),
    "block, f32": fixed(1031, 1021, "f32"),
    "loop": fixed(117, 8999, "f16"),
    "pointwise, fixed": Case(
        "pointwise", partial(pointwise, n=515, m=2047), pointwise_calls([(515, 2047)]), pointwise_by_torch
    ),
    "pointwise of a warp": Case(
        "pointwise", partial(pointwise, n=8011, m=131), pointwise_calls([(8011, 131)]), pointwise_by_torch
    ),
    "joined, fixed": Case(
        "joined",
        partial(joined, n=515, parts=(683, 511, 855)),
        joined_calls([(515, 683, 511, 855)]),
        lambda *parts: torch.cat(parts, 1),
    ),
    "norm": Case("norm", partial(layer_norm, n=259, m=4093), norm_calls([(259, 4093)]), layer_norm_by_torch),
}
CASES = FREE | FIXED


@cache
def compiled() -> Batch:
    batch = Batch()
    for case in CASES.values():
        batch.rehearse(batch.add(case.module()), case.calls)
    return batch


@pytest.mark.parametrize("name", CASES)
def test_rows_that_start_anywhere_give_what_torch_gives(name: str) -> None:
    case = CASES[name]
    for seed in ORDER_SEEDS[: 1 if name in FIXED else None]:
        module = compiled().module([*CASES].index(name), seed)
        for arguments in case.calls:
            check_call(module, case, arguments)


def test_the_kernels_compile_for_sm_90() -> None:
    assert compile_cubin(compiled().text(compiled().needed)).data


def launched(case: Case, call: Sequence[Any]) -> list[str]:
    """How the launched kernels walk rows."""
    batch = Batch()
    number = batch.add(case.module())
    batch.rehearse(number, [call])
    names = {unit: name for name, unit in reversed(batch.names[number].items())}
    return sorted(re.sub(r".*?_(?=thread|warp|column|block|v\d)", "", names[unit], count=1) for unit in batch.needed)


@pytest.mark.parametrize(
    ("name", "call", "kernel"),
    [
        ("softmax f16", lambda: given(5, 520, element="f16"), "block16_v8"),
        ("softmax f16", lambda: given(5, 512, element="f16"), "warp16_v8"),
        ("softmax f16", lambda: given(5, 511, element="f16"), "warp16_v1"),
        ("softmax f16", lambda: given(5, 513, element="f16"), "block16_v8_shifted"),
        ("softmax f16", lambda: given(5, 4601, element="f16"), "block16_v8_shifted"),
        ("softmax f16", lambda: given(5, 4602, element="f16"), "blocklong_v8_shifted"),
        ("softmax f16", lambda: misaligned(given(5, 1021, element="f16")), "blocklong_v1_i64"),
        ("few long rows", lambda: given(3, 12299, element="f16"), "blocklong_step{}_v8_shifted_i64"),
        ("pointwise", lambda: pointwise_calls([(5, 1021)])[0], "block16_v8_shifted"),
        ("pointwise", lambda: pointwise_calls([(5, 4999)])[0], "v1"),
        ("pointwise", lambda: pointwise_calls([(5, 127)])[0], "v1"),
        ("pointwise", lambda: pointwise_calls([(5, 1024)])[0], "v8"),
        ("pointwise, fixed", lambda: FIXED["pointwise, fixed"].calls[0], "block8_v8_shifted"),
        ("pointwise of a warp", lambda: FIXED["pointwise of a warp"].calls[0], "warp8_v8_shifted"),
        ("joined, fixed", lambda: FIXED["joined, fixed"].calls[0], "block16_v8_shifted"),
        ("joined", lambda: joined_calls([(5, 683, 511, 855)])[0], "block16_v8_shifted"),
        ("joined", lambda: joined_calls([(5, 683, 511, 854)])[0], "v8"),
        ("softmax f32", lambda: given(5, 1021), "block16_v4_shifted"),
        ("widened", lambda: given(5, 1021, element="f16"), "block16_v4_shifted"),
        ("warp", lambda: given(8011, 131, element="f16"), "warp8_v8_shifted"),
        ("warp, full", lambda: given(1049, 1017, element="f16"), "warp32_v8_shifted"),
        ("block", lambda: given(1033, 1018, element="f16"), "block8_v8_shifted"),
        ("block, two vectors", lambda: given(257, 4095, element="f16"), "block16_v8_shifted"),
        ("loop", lambda: given(117, 8999, element="f16"), "blocklong_v8_shifted"),
    ],
)
def test_sizes_and_addresses_decide_where_vectors_start(
    name: str, call: Callable[[], Tensor | Sequence[Tensor]], kernel: str
) -> None:
    steps = 3 if "{}" in kernel else 1
    assert launched(CASES[name], [made] if isinstance(made := call(), Tensor) else made) == list(
        map(kernel.format, range(steps))
    )


@pytest.mark.parametrize(
    ("sizes", "element"),
    [((16, 131), "f16"), ((8192, 127), "f16"), ((8192, 132), "f16"), ((8192, 130), "f32"), ((8192, 136), "f16")],
    ids=["few elements", "short rows", "vectors of 8 bytes", "vectors of 8 bytes in f32", "whole vectors"],
)
def test_no_variant_is_made_where_none_pays(sizes: tuple[int, int], element: str) -> None:
    batch = Batch()
    batch.add(fixed(*sizes, element).module())
    assert "shifted" not in str(batch.names)
