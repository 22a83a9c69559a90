"""Elementwise chains: broadcasting, sizes that are 1 only at run time, long chains, many operands, numbers."""

from __future__ import annotations

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.dialects.shape.expr import sub, sym
from dlcb.tests.cases.table import FLOATS, SHAPES_2D, case, given, lying
from dlcb.tests.graphs import Graph, misaligned, stepped, transposed

for element in FLOATS:

    @case(
        f"chain {element}",
        [(given(n, m, element=element), given(m, element=element)) for n, m in SHAPES_2D]
        + [(x, given(8, element=element)) for x in lying(6, 8, element=element)]
        + [(given(6, 8, element=element), y) for y in lying(8, element=element)],
        lambda x, y: torch.tanh(x * y + x).sigmoid(),
    )
    def _(g: Graph, element: str = element) -> None:
        x, y = g.input("x", "n", "m", element=element), g.input("y", "m", element=element)
        g.give(g.sigmoid(g.tanh(g.add(g.mul(x, y), x))))


@case(
    "sizes that are 1 only at run time",
    [
        (given(n, m), given(k, j))
        for (n, m), (k, j) in product([(3, 5), (1, 5), (3, 1), (1, 1), (0, 5)], repeat=2)
        if (n == k or 1 in (n, k)) and (m == j or 1 in (m, j))
    ]
    + [(x, given(1, 8)) for x in lying(6, 8)]
    + [(given(6, 8), x) for x in lying(6, 1)],
    lambda x, y: (x - y, (x - y).relu() + x),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "k", "l")
    d = g.sub(x, y)
    g.give(d, g.add(g.relu(d), x))


@case(
    "three ways to broadcast",
    [
        tuple(given(*s) for s in shapes)
        for shapes in [
            ((2, 3, 5), (3, 1), (5,)),
            ((1, 3, 5), (3, 1), (5,)),
            ((4, 1, 7), (3, 1), (7,)),
            ((4, 3, 1), (1, 1), (7,)),
            ((0, 1, 1), (1, 1), (1,)),
        ]
    ],
    lambda x, y, z: torch.maximum(x * y, z) + y,
)
def _(g: Graph) -> None:
    x, y, z = g.input("x", "a", "b", "c"), g.input("y", "d", 1), g.input("z", "e")
    g.give(g.add(g.maximum(g.mul(x, y), z), y))


@case(
    "five dims, one literal",
    [(x, given(3, 1, 1, 1)) for x in (*lying(2, 3, 2, 3, 4), given(1, 3, 1, 1, 1), given(2, 3, 0, 3, 4))],
    lambda x, y: x.exp() + y,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "a", 3, "b", "c", "d"), g.input("y", 3, 1, 1, 1)
    g.give(g.add(g.exp(x), y))


@case(
    "integers and truth",
    [
        (given(*s, element="i64", low=-9, high=9), given(*s, element="i32", low=1, high=5), given(*s, element="i1"))
        for s in [(7,), (0,), (1,), (5003,)]
    ]
    + [
        (
            stepped(given(9, element="i64")),
            misaligned(given(9, element="i32", low=1, high=5)),
            stepped(given(9, element="i1")),
        )
    ],
    lambda a, b, c: (torch.where(c, a, a + b), torch.remainder(a, b.long()), (a > 2) & c, ~c),
)
def _(g: Graph) -> None:
    a, b, c = (g.input(n, "n", element=e) for n, e in (("a", "i64"), ("b", "i32"), ("c", "i1")))
    wide = g.cast(b, element="i64")
    two = g.number(2, "i64")
    g.give(g.where(c, a, g.add(a, wide)), g.mod(a, wide), g.and_(g.gt(a, two), c), g.not_(c))


@case(
    "a scalar only",
    [(given(), given(4)), (given(), given(0))],
    lambda x, y: (x * 2, y + x * 2),
)
def _(g: Graph) -> None:
    x, y = g.input("x"), g.input("y", "n")
    d = g.mul(x, g.number(2.0))
    g.give(d, g.add(y, d))


def long_chain(x: Tensor) -> Tensor:
    for i in range(150):
        x = torch.sin(x) + 0.01 * i if i % 3 == 0 else x * 0.99
    return x


