"""Reductions across memory, and of few long rows: a block has several columns, or a part of a row; rows that are stored
whole beside them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.dialects.shape.expr import maximum, mul, sub, sym
from dlcb.tests.cases.table import case, given, lying
from dlcb.tests.graphs import Graph, channels_last, expanded, stepped, transposed

COLUMNS = [(0, 5), (5, 0), (1, 1), (16, 33), (17, 33), (97, 1), (1009, 3), (700, 70), (20011, 3), (1500, 40)]
SEVERAL = [(17, 4), (40, 8), (97, 128), (1009, 12), (5003, 4), (700, 260)]
"""Columns of which a thread has several, if they are narrow."""


def with_nan(x: Tensor) -> Tensor:
    """One NaN, near the end."""
    x = x.clone()
    x.view(-1)[-2:-1] = float("nan")
    return x


for element in ("f32", "f16"):

    @case(
        f"sum and mean of columns {element}",
        [(given(n, m, element=element),) for n, m in COLUMNS + SEVERAL]
        + [(x,) for x in lying(90, 40, element=element)],
        lambda x: ((x * 2).sum(0), x.mean(0, keepdim=True)),
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", "m", element=element)
        g.give(g.sum(g.mul(x, g.number(2.0)), axes=[0]), g.mean(x, axes=[0], keep=True))


def variance(g: Graph, x: SSAValue, axes: list[int], count: Any) -> SSAValue:
    """Two reductions, one after the other; n - 1 as torch has it."""
    away = g.sub(x, g.mean(x, axes=axes, keep=True))
    total = g.sum(g.mul(away, away), axes=axes)
    return g.div(total, g.size(element="f32", dim=g.dim(maximum(sub(count, 1), 0)), shape=()))


@case(
    "variance of columns",
    [(given(n, m) + 100,) for n, m in [(2, 3), (40, 33), (900, 5), (9001, 5), (1200, 31)]]
    + [(x,) for x in lying(90, 40)],
    lambda x: (x.var(0), x.var()),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    g.give(variance(g, x, [0], sym("n")), variance(g, x, [0, 1], mul(sym("n"), sym("m"))))


@case(
    "several reductions of columns at once, and what uses them",
    [(given(n, m),) for n, m in [(1, 1), (40, 33), (700, 70), (20011, 3)]] + [(x,) for x in lying(90, 40)],
    lambda x: (
        x.amax(0) - x.amin(0),
        (x - x.amin(0)).sum(0) / (x.amax(0) - x.amin(0) + 1),
        ((x - x.amin(0)) * (x.amax(0) - x)).mean(0).exp(),
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    low, high = g.amin(x, axes=[0], keep=True), g.amax(x, axes=[0], keep=True)
    away, wide = g.sub(x, low), g.sub(high, low)
    total = g.sum(away, axes=[0], keep=True)
    both = g.mean(g.mul(away, g.sub(high, x)), axes=[0], keep=True)
    flat = [g.reshape(v, shape=("m",)) for v in (wide, g.div(total, g.add(wide, g.number(1.0))), g.exp(both))]
    g.give(*flat)


@case(
    "softmax of long columns",
    [(given(n, m),) for n, m in [(1, 1), (19, 33), (300, 70), (3, 0)]] + [(x,) for x in lying(90, 40)],
    lambda x: x.softmax(0),
)
def _(g: Graph) -> None:
    g.give(g.softmax_of(g.input("x", "n", "m"), 0))


@case(
    "integers, truth values and products of columns",
    [(given(n, m, element="i64", low=-99, high=99), given(n, m, element="f64") / 900 + 1) for n, m in COLUMNS[:8]]
    + [(given(20011, 3, element="i64", low=0, high=2), given(20011, 3, element="f64") / 900 + 1)]
    + [(k, x / 900 + 1) for k, x in zip(lying(90, 40, element="i64"), lying(90, 40, element="f64"), strict=True)],
    lambda k, x: (k.sum(0), (k == 1).all(0), (k > 97).any(), x.prod()),
)
def _(g: Graph) -> None:
    k, x = g.input("k", "n", "m", element="i64"), g.input("x", "n", "m", element="f64")
    ones = g.eq(k, g.number(1, "i64"))
    high = g.gt(k, g.number(97, "i64"))
    g.give(
        g.sum(k, axes=[0]),
        g.all(ones, axes=[0]),
        g.any(high, axes=[0, 1]),
        g.prod(x, axes=[0, 1]),
    )


@case(
    "extrema of columns and of all, with NaN",
    [
        (f(given(n, m)), given(n, m, element="i32", low=-99, high=99))
        for n, m in [(1, 2), (40, 33), (20011, 3), (200, 301)]
        for f in (lambda x: x, with_nan)
    ],
    lambda x, k: (x.amax(0), x.amin(), k.amax(0)),
)
def _(g: Graph) -> None:
    x, k = g.input("x", "n", "m"), g.input("k", "n", "m", element="i32")
    g.give(
        g.amax(x, axes=[0]),
        g.amin(x, axes=[0, 1]),
        g.amax(k, axes=[0]),
    )


@case(
    "axes that do not lie together",
    [(x,) for x in lying(5, 3, 7, 9)]
    + [(given(*sizes),) for sizes in [(1, 1, 1, 1), (0, 2, 3, 4), (2, 3, 0, 4), (61, 2, 31, 37), (3, 40, 120, 11)]],
    lambda x: (x.sum((0, 2)), x.mean((1, 3)), x.sum((0, 2, 3))),
)
def _(g: Graph) -> None:
    x = g.input("x", "a", "b", "c", "d")
    g.give(
        g.sum(x, axes=[0, 2]),
        g.mean(x, axes=[1, 3]),
        g.sum(x, axes=[0, 2, 3]),
    )


@case(
    "mean over the image, whatever the layout",
    [
        (f(given(*sizes)),)
        for sizes in [(2, 8, 7, 7), (1, 3, 130, 90), (3, 40, 1, 1)]
        for f in (torch.clone, channels_last)
    ],
    lambda x: x.relu().mean((2, 3)),
)
def _(g: Graph) -> None:
    g.give(g.mean(g.relu(g.input("x", "n", "c", "h", "w")), axes=[2, 3]))


for element in ("f32", "f16"):

    @case(
        f"all of a tensor in parts {element}",
        [(given(n, element=element),) for n in (0, 1, 1000, 24576, 24577, 32768, 100003, 40000)]
        + [(f(given(70000, element=element)),) for f in (stepped, transposed, expanded)],
        lambda x: (x * 0.125).mean(),
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", element=element)
        g.give(g.mean(g.mul(x, g.number(0.125)), axes=[0]))


@case(
    "few rows, of which each is cut into parts, with an operand a row",
    [(given(n, m), given(n)) for n, m in [(1, 40000), (3, 30011), (7, 26000), (600, 50), (0, 30000)]],
    lambda x, y: (x.sum(1) * y, (x * y[:, None]).amax(1)),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n")
    scaled = g.mul(x, g.reshape(y, shape=("n", 1)))
    g.give(g.mul(g.sum(x, axes=[1]), y), g.amax(scaled, axes=[1]))


IMAGES = [(0, 3, 2, 5), (2, 0, 3, 4), (1, 1, 1, 1), (2, 5, 7, 3), (2, 21, 31, 32), (1, 67, 71, 3), (3, 23, 29, 40)]

for element in ("f32", "f16", "bf16"):

    @case(
        f"silu of channels-last images, and its mean over each {element}",
        [(given(*sizes, element=element),) for sizes in IMAGES]
        + [(f(given(2, 29, 31, 24, element=element)),) for f in (stepped, transposed, channels_last)],
        lambda x: (torch.nn.functional.silu(x * 2 - 1), torch.nn.functional.silu(x * 2 - 1).mean((1, 2))),
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", "h", "w", "c", element=element)
        y = g.silu(g.sub(g.mul(x, g.number(2.0)), g.number(1.0)))
        g.give(y, g.mean(y, axes=[1, 2]))


for element in ("f32", "f16"):

    @case(
        f"softmax of few long rows, and of long columns {element}",
        [(given(*sizes, element=element),) for sizes in [(0, 5), (1, 13001), (3, 16384), (701, 32), (13001, 1)]]
        + [(f(given(700, 23, element=element)),) for f in (stepped, transposed, expanded)],
        lambda x: (x.softmax(0), x.softmax(1)),
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", "m", element=element)
        g.give(g.softmax_of(x, 0), g.softmax_of(x, 1))


def normalized(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    double, away = x * 2, x - x.amin(axis, keepdim=True)
    total = away.sum(axis, keepdim=True)
    return double, away, away / total, x > x.amin(axis, keepdim=True), x.amin(axis), total


for axis in (0, 1):

    @case(
        f"rows stored before, between and after reductions, axis {axis}",
        [(given(n, m),) for n, m in [(1, 1), (40, 33), (997, 31), (13007, 1), (2, 13008), (3, 12301)]],
        lambda x, axis=axis: normalized(x, axis),
    )
    def _(g: Graph, axis: int = axis) -> None:
        x = g.input("x", "n", "m")
        low = g.amin(x, axes=[axis], keep=True)
        away = g.sub(x, low)
        total = g.sum(away, axes=[axis], keep=True)
        flat = g.reshape(low, shape=("nm"[1 - axis],))
        g.give(g.mul(x, g.number(2.0)), away, g.div(away, total), g.gt(x, low), flat, total)
