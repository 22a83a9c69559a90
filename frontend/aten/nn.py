"""Layers of neural networks: pooling, normalization, resampling, gates."""

from __future__ import annotations

from xdsl.ir import SSAValue

from dlcb.dialects.graph.types import type_of
from dlcb.dialects.shape.expr import floordiv
from dlcb.dialects.types import compute_type, i1
from dlcb.frontend.aten import distances, normalization, pooling, sampling
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table

TABLE = Table({**pooling.TABLE, **normalization.TABLE, **sampling.TABLE, **distances.TABLE})


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


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
