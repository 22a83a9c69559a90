"""Ops whose coordinates depend on data.

An index out of range is an error of the program: wherever an element that needs it is computed, the call fails as in
eager (`failure`). Kernels touch no memory outside then.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.failure import Failure
from dlcb.dialects.graph.base import Coords, ElementBuilder, GraphOp, Guard, Read, ShapeScope, Sizes
from dlcb.dialects.graph.types import DimsAttr, TensorType, type_of
from dlcb.dialects.shape.expr import Expr, const
from dlcb.dialects.types import compute_type, is_float
from dlcb.errors import ELEMENT_ERRORS


def in_range(row: Expr, extent: Expr) -> list[Guard]:
    return [("le", const(0), row), ("lt", row, extent)]


class Indexed(GraphOp):
    """An op that reads indices into one dim of size n, `axis` of its first operand. They lie in [-n, n), a negative one
    counting from the end; with `nonnegative` in [0, n). Others are a failure: `error` is what eager raises (IndexError
    unless given), `call` what the program calls the op. `unchecked`: they are in range by construction."""

    axis = prop_def(IntAttr)
    call = opt_prop_def(StringAttr)
    error = opt_prop_def(StringAttr)
    nonnegative = opt_prop_def(UnitAttr)
    unchecked = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())

    def failure(self) -> Failure | None:
        if self.unchecked is not None:
            return None
        call = self.call.data if self.call is not None else self.name.rpartition(".")[2]
        text = f"index {{0}} is out of range for dimension {self.axis.data} of size {{1}}: {call}, {self.line}"
        return Failure(self.error.data if self.error is not None else "IndexError", text)

    def verify_(self) -> None:
        if self.error is not None and self.error.data not in ELEMENT_ERRORS:
            raise VerifyException(f"{self.name}: error is {self.error.data}, expected {' or '.join(ELEMENT_ERRORS)}")
        super().verify_()

    def row(self, b: ElementBuilder, index: Any, extent: Expr) -> Expr:
        """The coordinate that an element of the indices is."""
        return b.coordinate(index, extent, self, from_end=self.nonnegative is None)

    def read_at(self, b: ElementBuilder, data: SSAValue, before: Coords, at: Any, after: Coords) -> Any:
        """The element of `data` at the data-dependent coordinate `at`; out of range no memory is read."""
        extent = b.of(data)[len(before)]
        row = self.row(b, at, extent)
        element = compute_type(type_of(data).element)
        missing = b.constant(float("nan") if is_float(element) else 0, element)
        return b.read(data, (*before, row, *after), in_range(row, extent), missing)


@irdl_op_definition
class TakeOp(Indexed):
    """result[a.., i.., b..] = data[a.., indices[i..], b..]: `indices` replaces dim `axis`.
    Source: torch.nn.functional.embedding, index_select, x[indices]."""

    name = "dlcb.graph.take"
    FAMILY: ClassVar[str] = "index"
    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    res = result_def(TensorType)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes, axis = scope.of(self.data), self.axis.data
        return ((*sizes[:axis], *scope.of(self.indices), *sizes[axis + 1 :]),)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        axis, rank = self.axis.data, type_of(self.indices).rank
        at = b.read(self.indices, coords[axis : axis + rank])
        return self.read_at(b, self.data, coords[:axis], at, coords[axis + rank :])


@irdl_op_definition
class GatherOp(Indexed):
    """result[p] = data[p with p[axis] = indices[p]].  Sizes: indices ≤ data outside `axis`.  Source: torch.gather."""

    name = "dlcb.graph.gather"
    FAMILY: ClassVar[str] = "index"
    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    res = result_def(TensorType)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        for i, (size, whole) in enumerate(zip(scope.of(self.indices), scope.of(self.data), strict=True)):
            if i != self.axis.data and size is not whole:
                scope.require("le", size, whole, f"{self.title}: indices reach beyond dim {i} of the data")
        return (scope.of(self.indices),)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        axis = self.axis.data
        return self.read_at(b, self.data, coords[:axis], b.read(self.indices, coords), coords[axis + 1 :])


@irdl_op_definition
class BoundedOp(Indexed):
    """result[p] = indices[p] as a coordinate of a dim of size `extent`: in [0, extent).  `axis` names the dim.
    Source: each index tensor of x[i, j], one_hot."""

    name = "dlcb.graph.bounded"
    FAMILY: ClassVar[str] = "elementwise"
    indices = operand_def(TensorType)
    res = result_def(TensorType)
    extent = prop_def(DimsAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.of(self.indices),)

    def reads(self, coords: Coords, sizes: Sizes) -> list[Read]:
        return [Read(0, coords)]

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        (extent,) = b.list(self.extent)
        return b.index(self.row(b, b.read(self.indices, coords), extent), self.compute_element)


class Put(Indexed):
    """An op that writes the elements of `src` to places of `base` that depend on data."""

    FAMILY: ClassVar[str] = "scatter"
    base = operand_def(TensorType)
    indices = operand_def(TensorType)
    src = operand_def(TensorType)
    res = result_def(TensorType)

    def target(self, b: ElementBuilder, coords: Coords) -> tuple[Coords, list[Guard]]:
        """Where in the base the element of `src` at `coords` goes, and when that is in range."""
        axis = self.axis.data
        extent = b.of(self.base)[axis]
        index = b.read(self.indices, self.index_coords(coords))
        row = self.row(b, index, extent)
        return (*coords[:axis], row, *coords[axis + 1 :]), in_range(row, extent)

    @abstractmethod
    def index_coords(self, coords: Coords) -> Coords:
        """Where among the indices the one for the element of `src` at `coords` stands."""


@irdl_op_definition
class PutOp(Put):
    """result = base, but result[a.., indices[i], b..] = src[a.., i, b..].  Indices that occur twice: one of them wins.
    Source: index_copy, x[indices] = src."""

    name = "dlcb.graph.put"

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes, axis = scope.of(self.base), self.axis.data
        wanted = (*sizes[:axis], scope.of(self.indices)[0], *sizes[axis + 1 :])
        for i, (have, want) in enumerate(zip(scope.of(self.src), wanted, strict=True)):
            if have is not want:
                scope.require("eq", have, want, f"{self.title}: size of dim {i} of the source")
        return (sizes,)

    def index_coords(self, coords: Coords) -> Coords:
        return (coords[self.axis.data],)


@irdl_op_definition
class ScatterOp(Put):
    """result = base, but result[p with p[axis] = indices[p]] = src[p].  Sizes: src = indices ≤ base outside `axis`.
    Places that occur twice: one of the elements wins.  Source: torch.scatter."""

    name = "dlcb.graph.scatter"

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        whole = scope.of(self.base)
        for i, (size, have, limit) in enumerate(zip(scope.of(self.indices), scope.of(self.src), whole, strict=True)):
            if have is not size:
                scope.require("eq", have, size, f"{self.title}: size of dim {i} of the source and the indices")
            if i != self.axis.data and size is not limit:
                scope.require("le", size, limit, f"{self.title}: indices reach beyond dim {i} of the base")
        return (whole,)

    def index_coords(self, coords: Coords) -> Coords:
        return coords


OPS: list[type[Operation]] = [TakeOp, GatherOp, BoundedOp, PutOp, ScatterOp]
