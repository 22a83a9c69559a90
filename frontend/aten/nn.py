"""Pooling, normalization and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import FloatAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.composite import BatchNormOp, LayerNormOp, RmsNormOp
from dlcb.dialects.graph.reduce import MeanOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.graph.window import AvgPoolOp, MaxPoolOp, Window
from dlcb.dialects.shape.expr import Expr, ExprLike, floordiv, mul
from dlcb.dialects.types import compute_type, f64, i1
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table, spread
from dlcb.frontend.aten.views import repeat_interleave
from dlcb.passes.graph_builder import int_list

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


# Pooling


def _window(
    i: Builder,
    kind: type[Window],
    self: SSAValue,
    spatial: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: bool,
    **properties: Attribute,
) -> SSAValue:
    def numbers(value: Any) -> Any:
        return int_list(tuple(i.literal(n, "a window's numbers") for n in spread(value, spatial)))

    if ceil:
        properties["ceil"] = UnitAttr()
    return i.make(
        kind,
        [self],
        i.element,
        kernel=numbers(kernel),
        stride=numbers(stride if stride not in (None, ()) else kernel),
        padding=numbers(padding),
        dilation=numbers(dilation),
        **properties,
    )


def _enter_pools(spatial: int) -> None:
    @TABLE.handles(f"max_pool{spatial}d")
    def max_pool(
        i: Builder,
        self: SSAValue,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> SSAValue:
        return _window(i, MaxPoolOp, self, spatial, kernel_size, stride, padding, dilation, ceil_mode)

    @TABLE.handles(f"max_pool{spatial}d_with_indices")
    def max_pool_with_indices(i: Builder, self: SSAValue, *args: Any, **kwargs: Any) -> tuple[SSAValue, None]:
        return max_pool(i, self, *args, **kwargs), None

    @TABLE.handles(f"avg_pool{spatial}d")
    def avg_pool(
        i: Builder,
        self: SSAValue,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SSAValue:
        properties: dict[str, Attribute] = {"count_padding": UnitAttr()} if count_include_pad else {}
        if divisor_override is not None:
            properties["divisor"] = IntAttr(divisor_override)
        return _window(i, AvgPoolOp, self, spatial, kernel_size, stride, padding, 1, ceil_mode, **properties)

    @TABLE.handles(f"adaptive_avg_pool{spatial}d", f"_adaptive_avg_pool{spatial}d")
    def adaptive_avg_pool(i: Builder, self: SSAValue, output_size: Any) -> SSAValue:
        """To size 1 it is a mean; a literal size is cut into equal windows."""
        rank = rank_of(self)
        sizes = i.sizes(self)[rank - spatial :]
        wanted = [sizes[at] if size is None else size for at, size in enumerate(spread(output_size, spatial))]
        if all(not isinstance(size, Expr) and size == 1 for size in wanted):
            return i.reduce(MeanOp, self, tuple(range(rank - spatial, rank)))
        kernel = [_even_window(i, size, out) for size, out in zip(sizes, wanted, strict=True)]
        return _window(i, AvgPoolOp, self, spatial, tuple(kernel), None, 0, 1, False)


def _even_window(i: Builder, size: Expr, out: ExprLike) -> int:
    if size is out:
        return 1
    if size.value is None or isinstance(out, Expr) or size.value % out:
        i.unsupported(
            f"adaptive pooling of size {size} to {out}; DLCB pools to 1, or a literal size to a divisor of it"
        )
    return size.value // out


for _spatial in (1, 2, 3):
    _enter_pools(_spatial)


def _enter_upsampling(spatial: int) -> None:
    @TABLE.handles(f"upsample_nearest{spatial}d")
    def nearest(
        i: Builder, self: SSAValue, output_size: Any = None, scale_factors: Any = None, *scales: Any
    ) -> SSAValue:
        rank = rank_of(self)
        factors = _whole_factors(i, i.sizes(self)[rank - spatial :], output_size, scale_factors)
        for at, factor in enumerate(factors):
            self = repeat_interleave(i, self, factor, rank - spatial + at)
        return self


def _whole_factors(i: Builder, sizes: Sequence[Expr], output_size: Any, scale_factors: Any) -> list[int]:
    if output_size is None:
        factors = list(scale_factors)
    else:
        factors = [i.traced(out) / i.traced(size) for out, size in zip(output_size, sizes, strict=True)]
        for out, size, factor in zip(output_size, sizes, factors, strict=True):
            i.require("eq", out, mul(size, int(factor)), "upsampling by a whole number")
    if any(int(f) != f for f in factors):
        i.unsupported(f"nearest upsampling by {factors}; DLCB upsamples by whole numbers")
    return [int(f) for f in factors]


for _spatial in (1, 2, 3):
    _enter_upsampling(_spatial)


# Normalization


@TABLE.handles("layer_norm")
def layer_norm(
    i: Builder,
    self: SSAValue,
    normalized_shape: Any,
    weight: SSAValue | None = None,
    bias: SSAValue | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> SSAValue:
    axes = len(normalized_shape)
    if weight is None and bias is not None:
        plain = _normalized(i, LayerNormOp, [self], axes, eps, compute_type(i.element))
        return i.call("add", plain, bias)
    scale = [v for v in (weight, bias) if v is not None]
    return _normalized(i, LayerNormOp, [self, *scale], axes, eps, i.element)


def _normalized(
    i: Builder, kind: type[Any], operands: Sequence[SSAValue], axes: int, eps: float, element: Attribute
) -> SSAValue:
    return i.make(kind, operands, element, axes=IntAttr(axes), eps=FloatAttr(eps, f64))


@TABLE.handles("native_layer_norm")
def native_layer_norm(
    i: Builder, self: SSAValue, normalized_shape: Any, weight: SSAValue | None, bias: SSAValue | None, eps: float
) -> tuple[SSAValue, None, None]:
    return layer_norm(i, self, normalized_shape, weight, bias, eps), None, None


@TABLE.handles("rms_norm")
def rms_norm(
    i: Builder, self: SSAValue, normalized_shape: Any, weight: SSAValue | None = None, eps: float | None = None
) -> SSAValue:
    eps = torch.finfo(i.dtypes[0]).eps if eps is None else eps
    scale = [] if weight is None else [weight]
    return _normalized(i, RmsNormOp, [self, *scale], len(normalized_shape), eps, i.element)


@TABLE.handles("batch_norm")
def batch_norm(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue | None,
    running_var: SSAValue | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> SSAValue:
    if training or running_mean is None or running_var is None:
        i.unsupported("batch norm by the statistics of the batch")
    if (weight is None) != (bias is None):
        i.unsupported("batch norm with a weight or a bias alone")
    scale = [v for v in (weight, bias) if v is not None]
    return i.make(BatchNormOp, [self, running_mean, running_var, *scale], i.element, eps=FloatAttr(eps, f64))


@TABLE.handles("_native_batch_norm_legit_no_training")
def native_batch_norm(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_var: SSAValue,
    momentum: float,
    eps: float,
) -> tuple[SSAValue, None, None]:
    return batch_norm(i, self, weight, bias, running_mean, running_var, False, momentum, eps), None, None


@TABLE.handles("group_norm")
def group_norm(
    i: Builder,
    self: SSAValue,
    num_groups: int,
    weight: SSAValue | None = None,
    bias: SSAValue | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> SSAValue:
    """Layer norm of each group of channels laid together."""
    batch, channels, *rest = sizes = i.sizes(self)
    groups = i.literal(num_groups, "groups")
    size = product([floordiv(channels, groups), *rest])
    grouped = i.reshape(self, (batch, groups, size))
    scaled = weight is not None or bias is not None
    element = compute_type(i.element) if scaled else i.element
    result = i.reshape(_normalized(i, LayerNormOp, [grouped], 1, eps, element), sizes)
    return _scaled_channels(i, result, weight, bias)


def _scaled_channels(i: Builder, value: SSAValue, weight: SSAValue | None, bias: SSAValue | None) -> SSAValue:
    def along_channels(scale: SSAValue) -> SSAValue:
        return i.reshape(scale, (i.sizes(scale)[0], *[1] * (rank_of(value) - 2)))

    if weight is not None:
        value = i.call("mul", value, along_channels(weight), element=i.element if bias is None else i.like(value))
    return value if bias is None else i.call("add", value, along_channels(bias))


@TABLE.handles("instance_norm")
def instance_norm(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue | None,
    running_var: SSAValue | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> SSAValue:
    if not use_input_stats:
        return batch_norm(i, self, weight, bias, running_mean, running_var, False, momentum, eps)
    scaled = weight is not None or bias is not None
    element = compute_type(i.element) if scaled else i.element
    return _scaled_channels(i, _normalized(i, LayerNormOp, [self], rank_of(self) - 2, eps, element), weight, bias)


# Gates


@TABLE.handles("glu")
def glu(i: Builder, self: SSAValue, dim: int = -1) -> SSAValue:
    axis = i.axis(dim, rank_of(self))
    half = floordiv(i.sizes(self)[axis], 2)
    first, second = i.slice(self, axis, 0, half), i.slice(self, axis, half, half)
    wide = compute_type(i.element)
    gate = i.call("add", i.call("exp", i.call("neg", second, element=wide), element=wide), 1.0, element=wide)
    return i.call("div", first, gate)


@TABLE.handles("prelu", "_prelu_kernel")
def prelu(i: Builder, self: SSAValue, weight: SSAValue) -> SSAValue:
    rank = rank_of(self)
    if rank_of(weight) == 1 and rank > 1:
        weight = i.reshape(weight, (i.sizes(weight)[0], *[1] * (rank - 2)))
    positive = i.call("gt", self, i.number(0, i.like(self)), element=i1)
    return i.where(positive, self, i.call("mul", self, weight))