@case("a chain of 200 ops", [(given(5, 7),), (given(1, 1),)], long_chain)
def _(g: Graph) -> None:
    x: SSAValue = g.input("x", "n", "m")
    for i in range(150):
        x = (
            g.add(g.sin(x), g.number(0.01 * i, "f64"), element="f32")
            if i % 3 == 0
            else g.mul(x, g.number(0.99, "f64"), element="f32")
        )
    g.give(x)


@case(
    "forty operands",
    [tuple(given(3, 5) for _ in range(40)), tuple(given(0, 5) for _ in range(40))],
    lambda *xs: sum(xs),
)
def _(g: Graph) -> None:
    xs = [g.input(f"x{i}", "n", "m") for i in range(40)]
    total = xs[0]
    for x in xs[1:]:
        total = g.add(total, x)
    g.give(total)


@case("forty results", [(given(3, 5),), (given(1, 1),)], lambda x: [x * i for i in range(40)])
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    g.give(*[g.mul(x, g.number(float(i))) for i in range(40)])


@case(
    "a diamond",
    [(given(5, 8),), (given(0, 8),), (transposed(given(5, 8)),)],
    lambda x: (x.exp() + 1) * (x.exp() - 1) + (x.exp() + 1).sum(-1, keepdim=True),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    e = g.exp(x)
    a, b = g.add(e, g.number(1.0)), g.sub(e, g.number(1.0))
    g.give(g.add(g.mul(a, b), g.sum(a, axes=[1], keep=True)))


@case(
    "an argument comes back",
    [(given(3, 4),), (stepped(given(3, 4)),), (transposed(given(3, 4)),)],
    lambda x: (x + 1, x.clone()),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    g.give(g.add(x, g.number(1.0)), g.copy(x))


@case("one value twice", [(given(3, 4),)], lambda x: (x + 1, x + 1))
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    y = g.add(x, g.number(1.0))
    g.give(y, y)


@case(
    "arange, full and a size",
    [(given(5, 7),), (given(0, 7),), (given(1, 1),)],
    lambda x: (
        x + torch.arange(x.shape[1]) * 2,
        torch.full_like(x, 3),
        torch.arange(x.shape[0]),
        x / x.shape[1] if x.numel() else x,
        torch.full((2, 3), 7),
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    r = g.iota(element="i64", start=0, step=2, shape=("m",))
    s = g.size(element="f32", dim="m", shape=())
    g.give(
        g.add(x, g.cast(r, element="f32")),
        g.full(element="f32", shape=("n", "m"), value=3.0),
        g.iota(element="i64", start=0, step=1, shape=("n",)),
        g.div(x, s),
        g.full(element="i64", shape=(2, 3), value=7),
    )


@case("an integer argument", [(given(5, 7), 2), (given(5, 7), 0), (given(5, 7), 5)], lambda x, k: (x[k:] * k,))
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    k = g.integer("k")
    rest = g.dim(sub(sym("n"), sym("k")))
    s = g.slice(x, (k, 0), (rest, "m"))
    g.give(g.mul(s, g.size(element="f32", dim=k, shape=())))


def deep(x: Tensor) -> Tensor:
    for _ in range(96):
        x = F.gelu(x) + F.gelu(x.t()).t() * 0.25
    return x


@case("deep: gelu and views", [(given(4, 4),)], deep)
def _(g: Graph) -> None:
    x: SSAValue = g.input("x", 4, 4)
    quarter = g.number(0.25)
    for _ in range(96):
        turned = g.permute(x, order=[1, 0])
        x = g.add(g.gelu(x), g.mul(g.permute(g.gelu(turned), order=[1, 0]), quarter))
    g.give(x)


@case(
    "large integers as numbers",
    [(given(5, element="i64"), k) for k in (3, 0, -7, 2**31 - 1, 2**31, 2**40, -(2**35))],
    lambda x, k: (x * k, torch.arange(k, k + 2 * x.shape[0], 2), x.double() / max(k, 1)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", element="i64")
    k = g.integer("k")
    number = g.size(element="i64", dim=k, shape=())
    most = g.maximum(g.size(element="f64", dim=k, shape=()), g.number(1.0, "f64"))
    g.give(
        g.mul(x, number), g.iota(element="i64", start=k, step=2, shape=("n",)), g.div(g.cast(x, element="f64"), most)
    )
