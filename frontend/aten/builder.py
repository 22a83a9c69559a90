"""Builds graph ops one after the other, with result types from each op's own size rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import torch
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from dlcb.dialects._xdsl import set_type
from dlcb.dialects.graph.base import GraphOp, SizesOnly, location
from dlcb.dialects.graph.contract import MatmulOp
from dlcb.dialects.graph.creation import FullOp, SizeOp, number_attr
from dlcb.dialects.graph.elementwise import SIMPLE, CastOp, Comparison, WhereOp
from dlcb.dialects.graph.reduce import Reduce
from dlcb.dialects.graph.types import Dim, Dims, DimsAttr, dim_to_expr, dims_attr, dims_of, tensor, type_of
from dlcb.dialects.graph.view import ExpandOp, PermuteOp, ReshapeOp, SliceOp, product
from dlcb.dialects.shape.bounds import is_nonneg
from dlcb.dialects.shape.expr import Expr, ExprLike, add, as_expr, evaluate, sub
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import System
from dlcb.dialects.types import compute_type, f64, i1, is_float
from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend.aten.dtypes import DTYPE_OF, element_of
from dlcb.frontend.aten.table import several
from dlcb.frontend.tracing.real import Real
from dlcb.passes.graph_builder import int_list

Number = int | float | Expr | Real
Operand = SSAValue | Number

_UNKNOWN = tensor((), f64)


_INFERRING = SizesOnly()


class Builder:
    """What handlers build with. `line` and `op` name the operation that is imported, `dtypes` are its results'."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.ops: list[Operation] = []
        self.line = "?"
        self.op = "?"
        self.dtypes: tuple[torch.dtype, ...] = ()
        self.at_least: dict[str, int] = {}
        """Lower bounds of the symbols of inputs."""
        self._required: set[tuple[str, Expr, Expr]] = set()
        self._numbers: dict[tuple[Any, Attribute], SSAValue] = {}

    # What is imported

    @property
    def title(self) -> str:
        return f"{self.op}: {self.line}"

    @property
    def element(self) -> Attribute:
        """The element type of the (first) result."""
        return element_of(self.dtypes[0])

    def unsupported(self, why: str) -> NoReturn:
        raise UnsupportedError(f"{self.title}: {why}")

    # Sizes

    def sizes(self, value: SSAValue) -> tuple[Expr, ...]:
        return tuple(map(dim_to_expr, dims_of(value)))

    def dim(self, size: ExprLike) -> Dim:
        """A literal or a symbol for a size; a new symbol where none has this value."""
        return size if isinstance(size, int) else self.system.define_fresh(size)

    def dims(self, sizes: Sequence[ExprLike]) -> Dims:
        return tuple(map(self.dim, sizes))

    def dims_attr(self, sizes: Sequence[ExprLike]) -> DimsAttr:
        return dims_attr(self.dims(sizes))

    def traced(self, size: ExprLike) -> int:
        """The value of a size in the trace."""
        value = self.system.value(as_expr(size))
        return evaluate(value, self.system.traced)

    def require(self, kind: str, lhs: ExprLike, rhs: ExprLike, what: str) -> None:
        lhs, rhs = as_expr(lhs), as_expr(rhs)
        if (kind, lhs, rhs) not in self._required:
            self._required.add((kind, lhs, rhs))
            a, b = self.system.value(lhs), self.system.value(rhs)
            if Require(kind, a, b).condition.value != 1 and not (kind == "le" and is_nonneg(sub(b, a), self.at_least)):
                self.system.require(kind, lhs, rhs, f"{self.title}: {what}")

    def require_elements(self, sizes: Sequence[ExprLike], what: str) -> None:
        """None of these sizes is 0."""
        for size in sizes:
            self.require("le", 1, size, f"{what} without elements")

    def literal(self, size: Any, what: str) -> int:
        """A number that must not depend on sizes."""
        if not isinstance(size, Expr):
            return int(size)
        known = self.system.value(size).value
        if known is None:
            self.unsupported(f"{what} depends on sizes of the inputs")
        return known

    def axis(self, dim: Any, rank: int) -> int:
        axis = self.literal(dim, "a dimension")
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise UserError(f"{self.title}: dimension {axis} of a tensor of {rank} dimensions")
        return axis % max(rank, 1)

    def axes(self, dims: Any, rank: int) -> tuple[int, ...]:
        """Sorted axes; none given means all."""
        if dims is None or dims == ():
            return tuple(range(rank))
        return tuple(sorted(self.axis(d, rank) for d in several(dims))) if rank else ()

    # Ops

    def make(
        self, kind: type[GraphOp], operands: Sequence[SSAValue], element: Attribute, **properties: Attribute
    ) -> SSAValue:
        """An op of one result."""
        op = kind.create(operands=operands, result_types=[_UNKNOWN], properties=properties)
        op.location = location(self.line)
        (sizes,) = op.infer(_INFERRING)
        result = op.results[0]
        set_type(result, tensor(self.dims(sizes), element))
        self.ops.append(op)
        return result

    def call(self, name: str, *operands: Operand, element: Attribute | None = None) -> SSAValue:
        """The elementwise op `name`; its element type is that of the result of the imported operation unless given."""
        kind, element = SIMPLE[name], self.element if element is None else element
        wide = compute_type(element)
        if issubclass(kind, Comparison):
            wide = next(self.like(o) for o in operands if isinstance(o, SSAValue))
        values = [o if isinstance(o, SSAValue) else self.number(o, wide) for o in operands]
        return self.make(cast(type[GraphOp], kind), values, element)

    def apply(self, kind: type[GraphOp], *operands: SSAValue, element: Attribute | None = None) -> SSAValue:
        """An elementwise op of another class."""
        return self.make(kind, operands, self.element if element is None else element)

    def where(self, condition: SSAValue, lhs: Operand, rhs: Operand, element: Attribute | None = None) -> SSAValue:
        element = self.element if element is None else element
        wide = compute_type(element)
        sides = [o if isinstance(o, SSAValue) else self.number(o, wide) for o in (lhs, rhs)]
        return self.make(WhereOp, [condition, *sides], element)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        return value if type_of(value).element == element else self.make(CastOp, [value], element)

    def truth(self, value: SSAValue) -> SSAValue:
        """Whether an element is not zero."""
        element = type_of(value).element
        return value if element == i1 else self.call("ne", value, 0, element=i1)

    def number(self, value: Number, element: Attribute) -> SSAValue:
        """A number as a tensor of rank 0."""
        key: tuple[Any, Attribute] = ((type(value), value.hex() if isinstance(value, float) else value), element)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = self._number(value, element)
        return found

    def _number(self, value: Number, element: Attribute) -> SSAValue:
        if isinstance(value, Real):
            parts = [self.number(part, f64) for part in value.parts]
            return self.cast(self.call(value.function, *parts, element=f64), element)
        if isinstance(value, Expr):
            dim = self.dim(value)
            if isinstance(dim, str):
                return self.make(SizeOp, [], element, shape=dims_attr(()), dim=dims_attr((dim,)))
            value = dim
        number = float(value) if is_float(element) else int(value)
        return self.make(FullOp, [], element, shape=dims_attr(()), value=number_attr(number))

    def full(self, sizes: Sequence[ExprLike], value: int | float, element: Attribute) -> SSAValue:
        number = float(value) if is_float(element) else int(value)
        return self.make(FullOp, [], element, shape=self.dims_attr(sizes), value=number_attr(number))

    def like(self, value: SSAValue) -> Attribute:
        return type_of(value).element

    def dtype(self, value: SSAValue) -> torch.dtype:
        return DTYPE_OF[type_of(value).element]

    # Views

    def reshape(self, value: SSAValue, sizes: Sequence[ExprLike]) -> SSAValue:
        dims = self.dims(sizes)
        return (
            value if dims == dims_of(value) else self.make(ReshapeOp, [value], self.like(value), shape=dims_attr(dims))
        )

    def permute(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        order = tuple(order)
        if order == tuple(range(len(order))):
            return value
        return self.make(PermuteOp, [value], self.like(value), order=int_list(order))

    def expand(self, value: SSAValue, sizes: Sequence[ExprLike]) -> SSAValue:
        dims = self.dims(sizes)
        return (
            value if dims == dims_of(value) else self.make(ExpandOp, [value], self.like(value), shape=dims_attr(dims))
        )

    def slice(self, value: SSAValue, axis: int, start: ExprLike, size: ExprLike, step: int = 1) -> SSAValue:
        """`size` elements along one axis."""
        sizes: list[ExprLike] = list(self.sizes(value))
        starts: list[ExprLike] = [0] * len(sizes)
        steps: list[ExprLike] = [1] * len(sizes)
        sizes[axis], starts[axis], steps[axis] = size, start, step
        return self.make(
            SliceOp,
            [value],
            self.like(value),
            starts=self.dims_attr(starts),
            shape=self.dims_attr(sizes),
            steps=self.dims_attr(steps),
        )

    def unsqueeze(self, value: SSAValue, axis: int) -> SSAValue:
        sizes = self.sizes(value)
        return self.reshape(value, (*sizes[:axis], 1, *sizes[axis:]))

    def without_axis(self, value: SSAValue, axis: int) -> SSAValue:
        """Drop an axis of size 1."""
        sizes = self.sizes(value)
        return self.reshape(value, (*sizes[:axis], *sizes[axis + 1 :]))

    # Others

    def reduce(
        self,
        kind: type[Reduce],
        value: SSAValue,
        axes: Sequence[int],
        keep: bool = True,
        element: Attribute | None = None,
        empty: bool = False,
    ) -> SSAValue:
        """Over no axes it is the element. `empty`: an extremum of nothing is no error."""
        element = self.like(value) if element is None else element
        if not axes:
            return self.cast(value, element)
        properties: dict[str, Attribute] = {"axes": int_list(tuple(axes))}
        if empty:
            properties["empty"] = UnitAttr()
        if keep:
            properties["keep"] = UnitAttr()
        return self.make(kind, [value], element, **properties)

    def matmul(self, lhs: SSAValue, rhs: SSAValue, *bias: SSAValue, element: Attribute | None = None) -> SSAValue:
        """A matrix product; a stack of matrices times one matrix is one product of all rows."""
        lead = self.sizes(lhs)[:-2]
        if lead and type_of(rhs).rank == 2:
            *rows, inner = self.sizes(lhs)
            flat = self.matmul(self.reshape(lhs, (product(rows), inner)), rhs, *bias, element=element)
            return self.reshape(flat, (*rows, self.sizes(rhs)[-1]))
        return self.make(MatmulOp, [lhs, rhs, *bias], self.element if element is None else element)

    def count(self, value: SSAValue, axes: Sequence[int]) -> Expr:
        """The number of elements along axes."""
        sizes = self.sizes(value)
        return product([sizes[a] for a in axes])

    def wrapped(self, size: Any, whole: Expr, what: str) -> Expr:
        """A position that may count from the end. Of an expression the trace says which, and that is required."""
        if not isinstance(size, Expr):
            return as_expr(size) if size >= 0 else add(whole, size)
        if self.traced(size) >= 0:
            self.require("le", 0, size, what)
            return size
        self.require("lt", size, 0, what)
        return add(whole, size)
