"""Every rule on sizes does what its example says, and no other rule does it in its place."""

import inspect

import pytest

from dlcb.dialects.shape.text import parse_expr, parse_system
from dlcb.passes.solver import Solution, solve
from dlcb.passes.solver.rule import SizeRule, size_rules

RULES = size_rules()


def shown(solution: Solution) -> list[str]:
    lines = [f"{name} = {value}" for name, value in solution.values.items() if value != name]
    lines += [f"{name} = {expr}" for name, expr in solution.system.defines.items()]
    return lines + [str(require) for require in solution.system.requires]


def expected(text: str) -> list[str]:
    return [normal(line.strip()) for line in text.splitlines() if line.strip()]


def normal(line: str) -> str:
    name, equals, value = line.partition(" = ")
    return f"{name} = {parse_expr(value)}" if equals else str(parse_system(line).requires[0])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_does_what_its_example_says(rule: SizeRule) -> None:
    assert shown(solve(parse_system(rule.before))) == expected(rule.after)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_without_a_rule_only_its_own_example_changes(rule: SizeRule) -> None:
    others = [other for other in RULES if other is not rule]
    changed = [r.name for r in RULES if shown(solve(parse_system(r.before), others)) != expected(r.after)]
    assert changed == [rule.name]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_explains_itself(rule: SizeRule) -> None:
    document = inspect.getdoc(inspect.getmodule(type(rule))) or ""
    assert "Sound" in document
