"""A module that computes in f64 what another computes in its own types: what rounding is measured against."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from dlcb.dialects._xdsl import set_type
from dlcb.dialects.coord.ops import BufferType
from dlcb.dialects.graph.types import TensorType, tensor
from dlcb.dialects.types import f64, is_float


def in_float64(module: ModuleOp) -> ModuleOp:
    """A copy in which every float is an f64, for the evaluator; casts between floats change nothing there."""
    copy = module.clone()
    for op in copy.walk():
        _widen(op)
    return copy


def _widen(op: Operation) -> None:
    inner = [argument for region in op.regions for block in region.blocks for argument in block.args]
    for value in (*op.results, *inner):
        wide = _widened(value.type)
        if wide is not value.type:
            set_type(value, wide)


def _widened(type: Attribute) -> Attribute:
    if is_float(type):
        return f64
    if isinstance(type, TensorType) and is_float(type.element):
        return tensor(type.dims, f64, type.layout)
    return BufferType(f64) if isinstance(type, BufferType) and is_float(type.element) else type
