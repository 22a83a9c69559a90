"""Solves the `dlcb.shape.system`s of a module that has nothing else.

Before: all that a function asks of sizes. After: the input symbols, the defined symbols that stand for themselves, and
the checks that are left. Made for looking at the solver alone; the stage is `dlcb-solve`, which writes the values into
types too.

Refused: a system beside its function, whose types would still name what is gone.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.shape.ops import SystemOp
from dlcb.dialects.shape.system import System
from dlcb.errors import UserError
from dlcb.passes.solver import solve


def solve_in_place(op: SystemOp) -> None:
    solved = solve(System.from_op(op)).system.to_op(op.function)
    solved.location = op.location
    Rewriter.replace_op(op, solved)


@dataclass(frozen=True)
class ShapeSolve(ModulePass):
    name = "dlcb-shape-solve"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = list(op.body.block.ops)
        functions = {inner.sym_name.data for inner in ops if isinstance(inner, FuncOp)}
        for inner in ops:
            if isinstance(inner, SystemOp):
                if inner.function in functions:
                    raise UserError(f"{self.name}: @{inner.function} is a function here; dlcb-solve solves both")
                solve_in_place(inner)
