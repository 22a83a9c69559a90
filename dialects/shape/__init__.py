"""`dlcb.shape`: sizes as symbols, expressions over them, and what must hold between them."""

from xdsl.ir import Attribute, Operation

from dlcb.dialects.shape.list_ops import ConcatOp, ListOp, PermuteOp
from dlcb.dialects.shape.ops import FUNCTION_OPS, ConstantOp, DefineOp, RequireOp, SymbolOp, SystemOp
from dlcb.dialects.shape.types import ListType

OPS: list[type[Operation]] = [
    *(SystemOp, SymbolOp, ConstantOp, DefineOp, RequireOp, ListOp, ConcatOp, PermuteOp),
    *FUNCTION_OPS.values(),
]
ATTRS: list[type[Attribute]] = [ListType]

__all__ = ["ATTRS", "OPS"]
