"""Concatenations that begin alike, and what reads tensors from a place on: both may share memory and move vectors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.dialects.shape.expr import add, floordiv, mul, sub, sym
from dlcb.tests.cases.table import case, given, lying
from dlcb.tests.graphs import Graph, misaligned, stepped, transposed


def dense_block(x: Tensor, layers: int) -> Tensor:
    parts = [x]
    for _ in range(layers):
        parts.append(torch.cat(parts, 1).exp().sum(1, keepdim=True).log())
    return torch.cat(parts, 1).relu()


def dense_parts(g: Graph, x: SSAValue, layers: int) -> tuple[list[SSAValue], list[SSAValue]]:
    """The parts, and what all but the first layer read."""
    parts, whole = [x], list[SSAValue]()
    for layer in range(layers):
        read = x if layer == 0 else g.concat(*parts, axis=1)
        whole += [read] * (layer > 0)
        parts.append(g.log(g.sum(g.exp(read), axes=[1], keep=True)))
    return parts, whole


@case(
    "a dense block",
    [(given(*sizes),) for sizes in ((3, 5), (1, 1), (0, 4), (4, 0), (65, 130))] + [(x,) for x in lying(6, 8)],
    lambda x: dense_block(x, 6),
)
def _(g: Graph) -> None:
    parts, _ = dense_parts(g, g.input("x", "n", "m"), 6)
    g.give(g.relu(g.concat(*parts, axis=1)))


def dense_block_read_late(x: Tensor) -> tuple[Tensor, ...]:
    parts, read = [x], list[Tensor]()
    for layer in range(6):
        read += [torch.cat(parts, 1)] * (layer > 0)
        parts.append(torch.cat(parts, 1).exp().sum(1, keepdim=True).log())
    return torch.cat(parts, 1) * 2, read[1] + 1, read[3]


@case(
    "a dense block of which more is read at the end, and returned",
    [(given(3, 5),), (given(0, 4),), (given(1, 0),), (transposed(given(5, 7)),), (stepped(given(5, 8)),)],
    dense_block_read_late,
)
def _(g: Graph) -> None:
    parts, read = dense_parts(g, g.input("x", "n", "m"), 6)
    g.give(g.mul(g.concat(*parts, axis=1), g.number(2.0)), g.add(read[1], g.number(1.0)), read[3])


def dense_convolutions(x: Tensor, *weights: Tensor) -> Tensor:
    parts = [x.relu()]
    for w in weights:
        parts.append(F.conv2d(torch.cat(parts, 1).relu(), w, None, 1, 1))
    return torch.cat(parts, 1).mean((2, 3))


for element in ("f32", "f16"):

    @case(
        f"a dense block of convolutions {element}",
        [
            (lie(given(*sizes, element=element)), *(given(8, 8 * i, 3, 3, element=element) * 0.1 for i in range(1, 6)))
            for sizes in ((2, 8, 5, 6), (1, 8, 1, 1), (0, 8, 4, 4))
            for lie in (Tensor.contiguous, lambda t: t.contiguous(memory_format=torch.channels_last), misaligned)
        ],
        dense_convolutions,
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", 8, "h", "w", element=element)
        weights = [g.input(f"w{i}", 8, 8 * i, 3, 3, element=element) for i in range(1, 6)]
        parts = [g.relu(x)]
        for w in weights:
            read = g.relu(g.concat(*parts, axis=1) if len(parts) > 1 else parts[0])
            parts.append(g.convolution(read, w, stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups=1))
        g.give(g.mean(g.concat(*parts, axis=1), axes=[2, 3]))


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = x.chunk(2, -1)
    return a.sigmoid() * a * b, x[:, 3:] + 1


for element in ("f32", "f16"):

    @case(
        f"halves of rows {element}",
        [(given(n, m, element=element),) for n, m in ((3, 16), (5, 64), (2, 6), (1, 4), (7, 130), (0, 8), (33, 256))]
        + [(lie(given(9, 64, element=element)),) for lie in (misaligned, stepped, transposed)],
        halves,
    )
    def _(g: Graph, element: str = element) -> None:
        x = g.input("x", "n", "m", element=element)
        half = g.dim(floordiv(sym("m"), 2))
        a, b = g.slice(x, (0, 0), ("n", half)), g.slice(x, (0, half), ("n", half))
        rest = g.slice(x, (0, 3), ("n", g.dim(sub(sym("m"), 3))))
        g.give(g.mul(g.mul(g.sigmoid(a), a), b), g.add(rest, g.number(1.0, element)))


@case(
    "parts of literal rows",
    [(given(n, 48),) for n in (0, 1, 5, 257)] + [(lie(given(6, 48)),) for lie in (misaligned, stepped, transposed)],
    lambda x: (x[:, 16:32].softmax(-1), x[:, 40:].exp(), x[:, 17:33] * x[:, 8:24], x.roll(8, 1)),
)
def _(g: Graph) -> None:
    x = g.input("x", "n", 48)
    part = {at: g.slice(x, (0, at), ("n", 16)) for at in (8, 16, 17)}
    g.give(
        g.softmax_of(part[16], 1),
        g.exp(g.slice(x, (0, 40), ("n", 8))),
        g.mul(part[17], part[8]),
        g.concat(g.slice(x, (0, 40), ("n", 8)), g.slice(x, (0, 0), ("n", 40)), axis=1),
    )


@case(
    "the second half of a batch",
    [(given(n, 8),) for n in (0, 2, 6, 258)] + [(lie(given(6, 8)),) for lie in (misaligned, stepped, transposed)],
    lambda x: (x[x.shape[0] // 2 :].exp(), x[x.shape[0] // 2 :].t() + 1),
)
def _(g: Graph) -> None:
    n = sym("n")
    x = g.input("x", "n", 8)
    half = g.dim(floordiv(n, 2))
    rest = g.dim(add(n, mul(-1, floordiv(n, 2))))
    part = g.slice(x, (half, 0), (rest, 8))
    g.give(g.exp(part), g.add(g.permute(part, order=[1, 0]), g.number(1.0)))
