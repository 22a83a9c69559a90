"""Library routines between kernels: matrix products, convolutions, attention, with operands that lie anyhow."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dlcb.dialects.shape.expr import mul, sym
from dlcb.tests.cases.table import case, given, lying
from dlcb.tests.graphs import Graph


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
    [(given(b, n, 16), given(16, 48, low=-0.2, high=0.2)) for b, n in [(2, 5), (1, 1), (3, 9)]]
    + [(x, given(16, 48, low=-0.2, high=0.2)) for x in lying(2, 5, 16)],
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
