"""Small programs, each compiled once, against eager at many shapes: updates, aliases, layouts, ops of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dlcb.tests.end_to_end.agreement import Make, agrees, rand, whole

MATRICES = ((3, 4), (2, 5), (0, 4), (1, 1), (7, 3), (5, 8), (4, 1), (1, 16))
CUBES = ((3, 4, 5), (2, 5, 3), (1, 7, 2), (6, 2, 9), (2, 2, 2), (4, 1, 33))


def matrix(n: int, m: int) -> tuple[Tensor]:
    return (rand(n, m),)


def two(n: int, m: int) -> tuple[Tensor, Tensor]:
    return rand(n, m), rand(n, m)


def cube(a: int, b: int, c: int) -> tuple[Tensor]:
    return (rand(a, b, c),)


@dataclass(frozen=True)
class Case:
    program: Callable[..., Any]
    make: Make = matrix
    sizes: Sequence[tuple[int, ...]] = MATRICES
    pinned: tuple[str, ...] = ()
    """The dims that the program itself fixes."""


# What is updated in place


def adds_one(x: Tensor) -> None:
    x.add_(1)


def doubles_and_adds(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    y.add_(x)
    x.sub_(y)
    return x + y


def writes_a_row(x: Tensor, y: Tensor) -> Tensor:
    x[0] = y
    return x * 2


def writes_slices(x: Tensor) -> None:
    x[1:] = 5
    x[:, ::2] += 1


def shifts(x: Tensor) -> None:
    x[1:] = x[:-1].clone()


def shifts_in_columns(x: Tensor) -> Tensor:
    old = x[:, :-1] * 1
    x[:, 1:] = old
    return x.sum()


def fills_where(x: Tensor) -> None:
    x.masked_fill_(x > 1, 7)
    x[x < 0] = 3


def copies_rows(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    x.index_copy_(0, i, y)
    return x.sum()


def reads_old_and_new(x: Tensor) -> tuple[Tensor, ...]:
    old, view = x * 2, x[:, :1]
    x.add_(1)
    new = x + view
    x.mul_(old)
    return old, new, view


def writes_through_views(x: Tensor) -> tuple[Tensor, ...]:
    rows = x[1:]
    rows.mul_(3)
    x.t().add_(1)
    x.view(-1)[:1].zero_()
    return rows, x.t().sum(0)


def writes_at(x: Tensor, y: Tensor, position: int) -> Tensor:
    x[position] = y
    return x[: position + 1].sum(0)


def swaps(x: Tensor, y: Tensor) -> None:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


def returns_what_it_updates(x: Tensor) -> tuple[Tensor, ...]:
    return x.add_(1), x[1:], x.clone()


UPDATES: dict[str, Case] = {
    "add in place": Case(adds_one),
    "several": Case(doubles_and_adds, two),
    "a row": Case(writes_a_row, lambda n, m: (rand(n, m), rand(m)), [s for s in MATRICES if s[0]]),
    "slices": Case(writes_slices),
    "shift": Case(shifts),
    "shift columns": Case(shifts_in_columns),
    "masks": Case(fills_where),
    "index_copy_": Case(
        copies_rows, lambda n, m: (rand(n, m), torch.randperm(n), rand(n, m)), [s for s in MATRICES if s[0]]
    ),
    "old and new values": Case(reads_old_and_new),
    "through views": Case(writes_through_views, sizes=[s for s in MATRICES if s[0]]),
    "at an integer": Case(
        writes_at,
        lambda n, m, k: (rand(n, m), rand(m), k),
        [(4, 4, 2), (5, 3, 1), (3, 2, 2), (7, 1, 0), (2, 8, 1), (1, 1, 0)],
    ),
    "swap": Case(swaps, two),
    "returned": Case(returns_what_it_updates),
    "transposed argument": Case(adds_one, lambda n, m: (rand(m, n).t(),)),
    "part of a tensor": Case(doubles_and_adds, lambda n, m: (rand(n, 2 * m)[:, ::2], rand(2 * n, m)[1::2])),
}

# What is returned


def returns_views(x: Tensor) -> tuple[Tensor, ...]:
    return x[:, 1:], x.t(), x, x.unsqueeze(1), x[None].expand(2, -1, -1), x.unflatten(1, (1, -1))


def returns_twice(x: Tensor) -> tuple[Tensor, ...]:
    y = x + 1
    return y, y, y[0:1], y.t()


def equal_but_apart(x: Tensor) -> tuple[Tensor, ...]:
    y, z = x + 1, x + 1
    return y, z, z[:1], x * 1, x + 0, x.clone(), x.reshape(x.shape), x.contiguous(), x.to(x.dtype)


def nested(x: Tensor) -> dict[str, Any]:
    return {"a": (x + 1, [None, 3, "s", True, 2.5]), "b": {"c": x * 2}, "n": x.shape[0], "e": ()}


def sizes_as_results(x: Tensor) -> tuple[Any, ...]:
    n, m = x.shape
    return x + 1, n * 2 + m, x.shape, x.numel(), n / 4, max(n, 0), n // 3, -m, [n, {"m": m}]


RESULTS: dict[str, Case] = {
    "views of an argument": Case(returns_views),
    "one tensor several times": Case(returns_twice),
    "equal values": Case(equal_but_apart),
    "nested": Case(nested),
    "sizes": Case(sizes_as_results),
    "a size alone": Case(lambda x: x.shape[0]),
    "an argument alone": Case(lambda x: x),
    "nothing": Case(lambda x: None),
}

# Integers, broadcasting, layouts


def with_an_integer(x: Tensor, k: int) -> tuple[Any, ...]:
    return x[:k], x[k:], x * k, torch.arange(k) + x.shape[0], k + 1, x.new_zeros(k, 2)


def arithmetic(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x + y, x * y - y, y.sum(0) * 2


def of_any_layout(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x + y, x * 2, y.abs().sum(0), y.abs().sum(1), x.softmax(1), torch.cat([x, y])


LAYOUTS: dict[str, Case] = {
    "integer argument": Case(
        with_an_integer,
        lambda n, m, k: (rand(n, m), k),
        [(4, 4, 2), (5, 3, 1), (3, 2, 3), (7, 1, 0), (2, 8, 1), (1, 1, 1)],
    ),
    "size 1 broadcasts at run time": Case(
        arithmetic,
        lambda n, m, k, j: (rand(n, m), rand(k, j)),
        [(3, 4, 3, 4), (1, 5, 2, 5), (2, 5, 1, 5), (2, 1, 2, 3), (2, 3, 1, 1), (0, 3, 1, 3), (1, 1, 0, 4)],
    ),
    "transposed, stepped": Case(of_any_layout, lambda n, m: (rand(m, n).t(), rand(2 * n, m)[::2])),
    "expanded": Case(of_any_layout, lambda n, m: (rand(1, m).expand(n, m), rand(n, 1).expand(n, m))),
    "misaligned": Case(of_any_layout, lambda n, m: (rand(n * m + 1)[1:].view(n, m), rand(n * m + 3)[3:].view(n, m))),
    "channels last": Case(
        lambda x: (x + 1, x.sum(1), (x * 3).flatten(1), F.max_pool2d(x, 2)),
        lambda n, c: (rand(n, c, 3, 5).contiguous(memory_format=torch.channels_last),),
    ),
}

# Every kind of op


def promotes(x: Tensor, i: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    half = x.half()
    return (
        x + i, i / 2, i * 2.5, b + b, b * i, x + b, i // 2, i % 3, -i, x.double() + x, b.float().mean(), i.float(),
        half + x, half * 2.5, half + i, half.bfloat16() + half, i.int() + i, i.int() * True, b & (i > 0),
    )  # fmt: skip


def scalars(x: Tensor, s: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    return x + s, x * s.double(), s * 2, torch.where(x > s, x, s), x.half() * s, x + k, k * 2, s.exp()


def integers(i: Tensor, j: Tensor) -> tuple[Tensor, ...]:
    return (
        i + j, i * j, i // 3, i % 3, i < j, i.sum(), i.sum(0), i.amax(1), (i == j).any(), i & j, i | j, i ^ j, ~i,
        i.abs(), i.clamp(-1, 2), i.sum(1, dtype=torch.int32),
    )  # fmt: skip


def reductions(x: Tensor) -> tuple[Tensor, ...]:
    return (
        x.sum((0, 2)), x.mean((1, 2), keepdim=True), x.amax((0, 1)), x.var((0, 1)), x.sum(), x.std(2),
        x.sum((0, 1, 2)), x.amin(-1), x.norm(dim=1), x.logsumexp(2), (x > 0).all(1), x.prod(1),
    )  # fmt: skip


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 4), nn.LayerNorm([4], elementwise_affine=False))
        self.rms = nn.RMSNorm(4)
        self.group = nn.GroupNorm(2, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.layers(x)
        return y, self.rms(y), self.group(y.transpose(1, 2))


def pools(x: Tensor) -> tuple[Tensor, ...]:
    return (
        F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 2, ceil_mode=True),
        F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.adaptive_avg_pool2d(x, (1, 1)).flatten(1),
    )  # fmt: skip


def chooses(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.where(x > 0, x, y), torch.where(x > y, 1.0, y), x.clamp(-1, 1), torch.maximum(x, y),
        x.masked_fill(y > 0, -1e9), x.where(x > 0, 0.0),
        x.where(condition=y > 0, other=y),
    )  # fmt: skip


def joins(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return torch.cat([x, y]), torch.cat([x, x * 2, x], 1), torch.stack([x, x + 1], 1), torch.cat([y[:1], x, y])


def divides(x: Tensor) -> tuple[Any, ...]:
    half = x.shape[1] // 2
    return x.split(half, 1), x[:, :half] * 2, x.split([half, x.shape[1] - half], 1)


def pads(x: Tensor) -> tuple[Tensor, ...]:
    return F.pad(x, (1, 2)), F.pad(x, (0, 0, 1, 0), value=2.0), F.pad(x, (-1, 1)), F.pad(x, (2, 0, 0, 3))


def makes(x: Tensor) -> tuple[Tensor, ...]:
    n, m = x.shape
    return (
        torch.arange(n), torch.full((m, n), 2.0), torch.ones_like(x), torch.zeros(n, 3) + x.sum(),
        torch.arange(n)[:, None] < torch.arange(m)[None], torch.arange(2, m + 2, dtype=torch.float32),
        torch.full((n,), n), torch.arange(m) * n, *torch.meshgrid(torch.arange(n), torch.arange(m), indexing="xy"),
    )  # fmt: skip


def triangles(x: Tensor) -> tuple[Tensor, ...]:
    n, m = x.shape
    mask = torch.ones(m, m, dtype=torch.bool).tril()
    return x.tril(), x.triu(1), x.tril(-1), torch.ones(n, n).tril(), mask, torch.zeros(m, m).masked_fill(~mask, -1.0)


def sums_up(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
    return x.cumsum(0), x.cumsum(1), i.cumsum(-1), (x > 0).cumsum(0)


def einsums(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,bjk->ik", a, b), torch.einsum("bij->b", a),
        torch.einsum("bij->ji", a), torch.einsum("bij,bjk->bk", a, b),
    )  # fmt: skip


def products(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return a @ b, a[0] @ b[0], a @ b[0], a[0, 0] @ b, (a @ b).transpose(1, 2) @ a, torch.baddbmm(a @ b, a, b)


def indexes(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
    return x[i], x[:, i % x.shape[1]], x.index_select(0, i), x.gather(0, i[:, None].expand(-1, x.shape[1])), x[i, :1]


def attends(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    attention = F.scaled_dot_product_attention
    return attention(q, k, v), attention(q, k, v, is_causal=True), attention(q, k, v, scale=0.3)


def attends_masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    bias = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    return F.scaled_dot_product_attention(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, bias)


def attends_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    causal = torch.arange(q.shape[-2])[:, None] >= torch.arange(k.shape[-2])
    return scores.masked_fill(~causal, float("-inf")).softmax(-1) @ v


def heads(b: int, t: int, s: int) -> tuple[Tensor, ...]:
    return rand(b, 4, t, 8), rand(b, 4, s, 8), rand(b, 4, s, 8)


def grouped_heads(b: int, t: int, s: int) -> tuple[Tensor, ...]:
    return rand(b, 4, t, 8), rand(b, 2, s, 8), rand(b, 2, s, 8)


LENGTHS = ((2, 3, 4), (1, 5, 5), (3, 1, 7), (2, 7, 1), (5, 2, 9), (0, 2, 3))
IMAGES = ((2, 8, 9), (1, 5, 6), (3, 4, 4), (1, 7, 7), (4, 3, 11), (2, 16, 5))

OPS: dict[str, Case] = {
    "promotion": Case(promotes, lambda n, m: (rand(n, m), whole(n, m), rand(n, m) > 0)),
    "scalars": Case(scalars, lambda n, m: (rand(n, m), torch.randn(()), torch.tensor(3))),
    "integers": Case(integers, lambda n, m: (whole(n, m), whole(n, m)), [s for s in MATRICES if s[1]]),
    "reductions": Case(reductions, cube, CUBES),
    "softmax": Case(
        lambda x: (x.softmax(0), x.softmax(1), x.softmax(-1), x.log_softmax(1)), cube, (*CUBES, (0, 2, 2))
    ),
    "norms": Case(Norms().eval(), lambda n, m: (rand(n, m, 6),), [s for s in MATRICES if s[0]], ("x.shape[2]",)),
    "pools": Case(pools, lambda n, h, w: (rand(n, 3, h, w),), IMAGES),
    "choices": Case(chooses, two),
    "joins": Case(joins, lambda n, m: (rand(n, m), rand(n + 2, m))),
    "splits": Case(divides, sizes=((3, 4), (2, 6), (0, 8), (1, 2), (5, 10), (7, 12))),
    "chunks": Case(
        lambda x: (x.chunk(2, 1), x.split(3, 1), x.unbind(1)),
        sizes=((3, 4), (2, 4), (0, 4), (1, 4), (7, 4)),
        pinned=("x.shape[1]",),
    ),
    "pads": Case(pads, sizes=((3, 4), (2, 6), (0, 8), (1, 2), (5, 10), (7, 12))),
    "creation": Case(makes),
    "triangles": Case(triangles),
    "cumsum": Case(sums_up, lambda n, m: (rand(n, m), whole(n, m))),
    "einsum": Case(
        einsums,
        lambda n, i, j, k: (rand(n, i, j), rand(n, j, k)),
        [(2, 3, 4, 5), (1, 2, 3, 1), (3, 1, 1, 2), (2, 7, 5, 3), (4, 2, 2, 2)],
    ),
    "matmul": Case(
        products,
        lambda n, i, j: (rand(n, i, j), rand(n, j, i)),
        [(2, 3, 4), (1, 2, 3), (3, 1, 1), (2, 7, 5), (4, 2, 2), (1, 3, 0)],
    ),
    "embedding": Case(nn.Embedding(11, 5).eval(), lambda n, m: (whole(n, m, low=0, high=11),)),
    "indexing": Case(
        indexes,
        lambda n, m, k: (rand(n, m), whole(k, low=0, high=n)),
        [(4, 3, 2), (6, 2, 5), (1, 1, 1), (3, 7, 4), (2, 2, 0)],
    ),
    "attention": Case(attends, heads, LENGTHS),
    "attention by hand": Case(attends_by_hand, heads, LENGTHS),
    "masked attention": Case(
        attends_masked, lambda b, t, s: (*heads(b, t, s), torch.rand(b, 4, t, s) > 0.2), LENGTHS
    ),
    "grouped attention": Case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        grouped_heads,
        LENGTHS,
    ),
}  # fmt: skip


def parameters(cases: dict[str, Case]) -> Any:
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


@parameters(UPDATES)
def test_arguments_are_updated_as_in_eager(case: Case) -> None:
    agrees(case.program, case.make, case.sizes, pinned=case.pinned)


@parameters(RESULTS)
def test_results_are_what_eager_returns_and_lie_where_they_do(case: Case) -> None:
    agrees(case.program, case.make, case.sizes, pinned=case.pinned)


@parameters(LAYOUTS)
def test_arguments_may_lie_anyhow(case: Case) -> None:
    agrees(case.program, case.make, case.sizes, pinned=case.pinned)


@parameters(OPS)
def test_ops_of_every_kind(case: Case) -> None:
    agrees(case.program, case.make, case.sizes, pinned=case.pinned)
