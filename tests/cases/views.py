"""Views between ops, pads and concatenations."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from dlcb.dialects.shape.expr import add, floordiv, mul, sub, sym
from dlcb.tests.cases.table import case, given, lying
from dlcb.tests.graphs import Graph, stepped, transposed


@case(
    "split and merge",
    [
        (given(n, 4 * h, element=e), given(h, element=e))
        for n, h in [(3, 5), (1, 1), (0, 2), (7, 8), (2, 0)]
        for e in ("f32",)
    ]
    + [(x, given(2)) for x in lying(5, 8)],
    lambda x, y: (
        x.reshape(x.shape[0], 4, x.shape[1] // 4).transpose(1, 2).flatten(0, 1) * 2,
        (x.reshape(x.shape[0], 4, x.shape[1] // 4) + y).flatten(),
    ),
)
def _(g: Graph) -> None:
    h = sym("h")
    x, y = g.input("x", "n", g.dim(mul(4, h))), g.input("y", "h")
    split = g.reshape(x, shape=("n", 4, "h"))
    turned = g.permute(split, order=[0, 2, 1])
    merged = g.reshape(turned, shape=(g.dim(mul(sym("n"), h)), 4))
    added = g.add(split, y)
    g.give(g.mul(merged, g.number(2.0)), g.reshape(added, shape=(g.dim(mul(4, sym("n"), h)),)))


@case(
    "reshape of unrelated sizes",
    [(given(n, m),) for n, m in [(3, 4), (6, 2), (1, 12), (12, 1), (0, 4), (5, 8)]] + [(x,) for x in lying(6, 8)],
    lambda x: (x.exp().reshape(2, -1), x.reshape(x.shape[1], x.shape[0]).relu()),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    half = g.dim(floordiv(mul(sym("n"), sym("m")), 2))
    g.give(g.reshape(g.exp(x), shape=(2, half)), g.relu(g.reshape(x, shape=("m", "n"))))


@case(
    "permute, slice, select",
    [(x,) for x in (*lying(5, 6, 7), given(3, 2, 1), given(3, 2, 0))],
    lambda x: (x.permute(2, 0, 1)[:, 1::2].exp(), x[:, 1] + 1, x[2].t() * 2, x.flip(0, 2) + x),
)
def _(g: Graph) -> None:
    x = g.input("x", "a", "b", "c")
    p = g.permute(x, order=[2, 0, 1])
    half = g.dim(floordiv(sym("a"), 2))
    s = g.slice(p, (0, 1, 0), ("c", half, "b"), (1, 2, 1))
    one = g.reshape(g.slice(x, (0, 1, 0), ("a", 1, "c")), shape=("a", "c"))
    row = g.reshape(g.slice(x, (2, 0, 0), (1, "b", "c")), shape=("b", "c"))
    two = g.number(2.0)
    g.give(
        g.exp(s),
        g.add(one, g.number(1.0)),
        g.mul(g.permute(row, order=[1, 0]), two),
        g.add(g.flip(x, axes=[0, 2]), x),
    )


@case(
    "expand",
    [
        (given(5), given(3, 1)),
        (given(1), given(3, 1)),
        (given(0), given(3, 1)),
        (stepped(given(5)), stepped(given(3, 1))),
    ],
    lambda x, y: (x.expand(3, x.shape[0]).exp(), y.expand(3, x.shape[0]).sum(-1), (y.expand(3, x.shape[0]) + x)),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n"), g.input("y", 3, 1)
    e = g.expand(y, shape=(3, "n"))
    g.give(g.exp(g.expand(x, shape=(3, "n"))), g.sum(e, axes=[1]), g.add(e, x))


@case(
    "views are returned",
    [(x,) for x in (*lying(4, 6), given(0, 2))],
    lambda x: ((x + 1).t(), (x + 1).reshape(-1), (x + 1)[:, 1:], (x + 1)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    y = g.add(x, g.number(1.0))
    g.give(
        g.permute(y, order=[1, 0]),
        g.reshape(y, shape=(g.dim(mul(sym("n"), sym("m"))),)),
        g.slice(y, (0, 1), ("n", g.dim(sub(sym("m"), 1)))),
        y,
    )


@case(
    "views of an argument are returned",
    [(x,) for x in (*lying(4, 6), given(1, 2))],
    lambda x: (x.t(), x[:, 1:], x.unsqueeze(1), x.reshape(-1).clone()),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    g.give(
        g.permute(x, order=[1, 0]),
        g.slice(x, (0, 1), ("n", g.dim(sub(sym("m"), 1)))),
        g.reshape(x, shape=("n", 1, "m")),
        g.reshape(x, shape=(g.dim(mul(sym("n"), sym("m"))),)),
    )


@case(
    "pixel shuffle",
    [(x,) for x in (*lying(2, 12, 3, 5), given(1, 4, 1, 1), given(2, 0, 3, 3))],
    lambda x: F.pixel_shuffle(x, 2).relu(),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "c4", "h", "w")
    c = g.dim(floordiv(sym("c4"), 4))
    h2, w2 = g.dim(mul(2, sym("h"))), g.dim(mul(2, sym("w")))
    y = g.reshape(x, shape=("n", c, 2, 2, "h", "w"))
    y = g.permute(y, order=[0, 1, 4, 2, 5, 3])
    g.give(g.relu(g.reshape(y, shape=("n", c, h2, w2))))


@case(
    "pad",
    [(x,) for x in (*lying(4, 6), given(1, 1))],
    lambda x: (
        F.pad(x, (1, 2, 0, 3), value=0.5).exp(),
        F.pad(x.exp(), (1, 2, 0, 3), value=0.5).sum(-1),
        F.pad(x, (2, 0)).amax(0),
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    padded: dict[str, Any] = {"low": (0, 1), "high": (3, 2), "value": 0.5}
    g.give(
        g.exp(g.pad(x, **padded)),
        g.sum(g.pad(g.exp(x), **padded), axes=[1]),
        g.amax(g.pad(x, low=(0, 2), high=(0, 0), value=0.0), axes=[0]),
    )


@case(
    "concat of computed parts",
    [
        (given(n, a), given(n, b), given(n, c))
        for n, a, b, c in [(3, 4, 5, 2), (1, 1, 1, 1), (0, 2, 3, 4), (5, 0, 3, 0), (7, 8, 16, 8)]
    ]
    + [(x, y, given(5, 3)) for x, y in zip(lying(5, 6), lying(5, 8), strict=True)],
    lambda x, y, z: (
        torch.cat([x.relu(), y * 2, z.exp()], 1),
        torch.cat([x.relu(), y * 2, z.exp()], 1).sum(1),
        torch.cat([x, y, z], 1).softmax(1),
    ),
)
def _(g: Graph) -> None:
    x, y, z = g.input("x", "n", "a"), g.input("y", "n", "b"), g.input("z", "n", "c")
    c = g.concat(g.relu(x), g.mul(y, g.number(2.0)), g.exp(z), axis=1)
    g.give(c, g.sum(c, axes=[1]), g.softmax_of(g.concat(x, y, z, axis=1), 1))


@case(
    "concat of ten, first dim",
    [tuple(given(i % 3, 5) for i in range(10)), tuple(stepped(given(2, 3)) for _ in range(10))],
    lambda *xs: torch.cat(xs, 0) + 1,
)
def _(g: Graph) -> None:
    xs = [g.input(f"x{i}", f"n{i}", "m") for i in range(10)]
    g.give(g.add(g.concat(*xs, axis=0), g.number(1.0)))


@case(
    "stack and a concat with itself",
    [(given(3, 5), given(3, 5)), (given(0, 5), given(0, 5)), (transposed(given(3, 5)), stepped(given(3, 5)))],
    lambda x, y: (torch.stack([x, y], 1).amax(-1), torch.cat([x.exp(), x.exp()], 0)),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", 5), g.input("y", "n", 5)
    a, b = (g.reshape(v, shape=("n", 1, 5)) for v in (x, y))
    e = g.exp(x)
    g.give(g.amax(g.concat(a, b, axis=1), axes=[2]), g.concat(e, e, axis=0))


@case(
    "rotary halves",
    [(given(2, n, 8), given(n, 8)) for n in (1, 5, 0)] + [(x, given(5, 8)) for x in lying(2, 5, 8)],
    lambda x, c: x * c + torch.cat([-x[..., 4:], x[..., :4]], -1) * (c + 1),
)
def _(g: Graph) -> None:
    x, c = g.input("x", "b", "n", 8), g.input("c", "n", 8)
    left, right = g.slice(x, (0, 0, 0), ("b", "n", 4)), g.slice(x, (0, 0, 4), ("b", "n", 4))
    turned = g.concat(g.neg(right), left, axis=2)
    g.give(g.add(g.mul(x, c), g.mul(turned, g.add(c, g.number(1.0)))))


@case(
    "flips, merged and split",
    [(given(3, 4),), (given(1, 1),), (transposed(given(5, 6)),)],
    lambda x: (
        x.flip(0).reshape(-1).flip(0).reshape(x.shape[1], x.shape[0]) + 1,
        F.pad(x.flip(1), (2, 1)).reshape(-1).exp(),
    ),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    flat = g.dim(mul(sym("n"), sym("m")))
    y = g.flip(g.reshape(g.flip(x, axes=[0]), shape=(flat,)), axes=[0])
    padded = g.pad(g.flip(x, axes=[1]), low=(0, 2), high=(0, 1), value=0.0)
    wide = g.dim(mul(sym("n"), add(sym("m"), 3)))
    g.give(g.add(g.reshape(y, shape=("m", "n")), g.number(1.0)), g.exp(g.reshape(padded, shape=(wide,))))


@case(
    "a pad of symbolic width, reshaped and split",
    [(given(5, 6), given(k)) for k in (1, 2, 3)],
    lambda x, y: F.pad(x, (y.shape[0], y.shape[0])).reshape(x.shape[0] * 2, -1) * 2,
)
def _(g: Graph) -> None:
    x = g.input("x", "n", 6)
    g.input("y", "k")
    padded = g.pad(x, low=(0, "k"), high=(0, "k"), value=0.0)
    shape = (g.dim(mul(2, sym("n"))), g.dim(add(sym("k"), 3)))
    g.give(g.mul(g.reshape(padded, shape=shape), g.number(2.0)))
