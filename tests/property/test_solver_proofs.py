"""z3 proves, of random systems and of the examples of all rules, that solving neither loses nor invents a solution."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcb.dialects.shape.expr import CALLS, Expr, add, call, evaluate, mul, post_order, size_list, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.dialects.shape.text import parse_expr, parse_system
from dlcb.passes.solver import ContradictionError, Solution, solve
from dlcb.passes.solver.examples import parse_space
from dlcb.passes.solver.law import LEVELS, Law, laws
from dlcb.tests.proofs import Terms, Verdict, proved, sorts, worst

SIZES = ("a", "b", "c", "e")
INPUTS = (*SIZES, "k")
RULES = {f"{level}-{rule.name}": rule for level in LEVELS for rule in laws(level)}
SYSTEMS = 150
"""How many are drawn; z3 may fail to decide one in twenty of them."""

# --- systems that z3 decides: sums, multiples, division by literals ------------------------------------------------


@st.composite
def exprs(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return sym(draw(st.sampled_from(names)))
    left = draw(exprs(names, depth - 1))
    match draw(st.sampled_from(("add", "scale", "floordiv", "mod", "maximum", "minimum", "select"))):
        case "scale":
            return add(mul(draw(st.integers(1, 4)), left), draw(st.integers(-3, 3)))
        case "floordiv" | "mod" as division:
            return call(division, left, draw(st.integers(1, 4)))
        case "select":
            condition = call(draw(st.sampled_from(("eq", "lt"))), left, draw(exprs(names, 0)))
            return call("select", condition, left, draw(exprs(names, depth - 1)))
        case function:
            return call(function, left, draw(exprs(names, depth - 1)))


KINDS = (
    *["eq"] * 4,
    *["divides"] * 3,
    "ne",
    "lt",
    "le",
    "le",
    "broadcastable",
    "expandable",
    "any_of",
    "lists",
    "least",
)


@st.composite
def requirements(draw: st.DrawFn, names: tuple[str, ...]) -> Require:
    kind = draw(st.sampled_from(KINDS))
    left, right = draw(exprs(names)), draw(exprs(names) | st.integers(0, 6).map(parse_literal))
    match kind:
        case "least":
            return Require("le", parse_literal(draw(st.integers(1, 4))), sym(draw(st.sampled_from(names[:2]))), kind)
        case "divides":
            return Require("divides", parse_literal(draw(st.sampled_from((2, 3, 4, 8)))), left, kind)
        case "any_of":
            return Require.any_of([call("eq", left, right), call("lt", right, left)], kind)
        case "lists":
            other = draw(exprs(names, 1))
            return Require("eq", call("permute", size_list(left, other), 1, 0), size_list(other, right), kind)
        case _:
            return Require(kind, left, right, kind)


def parse_literal(value: int) -> Expr:
    return parse_expr(str(value))


@st.composite
def systems(draw: st.DrawFn) -> tuple[System, dict[str, int]]:
    """A system, and sizes that meet it: every equation that they break is moved until they meet it."""
    system = System({name: Source.size(name, 0) for name in SIZES} | {"k": Source.integer("k")})
    for number in range(draw(st.integers(0, 2))):
        system.defines[f"d{number}"] = draw(exprs((*INPUTS, *system.defines)))
    planted = {name: draw(st.integers(0, 12)) for name in SIZES} | {"k": draw(st.integers(-4, 12))}
    values = dict(planted)
    for name, expr in system.defines.items():
        values[name] = evaluate(expr, values)
    for require in draw(st.lists(requirements((*INPUTS, *system.defines)), min_size=1, max_size=5)):
        if evaluate(require.condition, values):
            system.requires.append(require)
        elif require.kind == "eq" and require.lhs.op not in ("list", "permute"):
            gap = evaluate(require.lhs, values) - evaluate(require.rhs, values)
            system.requires.append(Require("eq", require.lhs, add(require.rhs, gap), require.text))
    return system, planted


@st.composite
def any_systems(draw: st.DrawFn) -> System:
    """A system that nothing may meet."""
    system = System({name: Source.size(name, 0) for name in SIZES[:2]} | {"k": Source.integer("k")})
    system.requires += draw(st.lists(requirements(("a", "b", "k")), min_size=3, max_size=8))
    return system


# --- what is proved -------------------------------------------------------------------------------------------------


def truths(terms: Terms, system: System) -> Any:
    return z3.And(*[terms.truth(require) for require in system.requires])


def equivalence(system: System, solution: Solution) -> Verdict:
    """Both ways: what was stated, and the checks that are left; and what was stated gives the values found."""
    before, after = Terms(system.defines), Terms(solution.system.defines)
    stated, left = truths(before, system), truths(after, solution.system)
    found = z3.And(
        *[before.number(sym(name)) == value for name, value in solution.values.items() if isinstance(value, int)],
        *[before.number(sym(n)) == before.number(sym(v)) for n, v in solution.values.items() if isinstance(v, str)],
        *[before.number(sym(name)) == after.number(sym(name)) for name in solution.system.defines],
    )
    given_sorts = [*sorts(system), *[d >= 1 for d in (*before.divisors, *after.divisors)]]
    return worst((proved([*given_sorts, stated], z3.And(left, found)), proved([*given_sorts, left], stated)))


def check_counts(counts: Counter[Verdict]) -> None:
    assert counts[Verdict.UNKNOWN] * 20 <= counts.total(), counts
    assert counts[Verdict.PROVED]


def test_what_is_solved_and_left_is_what_was_stated() -> None:
    counts: Counter[Verdict] = Counter()

    @settings(max_examples=SYSTEMS)
    @given(systems())
    def prove(drawn: tuple[System, dict[str, int]]) -> None:
        system, planted = drawn
        solution = solve(system)  # the planted sizes meet it, so that a contradiction would be wrong
        values = dict(planted)
        for name, expr in solution.system.defines.items():
            values[name] = evaluate(expr, values)
        assert all(evaluate(require.condition, values) for require in solution.system.requires)
        verdict = equivalence(system, solution)
        assert verdict is not Verdict.REFUTED, f"{system}\n---\n{solution.system}"
        counts[verdict] += 1

    prove()
    check_counts(counts)


def test_what_is_reported_as_a_contradiction_is_one() -> None:
    counts: Counter[Verdict] = Counter()

    @settings(max_examples=SYSTEMS)
    @given(any_systems())
    def prove(system: System) -> None:
        try:
            solution = solve(system)
        except ContradictionError:
            terms = Terms(system.defines)
            verdict = proved(sorts(system), z3.Not(truths(terms, system)))
            counts[verdict] += 1
        else:
            verdict = equivalence(system, solution)
        assert verdict is not Verdict.REFUTED, str(system)

    prove()
    check_counts(counts)


# --- the examples of rules ------------------------------------------------------------------------------------------


def sides_of_sizes(rule: Law) -> tuple[list[Any], Any, Any]:
    """What holds anyway, `before`, and `after`, in which a line `n = …` states the value of what `before` defines."""
    before = parse_system(rule.before)
    terms = Terms(before.defines)
    lines = [line.strip() for line in rule.after.splitlines() if line.strip()]
    said = [line.partition(" = ") for line in lines]
    after = [terms.number(sym(name)) == terms.number(parse_expr(value)) for name, is_value, value in said if is_value]
    left = [terms.truth(parse_system(line).requires[0]) for line in lines if " = " not in line]
    stated = truths(terms, before)
    anyway = [*sorts(before), *[divisor >= 1 for divisor in terms.divisors]]
    return anyway, stated, z3.And(*left, z3.Implies(stated, z3.And(*after)))


def sides_of_coordinates(rule: Law) -> tuple[list[Any], Any, Any]:
    before = parse_space(rule.before)
    after = parse_space(rule.after, before.axes)
    terms = Terms({})
    values = [terms.number(before.values[name]) == terms.number(after.values[name]) for name in before.values]
    guards = [
        z3.BoolVal(False)
        if space.guards is None
        else z3.And(*[terms.truth(Require(kind, lhs, rhs)) for kind, lhs, rhs in space.guards])
        for space in (before, after)
    ]
    ranges = [z3.And(z3.Int(f"${name}") >= 0, z3.Int(f"${name}") < terms.number(s)) for name, s in before.axes.items()]
    return [*ranges, *[divisor >= 1 for divisor in terms.divisors]], guards[0], z3.And(guards[1], *values)


def is_linear(rule: Law) -> bool:
    """Of the examples whose sides z3 decides: no product or division of two symbols."""
    exprs = (
        [e for r in parse_system(rule.before).requires for e in (r.lhs, r.rhs)]
        + list(parse_system(rule.before).defines.values())
        if rule.level == "shape"
        else [*parse_space(rule.before).values.values()]
    )
    nodes = list(post_order(exprs))
    return not any(len(atoms) > 1 for e in nodes if e.op not in CALLS for _, atoms in e.terms) and not any(
        e.op in ("floordiv", "mod", "ceildiv") and e.args[1].value is None for e in nodes
    )


@pytest.mark.parametrize("name", sorted(RULES))
def test_before_and_after_of_a_rule_say_the_same(name: str) -> None:
    rule = RULES[name]
    anyway, before, after = (sides_of_sizes if rule.level == "shape" else sides_of_coordinates)(rule)
    verdict = proved(anyway, before == after)
    assert verdict is Verdict.PROVED or (verdict is Verdict.UNKNOWN and not is_linear(rule))


def test_a_wrong_solution_is_refuted() -> None:
    system = parse_system("n//2 == 3")
    assert equivalence(system, solve(system)) is Verdict.PROVED
    assert equivalence(system, Solution({"n": "n"}, parse_system("6 <= n"))) is Verdict.REFUTED


def test_a_wrong_value_is_refuted() -> None:
    system = parse_system("2*n == 6")
    assert equivalence(system, Solution({"n": 4}, system)) is Verdict.REFUTED
