"""Calls of ATen's overloads as captured graphs make them: those that 52 models reach, and their neighbours.

`REACHED` has one entry for each overload of the models' graphs, `NEIGHBOURS` other forms and arguments. A sample makes
its arguments for any dtype; which dtypes an overload has, eager says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

aten = torch.ops.aten


class Maker:
    """Random tensors of one dtype."""

    def __init__(self, dtype: torch.dtype, seed: int = 0) -> None:
        self.dtype = dtype
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *sizes: int, low: float = -3, high: float = 3) -> Tensor:
        uniform = torch.rand(sizes, generator=self.generator, dtype=torch.float64) * (high - low) + low
        if self.dtype is torch.bool:
            return uniform > (low + high) / 2
        if self.dtype.is_floating_point:
            return uniform.to(self.dtype)
        return (uniform.abs() if self.dtype is torch.uint8 else uniform).floor().to(self.dtype)

    def positive(self, *sizes: int) -> Tensor:
        return self(*sizes, low=1 if not self.dtype.is_floating_point else 0.25, high=4)

    def ids(self, count: int, *sizes: int) -> Tensor:
        return torch.randint(0, count, sizes, generator=self.generator)

    def mask(self, *sizes: int) -> Tensor:
        return torch.rand(sizes, generator=self.generator) > 0.5


Arguments = Callable[[Maker], tuple[Any, ...]]


@dataclass(frozen=True)
class AtenSample:
    name: str
    program: Callable[..., Any]
    calls: tuple[Arguments, ...]
    """The first is the example that is captured."""
    slack: float = 0
    """The error to allow at least."""


def tensors(*cases: Sequence[tuple[int, ...]]) -> tuple[Arguments, ...]:
    """Tensors of these sizes for each call."""
    return tuple(lambda t, case=case: tuple(t(*sizes) for sizes in case) for case in cases)


PLANES = tensors([(3, 4)], [(5, 2)], [(1, 1)], [(0, 7)])
PAIRS = tensors([(3, 4), (3, 4)], [(5, 1), (1, 2)], [(1, 1), (3, 7)], [(0, 2), (1, 2)])
IMAGES = tensors([(2, 3, 5, 7)], [(1, 2, 4, 4)], [(3, 1, 9, 6)])
POSITIVE: tuple[Arguments, ...] = (lambda t: (t.positive(3, 4),), lambda t: (t.positive(5, 1),))
POSITIVE_PAIRS: tuple[Arguments, ...] = (
    lambda t: (t(3, 4), t.positive(3, 4)),
    lambda t: (t(5, 1), t.positive(1, 2)),
)


def size(x: Tensor, dim: int) -> int:
    return aten.sym_size.int(x, dim)


def _same(name: str, *args: Any, calls: tuple[Arguments, ...] = PLANES, **kwargs: Any) -> AtenSample:
    """The overload on tensors, then these arguments."""
    packet, _, overload = name.partition(".")
    function = getattr(getattr(aten, packet), overload)
    return AtenSample(name, lambda *given: function(*given, *args, **kwargs), calls)


def _of(name: str, program: Callable[..., Any], calls: tuple[Arguments, ...] = PLANES) -> AtenSample:
    return AtenSample(name, program, calls)


def windows_of_a_product(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Overlapping pairs of rows of a product, which torch lays in row-major order."""
    rows, columns = size(x, 0), size(y, 1)
    product = aten.relu.default(aten.mm.default(x, y))
    pairs = aten.as_strided.default(product, [rows - 1, 2, columns], [columns, columns, 1])
    return pairs, aten.as_strided.default(aten.view.default(product, [-1]), [columns], [1], columns)


