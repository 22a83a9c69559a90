"""Whose memory a value of a function lies in."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.structure import FuncOp, LaunchOp
from dlcb.dialects.graph.types import StridedLayout, type_of


def is_view(op: Operation) -> bool:
    """A view in memory: others are left to the kernels that read through them."""
    return isinstance(op, GraphOp) and op.FAMILY == "view" and isinstance(type_of(op.results[0]).layout, StridedLayout)


def root(value: SSAValue) -> SSAValue:
    """The value whose memory this one lies in: itself, what it is a view of, or what was written over."""
    while isinstance(value, OpResult):
        op = value.op
        if is_view(op):
            value = op.operands[0]
        elif isinstance(op, LaunchOp) and value.index in op.written_over:
            value = op.operands[op.written_over[value.index]]
        else:
            break
    return value


def is_argument(value: SSAValue, kind: str) -> bool:
    """Is it an argument of that kind of a function?"""
    if not isinstance(value, BlockArgument):
        return False
    func = value.owner.parent_op()
    return isinstance(func, FuncOp) and func.arg_kinds.data[value.index].data == kind
