"""Reductions along whole dims. Sums accumulate in f32 or wider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from dlcb.dialects.graph.base import Coords, ElementBuilder, ShapeScope, Sizes, read_rounded
from dlcb.dialects.graph.row import AlongRow, equal_or_nan
from dlcb.dialects.graph.types import TensorType, type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import Expr, add, const, mul, size_list
from dlcb.dialects.types import compute_type, i64, integer_limits, is_float

INFINITY = float("inf")


class Reduce(AlongRow):
    """result[p] = f over all x[q] with q = p outside `axes`.  Reduced dims vanish, or stay with size 1 if `keep`."""

    FAMILY: ClassVar[str] = "reduce"
    src = operand_def(TensorType)
    res = result_def(TensorType)
    axes = prop_def(ArrayAttr[IntAttr])
    keep = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    FUNCTION: ClassVar[str]
    INITIAL: ClassVar[float | int] = 0

    @property
    def row_axes(self) -> tuple[int, ...]:
        return tuple(a.data for a in self.axes.data)

    def row_reads(self, coords: Coords, row: Coords) -> Sequence[tuple[SSAValue, Coords]]:
        return [(self.src, self.operand_coords(coords, row))]

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.src)
        gone = set(self.row_axes)
        if self.keep is not None:
            return (tuple(const(1) if i in gone else s for i, s in enumerate(sizes)),)
        return (tuple(s for i, s in enumerate(sizes) if i not in gone),)

    def operand_coords(self, coords: Coords, row: Coords) -> Coords:
        """The operand's coordinates from those of the result and of the row (one for each reduced axis)."""
        gone = self.row_axes
        kept = iter([c for i, c in enumerate(coords) if self.keep is None or i not in gone])
        along = dict(zip(gone, row, strict=True))
        rank = type_of(self.src).rank
        return tuple(along[i] if i in along else next(kept) for i in range(rank))

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        accumulate = compute_type(self.result_element)

        def body(row: Coords) -> Any:
            return self.term(b, b.cast(b.read(self.src, self.operand_coords(coords, row)), accumulate))

        total = b.reduce(self.FUNCTION, b.of(self.src), self.row_axes, body, self.initial, accumulate)
        return self.finish(b, total, b)

    @property
    def initial(self) -> float | int:
        """The value of an empty reduction."""
        return self.INITIAL

    def term(self, b: ElementBuilder, element: Any) -> Any:
        return element

    def finish(self, b: ElementBuilder, total: Any, sizes: Sizes) -> Any:
        return total


@irdl_op_definition
class SumOp(Reduce):
    """result[p] = Σ x.  Source: torch.sum."""

    name = "dlcb.graph.sum"
    FUNCTION: ClassVar[str] = "add"
    INITIAL: ClassVar[float | int] = 0


@irdl_op_definition
class ProdOp(Reduce):
    """result[p] = Π x.  Source: torch.prod."""

    name = "dlcb.graph.prod"
    FUNCTION: ClassVar[str] = "mul"
    INITIAL: ClassVar[float | int] = 1


@irdl_op_definition
class MeanOp(Reduce):
    """result[p] = Σ x / n; NaN for n = 0.  Source: torch.mean."""

    name = "dlcb.graph.mean"
    FUNCTION: ClassVar[str] = "add"
    INITIAL: ClassVar[float | int] = 0

    def finish(self, b: Any, total: Any, sizes: Sizes) -> Any:
        whole = sizes.of(self.src)
        return b.div(total, b.index(product([whole[i] for i in self.row_axes]), b.type_of(total)))


class Nonempty(Reduce):
    """An empty reduction is refused at launch, as torch does, unless `empty`: it is the initial value then."""

    empty = opt_prop_def(UnitAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        whole = scope.of(self.src)
        if self.empty is None:
            count = product([whole[i] for i in self.row_axes])
            scope.require("lt", const(0), count, f"{self.title}: nothing to reduce")
        return super().infer(scope)


class Extremum(Nonempty):
    """NaN if any element is."""


@irdl_op_definition
class AmaxOp(Extremum):
    """result[p] = max x.  Source: torch.amax."""

    name = "dlcb.graph.amax"
    FUNCTION: ClassVar[str] = "maximum"

    @property
    def initial(self) -> float | int:
        return lowest(self.result_element)


@irdl_op_definition
class AminOp(Extremum):
    """result[p] = min x.  Source: torch.amin."""

    name = "dlcb.graph.amin"
    FUNCTION: ClassVar[str] = "minimum"

    @property
    def initial(self) -> float | int:
        return highest(self.result_element)


def highest(element: Attribute) -> float | int:
    """What is not below any element of the type."""
    return INFINITY if is_float(element) else integer_limits(element)[1]


def lowest(element: Attribute) -> float | int:
    """What is not above any element of the type."""
    return -INFINITY if is_float(element) else integer_limits(element)[0]


@irdl_op_definition
class AnyOp(Reduce):
    """result[p] = some x is not 0.  Source: torch.any."""

    name = "dlcb.graph.any"
    FUNCTION: ClassVar[str] = "or"
    INITIAL: ClassVar[float | int] = False


@irdl_op_definition
class AllOp(Reduce):
    """result[p] = every x is not 0.  Source: torch.all."""

    name = "dlcb.graph.all"
    FUNCTION: ClassVar[str] = "and"
    INITIAL: ClassVar[float | int] = True


@irdl_op_definition
class PositionOp(Nonempty):
    """result[p] = the first place along `axes`, counted in row-major order, where x is `wanted`[p] or NaN; i64.  In
    `wanted` the reduced dims have size 1.  Of an extremum: where it is.  Source: torch.argmax, torch.max(dim)."""

    name = "dlcb.graph.position"
    FUNCTION: ClassVar[str] = "minimum"
    src = operand_def(TensorType)
    wanted = operand_def(TensorType)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        gone = set(self.row_axes)
        have = size_list(*scope.of(self.wanted))
        want = size_list(*[const(1) if axis in gone else size for axis, size in enumerate(scope.of(self.src))])
        if have is not want:
            scope.require("eq", have, want, f"{self.title}: sizes of what is looked for")
        return super().infer(scope)

    def row_reads(self, coords: Coords, row: Coords) -> Sequence[tuple[SSAValue, Coords]]:
        kept = self.operand_coords(coords, (const(0),) * len(row))
        return [*super().row_reads(coords, row), (self.wanted, kept)]

    @property
    def initial(self) -> float | int:
        return highest(i64)

    def element(self, b: Any, coords: Coords, result: int = 0) -> Any:
        sizes = [b.of(self.src)[axis] for axis in self.row_axes]

        def place(row: Coords) -> Any:
            x, wanted = (read_rounded(b, value, at) for value, at in self.row_reads(coords, row))
            number = const(0)
            for at, size in zip(row, sizes, strict=True):
                number = add(mul(number, size), at)
            return b.select(equal_or_nan(b, x, wanted), b.index(number, i64), b.constant(self.initial, i64))

        return b.reduce(self.FUNCTION, b.of(self.src), self.row_axes, place, self.initial, i64)


OPS: list[type[Operation]] = [SumOp, ProdOp, MeanOp, AmaxOp, AminOp, AnyOp, AllOp, PositionOp]
