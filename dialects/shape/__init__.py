"""`dlcb.shape`: sizes as symbols, expressions over them, and what must hold between them."""

from xdsl.ir import Attribute, Operation

from dlcb.dialects.shape.ops import FUNCTION_OPS, ConstantOp, DefineOp, RequireOp, SymbolOp, SystemOp

OPS: list[type[Operation]] = [SystemOp, SymbolOp, ConstantOp, DefineOp, RequireOp, *FUNCTION_OPS.values()]
ATTRS: list[type[Attribute]] = []

__all__ = ["ATTRS", "OPS"]
