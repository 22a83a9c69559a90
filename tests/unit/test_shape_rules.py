"""Every rule on sizes does what its example says, and no other rule does it in its place."""

import inspect

import pytest

from dlcb.dialects.shape.text import parse_expr, parse_system
from dlcb.passes.solver import Solution, solve
from dlcb.passes.solver.rule import SizeRule, size_rules

RULES = {rule.name: rule for rule in size_rules()}
SHIPPED = (
    "AnyOf",
    "Cancellation",
    "CommonFactor",
    "DecidedCondition",
    "Divides",
    "DivisionBound",
    "DivisionRemainder",
    "EqualOrOne",
    "Extremum",
    "Inversion",
    "Isolation",
    "KnownBroadcast",
    "LearnBound",
    "NestedDivision",
    "Numel",
    "Substitution",
)
"""So that a rule whose file is gone is missed; a new rule is tested without an entry here."""

each_rule = pytest.mark.parametrize("name", sorted({*RULES, *SHIPPED}))


def shown(solution: Solution) -> list[str]:
    lines = [f"{name} = {value}" for name, value in solution.values.items() if value != name]
    lines += [f"{name} = {expr}" for name, expr in solution.system.defines.items()]
    return lines + [str(require) for require in solution.system.requires]


def expected(text: str) -> list[str]:
    return [normal(line.strip()) for line in text.splitlines() if line.strip()]


def normal(line: str) -> str:
    name, equals, value = line.partition(" = ")
    return f"{name} = {parse_expr(value)}" if equals else str(parse_system(line).requires[0])


def fails(rule: SizeRule, rules: list[SizeRule]) -> bool:
    return shown(solve(parse_system(rule.before), rules)) != expected(rule.after)


@each_rule
def test_a_rule_does_what_its_example_says(name: str) -> None:
    rule = RULES[name]
    assert shown(solve(parse_system(rule.before))) == expected(rule.after)


@each_rule
def test_without_a_rule_only_its_own_example_changes(name: str) -> None:
    others = [rule for rule in RULES.values() if rule is not RULES[name]]
    assert [rule.name for rule in RULES.values() if fails(rule, others)] == [name]


@each_rule
def test_a_rule_says_why_it_is_sound(name: str) -> None:
    assert "Sound" in (inspect.getdoc(inspect.getmodule(type(RULES[name]))) or "")
