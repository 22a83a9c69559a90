"""What the quick forms of kernels take for granted of inputs, which may lie in memory anyhow: that they lie as the
example's did.

The host program compares strides; where one differs, a form runs that assumes less. Strides of dims of size 1 do not
matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

from dlcb.dialects._xdsl import entries
from dlcb.dialects.graph.strides import layout_strides
from dlcb.dialects.graph.structure import FuncOp, KernelOp
from dlcb.dialects.graph.types import DenseLayout, StridedLayout, TensorType, contiguous
from dlcb.dialects.shape.expr import Expr, const, eq, logical_and, logical_or
from dlcb.dialects.shape.system import System
from dlcb.passes.sizes import DefinedSizes

ORDERS: Final = "dlcb.orders"
"""The attribute of a function that says how the dims of inputs lay in the example, where not from first to last:
`{"x" = #dlcb.graph.dense<[1, 0]>}`."""
GAPS: Final = "dlcb.gaps"
"""The attribute of a function that names the inputs that had gaps in the example: `["x"]`. Of their strides only the
innermost is assumed to be 1."""


@dataclass(frozen=True, slots=True)
class AssumedStrides:
    """Sizes and strides of a function under an assumption, and for each stride that it is about whether it holds."""

    sizes: DefinedSizes
    holds: dict[str, Expr]

    def about(self, kernel: KernelOp, system: System) -> Expr:
        """Whether all holds that the kernel's operands need: 1 where they need nothing."""
        names = dict.fromkeys(
            name
            for value in kernel.body.block.args
            if isinstance(value.type, TensorType) and isinstance(value.type.layout, StridedLayout)
            for dim in (*value.type.layout.strides, value.type.layout.offset)
            for name in sorted(system.value(dim).free)
        )
        needed = [self.holds[name] for name in names if name in self.holds]
        return logical_and(*needed) if len(needed) > 1 else needed[0] if needed else const(1)


def assumed_strides(func: FuncOp, system: System, pitched: bool = False) -> AssumedStrides:
    """Inputs lie as in the example; `pitched`: as if all of them had gaps there."""
    sizes = DefinedSizes.from_system(system)
    with_gaps = {
        name.data for name in entries(func.attributes.get(GAPS, ArrayAttr([]))) if isinstance(name, StringAttr)
    }
    values: dict[str, Expr] = {}
    holds: dict[str, Expr] = {}
    for argument, name, kind in zip(func.body.block.args, func.names, func.kinds, strict=True):
        given = argument.type
        if kind != "input" or not isinstance(given, TensorType) or not isinstance(given.layout, StridedLayout):
            continue
        order = _order(func, name) or contiguous(given.rank)
        shape = sizes.of(argument)
        wanted, _ = layout_strides(order, shape, sizes.dim)
        for axis in order.order[-1:] if pitched or name in with_gaps else order.order:
            stride = given.layout.strides[axis]
            if isinstance(stride, str):
                values[stride] = wanted[axis]
                holds[stride] = logical_or(eq(shape[axis], 1), eq(sizes.dim(stride), wanted[axis]))
    return AssumedStrides(DefinedSizes.from_system(system, values), holds)


def _order(func: FuncOp, name: str) -> DenseLayout | None:
    """That of an input's dims in the example, where they did not lie from first to last."""
    orders = func.attributes.get(ORDERS)
    order = orders.data.get(name) if isinstance(orders, DictionaryAttr) else None
    return order if isinstance(order, DenseLayout) else None
