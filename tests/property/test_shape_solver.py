"""Solving neither loses nor invents anything: the checks that are left say of every call what the system said."""

from dataclasses import dataclass

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dlcb.dialects.shape.expr import (
    Expr,
    add,
    broadcast,
    call,
    const,
    evaluate,
    mul,
    post_order,
    sym,
)
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.passes.solver import ContradictionError, Solution, solve

SIZES = ("a", "b", "c", "e")
INTEGERS = ("k",)
INPUTS = (*SIZES, *INTEGERS)
_FUNCTIONS = ("floordiv", "mod", "ceildiv", "maximum", "minimum")
_COMPARISONS = ("eq", "ne", "lt", "le")
_KINDS = (*["eq"] * 4, *["bound"] * 4, "ne", "lt", "le", "le", "divides", "broadcastable", "expandable", "any_of")

calls = st.fixed_dictionaries(
    {name: st.integers(0, 4) for name in SIZES} | {name: st.integers(-2, 4) for name in INTEGERS}
)


@st.composite
def exprs(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return sym(draw(st.sampled_from(names)))
    kind = draw(st.sampled_from(("add", "mul", "scale", "select", *_FUNCTIONS)))
    left = draw(exprs(names, depth - 1))
    if kind == "scale":
        return add(mul(draw(st.integers(1, 3)), left), draw(st.integers(-2, 3)))
    right = draw(exprs(names, depth - 1) | st.integers(1, 4))
    if kind == "select":
        return call("select", call(draw(st.sampled_from(_COMPARISONS)), left, right), left, right)
    return call(kind, left, right)


@st.composite
def requirements(draw: st.DrawFn, names: tuple[str, ...]) -> Require:
    kind = draw(st.sampled_from(_KINDS))
    if kind == "bound":
        factors = draw(st.lists(st.sampled_from(SIZES).map(sym), min_size=1, max_size=2))
        return Require("le", const(draw(st.integers(1, 4))), mul(draw(st.integers(1, 2)), *factors), kind)
    left, right = draw(exprs(names)), draw(exprs(names) | st.integers(0, 4).map(const))
    if kind == "any_of":
        return Require.any_of([call("eq", left, right), call(draw(st.sampled_from(_COMPARISONS)), right, 1)], kind)
    return Require(kind, left, right, kind)


@st.composite
def systems(draw: st.DrawFn) -> System:
    system = System(symbols={name: Source.size(name, 0) for name in SIZES})
    system.symbols |= {name: Source.integer(name) for name in INTEGERS}
    for number in range(draw(st.integers(0, 3))):
        names = (*INPUTS, *system.defines)
        if draw(st.booleans()):
            system.defines[f"d{number}"] = draw(exprs(names))
            continue
        left, right = draw(exprs(names, 1)), draw(exprs(names, 1))
        system.defines[f"d{number}"] = broadcast(left, right)
        system.require("broadcastable", left, right, f"broadcast {number}")
    names = (*INPUTS, *system.defines)
    for require in draw(st.lists(requirements(names), min_size=1, max_size=6)):
        system.requires.append(require)
    return system


@dataclass
class Call:
    """All symbols of a system in one call."""

    values: dict[str, int]
    meaningful: bool
    """No division by zero."""


def complete(system: System, inputs: dict[str, int]) -> Call:
    values = dict(inputs)
    exprs = [*system.defines.values(), *[side for r in system.requires for side in (r.lhs, r.rhs)]]
    for name, expr in system.defines.items():
        values[name] = evaluate(expr, values)
    divisors = [n.args[1] for n in post_order(exprs) if n.op in ("floordiv", "ceildiv", "mod")]
    return Call(values, all(evaluate(d, values) for d in divisors))


def holds(system: System, values: dict[str, int]) -> bool:
    return all(evaluate(require.condition, values) for require in system.requires)


def agrees(solution: Solution, values: dict[str, int]) -> bool:
    known = {name: values[v] if isinstance(v, str) else v for name, v in solution.values.items()}
    defined = {name: evaluate(expr, values) for name, expr in solution.system.defines.items()}
    return all(values[name] == value for name, value in (known | defined).items())


def made_true(system: System, values: dict[str, int]) -> System:
    """The system with each requirement that the call breaks bent until the call meets it."""
    requires: list[Require] = []
    for r in system.requires:
        if evaluate(r.condition, values):
            requires.append(r)
        elif r.kind == "eq":
            requires.append(Require("eq", r.lhs, add(r.rhs, evaluate(r.lhs, values) - evaluate(r.rhs, values)), r.text))
        elif r.kind in ("lt", "le"):
            requires.append(Require("le", r.rhs, r.lhs, r.text))
        elif r.kind in ("divides", "expandable", "any_of"):
            met = call("le", r.lhs, evaluate(r.lhs, values))
            requires.append(Require("any_of", r.condition, met, r.text))
    return System(system.symbols, {}, dict(system.defines), requires)


def check_equivalent(system: System, solution: Solution, values: dict[str, int]) -> None:
    stated = holds(system, values)
    assert holds(solution.system, values) == stated, f"{system}\n---\n{solution.system}\n{values}"
    if stated:
        assert agrees(solution, values), f"{system}\n---\n{solution}\n{values}"


@given(systems(), calls, st.lists(calls, max_size=12))
@settings(max_examples=500, deadline=None)
def test_a_solution_says_what_the_system_said(
    system: System, known: dict[str, int], others: list[dict[str, int]]
) -> None:
    first = complete(system, known)
    assume(first.meaningful)
    broadcasts = [r for r in system.requires if r.kind == "broadcastable"]
    assume(all(evaluate(r.condition, first.values) for r in broadcasts))
    system = made_true(system, first.values)
    solution = solve(system)
    check_equivalent(system, solution, first.values)
    for other in others:
        tried = complete(system, other)
        if tried.meaningful:
            check_equivalent(system, solution, tried.values)


@given(systems(), st.lists(calls, min_size=1, max_size=12))
@settings(max_examples=300, deadline=None)
def test_a_contradiction_is_one(system: System, others: list[dict[str, int]]) -> None:
    try:
        solution = solve(system)
    except ContradictionError:
        solution = None
    for other in others:
        tried = complete(system, other)
        if not tried.meaningful:
            continue
        if solution is None:
            assert not holds(system, tried.values)
        else:
            check_equivalent(system, solution, tried.values)


@given(systems(), calls)
@settings(max_examples=200, deadline=None)
def test_solving_twice_changes_nothing(system: System, known: dict[str, int]) -> None:
    try:
        once = solve(system)
    except ContradictionError:
        return
    twice = solve(once.system)
    assert [str(r) for r in twice.system.requires] == [str(r) for r in once.system.requires]
    assert twice.system.defines == once.system.defines


@given(systems())
@settings(max_examples=100, deadline=None)
def test_a_system_survives_its_ir(system: System) -> None:
    again = System.from_op(system.to_op())
    assert str(again) == str(system)
