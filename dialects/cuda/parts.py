"""Ops of `dlcb.cuda` that move a part of a vector: its lanes from `lower` up to `upper`, which may lie beyond its ends.
Memory of other lanes is not touched."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition, operand_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from dlcb.dialects.cuda.base import IndexedOp
from dlcb.dialects.cuda.memory import verify_vector
from dlcb.dialects.cuda.verify import verify_integer, verify_same


class _LoadOp(IndexedOp):
    """values = array[index + lane] where lower ≤ lane < upper, else zeros"""

    lower = operand_def()
    upper = operand_def()
    array = operand_def()
    index = operand_def()
    values = var_result_def()
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        _verify_part(self)


@irdl_op_definition
class LoadPartOp(_LoadOp):
    """values = array[index + lane] where lower ≤ lane < upper, else zeros

    One load where that is all of them; aligned as for load_vector.
    """

    name = "dlcb.cuda.load_part"


@irdl_op_definition
class LoadUnalignedPartOp(_LoadOp):
    """values = array[index + lane] where lower ≤ lane < upper, else zeros, at any address of an element

    Two loads where the bounds are so far beyond the ends that all that these read lies between.
    """

    name = "dlcb.cuda.load_unaligned_part"


@irdl_op_definition
class StorePartOp(IndexedOp):
    """array[index + lane] = values where lower ≤ lane < upper; aligned as for load_vector"""

    name = "dlcb.cuda.store_part"
    values = var_operand_def()
    lower = operand_def()
    upper = operand_def()
    array = operand_def()
    index = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        _verify_part(self)


def _verify_part(op: _LoadOp | StorePartOp) -> None:
    verify_integer("lower", op.lower)
    verify_same("upper", op.upper.type, op.lower.type)
    verify_vector(op.values, op.array, op.index)
