"""Scans along a dim: running sums, products, extrema with their positions."""

from __future__ import annotations

import torch
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.scan import (
    CummaxOp,
    CumminOp,
    CumprodOp,
    CumsumOp,
    LastPositionOp,
    LogCumsumExpOp,
    Scan,
)
from dlcb.dialects.types import i64
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.reductions import in_result_type, rank_of
from dlcb.frontend.aten.table import Table

TABLE = Table()


def _enter_accumulation(name: str, kind: type[Scan]) -> None:
    @TABLE.handles(name)
    def accumulation(i: Builder, self: SSAValue, dim: int, *, dtype: torch.dtype | None = None) -> SSAValue:
        axis, self = i.axis(dim, rank_of(self)), in_result_type(i, self)
        return i.make(kind, [self], i.element, axis=IntAttr(axis)) if rank_of(self) else self


_enter_accumulation("cumsum", CumsumOp)
_enter_accumulation("cumprod", CumprodOp)
_enter_accumulation("logcumsumexp", LogCumsumExpOp)


def _enter_running_extremum(name: str, kind: type[Scan]) -> None:
    @TABLE.handles(name)
    def running_extremum(i: Builder, self: SSAValue, dim: int) -> tuple[SSAValue, SSAValue]:
        axis = IntAttr(i.axis(dim, rank_of(self)))
        if rank_of(self) == 0:
            return self, i.full((), 0, i64)
        running = i.make(kind, [self], i.element, axis=axis)
        return running, i.make(LastPositionOp, [self, running], i64, axis=axis)


_enter_running_extremum("cummax", CummaxOp)
_enter_running_extremum("cummin", CumminOp)
