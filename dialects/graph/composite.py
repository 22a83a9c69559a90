"""Ops that `simplify` decomposes into simpler ones; their meaning is that decomposition (passes/rules/graph)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, IntAttr
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from dlcb.dialects.graph.base import GraphOp, ShapeScope
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.shape.expr import Expr


class Composite(GraphOp):
    """Result sizes are those of the first operand."""

    FAMILY: ClassVar[str] = "composite"
    res = result_def(TensorType)
    traits = traits_def(Pure())

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        return (scope.of(self.operands[0]),)


@irdl_op_definition
class SoftmaxOp(Composite):
    """result = e^(x - max) / Σ e^(x - max) along `axis`.  Source: torch.softmax."""

    name = "dlcb.graph.softmax"
    src = operand_def(TensorType)
    axis = prop_def(IntAttr)


@irdl_op_definition
class LogSoftmaxOp(Composite):
    """result = x - max - ln Σ e^(x - max) along `axis`.  Source: torch.log_softmax."""

    name = "dlcb.graph.log_softmax"
    src = operand_def(TensorType)
    axis = prop_def(IntAttr)


class Normalization(Composite):
    """Operands: x, then weight and bias where there are two more, weight alone where there is one."""

    args = var_operand_def(TensorType)
    axes = prop_def(IntAttr)
    eps = prop_def(FloatAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.operands[0])
        count = self.axes.data
        for operand in self.operands[1:]:
            for have, want in zip(scope.of(operand), sizes[-count:], strict=True):
                if have is not want:
                    scope.require("eq", have, want, f"{self.title}: normalized size")
        return (sizes,)


@irdl_op_definition
class LayerNormOp(Normalization):
    """result = (x - mean) / √(var + eps) · weight + bias over the last `axes` dims; var biased.
    Source: torch.nn.functional.layer_norm."""

    name = "dlcb.graph.layer_norm"


@irdl_op_definition
class RmsNormOp(Normalization):
    """result = x / √(mean x² + eps) · weight over the last `axes` dims.  Source: torch.nn.functional.rms_norm."""

    name = "dlcb.graph.rms_norm"


@irdl_op_definition
class BatchNormOp(Composite):
    """result[n, c, ..] = (x - mean[c]) / √(var[c] + eps) · weight[c] + bias[c]; operands x, mean, var (, weight, bias).
    Source: torch.nn.functional.batch_norm in inference."""

    name = "dlcb.graph.batch_norm"
    args = var_operand_def(TensorType)
    eps = prop_def(FloatAttr)

    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        sizes = scope.of(self.operands[0])
        for operand in self.operands[1:]:
            (size,) = scope.of(operand)
            if size is not sizes[1]:
                scope.require("eq", sizes[1], size, f"{self.title}: channels differ")
        return (sizes,)


OPS: list[type[Operation]] = [SoftmaxOp, LogSoftmaxOp, LayerNormOp, RmsNormOp, BatchNormOp]
