"""Runs rewrite rules by name, to try one alone: `dlcb-apply-rules{rules=DropDoublePermute}`; all if none is named."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from dlcb.errors import UserError
from dlcb.passes.rewriter import apply_rules
from dlcb.passes.rule import Rule, all_rules


def rules_by_name(names: tuple[str, ...]) -> list[Rule]:
    """The rules of these names in this order, or all; `UserError` for a name that no rule has."""
    known = {rule.name: rule for rule in all_rules()}
    for name in names:
        if name not in known:
            raise UserError(f"no rule is named '{name}'; `dlcb-opt --list-rules` lists them")
    return [known[name] for name in names or known]


@dataclass(frozen=True)
class ApplyRulesPass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-apply-rules"
    rules: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(op, rules_by_name(self.rules))
