"""Every rule on sizes and on coordinates does what its examples say, and no other rule does it in its place."""

import inspect
import sys
from typing import ClassVar

import pytest

from dlcb.dialects.shape.expr import ZERO, Expr, add, floordiv
from dlcb.errors import InternalError, UserError
from dlcb.passes.solver.examples import check_examples, expected, outcome
from dlcb.passes.solver.facts import Facts
from dlcb.passes.solver.law import LEVELS, Law, laws
from dlcb.passes.solver.rule import ExprRule

RULES = {f"{level}-{rule.name}": rule for level in LEVELS for rule in laws(level)}
SHIPPED = (
    "coordinate-GuardProved",
    "coordinate-GuardRefuted",
    "coordinate-JoinedDivision",
    "coordinate-QuotientInRange",
    "coordinate-QuotientOutOfSum",
    "coordinate-RemainderInRange",
    "shape-AnyOf",
    "shape-Bounds",
    "shape-Cancellation",
    "shape-CommonFactor",
    "shape-DecidedCondition",
    "shape-Divides",
    "shape-DivisionBound",
    "shape-DivisionRemainder",
    "shape-EqualOrOne",
    "shape-ExactDivision",
    "shape-Extremum",
    "shape-FloorInversion",
    "shape-Folding",
    "shape-ImpliedDivides",
    "shape-Inversion",
    "shape-Isolation",
    "shape-KnownBroadcast",
    "shape-KnownMultiple",
    "shape-LearnBound",
    "shape-ListUnpacking",
    "shape-NestedDivision",
    "shape-Numel",
    "shape-Pinch",
    "shape-ScaledBound",
    "shape-Substitution",
    "shape-WholeProduct",
)
"""So that a rule whose file is gone is missed; a new rule is tested without an entry here."""

each_rule = pytest.mark.parametrize("name", sorted({*RULES, *SHIPPED}))


def peers(rule: Law) -> list[Law]:
    return list(laws(rule.level))


@each_rule
def test_a_rule_does_what_its_examples_say(name: str) -> None:
    check_examples(RULES[name], peers(RULES[name]))


@each_rule
def test_without_a_rule_only_its_own_example_changes(name: str) -> None:
    removed = RULES[name]
    others = [rule for rule in peers(removed) if rule is not removed]
    broken = [rule.name for rule in peers(removed) if outcome(rule, rule.before, others) != expected(rule)]
    assert broken == [removed.name]


@each_rule
def test_a_rule_says_why_it_is_sound(name: str) -> None:
    assert "Sound" in (inspect.getdoc(inspect.getmodule(type(RULES[name]))) or "")


@each_rule
def test_a_rule_needs_no_other_rule(name: str) -> None:
    assert "dlcb.passes.rules" not in inspect.getsource(sys.modules[type(RULES[name]).__module__])


@each_rule
def test_a_rule_lies_alone_in_a_folder_of_its_vocabulary(name: str) -> None:
    module = type(RULES[name]).__module__
    assert module.startswith(f"dlcb.passes.rules.{RULES[name].level}.")
    assert [other for other, rule in RULES.items() if type(rule).__module__ == module] == [name]


class ZeroAll(ExprRule):
    """⌊a / b⌋ is 0."""

    functions = ("floordiv",)
    before: ClassVar[str] = "d0 = n // m"
    after: ClassVar[str] = "d0 = 0"
    refused: ClassVar = {"no division": "d0 = n % m"}

    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        return ZERO


class WrongAfter(ZeroAll):
    after: ClassVar[str] = "d0 = 1"


class RefusesNothing(ZeroAll):
    refused: ClassVar = {}


class RefusesWrongly(ZeroAll):
    refused: ClassVar = {"a literal": "d0 = n // 3"}


class NeverFires(ZeroAll):
    before: ClassVar[str] = "d0 = n % m"
    after: ClassVar[str] = before


class Grows(ZeroAll):
    def rewrite(self, e: Expr, facts: Facts) -> Expr | None:
        return floordiv(add(e.args[0], 1), e.args[1])


def test_a_rule_that_undoes_itself_is_stopped() -> None:
    with pytest.raises(InternalError, match="the rules do not come to an end; at: "):
        outcome(Grows(), Grows.before, [Grows()])


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (WrongAfter(), "not its `after`"),
        (RefusesNothing(), "has no example that it refuses"),
        (RefusesWrongly(), "should leave alone 'a literal', but fires"),
        (NeverFires(), "does not apply to its `before`"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_rule_that_breaks_its_word_is_named(rule: Law, text: str) -> None:
    with pytest.raises(UserError, match=text) as error:
        check_examples(rule, [rule])
    assert f"rule {rule.name}" in str(error.value)
