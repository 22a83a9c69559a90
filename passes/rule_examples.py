"""Holds a rewrite rule to the examples that its file carries; in-tree rules and those of plugins alike."""

from __future__ import annotations

from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.test import Test
from xdsl.parser import Parser

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.umbrella import DLCB
from dlcb.errors import UserError
from dlcb.passes.checks import check_module
from dlcb.passes.rewriter import apply_rules
from dlcb.passes.rule import Rule


def check_examples(rule: Rule) -> None:
    """`UserError` where an example does not do what the rule's file says of it."""
    module = parse_example(rule.before, f"{rule.name}.before")
    count = apply_rules(module, [rule])[rule.name]
    check_module(module)
    expected = parse_example(rule.after, f"{rule.name}.after")
    if count == 0:
        raise UserError(f"rule {rule.name}: does not apply to its `before`: {_reasons(rule, module)}")
    if not module.is_structurally_equivalent(expected):
        raise UserError(
            f"rule {rule.name}: makes\n{to_text(module)}of its `before`, not its `after`:\n{to_text(expected)}"
        )
    if apply_rules(module, [rule]):
        raise UserError(f"rule {rule.name}: a second run still changes\n{to_text(module)}")
    for reason, text in rule.refused.items():
        _check_refusal(rule, reason, text)


def _check_refusal(rule: Rule, reason: str, text: str) -> None:
    module = parse_example(text, f"{rule.name}.refused['{reason}']")
    reasons = _reasons(rule, module)
    if reason not in reasons:
        raise UserError(f"rule {rule.name}: should refuse with '{reason}', but says {reasons}")
    if apply_rules(module, [rule]):
        raise UserError(f"rule {rule.name}: should refuse with '{reason}', but makes\n{to_text(module)}")


def _reasons(rule: Rule, module: ModuleOp) -> list[str | None]:
    """What the rule says at each op where it can start; None where it applies."""
    return [rule.why_not(op) for op in module.walk() if isinstance(op, rule.roots)]


def parse_example(text: str, name: str) -> ModuleOp:
    module = Parser(_context(), text, name).parse_module()
    check_module(module)
    return module


@cache
def _context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Test, DLCB):
        ctx.load_dialect(dialect)
    return ctx
