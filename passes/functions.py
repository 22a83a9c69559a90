"""The functions of a module and the constraint systems that go with them."""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import OpResult, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.shape.ops import SystemOp
from dlcb.dialects.shape.system import System
from dlcb.errors import UserError

KEPT: Final = "dlcb.kept"
"""The attribute of a function that says why sizes of inputs stay literals: `{"x.shape[0]" = "it is to be static"}`."""


def functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, FuncOp)]


def unranked(func: FuncOp) -> dict[str, SSAValue]:
    """The arguments of any rank, by name."""
    return {
        name: argument
        for argument, name in zip(func.body.block.args, func.names, strict=True)
        if isinstance(argument.type, TensorType) and not argument.type.ranked
    }


def check_ranked(func: FuncOp) -> None:
    """A UserError where an argument is of any rank: stages need ranks."""
    for name in unranked(func):
        raise UserError(
            f"@{func.symbol}: the argument '{name}' is a tensor of any rank; give it one first, as in "
            f'dlcb-instantiate{{ranks="{name}=2"}}'
        )


def system_op(func: FuncOp) -> SystemOp | None:
    """The system of the function's name in its module; None where there is none yet."""
    block = func.parent_block()
    assert block is not None
    return next((op for op in block.ops if isinstance(op, SystemOp) and op.function == func.symbol), None)


def system_of(func: FuncOp) -> System:
    """The content of the function's system; empty where there is none yet."""
    op = system_op(func)
    return System() if op is None else System.from_op(op)


def set_system(func: FuncOp, system: System) -> None:
    """Write the system before the function, in place of the one that was there."""
    old, block = system_op(func), func.parent_block()
    assert block is not None
    block.insert_op_before(system.to_op(func.symbol), func if old is None else old)
    if old is not None:
        block.erase_op(old)


def memory_base(value: SSAValue) -> SSAValue:
    """What the value is a view of."""
    while isinstance(value, OpResult) and isinstance(value.op, GraphOp) and value.op.FAMILY == "view":
        value = value.op.operands[0]
    return value
