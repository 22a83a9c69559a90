"""Require that sizes broadcast as they did in the trace: `dlcb-assume-broadcasts`.

Before: a solved function in which two sizes may be equal, or one of them 1 (`broadcastable`, `expandable`), and every
kernel is ready for each. After: sizes that were equal in the trace are one, a size that was 1 is 1; the function is
solved again. A call of another pattern is refused, so whoever assumes this keeps the program without it too.

Refused: functions that are not solved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.passes import ModulePass

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.shape.expr import ONE, Expr, evaluate
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import System
from dlcb.errors import BROADCASTS, UserError
from dlcb.passes.functions import functions, set_system, system_of
from dlcb.passes.solve import DIMENSIONS, solve_function
from dlcb.passes.stages import stage_of

_OPEN: Final = ("broadcastable", "expandable")


def assumptions(system: System) -> list[Require]:
    """What is to be required, in the order in which the requirements stand that leave it open."""
    found: dict[Expr, Require] = {}
    for a, b, text in _open_pairs(system):
        was_a, was_b = evaluate(a, system.traced), evaluate(b, system.traced)
        one, other = (a, b) if was_a == was_b else (a, ONE) if was_a == 1 else (b, ONE)
        assumed = Require("eq", one, other, f"{BROADCASTS}{text}")
        if assumed.condition.value is None:
            found.setdefault(assumed.condition, assumed)
    return list(found.values())


def _open_pairs(system: System) -> Iterator[tuple[Expr, Expr, str]]:
    for require in system.requires:
        a, b = system.value(require.lhs), system.value(require.rhs)
        if require.kind in _OPEN and a.free | b.free <= system.traced.keys():
            yield a, b, require.text


def _solve_again(func: FuncOp) -> None:
    """What was a literal before keeps the reason that it got then."""
    before = func.attributes[DIMENSIONS]
    solve_function(func)
    after = func.attributes[DIMENSIONS]
    assert isinstance(before, DictionaryAttr)
    assert isinstance(after, DictionaryAttr)
    kept = {k: before.data[k] if str(v).startswith('"given as') else v for k, v in after.data.items()}
    func.attributes[DIMENSIONS] = DictionaryAttr(kept)


def assume_broadcasts(func: FuncOp) -> list[Expr]:
    """Requires the pattern of the trace, until nothing is open; the conditions that were added."""
    added: dict[Expr, None] = {}
    while True:
        system = system_of(func)
        assumed = [require for require in assumptions(system) if require.condition not in added]
        if not assumed:
            return list(added)
        system.requires += assumed
        set_system(func, system)
        added |= dict.fromkeys(require.condition for require in assumed)
        _solve_again(func)


@dataclass(frozen=True)
class AssumeBroadcastsPass(ModulePass):
    name = "dlcb-assume-broadcasts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if stage_of(op) != "solve":
            raise UserError(
                f"{self.name}: expected a module after 'solve', got one after '{stage_of(op) or 'capture'}'"
            )
        for func in functions(op):
            assume_broadcasts(func)
