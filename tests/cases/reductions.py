"""Reductions: of every axis, chains of them, rows that are read again, softmax and norms."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.dialects.shape.expr import mul, sub, sym
from dlcb.tests.cases.table import FLOATS, SHAPES_2D, case, given, lying
from dlcb.tests.graphs import Graph, stepped

for element in FLOATS:
    for axes, keep in [((1,), True), ((0,), False), ((0, 1), False)]:

        @case(
            f"sum {element} over {axes}",
            [(given(n, m, element=element),) for n, m in [*SHAPES_2D, (2, 5000), (300, 33), (33, 300)]]
            + [(x,) for x in lying(9, 40, element=element)],
            lambda x, axes=axes, keep=keep: (x * 2).sum(axes, keepdim=keep),
        )
        def _(g: Graph, element: str = element, axes: Any = axes, keep: bool = keep) -> None:
            x = g.input("x", "n", "m", element=element)
            g.give(g.sum(g.mul(x, g.number(2.0)), axes=axes, keep=keep))


for axes, keep in [((1,), False), ((0, 2), True), ((1, 2), False), ((2,), True), ((0,), True), ((0, 1, 2), True)]:

    @case(
        f"amax, mean, sum of {axes}",
        [(x,) for x in (*lying(5, 6, 7), given(1, 1, 1), given(3, 1, 5), given(2, 70, 3), given(2, 3, 300))],
        lambda x, axes=axes, keep=keep: (
            x.amax(axes, keepdim=keep),
            x.exp().mean(axes, keepdim=keep),
            (x > 0).any(axes[0]) if len(axes) == 1 else x.sum(axes),
        ),
    )
    def _(g: Graph, axes: Any = axes, keep: bool = keep) -> None:
        x = g.input("x", "a", "b", "c")
        zero = g.number(0.0)
        last = g.any(g.gt(x, zero), axes=axes) if len(axes) == 1 else g.sum(x, axes=axes)
        g.give(g.amax(x, axes=axes, keep=keep), g.mean(g.exp(x), axes=axes, keep=keep), last)


@case(
    "empty rows",
    [(given(n, m), given(n, m, element="i64")) for n, m in [(3, 0), (0, 0), (0, 3), (3, 1)]],
    lambda x, k: (x.sum(1), x.mean(1), x.prod(1), k.sum(1), (k > 0).all(1), (k > 0).any(1)),
)
def _(g: Graph) -> None:
    x, k = g.input("x", "n", "m"), g.input("k", "n", "m", element="i64")
    zero = g.number(0, "i64")
    truth = g.gt(k, zero)
    g.give(
        g.sum(x, axes=[1]),
        g.mean(x, axes=[1]),
        g.prod(x, axes=[1]),
        g.sum(k, axes=[1]),
        g.all(truth, axes=[1]),
        g.any(truth, axes=[1]),
    )


@case(
    "reduced dims of size 1",
    [(given(n, 1),) for n in (0, 1, 5, 300)] + [(stepped(given(5, 1)),)],
    lambda x: (x.sum(1, keepdim=True), x.exp().sum(1, keepdim=True) + x, x.amax(1)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", 1)
    g.give(g.sum(x, axes=[1], keep=True), g.add(g.sum(g.exp(x), axes=[1], keep=True), x), g.amax(x, axes=[1]))


@case(
    "extrema of integers and NaN",
    [
        (
            given(3, 5, element="i32", low=-99, high=99),
            given(3, 5).masked_fill(given(3, 5, element="i1"), float("nan")),
        ),
        (given(1, 1, element="i32"), torch.full((1, 1), float("-inf"))),
        (
            given(40, 700, element="i32", low=-99, high=99),
            torch.where(given(40, 700) > 2.99, float("nan"), given(40, 700)),
        ),
    ],
    lambda k, x: (k.amax(1), k.amin(0), x.amax(1), x.amin(1)),
)
def _(g: Graph) -> None:
    k, x = g.input("k", "n", "m", element="i32"), g.input("x", "n", "m")
    g.give(g.amax(k, axes=[1]), g.amin(k, axes=[0]), g.amax(x, axes=[1]), g.amin(x, axes=[1]))


for element in FLOATS:

    @case(
        f"softmax {element}",
        [
            (given(n, m, element=element),)
            for n, m in [(3, 5), (1, 1), (5, 1), (0, 4), (17, 64), (2, 520), (2, 4100), (2, 9001)]
        ]
        + [(x,) for x in lying(9, 40, element=element)],
        lambda x: x.softmax(-1),
    )
    def _(g: Graph, element: str = element) -> None:
        g.give(g.softmax(g.input("x", "n", "m", element=element), axis=1))

    @case(
        f"layer norm {element}",
        [
            (given(b, n, 24, element=element), given(24, element=element), given(24, element=element))
            for b, n in [(2, 3), (1, 1), (0, 4), (3, 130)]
        ]
        + [(x, given(24, element=element), given(24, element=element)) for x in lying(3, 5, 24, element=element)],
        lambda x, w, b: F.layer_norm(x, (24,), w, b, 1e-5),
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "b", "n", 24, element=element)
        w, b = g.input("w", 24, element=element), g.input("s", 24, element=element)
        g.give(g.layer_norm(x, w, b, axes=1, eps=1e-5))


@case(
    "softmax over the middle, and over rows that are columns",
    [(x, y) for x, y in zip(lying(3, 5, 7), lying(9, 4), strict=True)]
    + [(given(1, 1, 1), given(1, 1)), (given(2, 300, 3), given(70, 3))],
    lambda x, y: (x.softmax(1), y.softmax(0)),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "a", "b", "c"), g.input("y", "n", "m")
    g.give(g.softmax_of(x, 1), g.softmax_of(y, 0))


@case(
    "layer norm over two dims",
    [(given(2, h, w), given(h, w)) for h, w in [(3, 4), (1, 1), (16, 16), (5, 33)]]
    + [(x, given(5, 6)) for x in lying(3, 5, 6)],
    lambda x, w: F.layer_norm(x, x.shape[1:], w, None, 1e-5),
)
def _(g: Graph) -> None:
    x, w = g.input("x", "n", "h", "w"), g.input("weight", "h", "w")
    g.give(g.layer_norm(x, w, axes=2, eps=1e-5))


@case(
    "rms norm with a residual that escapes",
    [(given(n, 48), given(n, 48), given(48)) for n in (0, 1, 5)] + [(x, given(4, 48), given(48)) for x in lying(4, 48)],
    lambda x, y, w: (x + y, F.rms_norm(x + y, (48,), w, 1e-5)),
)
def _(g: Graph) -> None:
    x, y, w = g.input("x", "n", 48), g.input("y", "n", 48), g.input("w", 48)
    s = g.add(x, y)
    g.give(s, g.rms_norm(s, w, axes=1, eps=1e-5))


@case(
    "variance and mean of one read",
    [(given(n, m),) for n, m in [(3, 5), (7, 100), (2, 2000), (1, 2)]] + [(x,) for x in lying(9, 40)],
    lambda x: (x.var(1), x.mean(1), (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1e-3).sqrt()),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    mean = g.mean(x, axes=[1], keep=True)
    centered = g.sub(x, mean)
    squares = g.sum(g.mul(centered, centered), axes=[1], keep=True)
    count = g.size(element="f32", dim=g.dim(sub(sym("m"), 1)), shape=())
    var = g.div(squares, count)
    scale = g.sqrt(g.add(var, g.number(1e-3)))
    g.give(g.reshape(var, shape=("n",)), g.reshape(mean, shape=("n",)), g.div(centered, scale))


@case(
    "two reductions at one level, a chain of three, and what uses them",
    [(given(n, m),) for n, m in [(3, 5), (1, 1), (0, 4), (5, 300), (3, 5000)]] + [(x,) for x in lying(9, 40)],
    lambda x: (
        (x - x.amin(1, keepdim=True)) / (x.amax(1, keepdim=True) - x.amin(1, keepdim=True) + 1),
        (x - x.amin(1, keepdim=True)).sum(1),
        ((x - x.amin(1, keepdim=True)) / (x - x.amin(1, keepdim=True)).sum(1, keepdim=True).add(1)).pow(2).sum(1),
        x.amax(1, keepdim=True) * 2,
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    low, high = g.amin(x, axes=[1], keep=True), g.amax(x, axes=[1], keep=True)
    one = g.number(1.0)
    moved = g.sub(x, low)
    total = g.sum(moved, axes=[1], keep=True)
    share = g.div(moved, g.add(total, one))
    g.give(
        g.div(moved, g.add(g.sub(high, low), one)),
        g.reshape(total, shape=("n",)),
        g.sum(g.mul(share, share), axes=[1]),
        g.mul(high, g.number(2.0)),
    )


@case(
    "reductions over different axes of one value",
    [(given(n, m),) for n, m in [(3, 5), (1, 1), (70, 40)]] + [(x,) for x in lying(9, 40)],
    lambda x: (x.exp().sum(0), x.exp().sum(1), x.exp().sum(), x.exp() / x.exp().sum(0) + x.exp().sum(1, keepdim=True)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    e = g.exp(x)
    a, b = g.sum(e, axes=[0]), g.sum(e, axes=[1], keep=True)
    g.give(a, g.reshape(b, shape=("n",)), g.sum(e, axes=[0, 1]), g.add(g.div(e, a), b))


@case(
    "reduction of a broadcast",
    [(given(n, 1), given(m)) for n, m in [(3, 5), (1, 1), (9, 600)]],
    lambda x, y: ((x * y).sum(1), (x + y).amax(0), (x * y).softmax(1)),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", 1), g.input("y", "m")
    p = g.mul(x, y)
    g.give(g.sum(p, axes=[1]), g.amax(g.add(x, y), axes=[0]), g.softmax_of(p, 1))


@case(
    "a reduction read elsewhere",
    [(given(n, n),) for n in (1, 4, 9)] + [(x,) for x in lying(6, 6)],
    lambda x: (x + x.sum(1), x.t() / x.sum(1, keepdim=True), x.sum(1, keepdim=True).expand(x.shape).sum(0)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "n")
    kept = g.sum(x, axes=[1], keep=True)
    total = g.reshape(kept, shape=("n",))
    g.give(g.add(x, total), g.div(g.permute(x, order=[1, 0]), kept), g.sum(g.expand(kept, shape=("n", "n")), axes=[0]))


@case(
    "group norm by reshape",
    [(given(n, 6, h, 4), given(6), given(6)) for n, h in [(2, 3), (1, 1), (3, 20)]]
    + [(x, given(6), given(6)) for x in lying(2, 6, 5, 4)],
    lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
)
def _(g: Graph) -> None:
    x, w, b = g.input("x", "n", 6, "h", 4), g.input("w", 6), g.input("b", 6)
    rest = g.dim(mul(8, sym("h")))
    y = g.layer_norm(g.reshape(x, shape=("n", 3, rest)), axes=1, eps=1e-5)
    y = g.reshape(y, shape=("n", 6, "h", 4))
    w, b = (g.reshape(v, shape=(6, 1, 1)) for v in (w, b))
    g.give(g.add(g.mul(y, w), b))


@case(
    "a sum that is read along its own row",
    [(given(n, n), given(n, n)) for n in (1, 4, 40)] + [(x, y) for x, y in zip(lying(6, 6), lying(6, 6), strict=True)],
    lambda x, y: y + x.sum(1) + x.sum(1, keepdim=True),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "n"), g.input("y", "n", "n")
    kept = g.sum(x, axes=[1], keep=True)
    along = g.add(y, g.reshape(kept, shape=("n",)))
    g.give(g.add(along, kept))


def doubled(x: Tensor) -> Tensor:
    for _ in range(30):
        x = (x + x) * 0.5
    return x.softmax(1)


@case("softmax of thirty doublings", [(given(3, 5),), (given(2, 2000),)], doubled)
def _(g: Graph) -> None:
    x: SSAValue = g.input("x", "n", "m")
    half = g.number(0.5)
    for _ in range(30):
        x = g.mul(g.add(x, x), half)
    g.give(g.softmax_of(x, 1))


@case(
    "a window that feeds a reduction, with a window beside it",
    [(given(2, 3, n),) for n in (5, 3, 64, 700)] + [(x,) for x in lying(2, 3, 8)],
    lambda x: (F.max_pool1d(x, 3, 1, 1).softmax(-1), F.max_pool1d(x, 3, 1, 1).sum(1), F.avg_pool1d(x, 2, 1).amax(-1)),
)
def _(g: Graph) -> None:
    x = g.input("x", "a", "b", "n")
    p = g.max_pool(x, kernel=[3], stride=[1], padding=[1], dilation=[1])
    a = g.avg_pool(x, kernel=[2], stride=[1], padding=[0], dilation=[1])
    g.give(g.softmax_of(p, 2), g.sum(p, axes=[1]), g.amax(a, axes=[2]))


@case(
    "an empty row beside what follows it",
    [(given(5, m), given(m), given(2)) for m in (0, 1, 3)],
    lambda x, y, z: x.sum(1) + torch.cat([y, z])[0],
)
def _(g: Graph) -> None:
    x, y, z = g.input("x", "n", "m"), g.input("y", "m"), g.input("z", "k")
    first = g.reshape(g.slice(g.concat(y, z, axis=0), (0,), (1,)), shape=())
    g.give(g.add(g.sum(x, axes=[1]), first))
