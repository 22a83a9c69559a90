"""Small programs of the kinds that users of compilers report: wrong numbers at the edges of a type, memory shared or
written at the wrong time, empty and single sizes, errors that got lost, needless compiles.

Each is called several times; `test_reported_kinds.py` holds all calls to eager.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Calls = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Reported:
    program: Any
    """A function, or a class of modules that each side makes for itself."""
    calls: Calls
    eager: frozenset[str] = frozenset()
    """The operations that run in eager."""
    graphs: int | None = None
    """The most graphs that torch may hand over."""


CASES: dict[str, Reported] = {}

_numbers = torch.Generator().manual_seed(7)
inf, nan = math.inf, math.nan


def rand(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(sizes, generator=_numbers).to(dtype)


def ints(*values: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def reported(*calls: tuple[Any, ...], eager: str = "", graphs: int | None = None) -> Callable[[Any], Any]:
    def add(program: Any) -> Any:
        CASES[program.__name__] = Reported(program, list(calls), frozenset(eager.split()), graphs)
        return program

    return add


# Numbers


@reported((ints(0, 1, 200, 255, dtype=torch.uint8),), (ints(*range(250, 256), dtype=torch.uint8),))
def bytes_wrap_between_operations(x: Tensor) -> Any:
    low = x - 201
    return low, low.float().sqrt(), (x * x).sum(), -x, ~x, (x + 100) > 90, x << 1, x // 7, x - 300, (x + 6).argmax()


@reported((ints(0, -128, 127, -7), ints(1, -1, 3, 2)), (ints(5, -5, 9), ints(3, 3, -2)))
def narrow_integers(x: Tensor, y: Tensor) -> Any:
    a, b = x.to(torch.int8), y.to(torch.int8)
    return a * b, a // b, a % b, a.abs(), (a + 100).float(), a.cumsum(0), a.sum(), a + 1000, a.prod(dtype=torch.int8)


@reported((ints(2**62, -(2**63), 2**63 - 1), ints(2, 5, 1)), (ints(-1, 0), ints(2, 63)))
def wide_integers(x: Tensor, y: Tensor) -> Any:
    return x * y, x + y, x.abs(), x.sum(), x >> 3, x << y, x.to(torch.int32), x.double(), x.argmin(), x.clamp(-5, 5)


@reported((torch.tensor([True, False, True]),), (torch.tensor([False]),), (torch.tensor([], dtype=torch.bool),))
def truth_values_as_numbers(x: Tensor) -> Any:
    return (
        x + x,
        x * 2,
        x.sum(),
        x.cumsum(0),
        x.all(),
        x.any(),
        ~x,
        x + 0.5,
        torch.where(x, 1, 0),
        x.to(torch.uint8) - 1,
    )


@reported(
    (rand(3, 4), torch.tensor(2.0), torch.tensor(3)),
    (rand(2, 2, dtype=torch.float16), torch.tensor(2.5, dtype=torch.float64), torch.tensor(7, dtype=torch.int32)),
)
def types_of_mixed_ranks(x: Tensor, s: Tensor, k: Tensor) -> Any:
    return x * s, x + k, k / s, (x > 0) * s, x.long() * s, torch.where(x > 0, s, x), k * 2.5, k // 2, s.double() * x


@reported((torch.tensor([0.0, -0.0, 1.5, 2.5, -inf, nan, 3e38]),), (torch.tensor([-0.5, 0.5, -1.5]),))
def zeros_infinities_and_ties(x: Tensor) -> Any:
    return (
        x.round(), (x * 0).reciprocal(), x.sign(), torch.signbit(x), torch.copysign(x, -x), x.relu(), x.clamp(-1, 1),
        torch.fmax(x, -x), torch.maximum(x, -x), x.nan_to_num(), (x + 0).reciprocal(), torch.hypot(x, x), x.frac(),
        x.masked_fill(x < 0, -inf), torch.where(x > 0, nan, x), torch.heaviside(x, x),
    )  # fmt: skip


@reported(
    (rand(4, 5, dtype=torch.float16), rand(4, 5, dtype=torch.float16)),
    (rand(2, 3, dtype=torch.float16) * 300, rand(2, 3, dtype=torch.float16) * 300),
    (rand(3, 2, dtype=torch.bfloat16), rand(3, 2, dtype=torch.bfloat16)),
)
def half_precision_before_a_jump(x: Tensor, y: Tensor) -> Any:
    product = x * y
    return product.float() + 1, product.floor(), product.long(), product == x.float() * y.float(), product.argmax(-1)


@reported((rand(3, 4, dtype=torch.float64),), (rand(1, 2, dtype=torch.float64),))
def constants_of_double_precision(x: Tensor) -> Any:
    return x * 0.1, x + 1 / 3, x**0.5, torch.full_like(x, 1e-300) * x, x.float() * 0.1, F.gelu(x), torch.erf(x), x.sum()


@reported((torch.tensor([[1.0, 3, 3], [3, 1, 1]]),), (torch.tensor([[nan, 1.0], [2.0, nan], [nan, nan]]),))
def equal_and_missing_extrema(x: Tensor) -> Any:
    return x.argmax(-1), x.argmin(0), x.max(-1), x.cummax(-1), x.cummin(0), x.amax(), x.argmin()


@reported((torch.full((3, 4), -inf),), (torch.tensor([[-inf, 0.0], [nan, 1.0], [-inf, -inf]]),))
def rows_without_a_finite_number(x: Tensor) -> Any:
    return x.softmax(-1), x.log_softmax(-1), x.logsumexp(-1), x.softmax(-1).nan_to_num(), x.logcumsumexp(0)


@reported((rand(4, 5),), (rand(3, 1),), (rand(1, 1),))
def statistics_of_one_element(x: Tensor) -> Any:
    return x.var(-1), x.std(-1, unbiased=False), torch.var_mean(x, 0), x.std(), x.norm(dim=0), F.normalize(x)


@reported((rand(2000),), (rand(70001),))
def long_sums(x: Tensor) -> Any:
    y = x + 1000
    return y.mean(), y.var(), y.half().sum(dtype=torch.float32), x.norm(), (x > 0).sum(), y.double().sum()


@reported((rand(3, 6),), (rand(1, 4),), (rand(4, 1),))
def running_values(x: Tensor) -> Any:
    return (
        x.cumsum(-1, dtype=torch.float64),
        x.half().cumsum(0),
        (x > 0).cumsum(1),
        x.flip(1).cumsum(1).flip(1),
        x.diff(),
    )


# Sizes


@reported((rand(3, 4),), (rand(0, 4),), (rand(1, 1),))
def empty_parts(x: Tensor) -> Any:
    e = x[:, :0]
    joined = torch.cat([x * 1, e], 1)
    return (
        e.sum(-1),
        e.prod(1),
        e.mean(),
        joined,
        e @ e.t(),
        F.pad(e, (1, 1)),
        e.any(),
        x[5:2],
        x.new_zeros(0, 3).sum(0),
    )


@reported((rand(2, 3, 4), rand(2, 4, 5)), (rand(3, 0, 4), rand(3, 4, 5)), (rand(2, 3, 0), rand(2, 0, 5)))
def products_over_nothing(a: Tensor, b: Tensor) -> Any:
    bias = torch.full((b.shape[2],), nan)
    return a @ b, torch.einsum("bij,bjk->k", a, b), torch.addmm(bias, a[0], b[0], beta=0), torch.cdist(a, b.mT)


@reported((rand(1, 8), rand(1, 8)), (rand(4, 8), rand(1, 8)), (rand(1, 8), rand(4, 8)), (rand(0, 8), rand(1, 8)))
def sizes_of_one_broadcast(x: Tensor, y: Tensor) -> Any:
    return x + y, torch.where(x > y, x, y).sum(0), (x * y).softmax(-1), torch.cat([x * 1, y * 1])


@reported((rand(6, 8), 2), (rand(9, 4), 3), (rand(4, 4), 4))
def parts_by_a_number(x: Tensor, k: int) -> Any:
    parts = x.tensor_split(k)
    return x.chunk(k), parts[0] * 2, x[k - 1 :], x[:-k] + 1, x[::k], x[:, k - 4 :] * 1, x.view(-1).view(x.shape[1], -1)


@reported((rand(4, 5),), (rand(6, 6),), (rand(1, 3),))
def triangles(x: Tensor) -> Any:
    n, m = x.shape
    mask = torch.full((n, n), -inf).triu(n - m + 1)
    return (
        (x + 1).tril(),
        x.triu(1) * 2,
        mask,
        torch.arange(n)[:, None] >= torch.arange(m),
        x.diagonal(1) + 1,
        torch.eye(n, m),
    )


@reported((rand(2, 3, 6, 6),), (rand(1, 4, 5, 7),))
def images_of_other_sizes(x: Tensor) -> Any:
    wide = F.interpolate(x, size=(x.shape[2] + 1, x.shape[3] * 2), mode="bilinear")
    return F.interpolate(x, scale_factor=1.5), wide, F.interpolate(x, scale_factor=0.6, recompute_scale_factor=True)


@reported((rand(2, 3, 5, 6),), (rand(1, 1, 3, 3),))
def borders(x: Tensor) -> Any:
    return F.pad(x, (-1, 1, 2, -1)), F.pad(x, (2, 2, 1, 1), mode="reflect"), F.pad(x > 0, (0, 1), value=True) & True


@reported((rand(1, 2, 6, 7),), (rand(2, 3, 9, 4),))
def windows(x: Tensor) -> Any:
    averages = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
    return averages, F.max_pool2d(x, 3, 2, 1, return_indices=True), F.adaptive_avg_pool2d(x, (2, 3))


@reported((rand(2, 4, 9, 8),), (rand(1, 4, 5, 5),))
def convolutions(x: Tensor) -> Any:
    w = torch.linspace(-1, 1, 216).view(6, 4, 3, 3)
    up = F.conv_transpose2d(x, w.transpose(0, 1)[:, :3], stride=2, output_padding=1)
    return F.conv2d(x, w, padding="same"), F.conv2d(x, w[:, :2], groups=2), up, F.conv2d(x[0], w, padding=2, dilation=2)


@reported((rand(2, 4, 6, 6),), (rand(1, 4, 8, 10),))
def shuffled_pixels(x: Tensor) -> Any:
    tokens = x.unfold(2, 2, 2).sum(-1).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
    return F.pixel_shuffle(x, 2) + 1, F.channel_shuffle(x, 2), x.roll((1, -1), (2, 3)) * 1, tokens, F.unfold(x, 2)


# Memory


@reported((rand(3, 4),), (rand(1, 4),), (rand(6, 2),), eager="diagonal_scatter")
def writes_through_views(x: Tensor) -> Any:
    y = x.t()
    y[0].add_(1)
    x[1:].neg_()
    x.view(-1)[::2].zero_()
    z = x[..., ::2]
    z.copy_(z + 1)
    x.diagonal().fill_(3)
    x.unsqueeze(0)[0, 0].sub_(1)
    return x, y, z, x.sum()


@reported((rand(3, 4),), (rand(1, 5),))
def reads_before_and_after_a_write(x: Tensor) -> Any:
    view, copy = x[0], x.clone()
    before = view * 2
    x.add_(10)
    after = view * 2
    x.zero_()
    return before, after, copy, view


@reported((rand(5, 4),), (rand(1, 4),), (rand(2, 7),))
def overlapping_copies(x: Tensor) -> Any:
    x[1:] = x[:-1].clone()
    y = torch.slice_scatter(x, x[:1] * 0 + 5, 0, 0, 1)
    x.flip(0)
    x.zero_()
    return y, x


@reported((rand(3, 4),), (rand(2, 5),), (rand(1, 1),))
def results_that_share_memory(x: Tensor) -> Any:
    y = x * 2
    return x, x[0], y, y.t(), y[1:], y, x.detach(), [{"k": y.view(-1)}, None], y.expand(2, *x.shape)


@reported((rand(3, 4),), (rand(5, 4),))
def results_that_lie_as_in_eager(x: Tensor) -> Any:
    y = x.t()
    return y + 1, y.contiguous(), y.clone(), y.softmax(-1), y.expand(2, -1, -1) + 1, torch.stack([y, y]), y.double()


@reported((rand(2, 3, 4, 5).to(memory_format=torch.channels_last),), (rand(1, 4, 3, 3).mT.contiguous().mT,))
def images_in_another_order(x: Tensor) -> Any:
    return x + 1, x.mean(1, keepdim=True), F.avg_pool2d(x, 2), torch.cat([x, x], 1), x.sum(1), x.flatten(2), x.half()


@reported((rand(4, 6),), (rand(3, 8),), (rand(1, 2),), eager="as_strided add")
def chains_of_views(x: Tensor) -> Any:
    turned = x.view(x.shape[0], 2, -1).permute(1, 0, 2).flatten(1)
    spread = x[:, None].expand(-1, 2, -1).reshape(-1, x.shape[1])
    return (
        x.t().reshape(-1) * 2,
        turned + 1,
        x.unfold(1, 2, 2).sum(1),
        spread.sum(0),
        x.squeeze(),
        x.as_strided((2,), (1,)) + 1,
    )


@reported((rand(3, 4), rand(3, 4)), (rand(2, 4), rand(2, 4)), (rand(2, 4), rand(4)))
def many_writes_in_a_row(x: Tensor, y: Tensor) -> Any:
    torch.add(x, 1, out=x)
    x[...] = x.flip(0)
    x += y
    x[x > 1] = 0
    x[:, 1:3] = y[..., 1:3]
    x.masked_fill_(x < 0, 0.5)
    return x


@reported((rand(3, 4),), (rand(2, 4),), eager="view full_like slice slice_scatter")
def another_type_of_the_same_memory(x: Tensor) -> Any:
    y = x.view(torch.int32) * 2
    y.sub_(-4)
    x[:, 1:3] = 2
    return y.view(torch.float32), x


@reported((rand(2, 3),), (rand(5, 3),))
class StateOfAModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("total", torch.zeros(3))
        self.total: Tensor

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        self.total += x.sum(0)
        self.total[0] = self.calls
        return x * self.calls, self.total, self.calls


# Elements as places


@reported((rand(4, 3), ints(2, 0, -1)), (rand(5, 3), ints(1, -3, 0)), (rand(1, 3), ints(0)), (rand(4, 3), ints(4)))
def places_from_the_end(x: Tensor, at: Tensor) -> Any:
    return x[at] * 2, x[at, at % 3], x[:, at % 3] + 1


@reported((rand(4, 3), ints(0, 3)), (rand(4, 3), ints(-1)), (rand(4, 3), ints(4)))
def rows_of_a_table(x: Tensor, at: Tensor) -> Any:
    return F.embedding(at, x).sum(-1), x.index_select(0, at)


@reported((rand(4, 3), ints(0, 3)), (rand(4, 3), ints(7)), (rand(4, 3), ints(-5)), (rand(4, 3), ints(-1)))
def writes_to_places(x: Tensor, at: Tensor) -> Any:
    y = x + 1
    y[at] = 0
    return y * 2


@reported((ints(0, 1, 2),), (ints(0, -1),), (ints(5, 0),))
def classes(at: Tensor) -> Any:
    return F.one_hot(at, 3).float() * 2


@reported(
    (rand(4, 3), ints(1, 1, 0)),
    (rand(2, 3), ints(1)),
    eager="scatter_add scatter_reduce index_add index_put add expand scalar_tensor slice unsqueeze",
)
def places_that_repeat(x: Tensor, at: Tensor) -> Any:
    wide = at[:, None].expand(-1, 3)
    source = x[:1].expand(at.shape[0], 3) + 1
    added = x.index_put((at,), torch.tensor(1.0), accumulate=True)
    return x.scatter_add(0, wide, source), x.scatter_reduce(0, wide, source, "amax"), added, x.index_add(0, at, source)


@reported(
    (rand(2, 3, 4, 8), torch.tensor([[True, False, True]] * 4)), (rand(2, 3, 4, 8), torch.tensor([[False] * 5] * 4))
)
def attention_to_nothing(q: Tensor, mask: Tensor) -> Any:
    k = q[:, :, :1].expand(-1, -1, mask.shape[1], -1) + torch.arange(mask.shape[1]).view(-1, 1) * 0.1
    by_hand = (q @ k.mT).masked_fill(~mask, -inf).softmax(-1)
    return F.scaled_dot_product_attention(q, k, k, attn_mask=mask), by_hand


@reported((rand(2, 5, 8), 3), (rand(1, 9, 8), 0), (rand(3, 1, 8), 7))
def turned_positions(x: Tensor, first: int) -> Any:
    angles = torch.outer(torch.arange(first, first + x.shape[1]).float(), 10000 ** -(torch.arange(0, 8, 2) / 8))
    a, b = x[..., ::2], x[..., 1::2]
    halves = torch.cat([-x[..., 4:], x[..., :4]], -1)
    pairs = torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)
    return pairs.flatten(-2), halves * torch.cat([angles, angles], -1).sin()


# Errors


@reported((rand(4, 4), rand(4, 4)), (rand(4, 4), rand(4, 3)), (rand(4, 4), rand(1, 4)), (rand(4, 4), rand(3, 4)))
def sizes_that_do_not_broadcast(x: Tensor, y: Tensor) -> Any:
    return x * 2 + y


@reported((rand(2, 6),), (rand(2, 7),), (rand(3, 4),))
def sizes_that_do_not_divide(x: Tensor) -> Any:
    return x.view(-1, 2, 2) * 2


@reported((rand(4, 4), rand(4, 4).half()), (rand(2, 4), rand(4, 4)), eager="matmul")
def a_product_of_two_types(x: Tensor, y: Tensor) -> Any:
    return x @ y


@reported((rand(4, 4),), (rand(4, 0),), (rand(0, 4),))
def an_extremum_of_nothing(x: Tensor) -> Any:
    return x.amax(1) + 1


@reported((rand(1, 2, 5),), (rand(1, 2, 2),), (rand(1, 2, 3),))
def a_border_wider_than_the_image(x: Tensor) -> Any:
    return F.pad(x, (2, 2), mode="reflect") * 2


@reported((ints(1, 2, 3), rand(3)), (ints(1), rand(1)))
def a_float_into_an_integer(a: Tensor, b: Tensor) -> Any:
    return a.add_(b)


@reported((rand(4, 3), ints(0, 3)), (rand(4, 3), ints(-1)), (rand(4, 2), ints(0)), eager="index_add mul ones")
def rows_to_add_that_do_not_exist(x: Tensor, at: Tensor) -> Any:
    return (x * 2).index_add(0, at, torch.ones(at.shape[0], 3))


# Arguments and compiles


@reported((rand(3, 4), 1.5, 2, True, None), (rand(5, 4), 2.5, 3, False, None), (rand(5, 2), 0.0, 5, True, rand(2)))
def arguments_of_python(x: Tensor, scale: float, k: int, flag: bool, bias: Tensor | None) -> Any:
    y = x * scale + k
    y = y.relu() if flag else y
    y = y if bias is None else y + bias
    return {"y": y, "n": x.shape[0] * k}, [scale * 2, flag, (k, None)], x.size(0) / 2


@reported((rand(3, 4), [rand(3, 4), rand(4)], {"a": rand(4)}), (rand(2, 4), [rand(4)], {"a": rand(4), "b": rand(2, 1)}))
def containers(x: Tensor, terms: list[Tensor], factors: dict[str, Tensor]) -> Any:
    for term in terms:
        x = x + term
    for factor in factors.values():
        x = x * factor
    factors["made"] = x + 1
    return x, len(terms), list(factors)


@reported((rand(6, 4), rand(2)), (rand(6, 4), rand(3)))
def numbers_out_of_tensors(x: Tensor, y: Tensor) -> Any:
    return x * y.sum().item(), x[: y.shape[0]] + y.tolist()[0]


@reported(*((rand(n, 8), rand(n, 1)) for n in (1, 2, 5, 1, 0, 9)), graphs=3)
def a_first_call_of_size_one(x: Tensor, mask: Tensor) -> Any:
    return (x * mask).sum(0) / mask.sum().clamp_min(1)


@reported(*((rand(2, 4, n, 8), rand(2, 4, 1, 8)) for n in (1, 2, 3, 9, 0)), graphs=4)
def a_cache_that_grows(cache: Tensor, new: Tensor) -> Any:
    cache = torch.cat([cache, new], 2)
    return cache, (new @ cache.mT).softmax(-1) @ cache


@reported(*((rand(4 * n),) for n in (2, 3, 4, 7)), graphs=2)
def four_parts_of_any_size(x: Tensor) -> Any:
    a, b, c, d = x.chunk(4)
    return a * b + c - d


@reported((rand(64),), (rand(3),), graphs=2)
def a_thousand_operations(x: Tensor) -> Tensor:
    for step in range(500):
        x = x * 1.0001 + 0.001 * (step % 7)
    return x
