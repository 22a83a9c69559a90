"""Pooling, and reads at places that data says."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.tests.cases.table import FLOATS, case, given, lying
from dlcb.tests.graphs import Graph, stepped, transposed

for element in FLOATS:

    @case(
        f"pooling {element}",
        [(given(n, 3, h, w, element=element),) for n, h, w in [(2, 9, 11), (1, 3, 3), (0, 5, 5), (2, 4, 70)]]
        + [(x,) for x in lying(2, 3, 8, 9, element=element)],
        lambda x: (
            F.max_pool2d(x.relu(), 3, 2, 1) if x.numel() else x.new_empty(0, 3, 3, 3),
            F.avg_pool2d(x, (2, 3), (1, 2), (1, 1), count_include_pad=False),
            F.max_pool2d(x, 2, 1, 0, (2, 1)) if x.numel() else x.new_empty(0, 3, 3, 4),
        ),
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", 3, "h", "w", element=element)
        g.give(
            g.max_pool(g.relu(x), kernel=[3, 3], stride=[2, 2], padding=[1, 1], dilation=[1, 1]),
            g.avg_pool(x, kernel=[2, 3], stride=[1, 2], padding=[1, 1], dilation=[1, 1]),
            g.max_pool(x, kernel=[2, 2], stride=[1, 1], padding=[0, 0], dilation=[2, 1]),
        )


@case(
    "pooling with ceil, then a mean",
    [(given(2, 3, h, w),) for h, w in [(7, 8), (5, 5), (2, 3)]] + [(x,) for x in lying(2, 3, 8, 9)],
    lambda x: (
        F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        F.avg_pool2d(x.exp(), 2, 2, 1, ceil_mode=True, count_include_pad=True),
        F.adaptive_avg_pool2d(F.max_pool2d(x, 3, 2, 1, ceil_mode=True), 1),
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "c", "h", "w")
    m = g.max_pool(x, kernel=[3, 3], stride=[2, 2], padding=[1, 1], dilation=[1, 1], ceil=True)
    a = g.avg_pool(
        g.exp(x), kernel=[2, 2], stride=[2, 2], padding=[1, 1], dilation=[1, 1], ceil=True, count_padding=True
    )
    g.give(m, a, g.mean(m, axes=[2, 3], keep=True))


@case(
    "pooling of one dim after a concat",
    [(given(2, 3, n), given(2, 2, n)) for n in (5, 3, 64)],
    lambda x, y: F.max_pool1d(torch.cat([x, y], 1), 3, 1, 1) + 1,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "b", 3, "n"), g.input("y", "b", 2, "n")
    p = g.max_pool(g.concat(x, y, axis=1), kernel=[3], stride=[1], padding=[1], dilation=[1])
    g.give(g.add(p, g.number(1.0)))


for kind in ("i64", "i32"):

    @case(
        f"embedding by {kind}",
        [(given(n, 8), given(b, k, element=kind, low=-n, high=n - 1)) for n, b, k in [(10, 2, 3), (1, 1, 1), (7, 0, 3)]]
        + [(x, stepped(given(3, 4, element=kind, low=0, high=9))) for x in lying(10, 8)],
        lambda x, i: (x[i] * 2, x[i].sum(-1), x.exp()[i + 1]),
    )
    def _(g: Graph, kind: str = kind) -> None:
        x, i = g.input("x", "n", 8), g.input("i", "b", "k", element=kind)
        t = g.take(x, i, axis=0)
        moved = g.add(i, g.number(1, kind))
        g.give(g.mul(t, g.number(2.0)), g.sum(t, axes=[2]), g.take(g.exp(x), moved, axis=0))


@case(
    "gather and take of the middle",
    [
        (given(3, 5, 4), given(3, 2, 4, element="i64", low=0, high=5), given(6, element="i64", low=-5, high=5)),
        (given(1, 1, 1), given(1, 1, 1, element="i64", low=0, high=1), given(1, element="i64", low=0, high=1)),
        (transposed(given(3, 5, 4)), stepped(given(2, 2, 3, element="i64", low=0, high=5)), given(0, element="i64")),
    ],
    lambda x, i, k: (torch.gather(x, 1, i), x[:, k] + 1),
)
def _(g: Graph) -> None:
    x = g.input("x", "a", "b", "c")
    i, k = g.input("i", "d", "e", "f", element="i64"), g.input("k", "l", element="i64")
    g.give(g.gather(x, i, axis=1), g.add(g.take(x, k, axis=1), g.number(1.0)))


@case(
    "take of a take",
    [(given(5, 3), given(4, element="i64", low=0, high=5), given(6, element="i64", low=-4, high=4))],
    lambda x, i, k: x[i][k] + x[i[k]],
)
def _(g: Graph) -> None:
    x, i, k = g.input("x", "n", 3), g.input("i", "a", element="i64"), g.input("k", "b", element="i64")
    g.give(g.add(g.take(g.take(x, i, axis=0), k, axis=0), g.take(x, g.take(i, k, axis=0), axis=0)))


def doubling(x: Tensor) -> Tensor:
    for _ in range(40):
        x = (x + x) * 0.5
    return F.max_pool1d(x, 3, 1, 1)


@case("a window over forty doublings", [(given(2, 9),)], doubling)
def _(g: Graph) -> None:
    x: SSAValue = g.input("x", "n", "m")
    half = g.number(0.5)
    for _ in range(40):
        x = g.mul(g.add(x, x), half)
    g.give(g.max_pool(x, kernel=[3], stride=[1], padding=[1], dilation=[1]))