REACHED: list[AtenSample] = [
    _of("view.default", lambda x: (aten.view.default(x, [-1]), aten.view.default(x, [size(x, 0), 1, size(x, 1)]))),
    _same("permute.default", [1, 0]),
    _same("add.Tensor", calls=PAIRS),
    _same(
        "addmm.default",
        calls=tensors(
            [(5,), (3, 4), (4, 5)], [(2,), (1, 3), (3, 2)], [(2, 5), (2, 0), (0, 5)][:0] or [(7,), (2, 1), (1, 7)]
        ),
    ),
    _of(
        "convolution.default",
        lambda x, w, b: aten.convolution.default(x, w, b, [2, 1], [1, 0], [1, 2], False, [0, 0], 1),
        tensors([(2, 3, 7, 8), (4, 3, 3, 2), (4,)], [(1, 3, 9, 5), (4, 3, 3, 2), (4,)]),
    ),
    _same("mean.dim", [-1], True),
    _same("mul.Tensor", calls=PAIRS),
    _same("clone.default"),
    _of("cat.default", lambda x, y: aten.cat.default([x, y, x], 1), tensors([(3, 4), (3, 2)], [(2, 1), (2, 0)])),
    _same("bmm.default", calls=tensors([(2, 3, 4), (2, 4, 5)], [(1, 1, 6), (1, 6, 2)])),
    _of("expand.default", lambda x: aten.expand.default(x, [2, size(x, 0), -1])),
    _same("_softmax.default", -1, False),
    _same("relu.default"),
    _of(
        "where.self",
        lambda c, x, y: aten.where.self(c, x, y),
        (lambda t: (t.mask(3, 4), t(3, 4), t(4)), lambda t: (t.mask(2, 1), t(2, 5), t(5))),
    ),
    _of(
        "_native_batch_norm_legit_no_training.default",
        lambda x, w, b, m, v: aten._native_batch_norm_legit_no_training.default(x, w, b, m, v, 0.1, 1e-5)[0],
        (
            lambda t: (t(2, 3, 4, 5), t(3), t(3), t(3), t.positive(3)),
            lambda t: (t(1, 2, 3, 1), t(2), t(2), t(2), t.positive(2)),
        ),
    ),
    _of(
        "slice.Tensor",
        lambda x: (
            aten.slice.Tensor(x, 1, 1, 9223372036854775807),
            aten.slice.Tensor(x, 0, 0, -1),
            aten.slice.Tensor(x, 1, 0, 3, 2),
        ),
    ),
    _of(
        "native_layer_norm.default",
        lambda x, w, b: aten.native_layer_norm.default(x, [size(x, 1)], w, b, 1e-5),
        tensors([(3, 4), (4,), (4,)], [(5, 7), (7,), (7,)]),
    ),
    _of("gelu.default", lambda x: (aten.gelu.default(x), aten.gelu.default(x, approximate="tanh"))),
    _same("eq.Scalar", 1),
    _same("full_like.default", 2),
    _of(
        "index.Tensor",
        lambda x, i, j: (
            aten.index.Tensor(x, [i]),
            aten.index.Tensor(x, [None, j]),
            aten.index.Tensor(x, [i, None, j]),
            aten.index.Tensor(x, [i, j]),
            aten.index.Tensor(x, [None, i, j]),
            aten.index.Tensor(x, [aten.unsqueeze.default(i, 1), None, j]),
        ),
        (
            lambda t: (t(3, 4, 5), t.ids(3, 2), t.ids(3, 2)),
            lambda t: (t(6, 2, 2), t.ids(2, 7), t.ids(2, 7) - 2),
        ),
    ),
    _same("mul.Scalar", 3),
    _same("logical_not.default"),
    _same("any.dim", 1, True),
    _same("mm.default", calls=tensors([(3, 4), (4, 5)], [(1, 6), (6, 2)], [(2, 1), (1, 3)])),
    _of(
        "arange.start_step",
        lambda x: (
            aten.arange.start_step(0, size(x, 1), 1),
            aten.arange.start_step(1, size(x, 0) + 1, 2, dtype=x.dtype),
        ),
    ),
    _same("sub.Tensor", calls=PAIRS),
    _same("unsqueeze.default", -1),
    _of(
        "_to_copy.default",
        lambda x: (
            *(aten._to_copy.default(x, dtype=d) for d in (torch.float32, torch.float16, torch.int64, torch.bool)),
            aten._to_copy.default(x),
        ),
    ),
    _same("sigmoid.default"),
    _of(
        "embedding.default",
        lambda w, i: (aten.embedding.default(w, i), aten.embedding.default(w, i, 1)),
        (lambda t: (t(7, 4), t.ids(7, 2, 3)), lambda t: (t(3, 5), t.ids(3, 1, 4))),
    ),
    _of("clamp.default", lambda x: (aten.clamp.default(x, 0, 1), aten.clamp.default(x, None, 1))),
    _same("select.int", 1, 0, calls=tensors([(3, 4)], [(5, 2)])),
    _same("max_pool2d_with_indices.default", [3, 3], [2, 2], [1, 1], calls=IMAGES),
    _of("squeeze.dims", lambda x: aten.squeeze.dims(aten.unsqueeze.default(x, 1), [1])),
    _same("pow.Tensor_Scalar", 2),
    _of("full.default", lambda x: (aten.full.default([size(x, 0), 2], 1, dtype=x.dtype), aten.full.default([], 0.5))),
    _of(
        "split_with_sizes.default",
        lambda x: aten.split_with_sizes.default(x, [1, size(x, 1) - 1], 1),
        tensors([(3, 4)], [(5, 2)], [(2, 1)]),
    ),
    _of(
        "scalar_tensor.default",
        lambda x: (aten.scalar_tensor.default(2, dtype=x.dtype), aten.scalar_tensor.default(size(x, 0), dtype=x.dtype)),
    ),
    _same("ne.Scalar", 1),
    _same("div.Tensor", calls=POSITIVE_PAIRS),
    _of(
        "avg_pool2d.default",
        lambda x: (
            aten.avg_pool2d.default(x, [3, 2], [2, 1], [1, 1]),
            aten.avg_pool2d.default(x, [2, 2], [2, 2], [0, 0], True, False),
            aten.avg_pool2d.default(x, [2, 2], [1, 1], [1, 1], False, True, 3),
        ),
        IMAGES,
    ),
    _same("neg.default"),
    _same("cumsum.default", 1),
    _same("rsqrt.default", calls=POSITIVE),
    _same("tanh.default"),
    _same("bitwise_and.Tensor", calls=PAIRS),
    _same("sin.default"),
    _same("cos.default"),
    _same("le.Tensor", calls=PAIRS),
    _same("eq.Tensor", calls=PAIRS),
    _same("alias.default"),
    _of(
        "constant_pad_nd.default",
        lambda x: (aten.constant_pad_nd.default(x, [1, 2], 2), aten.constant_pad_nd.default(x, [0, -1, 1, 0], 1)),
    ),
    _same("lift_fresh_copy.default"),
    _of(
        "gather.default",
        lambda x, i: aten.gather.default(x, 1, i),
        (lambda t: (t(3, 4), t.ids(4, 3, 6)), lambda t: (t(5, 2), t.ids(2, 4, 1))),
    ),
    _of("as_strided.default", windows_of_a_product, tensors([(4, 2), (2, 3)], [(2, 5), (5, 1)])),
    _of(
        "slice_scatter.default",
        lambda x, y: aten.slice_scatter.default(x, y, 1, 1, 9223372036854775807),
        tensors([(3, 4), (3, 3)], [(5, 2), (5, 1)]),
    ),
    _same("copy.default", calls=tensors([(3, 4), (3, 4)], [(2, 5), (1, 5)])),
    _of(
        "_native_batch_norm_legit.no_stats",
        lambda x, w, b: aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
        tensors([(2, 3, 4, 5), (3,), (3,)], [(1, 2, 3, 2), (2,), (2,)]),
    ),
    _of("sum.dim_IntList", lambda x: (aten.sum.dim_IntList(x, [1]), aten.sum.dim_IntList(x, [0, 1], True))),
    _same("fmod.Scalar", 2),
    _of(
        "index_select.default",
        lambda x, i: aten.index_select.default(x, 1, i),
        (lambda t: (t(3, 4), t.ids(4, 6)), lambda t: (t(5, 2), t.ids(2, 1))),
    ),
    _same("lt.Scalar", 1),
    _same("exp.default"),
    _of("repeat.default", lambda x: (aten.repeat.default(x, [2, 1, 3]), aten.repeat.default(x, [size(x, 0), 0]))),
    _same("gt.Scalar", 1),
    _of(
        "_adaptive_avg_pool2d.default",
        lambda x: (
            aten._adaptive_avg_pool2d.default(x, [1, 1]),
            aten._adaptive_avg_pool2d.default(x, [3, 2]),
            aten._adaptive_avg_pool2d.default(x, [size(x, 2), 7]),
        ),
        IMAGES,
    ),
    _of(
        "grid_sampler_2d.default",
        lambda x, g: tuple(
            aten.grid_sampler_2d.default(x, g, m, p, a) for m, p, a in ((0, 0, False), (0, 1, True), (1, 2, False))
        ),
        (
            lambda t: (t(2, 3, 5, 7), t(2, 4, 3, 2, low=-1.5, high=1.5)),
            lambda t: (t(1, 2, 4, 1), t(1, 2, 6, 2, low=-1.5, high=1.5)),
        ),
    ),
    _same("hardtanh.default", -1, 1),
    _of(
        "native_group_norm.default",
        lambda x, w, b: aten.native_group_norm.default(
            x, w, b, size(x, 0), size(x, 1), size(x, 2) * size(x, 3), 2, 1e-5
        ),
        tensors([(2, 4, 3, 5), (4,), (4,)], [(1, 6, 2, 2), (6,), (6,)]),
    ),
    _of(
        "index_put.default",
        lambda x, i, v: (
            aten.index_put.default(x, [i], v),
            aten.index_put.default(x, [None, i], aten.slice.Tensor(x, 1, 0, 1)),
        ),
        (lambda t: (t(3, 4), torch.tensor([2, 0]), t(2, 4)), lambda t: (t(5, 3), torch.tensor([1, -3, 0]), t(1, 3))),
    ),
    _same("minimum.default", calls=PAIRS),
    _same("floor.default"),
    _same("log.default", calls=POSITIVE),
    _same("ge.Tensor", calls=PAIRS),
    _same("log1p.default", calls=POSITIVE),
    _same("sqrt.default", calls=POSITIVE),
    _of(
        "div.Tensor_mode",
        lambda x, y: (
            aten.div.Tensor_mode(x, y, rounding_mode="floor"),
            aten.div.Tensor_mode(x, y, rounding_mode="trunc"),
        ),
        POSITIVE_PAIRS,
    ),
    _of("pow.Scalar", lambda x: aten.pow.Scalar(2, x), POSITIVE),
    _same("max.dim", 1, calls=tensors([(3, 4)], [(5, 2)], [(1, 1)])),
    _same("abs.default"),
    _same("gt.Tensor", calls=PAIRS),
]

