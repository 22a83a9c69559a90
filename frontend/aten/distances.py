"""Distances between vectors, by norms of their differences."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import compute_type
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.statistics import vector_norm
from dlcb.frontend.aten.table import Table

TABLE = Table()


@TABLE.handles("cdist", "_cdist_forward")
def cdist(i: Builder, self: SSAValue, x2: SSAValue, p: float = 2.0, compute_mode: int | None = None) -> SSAValue:
    """Between all pairs of rows."""
    rank = type_of(self).rank
    away = i.call("sub", i.unsqueeze(self, rank - 1), i.unsqueeze(x2, type_of(x2).rank - 2), element=i.element)
    return vector_norm(i, away, p, -1)


@TABLE.handles("_euclidean_dist")
def euclidean(i: Builder, self: SSAValue, x2: SSAValue) -> SSAValue:
    return cdist(i, self, x2)


@TABLE.handles("pairwise_distance")
def pairwise_distance(
    i: Builder, self: SSAValue, x2: SSAValue, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> SSAValue:
    wide: Any = compute_type(i.element)
    away = i.call("add", i.call("sub", self, x2, element=wide), eps, element=wide)
    return vector_norm(i, away, p, -1, keepdim)
