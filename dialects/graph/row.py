"""Ops that combine elements along axes: reductions and scans. These axes become the row of a kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import Coords, GraphOp
from dlcb.dialects.types import is_float


class AlongRow(GraphOp):
    """The first operand is what is combined: its sizes are the space of a kernel that computes this op."""

    @property
    @abstractmethod
    def row_axes(self) -> tuple[int, ...]:
        """The axes of the first operand along which elements are combined, in order."""

    @abstractmethod
    def row_reads(self, coords: Coords, row: Coords) -> Sequence[tuple[SSAValue, Coords]]:
        """Which element of each operand the result at `coords` needs from the place `row` of its row (one coordinate
        for each axis)."""


def equal_or_nan(b: Any, x: Any, wanted: Any) -> Any:
    """Is x the wanted element, or NaN?"""
    equal = b.eq(x, wanted)
    return b.or_(equal, b.isnan(x)) if is_float(b.type_of(x)) else equal
