"""Normalization by statistics, of the input itself or given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import FloatAttr, IntAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.composite import BatchNormOp, LayerNormOp, RmsNormOp
from dlcb.dialects.graph.reduce import MeanOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import ExprLike, floordiv, maximum, sub
from dlcb.dialects.types import compute_type, f64
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.dtypes import element_of
from dlcb.frontend.aten.statistics import variance
from dlcb.frontend.aten.table import Table

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def _normalized(
    i: Builder, kind: type[Any], operands: Sequence[SSAValue], axes: int, eps: float, element: Attribute
) -> SSAValue:
    return i.make(kind, operands, element, axes=IntAttr(axes), eps=FloatAttr(eps, f64))


def _result(i: Builder, place: int, value: SSAValue) -> SSAValue:
    """A further result of the operation, in its dtype."""
    return i.cast(value, element_of(i.dtypes[place]))


def _inverse(i: Builder, spread: SSAValue, eps: float) -> SSAValue:
    """1 / √(spread + eps)."""
    wide = i.like(spread)
    return i.call("rsqrt", i.call("add", spread, eps, element=wide), element=wide)


# Over the last dims


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


@TABLE.handles("native_layer_norm")
def native_layer_norm(
    i: Builder, self: SSAValue, normalized_shape: Any, weight: SSAValue | None, bias: SSAValue | None, eps: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Also the mean and 1 / √(variance + eps) of each row."""
    rank = rank_of(self)
    spread, mean = variance(i, self, tuple(range(rank - len(normalized_shape), rank)), 0)
    normal = layer_norm(i, self, normalized_shape, weight, bias, eps)
    return normal, _result(i, 1, mean), _result(i, 2, _inverse(i, spread, eps))


@TABLE.handles("rms_norm")
def rms_norm(
    i: Builder, self: SSAValue, normalized_shape: Any, weight: SSAValue | None = None, eps: float | None = None
) -> SSAValue:
    eps = torch.finfo(i.dtypes[0]).eps if eps is None else eps
    scale = [] if weight is None else [weight]
    return _normalized(i, RmsNormOp, [self, *scale], len(normalized_shape), eps, i.element)


@TABLE.handles("_fused_rms_norm")
def fused_rms_norm(
    i: Builder, self: SSAValue, normalized_shape: Any, weight: SSAValue | None = None, eps: float | None = None
) -> tuple[SSAValue, SSAValue]:
    rank, wide = rank_of(self), compute_type(i.element)
    square = i.call("mul", self, self, element=wide)
    mean = i.reduce(MeanOp, square, tuple(range(rank - len(normalized_shape), rank)), element=wide)
    inverse = _inverse(i, mean, torch.finfo(i.dtypes[0]).eps if eps is None else eps)
    return rms_norm(i, self, normalized_shape, weight, eps), _result(i, 1, inverse)


# Over all but the channels


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
    if rank_of(self) < 2:
        i.unsupported("batch norm of a tensor without channels")
    if running_mean is not None and running_var is not None and not training:
        return _by_running(i, self, weight, bias, running_mean, running_var, eps)
    mean, spread = _batch_statistics(i, self)
    return _by_statistics(i, self, weight, bias, mean, _inverse(i, spread, eps))


def _by_running(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    mean: SSAValue,
    spread: SSAValue,
    eps: float,
) -> SSAValue:
    if (weight is None) == (bias is None):
        scale = [v for v in (weight, bias) if v is not None]
        return i.make(BatchNormOp, [self, mean, spread, *scale], i.element, eps=FloatAttr(eps, f64))
    wide = compute_type(i.element)
    center, inverse = i.cast(mean, wide), _inverse(i, i.cast(spread, wide), eps)
    return _by_statistics(i, self, weight, bias, *(_along_channels(i, v, rank_of(self)) for v in (center, inverse)))


