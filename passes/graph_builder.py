"""Makes graph ops one after the other, with their result types: what rules write decompositions with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.creation import FullOp, number_attr
from dlcb.dialects.graph.elementwise import SIMPLE
from dlcb.dialects.graph.reduce import Extremum, Reduce
from dlcb.dialects.graph.types import Dims, dims_attr, dims_of, tensor
from dlcb.dialects.graph.view import ExpandOp, ReshapeOp

_UNIT = UnitAttr()


class GraphBuilder:
    """`ops` are the ops made so far, in order. The rewriter gives them the source line of the op that they replace."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []

    def make(
        self, kind: type[GraphOp], operands: Sequence[SSAValue], dims: Dims, element: Attribute, **properties: Attribute
    ) -> SSAValue:
        op = kind.create(operands=operands, result_types=[tensor(dims, element)], properties=properties)
        self.ops.append(op)
        return op.results[0]

    def call(self, name: str, *operands: SSAValue, element: Attribute) -> SSAValue:
        """The elementwise op `name`, one of `SIMPLE`. The first operand has the sizes of the result."""
        kind: Any = SIMPLE[name]
        return self.make(kind, operands, dims_of(operands[0]), element)

    def reduce(self, kind: type[Reduce], src: SSAValue, axes: tuple[int, ...], element: Attribute) -> SSAValue:
        """Reduced dims stay, with size 1. An extremum of nothing is no error."""
        dims = tuple(1 if i in axes else d for i, d in enumerate(dims_of(src)))
        properties = {"empty": _UNIT} if issubclass(kind, Extremum) else {}
        return self.make(kind, [src], dims, element, axes=int_list(axes), keep=_UNIT, **properties)

    def constant(self, value: float, element: Attribute) -> SSAValue:
        return self.make(FullOp, [], (), element, shape=dims_attr(()), value=number_attr(value))

    def reshape(self, src: SSAValue, dims: Dims, element: Attribute) -> SSAValue:
        return self.make(ReshapeOp, [src], dims, element, shape=dims_attr(dims))

    def expand(self, src: SSAValue, dims: Dims, element: Attribute) -> SSAValue:
        return self.make(ExpandOp, [src], dims, element, shape=dims_attr(dims))


@lru_cache(maxsize=1024)
def int_list(values: tuple[int, ...]) -> ArrayAttr[IntAttr]:
    return ArrayAttr(map(IntAttr, values))
