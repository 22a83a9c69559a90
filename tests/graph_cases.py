"""The table of graphs that the middle of the compiler must get right: kernels of every kind, views, updates, library
routines between kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.dialects.shape.expr import add, floordiv, mul, sub, sym
from dlcb.tests.graphs import Case, Graph, Inputs, channels_last, expanded, misaligned, stepped, transposed

CASES: list[Case] = []
FLOATS = ("f32", "f16", "bf16", "f64")
given = Inputs(3)


def case(
    name: str, calls: Sequence[Sequence[Any]], witness: Callable[..., Any]
) -> Callable[[Callable[[Graph], None]], Callable[[Graph], None]]:
    def add(build: Callable[[Graph], None]) -> Callable[[Graph], None]:
        CASES.append(Case(name, build, calls, witness))
        return build

    return add


def lying(*sizes: int, element: str = "f32") -> Iterator[Tensor]:
    """The sizes in every memory layout."""
    for layout in (lambda t: t, transposed, stepped, misaligned, expanded, channels_last):
        yield layout(given(*sizes, element=element))


# --- pointwise ---

SHAPES_2D = [(0, 5), (1, 1), (1, 7), (7, 1), (3, 5), (13, 17), (4099, 3), (3, 4096), (64, 64)]

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


# --- views between ops ---


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


# --- pad, concat ---


@case(
    "pad",
    [(x,) for x in (*lying(4, 6), given(0, 3), given(1, 1))],
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


CASES[-1] = Case(CASES[-1].name, CASES[-1].build, [c for c in CASES[-1].calls if c[0].numel()], CASES[-1].witness)


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


# --- reductions ---

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
    [(given(n, 1), given(m)) for n, m in [(3, 5), (1, 1), (0, 5), (9, 600)]],
    lambda x, y: ((x * y).sum(1), (x + y).amax(0), (x * y).softmax(1)),
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", 1), g.input("y", "m")
    p = g.mul(x, y)
    g.give(g.sum(p, axes=[1]), g.amax(g.add(x, y), axes=[0]), g.softmax_of(p, 1))


CASES[-1] = Case(CASES[-1].name, CASES[-1].build, [c for c in CASES[-1].calls if c[0].numel()], CASES[-1].witness)


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


# --- windows ---

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


# --- indices ---


def out_of_range(x: Tensor, i: Tensor) -> Tensor:
    """Rows of x; NaN where the index is outside."""
    n = x.shape[0]
    inside = (i >= -n) & (i < n)
    safe = torch.where(inside, i % max(n, 1), 0).long()
    rows = x[safe] if n else x.new_zeros(*i.shape, x.shape[1])
    return torch.where(inside.unsqueeze(-1), rows, float("nan"))


for kind in ("i64", "i32"):

    @case(
        f"embedding by {kind}",
        [(given(n, 8), given(b, k, element=kind, low=-n, high=n)) for n, b, k in [(10, 2, 3), (1, 1, 1), (7, 0, 3)]]
        + [(given(5, 8), given(3, 4, element=kind, low=-9, high=12))]
        + [(x, stepped(given(3, 4, element=kind, low=0, high=10))) for x in lying(10, 8)],
        lambda x, i: (out_of_range(x, i) * 2, out_of_range(x, i).sum(-1), out_of_range(x.exp(), i + 1)),
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


# --- updates ---


def kv_step(cache: Tensor, new: Tensor, at: int) -> Tensor:
    cache[:, at : at + new.shape[1]] = new * 2
    return cache.sum(-1)


@case(
    "a cache is updated and read",
    [(given(2, 9, 4), given(2, k, 4), at) for k, at in [(1, 0), (3, 5), (0, 9), (9, 0)]]
    + [
        (x, given(2, 3, 4), 2)
        for x in (transposed(given(2, 9, 4)), stepped(given(2, 9, 4)), misaligned(given(2, 9, 4)))
    ],
    kv_step,
)
def _(g: Graph) -> None:
    c, new = g.input("cache", "b", "n", 4), g.input("new", "b", "k", 4)
    at = g.integer("at")
    after = g.insert(c, g.mul(new, g.number(2.0)), (0, at, 0))
    g.give(after, g.sum(after, axes=[2]), updates=[0])


def add_in_place(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    before = x + 1
    x += y
    return before, x * 2


@case(
    "an argument is updated by an elementwise result, and the old value is read too",
    [(x, given(4, 6)) for x in (given(4, 6), transposed(given(4, 6)), stepped(given(4, 6)), misaligned(given(4, 6)))],
    add_in_place,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    after = g.add(x, y)
    g.give(after, g.add(x, g.number(1.0)), g.mul(after, g.number(2.0)), updates=[0])


def shift(x: Tensor) -> Tensor:
    x[1:] = x[:-1].clone()
    return x + 1


@case("x[1:] = x[:-1]", [(given(n, 3),) for n in (1, 2, 7, 300)] + [(stepped(given(5, 3)),)], shift)
def _(g: Graph) -> None:
    x = g.input("x", "n", 3)
    rest = g.dim(sub(sym("n"), 1))
    after = g.insert(x, g.slice(x, (0, 0), (rest, 3)), (1, 0))
    g.give(after, g.add(after, g.number(1.0)), updates=[0])


def transpose_in_place(x: Tensor) -> Tensor:
    x.copy_(x.t().clone() + x)
    return x.sum(0)


@case("x = x.t() + x in place", [(given(n, n),) for n in (0, 1, 5, 40)] + [(stepped(given(5, 5)),)], transpose_in_place)
def _(g: Graph) -> None:
    x = g.input("x", "n", "n")
    after = g.add(g.permute(x, order=[1, 0]), x)
    g.give(after, g.sum(after, axes=[0]), updates=[0])


def chain_of_updates(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    middle = x.clone()
    x[:2] = y
    first = x.sum(0)
    x[1:3] = y * x[:2]
    x[::2] = x[::2].exp().clone()
    return first, middle


@case(
    "a chain of updates with readers between",
    [(given(5, 3), given(2, 3)), (stepped(given(5, 3)), given(2, 3)), (given(5, 3), expanded(given(2, 3)))],
    chain_of_updates,
)
def _(g: Graph) -> None:
    x, y = g.input("x", 5, "m"), g.input("y", 2, "m")
    a = g.insert(x, y, (0, 0))
    b = g.insert(a, g.mul(y, g.slice(a, (0, 0), (2, "m"))), (1, 0))
    even = g.slice(b, (0, 0), (3, "m"), (2, 1))
    c = g.insert(b, g.exp(even), (0, 0), (2, 1))
    g.give(c, g.sum(a, axes=[0]), g.copy(x), updates=[0])


def two_updates(x: Tensor, y: Tensor) -> Tensor:
    old = x.clone()
    x.copy_(y + 1)
    y.copy_(old * 2)
    return x + y


@case(
    "two arguments swap",
    [(given(3, 4), given(3, 4)), (given(0, 4), given(0, 4)), (transposed(given(3, 4)), stepped(given(3, 4)))],
    two_updates,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    a, b = g.add(y, g.number(1.0)), g.mul(x, g.number(2.0))
    g.give(a, b, g.add(a, b), updates=[0, 1])


def put_rows(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    before = x.sum()
    x[i] = y.exp()
    return before + x.sum(0)


@case(
    "put into an argument",
    [
        (given(6, 4), torch.tensor([4, 0, -1]), given(3, 4)),
        (stepped(given(6, 4)), torch.tensor([2]), given(1, 4)),
        (given(6, 4), torch.tensor([], dtype=torch.int64), given(0, 4)),
    ],
    put_rows,
)
def _(g: Graph) -> None:
    x, i, y = g.input("x", "n", 4), g.input("i", "k", element="i64"), g.input("y", "k", 4)
    after = g.put(x, i, g.exp(y), axis=0)
    g.give(after, g.add(g.sum(x, axes=[0, 1]), g.sum(after, axes=[0])), updates=[0])


def put_copy(x: Tensor, i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a = x.exp().index_copy(0, i, y)
    b = a.index_copy(0, i.flip(0), y + 1)
    return a * 2, b + x


@case(
    "put into intermediates",
    [(given(6, 4), torch.tensor([4, 0, 5]), given(3, 4)), (transposed(given(6, 4)), torch.tensor([2]), given(1, 4))],
    put_copy,
)
def _(g: Graph) -> None:
    x, i, y = g.input("x", "n", 4), g.input("i", "k", element="i64"), g.input("y", "k", 4)
    a = g.put(g.exp(x), i, y, axis=0)
    b = g.put(a, g.flip(i, axes=[0]), g.add(y, g.number(1.0)), axis=0)
    g.give(g.mul(a, g.number(2.0)), g.add(b, x))


@case(
    "insert into intermediates and arguments that stay",
    [(given(6, 4), given(2, 4)), (stepped(given(6, 4)), given(2, 4)), (transposed(given(6, 4)), given(2, 4))],
    lambda x, y: (torch.slice_scatter(x, y, 0, 1, 3), torch.slice_scatter(x.exp(), y, 0, 2, 6, 2).sum(0), x * 2),
)
def _(g: Graph) -> None:
    x, y = g.input("x", 6, 4), g.input("y", 2, 4)
    g.give(g.insert(x, y, (1, 0)), g.sum(g.insert(g.exp(x), y, (2, 0), (2, 1)), axes=[0]), g.mul(x, g.number(2.0)))


def alias_results(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x += y
    return x[1:], x.t()


@case(
    "results are views of an updated argument",
    [(given(4, 3), given(4, 3)), (transposed(given(4, 3)), given(4, 3)), (stepped(given(4, 3)), given(4, 3))],
    alias_results,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    after = g.add(x, y)
    rest = g.dim(sub(sym("n"), 1))
    g.give(
        after,
        g.slice(after, (1, 0), (rest, "m")),
        g.permute(after, order=[1, 0]),
        updates=[0],
        aliases=[(0, 0), (1, 0)],
    )


def update_slice_by_reduction(x: Tensor) -> Tensor:
    x[:, 0] = x.sum(1)
    return x.amax(1)


@case(
    "a column is set to the sum",
    [(given(n, m),) for n, m in [(3, 5), (1, 1), (0, 4), (70, 40)]] + [(stepped(given(3, 5)),)],
    update_slice_by_reduction,
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    after = g.insert(x, g.sum(x, axes=[1], keep=True), (0, 0))
    g.give(after, g.amax(after, axes=[1]), updates=[0])


def half_update(x: Tensor, y: Tensor) -> Tensor:
    x.copy_(y)
    return x + 0


@case(
    "an update by another argument",
    [
        (given(3, 4, element="f16"), given(3, 4, element="f16")),
        (stepped(given(3, 4, element="f16")), transposed(given(3, 4, element="f16"))),
    ],
    half_update,
)
def _(g: Graph) -> None:
    g.input("x", "n", "m", element="f16")
    y = g.input("y", "n", "m", element="f16")
    g.give(y, g.add(y, g.number(0.0)), updates=[0])


def old_and_new(x: Tensor, y: Tensor) -> Tensor:
    old = x.exp()
    x += y
    return old * x


@case("old and new value meet", [(given(3, 4), given(3, 4)), (stepped(given(3, 4)), given(3, 4))], old_and_new)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    e = g.exp(x)
    after = g.add(x, y)
    g.give(after, g.mul(e, after), updates=[0])


def old_and_inserted(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    e = y.exp()
    r = x[:2] + e
    x[:2] = e
    return r, x.sum(0)


@case(
    "the source is made by a kernel that a reader of the old value waits for",
    [(given(5, 4), given(2, 4)), (transposed(given(5, 4)), given(2, 4))],
    old_and_inserted,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", 4), g.input("y", 2, 4)
    e = g.exp(y)
    r = g.add(g.slice(x, (0, 0), (2, 4)), e)
    after = g.insert(x, e, (0, 0))
    g.give(after, r, g.sum(after, axes=[0]), updates=[0])


def views_of_old(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    old = x.clone()
    x[1:3] = y
    return old.t() @ x, x.t() @ x


@case(
    "a matmul reads a view of the old value late",
    [(given(4, 5), given(2, 5)), (transposed(given(4, 5)), given(2, 5)), (stepped(given(4, 5)), given(2, 5))],
    views_of_old,
)
def _(g: Graph) -> None:
    x, y = g.input("x", 4, "m"), g.input("y", 2, "m")
    turned = g.permute(x, order=[1, 0])
    after = g.insert(x, y, (1, 0))
    g.give(after, g.matmul(turned, after), g.matmul(g.permute(after, order=[1, 0]), after), updates=[0])


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


@case(
    "indices far outside",
    [(given(5, 3), torch.tensor([2**32 + 1, -(2**32) - 1, 2**31, 4, -(2**63), 2**63 - 1]))],
    out_of_range,
)
def _(g: Graph) -> None:
    g.give(g.take(g.input("x", "n", 3), g.input("i", "k", element="i64"), axis=0))


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


# --- library routines between kernels ---


@case(
    "matmul between kernels",
    [(given(n, 16), given(16, m), given(m)) for n, m in [(3, 5), (1, 1), (0, 4), (33, 7)]]
    + [(x, y, given(8)) for x, y in zip(lying(5, 16), lying(16, 8), strict=True)],
    lambda x, w, b: ((x.relu() @ w + b).softmax(-1), (x.t() @ x)),
)
def _(g: Graph) -> None:
    x, w, b = g.input("x", "n", 16), g.input("w", 16, "m"), g.input("b", "m")
    g.give(g.softmax_of(g.add(g.matmul(g.relu(x), w), b), 1), g.matmul(g.permute(x, order=[1, 0]), x))


def attend(x: Tensor, w: Tensor) -> Tensor:
    b, n, _ = x.shape
    q, k, v = (x @ w).view(b, n, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, 16) + x


@case(
    "attention of views of a matmul",
    [(given(b, n, 16), given(16, 48)) for b, n in [(2, 5), (1, 1), (3, 9)]]
    + [(x, given(16, 48)) for x in lying(2, 5, 16)],
    attend,
)
def _(g: Graph) -> None:
    x, w = g.input("x", "b", "n", 16), g.input("w", 16, 48)
    rows = g.dim(mul(sym("b"), sym("n")))
    y = g.matmul(g.reshape(x, shape=(rows, 16)), w)
    y = g.permute(g.reshape(y, shape=("b", "n", 3, 2, 8)), order=[2, 0, 3, 1, 4])
    parts = [g.reshape(g.slice(y, (i, 0, 0, 0, 0), (1, "b", 2, "n", 8)), shape=("b", 2, "n", 8)) for i in range(3)]
    o = g.attention(*parts, scale=8**-0.5)
    o = g.reshape(g.permute(o, order=[0, 2, 1, 3]), shape=("b", "n", 16))
    g.give(g.add(o, x))


def convolve(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    y = F.conv2d(x, w, b, 1, 1).relu()
    z = F.conv2d(y, w, None, 1, 1)
    return y, F.max_pool2d(z, 2, 2), y + z


for element in ("f32", "f16"):

    @case(
        f"convolutions {element}",
        [
            (
                given(n, 8, h, w, element=element),
                given(8, 8, 3, 3, element=element, low=-0.2, high=0.2),
                given(8, element=element),
            )
            for n, h, w in [(2, 6, 7), (1, 2, 2), (3, 9, 9)]
        ]
        + [
            (x, given(8, 8, 3, 3, element=element, low=-0.2, high=0.2), given(8, element=element))
            for x in lying(2, 8, 6, 7, element=element)
        ],
        convolve,
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", 8, "h", "w", element=element)
        w, b = g.input("weight", 8, 8, 3, 3, element=element), g.input("bias", 8, element=element)
        options: dict[str, Any] = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1}
        y = g.relu(g.convolution(x, w, b, **options))
        z = g.convolution(y, w, **options)
        pool = g.max_pool(z, kernel=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1])
        g.give(y, pool, g.add(y, z))


@case(
    "a convolution comes back contiguous",
    [(given(2, 8, 6, 7, element="f16"), given(4, 8, 1, 1, element="f16"))],
    lambda x, w: F.conv2d(x, w).contiguous(),
)
def _(g: Graph) -> None:
    x, w = g.input("x", "n", 8, "h", "w", element="f16"), g.input("weight", 4, 8, 1, 1, element="f16")
    g.give(g.convolution(x, w, stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1))


def squeeze_excite(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    s = x.mean((2, 3))
    s = torch.sigmoid(F.relu(s @ a) @ b)
    return x * s[:, :, None, None]


@case(
    "squeeze and excite",
    [(given(n, 8, h, w), given(8, 4), given(4, 8)) for n, h, w in [(2, 3, 4), (1, 1, 1), (2, 20, 20)]]
    + [(x, given(8, 4), given(4, 8)) for x in lying(2, 8, 3, 4)],
    squeeze_excite,
)
def _(g: Graph) -> None:
    x, a, b = g.input("x", "n", 8, "h", "w"), g.input("a", 8, 4), g.input("b", 4, 8)
    s = g.sigmoid(g.matmul(g.relu(g.matmul(g.mean(x, axes=[2, 3]), a)), b))
    g.give(g.mul(x, g.reshape(s, shape=("n", 8, 1, 1))))
