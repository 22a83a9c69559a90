"""State what every op demands of its sizes, as requirements in the function's `dlcb.shape.system`.

Before: types name sizes (`x_0`, `d1`). After: the system says where each name comes from (an input's size, or a
`define` by what the op that makes it infers), and requires what every op needs, with the op's source line. Nothing is
solved here, but a demand that two literals break is an error at once.

Refused: a size that nothing defines, because no input has it and no op infers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from dlcb.dialects.graph.base import GraphOp, ShapeScope
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType, dims_of, type_of
from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import UserError
from dlcb.passes.functions import check_ranked, functions, memory_base, set_system, system_of
from dlcb.passes.stages import mark_stage


class CollectScope(ShapeScope):
    """Writes what ops require into a system; what holds by itself is left out."""

    def __init__(self, system: System, weights: Mapping[SSAValue, str]) -> None:
        self.system = system
        self.op: GraphOp | None = None
        """Whose requirements are collected."""
        self._weights = weights
        self._seen = {(r.kind, r.lhs, r.rhs) for r in system.requires}

    def require(self, kind: str, lhs: Expr, rhs: Expr, what: str) -> None:
        if (kind, lhs, rhs) in self._seen:
            return
        self._seen.add((kind, lhs, rhs))
        value = self.system.value
        holds = Require(kind, value(lhs), value(rhs)).condition.value
        if holds == 0:
            raise UserError(f"{what}: {_both(lhs, value(lhs))} and {_both(rhs, value(rhs))}")
        if holds is None:
            weight = self._weight_of_size(lhs, rhs)
            what += f"; weight '{weight}'" if weight else ""
            self.system.requires.append(Require(kind, lhs, rhs, what))

    def restate(self, requires: Iterable[Require]) -> None:
        """Add what was required before: the ops' own requirements come first, for they say best why."""
        for require in requires:
            if (require.kind, require.lhs, require.rhs) not in self._seen:
                self.system.requires.append(require)

    def _weight_of_size(self, lhs: Expr, rhs: Expr) -> str | None:
        """The weight of the op that has the one side as a literal size, where the other is none."""
        literals = [side.value for side in (lhs, rhs) if side.value is not None]
        if self.op is None or len(literals) != 1:
            return None
        for operand in self.op.operands:
            weight = self._weights.get(memory_base(operand))
            if weight is not None and literals[0] in dims_of(operand):
                return weight
        return None

    def knows(self, symbol: str) -> bool:
        return symbol in self.system.symbols or symbol in self.system.defines


def _both(expr: Expr, value: Expr) -> str:
    return str(expr) if expr is value else f"{expr} = {value}"


def add_sources(func: FuncOp, system: System) -> None:
    """Each size of an argument that has a name yet unknown is where that name comes from."""
    for argument, name in zip(func.body.block.args, func.names, strict=True):
        if not isinstance(argument.type, TensorType) or not argument.type.ranked:
            continue
        for dim, size in enumerate(argument.type.dims):
            if isinstance(size, str) and size not in system.symbols and size not in system.defines:
                system.symbols[size] = Source.size(name, dim)


def collect_op(op: GraphOp, scope: CollectScope) -> None:
    for index, (result, sizes) in enumerate(zip(op.results, op.infer(scope), strict=True)):
        for dim, (have, want) in enumerate(zip(type_of(result).dims, sizes, strict=True)):
            _unless_undefined(op, want, scope)
            if isinstance(have, str) and not scope.knows(have):
                scope.system.defines[have] = want
                continue
            have = scope.dim(have)
            if have is not want:
                which = f"of result {index}" if len(op.results) > 1 else "of the result"
                scope.require("eq", have, want, f"{op.title}: size of dim {dim} {which}")


def collect_updates(func: FuncOp, scope: CollectScope) -> None:
    """An argument that is updated in place keeps its sizes."""
    for value, index in zip(func.returned.operands, func.returned.updated, strict=False):
        argument = func.body.block.args[index]
        for dim, (old, new) in enumerate(zip(scope.of(argument), scope.of(value), strict=True)):
            if old is not new:
                scope.require("eq", old, new, f"update of '{func.names[index]}': size of dim {dim}")


def _unless_undefined(op: GraphOp, size: Expr, scope: CollectScope) -> None:
    for symbol in size.free:
        if not scope.knows(symbol):
            raise UserError(f"{op.title}: nothing defines the size '{symbol}': no input has it and no op infers it")


def collect(func: FuncOp, system: System) -> None:
    """Add to the system all that the function's ops say of sizes."""
    check_ranked(func)
    add_sources(func, system)
    named = zip(func.body.block.args, func.names, func.kinds, strict=True)
    weights: dict[SSAValue, str] = {argument: name for argument, name, kind in named if kind == "weight"}
    stated, system.requires = system.requires, []
    scope = CollectScope(system, weights)
    for op in func.body.block.ops:
        if isinstance(op, GraphOp):
            scope.op = op
            collect_op(op, scope)
    scope.op = None
    collect_updates(func, scope)
    scope.restate(stated)


@dataclass(frozen=True)
class CollectPass(ModulePass):
    name = "dlcb-collect"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions(op):
            system = system_of(func)
            collect(func, system)
            set_system(func, system)
        mark_stage(op, "collect")