# --- other forms and arguments ---

ROWS = tensors([(2, 3, 8)], [(1, 3, 5)], [(4, 3, 13)])
VOLUMES = tensors([(2, 3, 4, 5, 6)], [(1, 2, 3, 4, 3)])


def _forms(name: str, calls: tuple[Arguments, ...], *programs: Callable[..., Any]) -> AtenSample:
    return AtenSample(name, lambda *args: [program(*args) for program in programs], calls)


interpolated: Callable[..., Tensor] = F.interpolate

NEIGHBOURS: list[AtenSample] = [
    _forms(
        "select_scatter",
        tensors([(3, 4), (3,)], [(5, 2), (5,)]),
        lambda x, y: torch.select_scatter(x, y, 1, 0),
        lambda x, y: torch.select_scatter(x, y, 1, -1),
    ),
    _forms(
        "slice_scatter by steps",
        tensors([(4, 7), (4, 3)], [(2, 6), (2, 2)]),
        lambda x, y: torch.slice_scatter(x, y, 1, 1, -1, 2),
    ),
    _forms(
        "layer norm",
        tensors([(2, 3, 4), (3, 4), (3, 4)], [(5, 2, 1), (2, 1), (2, 1)]),
        lambda x, w, b: aten.native_layer_norm.default(x, x.shape[1:], w, b, 1e-5),
        lambda x, w, b: aten.native_layer_norm.default(x, x.shape[1:], None, None, 0.1),
        lambda x, w, b: F.layer_norm(x, x.shape[1:], None, b),
        lambda x, w, b: F.layer_norm(x, x.shape[1:], w),
    ),
    _forms(
        "rms norm",
        tensors([(2, 3, 4), (4,)], [(5, 2, 7), (7,)]),
        lambda x, w: F.rms_norm(x, x.shape[2:], w),
        lambda x, w: F.rms_norm(x, x.shape[1:], None, 0.1),
        lambda x, w: aten._fused_rms_norm.default(x, x.shape[2:], w, 1e-3),
    ),
    _forms(
        "batch norm",
        (
            lambda t: (t(2, 3, 5), t(3), t(3), t(3), t.positive(3)),
            lambda t: (t(3, 4, 1), t(4), t(4), t(4), t.positive(4)),
        ),
        lambda x, w, b, m, v: F.batch_norm(x, m, v, w, None),
        lambda x, w, b, m, v: F.batch_norm(x, m, v, None, b),
        lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, True),
        lambda x, w, b, m, v: aten._native_batch_norm_legit_functional.default(x, w, b, m, v, True, 0.1, 1e-5),
        lambda x, w, b, m, v: F.instance_norm(x, m, v, w, b, False),
    ),
    _forms(
        "group and instance norm",
        tensors([(2, 4, 3, 5), (4,), (4,)], [(1, 6, 2, 2), (6,), (6,)]),
        lambda x, w, b: F.group_norm(x, 2, w, b),
        lambda x, w, b: F.group_norm(x, 1),
        lambda x, w, b: F.instance_norm(x, None, None, w, b),
        lambda x, w, b: F.local_response_norm(x, 3),
        lambda x, w, b: aten.native_group_norm.default(
            x, None, None, x.shape[0], x.shape[1], x.shape[2] * x.shape[3], 2, 1e-5
        ),
    ),
    _forms(
        "index",
        (
            lambda t: (t(3, 4, 5, 2), t.ids(3, 2, 3), t.ids(3, 3), t.ids(2, 2, 3)),
            lambda t: (t(6, 2, 3, 4), t.ids(2, 4, 5) - 2, t.ids(2, 5), t.ids(3, 4, 5) - 1),
        ),
        lambda x, i, j, k: x[i, :, j],
        lambda x, i, j, k: x[:, i, j],
        lambda x, i, j, k: x[j, :, :, k],
        lambda x, i, j, k: x[:, None, i, :, k],
        lambda x, i, j, k: x[0, i, :, k],
        lambda x, i, j, k: x[..., i, k],
        lambda x, i, j, k: x[i, j, k, k],
    ),
    _forms(
        "index_put",
        (
            lambda t: (t(3, 4, 5), torch.tensor([2, 0]), torch.tensor([1, 3]), t(2, 5)),
            lambda t: (t(5, 3, 2), torch.tensor([1, -3, 0]), torch.tensor([0, 1, -1]), t(1, 2)),
        ),
        lambda x, i, j, v: aten.index_put.default(x, [i, j], v),
        lambda x, i, j, v: aten.index_put.default(x, [i, None, j % 2], v[:, :1]),
        lambda x, i, j, v: torch.index_fill(x, 0, i, 1),
        lambda x, i, j, v: torch.index_copy(x, 0, i.abs(), x[: i.shape[0]]),
    ),
    _forms(
        "scatter",
        (
            lambda t: (t(3, 4), torch.tensor([[2, 0, 1, 1]]), t(1, 4)),
            lambda t: (t(5, 2), torch.tensor([[1, 3], [0, 4]]), t(2, 2)),
        ),
        lambda x, i, v: torch.scatter(x, 0, i, v),
        lambda x, i, v: torch.scatter(x, 0, i, 2),
    ),
    _forms(
        "gather and take",
        (lambda t: (t(3, 4), t.ids(4, 3, 2)), lambda t: (t(5, 2), t.ids(2, 5, 1))),
        lambda x, i: torch.take_along_dim(x, i, 1),
        lambda x, i: torch.take_along_dim(x, i),
        lambda x, i: torch.take(x, i),
        lambda x, i: torch.index_select(x, 0, i[0, :1]),
        lambda x, i: F.one_hot(i, 5),
        lambda x, i: F.embedding(i % 2, x, padding_idx=0),
    ),
    _forms(
        "masks",
        (lambda t: (t(3, 4), t.mask(3, 4), t(3, 4)), lambda t: (t(5, 2), t.mask(5, 1), t(1, 2))),
        lambda x, m, y: torch.masked_fill(x, m, 1),
        lambda x, m, y: torch.where(m, x, y),
        lambda x, m, y: torch.where(m, x, 1),
        lambda x, m, y: torch.tril(x),
        lambda x, m, y: torch.triu(x, 1),
        lambda x, m, y: torch.tril(x, -1),
    ),
    _forms(
        "repeats",
        PLANES,
        lambda x: x.repeat(2, 1, 3),
        lambda x: torch.tile(x, (2,)),
        lambda x: torch.tile(x, (2, 1, 2)),
        lambda x: x.repeat_interleave(2, 1),
        lambda x: torch.flip(x, (0, 1)),
        lambda x: torch.fliplr(x),
        lambda x: torch.rot90(x),
        lambda x: torch.rot90(x, 2),
        lambda x: torch.rot90(x, -1, (1, 0)),
        lambda x: torch.roll(x, (1, -1), (0, 1)),
        lambda x: torch.roll(x, 2),
        lambda x: torch.roll(x, (1,)),
    ),
    _forms(
        "diagonals",
        PLANES,
        lambda x: torch.diagonal(x),
        lambda x: torch.diagonal(x, 1),
        lambda x: torch.diagonal(x, -1),
        lambda x: torch.diag(x[:, :1].flatten(), 1),
        lambda x: torch.diag(x, -1),
        lambda x: torch.trace(x),
        lambda x: torch.diag_embed(x),
        lambda x: torch.diag_embed(x, 1),
        lambda x: torch.linalg.diagonal(x),
    ),
    _forms(
        "creation",
        PLANES,
        lambda x: torch.eye(x.shape[0], 3, dtype=x.dtype),
        lambda x: torch.full_like(x, 2),
        lambda x: torch.ones_like(x),
        lambda x: torch.zeros_like(x),
        lambda x: x.new_full((2, x.shape[1]), 3),
        lambda x: x.new_zeros(x.shape[0]),
        lambda x: x.new_ones((2,)),
        lambda x: torch.zeros(x.shape, dtype=x.dtype),
        lambda x: torch.arange(x.shape[1]),
        lambda x: torch.arange(1, 2 * x.shape[1] + 1, 2, dtype=x.dtype),
        lambda x: torch.arange(x.shape[0], -1, -1),
        lambda x: torch.arange(x.shape[0], dtype=torch.float32),
        lambda x: torch.arange(0, 3, 0.5),
        lambda x: torch.linspace(0, 1, x.shape[1]),
        lambda x: torch.linspace(-3, x.shape[0], 7),
        lambda x: torch.linspace(2, -5, 11, dtype=torch.float64),
        lambda x: torch.scalar_tensor(x.shape[0]),
        lambda x: torch.full((x.shape[0],), x.shape[1]),
        lambda x: torch.fill(x, 1),
    ),
    _forms(
        "unfold",
        tensors([(2, 3, 8, 9)], [(1, 2, 5, 6)]),
        lambda x: x.unfold(2, 3, 2),
        lambda x: x.unfold(3, 2, 1).unfold(2, 2, 2),
        lambda x: F.unfold(x, 3),
        lambda x: F.unfold(x, (2, 3), (1, 2), (1, 0), (2, 1)),
    ),
    _forms(
        "shuffles",
        tensors([(2, 8, 2, 4)], [(1, 4, 6, 2)]),
        lambda x: F.pixel_shuffle(x, 2),
        lambda x: F.pixel_unshuffle(x, 2),
        lambda x: F.channel_shuffle(x, 2),
        lambda x: torch.movedim(x, 1, -1),
        lambda x: torch.swapaxes(x, 0, 1),
        lambda x: x.unflatten(1, (2, -1)),
        lambda x: torch.atleast_3d(x[0, 0]),
        lambda x: x.mT,
    ),
    *[
        _forms(
            f"interpolate rows {mode}",
            ROWS,
            *[
                lambda x, a=a, mode=mode: interpolated(x, mode=mode, **a)
                for a in ({"scale_factor": 2}, {"scale_factor": 1.5}, {"size": 7}, {"scale_factor": 0.75}, {"size": 1})
            ],
        )
        for mode in ("nearest", "nearest-exact", "linear", "area")
    ],
    *[
        _forms(
            f"interpolate images {mode}",
            IMAGES,
            *[
                lambda x, a=a, mode=mode: interpolated(x, mode=mode, **a)
                for a in (
                    {"scale_factor": (2, 1.5)},
                    {"size": (4, 9)},
                    {"scale_factor": 0.5, "recompute_scale_factor": True},
                )
            ],
        )
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    ],
    *[
        _forms(
            f"interpolate aligned {mode}",
            calls,
            *[
                lambda x, a=a, mode=mode: interpolated(x, mode=mode, align_corners=True, **a)
                for a in ({"scale_factor": 1.5}, {"size": 1})
            ],
        )
        for mode, calls in (("linear", ROWS), ("bilinear", IMAGES), ("bicubic", IMAGES), ("trilinear", VOLUMES))
    ],
    _forms(
        "interpolate volumes",
        VOLUMES,
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.interpolate(x, size=(3, 7, 5)),
        lambda x: F.interpolate(x, size=(5, 4, 3), mode="nearest-exact"),
        lambda x: F.interpolate(x, size=(5, 4, 3), mode="trilinear"),
        lambda x: F.interpolate(x, scale_factor=1.5, mode="trilinear"),
    ),
    _forms(
        "adaptive pools of rows",
        ROWS,
        lambda x: F.adaptive_avg_pool1d(x, 3),
        lambda x: F.adaptive_max_pool1d(x, 3),
        lambda x: F.adaptive_avg_pool1d(x, x.shape[2]),
        lambda x: F.adaptive_avg_pool1d(x[0], 4),
    ),
    _forms(
        "adaptive pools of images",
        IMAGES,
        lambda x: F.adaptive_avg_pool2d(x, (3, None)),
        lambda x: F.adaptive_avg_pool2d(x, 9),
        lambda x: F.adaptive_max_pool2d(x, (2, 3)),
        lambda x: F.adaptive_max_pool2d(x, 1),
        lambda x: F.adaptive_avg_pool2d(x, (x.shape[3], x.shape[2])),
        lambda x: F.adaptive_avg_pool2d(x[0], 2),
    ),
    _forms(
        "adaptive pools of volumes",
        VOLUMES,
        lambda x: F.adaptive_avg_pool3d(x, 2),
        lambda x: F.adaptive_max_pool3d(x, (1, 2, 3)),
    ),
    _forms(
        "pools of rows",
        ROWS,
        lambda x: F.avg_pool1d(x, 3, 2, 1),
        lambda x: F.avg_pool1d(x, 3, 2, 1, True),
        lambda x: F.avg_pool1d(x, 2, 2, 1, True, False),
        lambda x: F.max_pool1d(x, 3, 2, 1),
        lambda x: F.max_pool1d(x, 2, 2, 0, 2, True),
        lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True),
        lambda x: F.lp_pool1d(x, 2, 2),
    ),
    _forms(
        "pools of images",
        IMAGES,
        lambda x: F.max_pool2d(x, 2, ceil_mode=True, return_indices=True),
        lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True),
        lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1), (1, 2)),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True, False),
        lambda x: F.avg_pool2d(x, 3, 2, 1, True),
        lambda x: F.avg_pool2d(x, 2, divisor_override=3),
        lambda x: F.max_pool2d(x[0], 2),
        lambda x: F.lp_pool2d(x, 2, 2),
        lambda x: F.max_pool2d(x, 1, 2, ceil_mode=True),
    ),
    _forms(
        "pools of volumes",
        VOLUMES,
        lambda x: F.max_pool3d(x, 2, return_indices=True),
        lambda x: F.max_pool3d(x, 3, 2, 1, ceil_mode=True),
        lambda x: F.avg_pool3d(x, 2, 1, 1),
        lambda x: F.avg_pool3d(x, 2, 2, 1, True, False),
    ),
    *[
        _forms(
            f"pad {mode}",
            tensors([(2, 3, 5, 7)], [(1, 2, 4, 4)]),
            lambda x, mode=mode: F.pad(x, (1, 2, 0, 3), mode=mode),
            lambda x, mode=mode: F.pad(x, (1, -2, -1, 1), mode=mode),
            lambda x, mode=mode: F.pad(x[0], (2, 1), mode=mode),
            lambda x, mode=mode: F.pad(x, (2, 0, 1, 1), mode=mode),
        )
        for mode in ("constant", "reflect", "replicate", "circular")
    ],
    _forms(
        "pieces",
        tensors([(3, 8)], [(5, 8)]),
        lambda x: x.split(3, 1),
        lambda x: x.chunk(3, 1),
        lambda x: torch.tensor_split(x, 3, 1),
        lambda x: x.split((1, x.shape[1] - 1), 1),
        lambda x: torch.hsplit(x, 2),
        lambda x: torch.stack([x, x], 1),
        lambda x: torch.hstack([x, x]),
        lambda x: torch.vstack([x, x]),
        lambda x: torch.dstack([x, x]),
        lambda x: torch.cat([x, x[:, :0], x], 1),
        lambda x: torch.cat([x[:0], x]),
        lambda x: torch.column_stack([x, x[:, 0]]),
        lambda x: torch.cat([x.new_zeros(0), x], 1),
        lambda x: torch.block_diag(x, x),
        lambda x: torch.meshgrid(x[0], x[:, 0], indexing="ij"),
    ),
    _forms(
        "products of vectors",
        tensors([(4,), (4,), (3,), (3, 4)], [(1,), (1,), (5,), (5, 1)], [(7,), (7,), (2,), (2, 7)]),
        lambda a, b, c, m: torch.outer(a, c),
        lambda a, b, c, m: torch.dot(a, b),
        lambda a, b, c, m: torch.mv(m, a),
        lambda a, b, c, m: torch.vdot(a, b),
        lambda a, b, c, m: torch.inner(a, m),
        lambda a, b, c, m: torch.addmv(c, m, a),
        lambda a, b, c, m: torch.addmv(c, m, a, beta=2, alpha=3),
        lambda a, b, c, m: torch.addr(m, c, a),
        lambda a, b, c, m: torch.kron(a, c),
        lambda a, b, c, m: torch.linalg.vecdot(a, b),
        lambda a, b, c, m: torch.linalg.multi_dot([m, m.t(), m]),
    ),
    _forms(
        "products of matrices",
        tensors([(2, 3, 4), (2, 4, 5), (2, 3, 5)], [(1, 2, 3), (1, 3, 2), (1, 2, 2)]),
        lambda a, b, c: torch.baddbmm(c, a, b),
        lambda a, b, c: torch.baddbmm(c, a, b, beta=2, alpha=3),
        lambda a, b, c: torch.addbmm(c[0], a, b),
        lambda a, b, c: torch.addbmm(c[0], a, b, beta=0),
        lambda a, b, c: torch.einsum("bij,bjk->bik", a, b),
        lambda a, b, c: torch.einsum("...ij,...jk->...ik", a, b),
        lambda a, b, c: torch.einsum("bij->b", a),
        lambda a, b, c: torch.einsum("bij,bjk,bik->b", a, b, c),
        lambda a, b, c: torch.tensordot(a, b, cast(Any, ([0, 2], [0, 1]))),
        lambda a, b, c: torch.tensordot(a[0], b[0], 1),
        lambda a, b, c: torch.einsum("ii->i", a[0, :2, :2]),
        lambda a, b, c: torch.einsum("bij,bik", a, c),
    ),
    _forms(
        "bilinear",
        tensors([(2, 3), (2, 4), (5, 3, 4), (5,)], [(6, 1), (6, 2), (3, 1, 2), (3,)]),
        lambda x, y, w, b: F.bilinear(x, y, w, b),
        lambda x, y, w, b: F.bilinear(x, y, w),
    ),
    _forms(
        "distances",
        tensors([(3, 4), (5, 4)], [(1, 2), (3, 2)]),
        lambda x, y: torch.cdist(x, y),
        lambda x, y: torch.cdist(x, y, 1.0),
        lambda x, y: F.pairwise_distance(x[:1], y[:1]),
    ),
    _forms(
        "convolutions of rows",
        tensors([(2, 4, 9), (6, 2, 3), (6,), (4, 3, 3)], [(1, 4, 8), (6, 2, 3), (6,), (4, 3, 3)]),
        lambda x, w, b, t: F.conv1d(x, w, b, groups=2),
        lambda x, w, b, t: F.conv1d(x, w, b, padding="same", groups=2),
        lambda x, w, b, t: F.conv1d(x, w, padding=1, dilation=2, stride=2, groups=2),
        lambda x, w, b, t: F.conv_transpose1d(x, t, stride=2, padding=1, output_padding=1, groups=2),
    ),
    _forms(
        "convolutions of images",
        tensors([(2, 4, 6, 7), (4, 1, 3, 3), (4,), (4, 3, 2, 3)], [(1, 4, 5, 5), (4, 1, 3, 3), (4,), (4, 3, 2, 3)]),
        lambda x, w, b, t: F.conv2d(x, w, b, groups=4),
        lambda x, w, b, t: F.conv2d(x, w, b, padding="same", groups=4, dilation=(1, 2)),
        lambda x, w, b, t: F.conv_transpose2d(x, t, stride=(2, 1), padding=(1, 0)),
        lambda x, w, b, t: F.conv2d(x[0], w, b, groups=4),
    ),
    _forms(
        "convolutions of volumes",
        tensors(
            [(2, 2, 4, 5, 4), (3, 2, 2, 3, 2), (3,), (2, 3, 2, 2, 2)],
            [(1, 2, 3, 4, 5), (3, 2, 2, 3, 2), (3,), (2, 3, 2, 2, 2)],
        ),
        lambda x, w, b, t: F.conv3d(x, w, b),
        lambda x, w, b, t: F.conv3d(x, w, b, (1, 2, 1), (1, 0, 1)),
        lambda x, w, b, t: F.conv_transpose3d(x, t, stride=2),
    ),
    _forms(
        "grids of cubic weights",
        (
            lambda t: (t(2, 3, 5, 7), t(2, 4, 3, 2, low=-1.5, high=1.5)),
            lambda t: (t(1, 2, 4, 1), t(1, 2, 6, 2, low=-1.5, high=1.5)),
        ),
        lambda x, g: F.grid_sample(x, g, "bicubic", "reflection", False),
    ),
    _forms(
        "grids",
        (
            lambda t: (t(2, 3, 5, 7), t(2, 4, 3, 2, low=-1.5, high=1.5), t(2, 2, 3)),
            lambda t: (t(1, 2, 4, 1), t(1, 2, 6, 2, low=-1.5, high=1.5), t(1, 2, 3)),
        ),
        lambda x, g, m: F.grid_sample(x, g, align_corners=False),
        lambda x, g, m: F.grid_sample(x, g, "nearest", "border", True),
        lambda x, g, m: F.affine_grid(m, [x.shape[0], x.shape[1], 4, 5], align_corners=False),
        lambda x, g, m: F.affine_grid(m, [x.shape[0], 3, 2, 3], align_corners=True),
    ),
    _forms(
        "a table cut by a size",
        tensors([(2, 5, 3), (1, 64, 3)], [(1, 64, 2), (1, 64, 2)], [(3, 1, 4), (1, 64, 4)]),
        lambda x, t: x + t[:, : x.shape[1]],
        lambda x, t: x * t[:, -x.shape[1] :],
        lambda x, t: x + t[:, 64 - x.shape[1] :],
    ),
    _forms(
        "halves rotated, with empty pieces",
        tensors([(2, 3, 8)], [(1, 2, 6)], [(3, 5, 4)]),
        lambda x: torch.cat([-x[..., x.shape[2] // 2 :], x[..., : x.shape[2] // 2], x[..., 0:0]], -1),
        lambda x: torch.cat([x[:, :0], x.sin(), x[:, 1:]], 1),
        lambda x: torch.stack(x.split(x.shape[2] // 2, -1)[:2]),
    ),
    _forms(
        "as many groups as channels",
        tensors([(2, 3, 9, 8)], [(1, 5, 7, 6)]),
        lambda x: F.conv2d(
            x, x.new_full((x.shape[1], 1, 3, 3), 0.1), groups=x.shape[1], stride=(2, 1), dilation=(1, 2)
        ),
        lambda x: F.conv2d(x, x.new_ones(2 * x.shape[1], 1, 2, 3), padding=1, groups=x.shape[1]),
    ),
    _forms(
        "one element, padded",
        tensors([(1, 1, 1)], [(2, 2, 5)]),
        lambda x: F.pad(x, (4, 3), value=0.5),
        lambda x: F.pad(x, (0, 0, 2, 1)),
        lambda x: F.pad(x, (-1, 2, 1, 0), value=-1.0),
    ),
]
