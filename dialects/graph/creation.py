"""Ops that make tensors from nothing: constants, filled tensors, ranges, memory."""

from __future__ import annotations

from typing import Any, ClassVar

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import ConstantLike, MemoryAllocEffect, Pure

from dlcb.dialects.graph.base import Coords, ElementBuilder, GraphOp, ShapeScope
from dlcb.dialects.graph.types import DimsAttr, TensorType
from dlcb.dialects.shape.expr import Expr, add, mul
from dlcb.dialects.types import compute_type, f64, i64, integer_limits, is_float


class Creation(GraphOp):
    FAMILY: ClassVar[str] = "creation"
    res = result_def(TensorType)
    traits = traits_def(Pure())
    shape = prop_def(DimsAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.list(self.shape),)


def number_attr(value: float | int | bool) -> Attribute:
    """A Python number as the attribute of `full`: f64 or i64."""
    return FloatAttr(value, f64) if isinstance(value, float) else IntegerAttr(int(value), i64)


@irdl_op_definition
class FullOp(Creation):
    """result[p] = value.  A scalar constant is a `full` of shape [].  Source: torch.full, Python numbers."""

    name = "dlcb.graph.full"
    value = prop_def(Attribute)
    traits = traits_def(ConstantLike())

    @property
    def number(self) -> float | int:
        value = self.value
        assert isinstance(value, (FloatAttr, IntegerAttr))
        return value.value.data

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        return b.constant(self.number, compute_type(self.result_element))


@irdl_op_definition
class IotaOp(Creation):
    """result[i] = start + i · step; start and step are dims.  Source: torch.arange with integers."""

    name = "dlcb.graph.iota"
    start = prop_def(DimsAttr)
    step = prop_def(DimsAttr)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        start, step = b.dim(self.start.dims[0]), b.dim(self.step.dims[0])
        return b.index(add(start, mul(coords[0], step)), self.result_element)


@irdl_op_definition
class SizeOp(Creation):
    """result[] = the value of a symbol, as an element.  Source: sizes used as numbers (`x / x.shape[0]`)."""

    name = "dlcb.graph.size"
    dim = prop_def(DimsAttr)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        return b.index(b.dim(self.dim.dims[0]), compute_type(self.result_element))


@irdl_op_definition
class EmptyOp(GraphOp):
    """result = memory of its own, which `insert`s write: an element that none has written is not determined (to the
    evaluator NaN, or the least integer).  Source: `passes/concatenations.py`."""

    name = "dlcb.graph.empty"
    FAMILY: ClassVar[str] = "memory"
    res = result_def(TensorType)
    traits = traits_def(MemoryAllocEffect())
    shape = prop_def(DimsAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.list(self.shape),)

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        element = self.result_element
        return b.constant(float("nan") if is_float(element) else integer_limits(element)[0], compute_type(element))


OPS: list[type[Operation]] = [FullOp, IotaOp, SizeOp, EmptyOp]
