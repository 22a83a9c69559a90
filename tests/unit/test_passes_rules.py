"""Every rewrite rule keeps what its file says; a rule file needs no test of its own."""

import inspect
import pkgutil
import sys
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.errors import InternalError, UserError
from dlcb.passes import apply_rules as apply_rules_module
from dlcb.passes import rule as rule_module
from dlcb.passes.apply_rules import ApplyRulesPass, rules_by_name
from dlcb.passes.rewriter import apply_rules
from dlcb.passes.rule import Rule, all_rules, rules_of, summary
from dlcb.passes.rule_examples import check_examples, parse_example

RULES = {rule.name: rule for rule in all_rules()}
SHIPPED = (
    "DecomposeBatchNorm",
    "DecomposeLayerNorm",
    "DecomposeLogSoftmax",
    "DecomposeRmsNorm",
    "DecomposeSoftmax",
    "DropEmptyPad",
    "DropEqualWhere",
    "DropIdentityCast",
    "DropIdentityExpand",
    "DropIdentityPermute",
    "DropIdentityReshape",
    "DropNeutralOperand",
    "DropSingleConcat",
    "DropWholeSlice",
    "FillEmpty",
    "FoldBatchNorm",
    "FuseConvolutionRelu",
    "MergeCasts",
    "MergePermutes",
    "MergeReshapes",
    "SplitConvolutionBias",
)
"""So that a rule whose file is gone is missed; a new rule is tested without an entry here."""

each_rule = pytest.mark.parametrize("name", sorted({*RULES, *SHIPPED}))


@each_rule
def test_the_examples_of_the_rule_hold(name: str) -> None:
    check_examples(RULES[name])


