"""Scans: result[.., p, ..] = f over q ≤ p of x[.., q, ..], along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.graph.base import Coords, ElementBuilder, ShapeScope, read_rounded
from dlcb.dialects.graph.reduce import INFINITY, highest, lowest
from dlcb.dialects.graph.row import AlongRow, equal_or_nan
from dlcb.dialects.graph.types import TensorType, type_of
from dlcb.dialects.shape.expr import Expr, size_list
from dlcb.dialects.types import f32, f64, i64


class Scan(AlongRow):
    """result[p] = f over q ≤ p of x[q], along `axis`.  Computed in the compute type of the result."""

    FAMILY: ClassVar[str] = "scan"
    src = operand_def(TensorType)
    res = result_def(TensorType)
    axis = prop_def(IntAttr)
    traits = traits_def(Pure())
    FUNCTION: ClassVar[str]
    INITIAL: ClassVar[float | int] = 0

    @property
    def row_axes(self) -> tuple[int, ...]:
        return (self.axis.data,)

    def row_reads(self, coords: Coords, row: Coords) -> Sequence[tuple[SSAValue, Coords]]:
        axis = self.axis.data
        return [(value, (*coords[:axis], *row, *coords[axis + 1 :])) for value in self.operands]

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.of(self.src),)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        axis, accumulate = self.axis.data, self.accumulate

        def term(at: Expr) -> Any:
            return b.cast(self.term(b, self.row_reads(coords, (at,)), at), accumulate)

        extent = b.of(self.src)[axis]
        running = b.scan(self.FUNCTION, extent, coords[axis], term, self.initial, accumulate)
        return b.cast(running, self.compute_element)

    @property
    def accumulate(self) -> Attribute:
        """The type of the running value."""
        return self.compute_element

    @property
    def initial(self) -> float | int:
        """What combines with an element to the element."""
        return self.INITIAL

    def term(self, b: ElementBuilder, reads: Sequence[tuple[SSAValue, Coords]], at: Expr) -> Any:
        """What the place `at` of the axis contributes."""
        return b.read(*reads[0])

    def verify_(self) -> None:
        rank = type_of(self.src).rank
        if not 0 <= self.axis.data < rank:
            raise VerifyException(f"{self.name}: axis {self.axis.data} of a tensor of {rank} dims")
        super().verify_()


class Accumulation(Scan):
    """Errors of a long sum add up, so f32 is accumulated in f64."""

    @property
    def accumulate(self) -> Attribute:
        return f64 if self.result_element == f32 else self.compute_element


@irdl_op_definition
class CumsumOp(Accumulation):
    """result[p] = Σ over q ≤ p of x[q].  Source: torch.cumsum."""

    name = "dlcb.graph.cumsum"
    FUNCTION: ClassVar[str] = "add"


@irdl_op_definition
class CumprodOp(Accumulation):
    """result[p] = Π over q ≤ p of x[q].  Source: torch.cumprod."""

    name = "dlcb.graph.cumprod"
    FUNCTION: ClassVar[str] = "mul"
    INITIAL: ClassVar[float | int] = 1


@irdl_op_definition
class LogCumsumExpOp(Scan):
    """result[p] = ln Σ over q ≤ p of e^x[q].  Source: torch.logcumsumexp."""

    name = "dlcb.graph.logcumsumexp"
    FUNCTION: ClassVar[str] = "logaddexp"
    INITIAL: ClassVar[float | int] = -INFINITY


@irdl_op_definition
class CummaxOp(Scan):
    """result[p] = max over q ≤ p of x[q]; NaN from the first NaN on.  Source: torch.cummax."""

    name = "dlcb.graph.cummax"
    FUNCTION: ClassVar[str] = "maximum"

    @property
    def initial(self) -> float | int:
        return lowest(self.result_element)


@irdl_op_definition
class CumminOp(Scan):
    """result[p] = min over q ≤ p of x[q]; NaN from the first NaN on.  Source: torch.cummin."""

    name = "dlcb.graph.cummin"
    FUNCTION: ClassVar[str] = "minimum"

    @property
    def initial(self) -> float | int:
        return highest(self.result_element)


@irdl_op_definition
class LastPositionOp(Scan):
    """result[p] = the last q ≤ p where x[q] is `running`[q] or NaN; i64.  Of a running extremum: where it was found.
    Source: torch.cummax, torch.cummin (indices)."""

    name = "dlcb.graph.last_position"
    FUNCTION: ClassVar[str] = "maximum"
    src = operand_def(TensorType)
    running = operand_def(TensorType)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.src)
        have, want = size_list(*scope.of(self.running)), size_list(*sizes)
        if have is not want:
            scope.require("eq", have, want, f"{self.title}: sizes of x and of the running value")
        return (sizes,)

    def term(self, b: Any, reads: Sequence[tuple[SSAValue, Coords]], at: Expr) -> Any:
        x, running = (read_rounded(b, value, coords) for value, coords in reads)
        return b.select(equal_or_nan(b, x, running), b.index(at, i64), b.constant(0, i64))


OPS: list[type[Operation]] = [CumsumOp, CumprodOp, LogCumsumExpOp, CummaxOp, CumminOp, LastPositionOp]
