"""Rewrite by the rules of the graph level (passes/rules/graph), then merge equal ops and drop dead ones.

Before: composite ops (softmax, layer norm, …), batch norms after convolutions, views of views. After: no composite ops;
the factors that batch norms bring to convolutions are computed in `@weights`. Ops with an effect stay as they are.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import Pure

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.shape.system import System
from dlcb.passes.functions import functions, set_system, system_op
from dlcb.passes.rewriter import apply_rules
from dlcb.passes.rule import rules_of
from dlcb.passes.stages import mark_stage
from dlcb.passes.weights import drop_unused_weights


def is_pure(op: Operation) -> bool:
    return _is_pure_kind(type(op))


@cache
def _is_pure_kind(kind: type[Operation]) -> bool:
    return issubclass(kind, GraphOp) and kind.has_trait(Pure)


def drop_dead(func: FuncOp) -> int:
    """Erase pure ops whose results nothing uses; returns how many."""
    block, count = func.body.block, 0
    op = block.last_op
    while op is not None:
        before = op.prev_op
        if is_pure(op) and not any(result.uses for result in op.results):
            block.erase_op(op)
            count += 1
        op = before
    return count


def merge_equal(func: FuncOp) -> int:
    """Let each pure op take the place of later ones that are equal; returns how many went."""
    block, count = func.body.block, 0
    alike: dict[Hashable, list[Operation]] = {}
    for op in list(block.ops):
        if not is_pure(op):
            continue
        earlier = alike.setdefault(_likeness(op), [])
        known = next((other for other in earlier if _are_equal(op, other)), None)
        if known is None:
            earlier.append(op)
            continue
        for old, new in zip(op.results, known.results, strict=True):
            old.replace_all_uses_with(new)
        block.erase_op(op)
        count += 1
    return count


def _likeness(op: Operation) -> Hashable:
    """Equal for equal ops. Hashing an attribute is slow, so it is done only where nothing else tells ops apart."""
    operands = tuple(op.operands)
    return (type(op), operands) if operands else (type(op), tuple(op.properties.values()))


def _are_equal(a: Operation, b: Operation) -> bool:
    """Of ops of one kind and with the same operands: the properties and the types of the results."""
    return a.properties == b.properties and tuple(a.result_types) == tuple(b.result_types)


def simplify(module: ModuleOp) -> None:
    for func in functions(module):
        drop_dead(func)
    apply_rules(module, rules_of("graph"))
    for func in functions(module):
        merge_equal(func)
        drop_dead(func)
        drop_unused_weights(func)
        if system_op(func) is None:
            set_system(func, System())


@dataclass(frozen=True)
class SimplifyPass(ModulePass):
    name = "dlcb-simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        simplify(op)
        mark_stage(op, "simplify")