@each_rule
def test_without_the_file_of_a_rule_only_that_rule_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example is rewritten by its own rule alone, so no example of another can change."""
    rule = RULES[name]
    found = pkgutil.iter_modules
    monkeypatch.setattr(
        rule_module.pkgutil,
        "iter_modules",
        lambda path, prefix: [info for info in found(path, prefix) if info.name != type(rule).__module__],
    )
    left = {other.name for other in rules_of.__wrapped__(rule.level)}
    assert left == {other.name for other in rules_of(rule.level)} - {name}


@each_rule
def test_a_rule_needs_no_other_rule(name: str) -> None:
    source = inspect.getsource(sys.modules[type(RULES[name]).__module__])
    assert "dlcb.passes.rules" not in source


@each_rule
def test_the_rule_lies_in_the_folder_of_its_level(name: str) -> None:
    assert type(RULES[name]).__module__.startswith(f"dlcb.passes.rules.{RULES[name].level}.")


@each_rule
def test_the_rule_says_what_it_does(name: str) -> None:
    assert summary(type(RULES[name]))


class DropPair(Rule):
    """pure(pure(x)) -> x."""

    level = "test"
    roots = (test.TestPureOp,)
    before = """
        %x = "test.op"() : () -> i32
        %a = "test.pureop"(%x) : (i32) -> i32
        %b = "test.pureop"(%a) : (i32) -> i32
        "test.op"(%b) : (i32) -> ()
    """
    after = """
        %x = "test.op"() : () -> i32
        "test.op"(%x) : (i32) -> ()
    """
    refused: ClassVar = {"the source is not pure": before.replace('%a = "test.pureop"', '%a = "test.op"')}

    def why_not(self, op: test.TestPureOp) -> str | None:
        return None if self.source(op) else "the source is not pure"

    def rewrite(self, op: test.TestPureOp, rewriter: PatternRewriter) -> None:
        source = self.source(op)
        assert source
        rewriter.replace(op, [], [source.operands[0]])

    @staticmethod
    def source(op: test.TestPureOp) -> test.TestPureOp | None:
        owner = op.operands[0].owner if op.operands else None
        return owner if isinstance(owner, test.TestPureOp) else None


class WrongAfter(DropPair):
    after = DropPair.before


class NeverEnds(DropPair):
    def why_not(self, op: test.TestPureOp) -> str | None:
        return None

    def rewrite(self, op: test.TestPureOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, test.TestPureOp(list(op.operands), [i32]))


class ChangesNothing(DropPair):
    def rewrite(self, op: test.TestPureOp, rewriter: PatternRewriter) -> None:
        pass


class Fails(DropPair):
    def rewrite(self, op: test.TestPureOp, rewriter: PatternRewriter) -> None:
        raise KeyError("axis")


class RefusesAll(DropPair):
    def why_not(self, op: test.TestPureOp) -> str | None:
        return "never"


def test_a_good_rule_passes_and_leaves_no_dead_op() -> None:
    check_examples(DropPair())


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (WrongAfter(), "not its `after`"),
        (RefusesAll(), "does not apply to its `before`: \\['never', 'never'\\]"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_rule_that_breaks_its_word_is_named(rule: Rule, text: str) -> None:
    with pytest.raises(UserError, match=f"rule {rule.name}: .*{text}" if "after" not in text else text):
        check_examples(rule)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (NeverEnds(), "rewriting does not end: NeverEnds 1000 times; rule NeverEnds still applies at"),
        (ChangesNothing(), "rule ChangesNothing says that it applies at .*, but changes nothing"),
        (Fails(), "rule Fails failed at test.pureop .*: KeyError: 'axis'"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_broken_rule_is_named_with_its_op(rule: Rule, text: str) -> None:
    with pytest.raises(InternalError, match=text):
        apply_rules(parse_example(rule.before, "example"), [rule])


class Rename(DropPair):
    """An op of two: each new op takes the place of the old one in the source."""

    roots = (test.TestPureOp,)

    def why_not(self, op: test.TestPureOp) -> str | None:
        return "done" if "done" in op.attributes else None

    def rewrite(self, op: test.TestPureOp, rewriter: PatternRewriter) -> None:
        first = test.TestPureOp(list(op.operands), [i32], attributes={"done": i32})
        rewriter.replace(op, [first, test.TestPureOp([first.results[0]], [i32], attributes={"done": i32})])


def test_new_ops_keep_the_source_line() -> None:
    module = parse_example(
        '%0 = "test.pureop"() : () -> i32 loc("model.py":7:0)\n"test.op"(%0) : (i32) -> ()', "example"
    )
    counts = apply_rules(module, [Rename()])
    made = [op for op in module.walk() if isinstance(op, test.TestPureOp)]
    assert counts == {"Rename": 1}
    assert [str(op.location) for op in made] == ['loc("model.py":7:0)'] * 2


def test_the_first_rule_wins_and_each_is_counted() -> None:
    module = parse_example(DropPair.before, "example")
    assert apply_rules(module, [DropPair(), Rename()]) == {"Rename": 2, "DropPair": 2}
    assert sum(isinstance(op, test.TestOp) for op in module.walk()) == 2


def test_a_rule_of_a_base_class_meets_its_subclasses() -> None:
    class AnyOp(Rename):
        roots: ClassVar[tuple[type[Operation], ...]] = (Operation,)

        def why_not(self, op: Operation) -> str | None:
            return super().why_not(op) if isinstance(op, test.TestPureOp) else "not pure"

    module = parse_example(DropPair.before, "example")
    assert apply_rules(module, [AnyOp()]) == {"AnyOp": 2}


class Entry:
    """A stand-in for what an installed package names in the group `dlcb.rules`."""

    name = "plugin"

    def __init__(self, found: object) -> None:
        self.load = lambda: found


@pytest.mark.parametrize("found", [DropPair, sys.modules[__name__]], ids=["class", "module"])
def test_a_rule_of_an_installed_package_is_found(found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_module, "entry_points", lambda group: [Entry(found)])
    assert "DropPair" in {rule.name for rule in rules_of.__wrapped__("test")}


def test_an_entry_point_that_names_no_rule_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_module, "entry_points", lambda group: [Entry("DropPair")])
    with pytest.raises(UserError, match=r"entry point 'plugin' of 'dlcb\.rules' must name a Rule class or a module"):
        rules_of.__wrapped__("test")


def test_rules_are_chosen_by_name_in_the_order_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_rules_module, "all_rules", lambda: (DropPair(), Rename()))
    assert [rule.name for rule in rules_by_name(("Rename", "DropPair"))] == ["Rename", "DropPair"]
    assert [rule.name for rule in rules_by_name(())] == ["DropPair", "Rename"]
    module = parse_example(DropPair.before, "example")
    ApplyRulesPass(("DropPair",)).apply(Context(), module)
    assert not any(isinstance(op, test.TestPureOp) for op in module.walk())


def test_a_summary_is_the_first_sentence_of_the_class_or_else_of_the_file() -> None:
    assert summary(DropPair) == "pure(pure(x)) -> x"
    assert summary(Fails) == "Every rewrite rule keeps what its file says; a rule file needs no test of its own"
