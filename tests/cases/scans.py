"""Scans of every kind of row, alone and with what comes before and after; positions of extrema."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.tests.cases.table import case, given, lying
from dlcb.tests.graphs import Graph

ROWS = [(0, 5), (5, 0), (1, 1), (3, 7), (7, 1), (2, 127), (3, 256), (2, 1031), (2, 4096), (1, 5003)]

for element, axis in [("f32", 1), ("f32", 0), ("f16", 1), ("bf16", 0), ("f64", 1)]:

    @case(
        f"cumsum {element} along {axis}",
        [(given(n, m, element=element, low=-1, high=2),) for n, m in ROWS]
        + [(x,) for x in lying(9, 40, element=element)],
        lambda x, axis=axis: (x * 2).cumsum(axis) + 1,
    )
    def _(g: Graph, element: str = element, axis: int = axis) -> None:
        x = g.input("x", "n", "m", element=element)
        g.give(g.add(g.cumsum(g.mul(x, g.number(2.0)), axis=axis), g.number(1.0)))


@case(
    "scans of integers and truth values wrap and count",
    [
        (
            given(n, m, element="i32", low=-99, high=99),
            given(n, m, element="i64", low=-(2**60), high=2**60),
            given(n, m, element="i1"),
        )
        for n, m in [(3, 5), (2, 1500), (1, 1), (0, 3), (4, 0)]
    ],
    lambda k, n, t: (k.cumsum(1), n.cumprod(1), t.cumsum(1), k.cummax(1).values, t.cummin(1).values),
)
def _(g: Graph) -> None:
    k, wide, t = (g.input(name, "n", "m", element=e) for name, e in (("k", "i32"), ("w", "i64"), ("t", "i1")))
    g.give(
        g.cumsum(k, axis=1, element="i64"),
        g.cumprod(wide, axis=1),
        g.cumsum(t, axis=1, element="i64"),
        g.cummax(k, axis=1),
        g.cummin(t, axis=1),
    )


def sparse(n: int, m: int, value: float) -> Tensor:
    """Few distinct numbers, a row with `value` in it here and there."""
    return torch.where(given(n, m) > 2.9, value, given(n, m).round())


def running_extrema(x: Tensor) -> tuple[Tensor, ...]:
    low, high = x.cummin(1), x.cummax(1)
    return low.values, low.indices, high.values, high.indices


@case(
    "running extrema with positions: ties, NaN, infinities",
    [(sparse(n, m, float("nan")),) for n, m in ROWS]
    + [(sparse(3, 300, v),) for v in (float("inf"), float("-inf"))]
    + [(x.round(),) for x in lying(9, 40)],
    running_extrema,
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    low, high = g.cummin(x, axis=1), g.cummax(x, axis=1)
    g.give(
        low,
        g.last_position(x, low, axis=1, element="i64"),
        high,
        g.last_position(x, high, axis=1, element="i64"),
    )


@case(
    "running extrema across memory",
    [(sparse(m, n, float("nan")), given(m, 600)) for n, m in ROWS],
    lambda x, y: (x.cummax(0).values, x.cummax(0).indices, y.cummin(0).indices),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", 600)
    high, low = g.cummax(x, axis=0), g.cummin(y, axis=0)
    g.give(high, g.last_position(x, high, axis=0, element="i64"), g.last_position(y, low, axis=0, element="i64"))


@case(
    "a scan between reductions of its row",
    [(given(n, m),) for n, m in [(3, 5), (1, 1), (0, 4), (5, 300), (2, 3000)]] + [(x,) for x in lying(9, 40)],
    lambda x: (
        x.softmax(1).cumsum(1),
        (x.softmax(1).cumsum(1) < 0.5).sum(1),
        x.softmax(1).cumsum(1) / x.softmax(1).cumsum(1).amax(1, keepdim=True) * x,
        x.logcumsumexp(1).exp().cumsum(1).mean(1),
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    total = g.cumsum(g.softmax_of(x, 1), axis=1)
    below = g.sum(g.cast(g.lt(total, g.number(0.5)), element="i64"), axes=[1])
    share = g.mul(g.div(total, g.amax(total, axes=[1], keep=True)), x)
    g.give(total, below, share, g.mean(g.cumsum(g.exp(g.logcumsumexp(x, axis=1)), axis=1), axes=[1]))


@case(
    "scans of the middle, the first and the last of three dims, of views and broadcasts",
    [(x, given(7)) for x in (*lying(5, 6, 7), given(1, 1, 7), given(2, 70, 7), given(2, 300, 7))],
    lambda x, y: (
        x.cumsum(1),
        x.permute(2, 0, 1).cumsum(0),
        (x + y).cumprod(2),
        x.flip(2).cumsum(2).flip(2),
        y.expand(x.shape[1], 7).cumsum(0),
        x.cumsum(1)[:, -1],
    ),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "a", "b", 7), g.input("y", 7)
    middle = g.cumsum(x, axis=1)
    back = g.flip(g.cumsum(g.flip(x, axes=[2]), axis=2), axes=[2])
    wide = g.expand(y, shape=("b", 7))
    flipped = g.flip(middle, axes=[1])
    last = g.reshape(g.slice(flipped, (0, 0, 0), ("a", 1, 7)), shape=("a", 7))
    g.give(
        middle,
        g.cumsum(g.permute(x, order=[2, 0, 1]), axis=0),
        g.cumprod(g.add(x, y), axis=2),
        back,
        g.cumsum(wide, axis=0),
        last,
    )


@case(
    "a scan along a dim of size 1, of one element, and of literal rows of two classes",
    [(given(n, 1), given(n, 96), given(n, 2000)) for n in (0, 1, 5, 70)],
    lambda x, y, z: (x.cumsum(1), y.cumsum(1), z.cumsum(1), z.cumprod(1)),
)
def _(g: Graph) -> None:
    x, y, z = g.input("x", "n", 1), g.input("y", "n", 96), g.input("z", "n", 2000)
    g.give(g.cumsum(x, axis=1), g.cumsum(y, axis=1), g.cumsum(z, axis=1), g.cumprod(z, axis=1))


def positions(g: Graph, x: SSAValue, axes: Any, keep: bool, largest: bool = True) -> tuple[SSAValue, SSAValue]:
    best = g.amax(x, axes=axes, keep=True) if largest else g.amin(x, axes=axes, keep=True)
    return best, g.position(x, best, axes=axes, keep=keep, element="i64")


@case(
    "positions of extrema: ties, NaN, both of one read",
    [(sparse(n, m, float("nan")),) for n, m in ROWS if m and n] + [(x.round(),) for x in lying(9, 40)],
    lambda x: (x.argmax(1), x.argmin(0), x.argmax(), *x.max(1, keepdim=True), *x.min(0, keepdim=True)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    high, at_high = positions(g, x, [1], True)
    low, at_low = positions(g, x, [0], True, largest=False)
    first = positions(g, x, [1], False)[1]
    lowest = positions(g, x, [0], False, largest=False)[1]
    g.give(first, lowest, positions(g, x, [0, 1], False)[1], high, at_high, low, at_low)


@case(
    "half-precision ties are those of the rounded numbers",
    [(given(40, m, element="f16").abs() + 1,) for m in (700, 900)],
    lambda x: (x.half().log().argmax(1), x.half().log().cummax(1).indices),
)
def _(g: Graph) -> None:
    x = g.log(g.input("x", "n", "m", element="f16"))
    best, running = g.amax(x, axes=[1], keep=True), g.cummax(x, axis=1)
    g.give(g.position(x, best, axes=[1], element="i64"), g.last_position(x, running, axis=1, element="i64"))


ZEROS = [torch.where(given(3, m) > 0, -0.0, torch.where(given(3, m) > 2.9, -1.0, 0.0)) for m in (5, 600, 2500)]


@case(
    "of equal numbers the last is the running extremum: 0 and -0",
    [(x, x.T.contiguous()) for x in ZEROS],
    lambda x, y: (1 / x.cummax(1).values, 1 / x.cummin(1).values, 1 / y.cummin(0).values),
)
def _(g: Graph) -> None:
    x, y, one = g.input("x", "n", "m"), g.input("y", "m", "n"), g.number(1.0)
    g.give(
        g.div(one, g.cummax(x, axis=1)),
        g.div(one, g.cummin(x, axis=1)),
        g.div(one, g.cummin(y, axis=0)),
    )


def long_carry(x: Tensor) -> Tensor:
    return (x.exp() * 1e-3).cumsum(1)


@case("a carry through many tiles", [(given(2, 40_003),), (given(1, 20_000),)], long_carry)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    g.give(g.cumsum(g.mul(g.exp(x), g.number(1e-3)), axis=1))