def _batch_statistics(i: Builder, self: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Mean and variance of each channel over all else, reduced dims kept."""
    spread, mean = variance(i, self, tuple(axis for axis in range(rank_of(self)) if axis != 1), 0)
    return mean, spread


def _by_statistics(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    mean: SSAValue,
    inverse: SSAValue,
) -> SSAValue:
    """(self - mean) · inverse · weight + bias; statistics have the rank of the input."""
    wide = compute_type(i.element)
    away = i.call("sub", self, mean, element=wide)
    return _scaled_channels(i, i.call("mul", away, inverse, element=wide), weight, bias)


def _flat(i: Builder, statistic: SSAValue, place: int) -> SSAValue:
    """The statistic of each channel as a vector."""
    return _result(i, place, i.reshape(statistic, (i.sizes(statistic)[1],)))


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


@TABLE.handles("_native_batch_norm_legit")
def batch_norm_of_batch(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Without running statistics; also the mean and 1 / √(variance + eps) of each channel."""
    i.require_elements(i.sizes(self), "an input")
    mean, spread = _batch_statistics(i, self)
    inverse = _inverse(i, spread, eps)
    return _by_statistics(i, self, weight, bias, mean, inverse), _flat(i, mean, 1), _flat(i, inverse, 2)


@TABLE.handles("_native_batch_norm_legit_functional")
def batch_norm_in_training(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    running_mean: SSAValue,
    running_var: SSAValue,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[SSAValue, ...]:
    """Also the batch's statistics, and the new running ones; the running variance is unbiased."""
    if not training:
        i.unsupported("running statistics that are only read")
    i.require_elements(i.sizes(self), "an input")
    mean, spread = _batch_statistics(i, self)
    inverse, wide = _inverse(i, spread, eps), compute_type(i.like(running_mean))
    count = product([s for axis, s in enumerate(i.sizes(self)) if axis != 1])
    unbiased = i.call(
        "mul", spread, _ratio(i, count, maximum(sub(count, 1), 0), i.like(spread)), element=i.like(spread)
    )
    updated = [
        i.call(
            "add",
            i.call("mul", old, 1 - momentum, element=wide),
            i.call("mul", i.reshape(new, i.sizes(old)), momentum, element=wide),
            element=i.like(old),
        )
        for old, new in ((running_mean, mean), (running_var, unbiased))
    ]
    normal = _by_statistics(i, self, weight, bias, mean, inverse)
    return normal, _flat(i, mean, 1), _flat(i, inverse, 2), *updated


def _ratio(i: Builder, numerator: ExprLike, denominator: ExprLike, element: Attribute) -> SSAValue:
    return i.call("div", i.number(numerator, element), i.number(denominator, element), element=element)


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


# Over groups of channels


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
    scaled = weight is not None or bias is not None
    element = compute_type(i.element) if scaled else i.element
    normal = _normalized(i, LayerNormOp, [_grouped(i, self, num_groups)], 1, eps, element)
    return _scaled_channels(i, i.reshape(normal, i.sizes(self)), weight, bias)


def _grouped(i: Builder, self: SSAValue, num_groups: int) -> SSAValue:
    batch, channels, *rest = i.sizes(self)
    groups = i.literal(num_groups, "groups")
    i.require("divides", groups, channels, "channels in equal groups")
    return i.reshape(self, (batch, groups, product([floordiv(channels, groups), *rest])))


@TABLE.handles("native_group_norm")
def native_group_norm(
    i: Builder,
    self: SSAValue,
    weight: SSAValue | None,
    bias: SSAValue | None,
    n: Any,
    c: Any,
    hxw: Any,
    group: int,
    eps: float,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Also the mean and 1 / √(variance + eps) of each group."""
    spread, mean = variance(i, _grouped(i, self, group), (2,), 0)
    rest = [i.without_axis(v, 2) for v in (mean, _inverse(i, spread, eps))]
    return group_norm(i, self, group, weight, bias, eps), _result(i, 1, rest[0]), _result(i, 2, rest[1])


def _along_channels(i: Builder, scale: SSAValue, rank: int) -> SSAValue:
    """A vector of channels, to broadcast with a tensor of this rank."""
    return i.reshape(scale, (i.sizes(scale)[0], *[1] * (rank - 2)))


def _scaled_channels(i: Builder, value: SSAValue, weight: SSAValue | None, bias: SSAValue | None) -> SSAValue:
    rank = rank_of(value)
    for scale in (weight, bias):
        if scale is not None:
            i.require("eq", i.sizes(scale)[0], i.sizes(value)[1], "a weight or bias for each channel")
    if weight is not None:
        element = i.element if bias is None else i.like(value)
        value = i.call("mul", value, _along_channels(i, weight, rank), element=element)
    if bias is not None:
        value = i.call("add", value, _along_channels(i, bias, rank))
    return i.cast(value, i.element)
