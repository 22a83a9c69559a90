"""Canonical size expressions compute what their constructors say, and their bounds hold."""

import copy
import gc
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcb.dialects.shape import nodes
from dlcb.dialects.shape.bounds import bounds, is_nonneg, is_positive, lower_bound
from dlcb.dialects.shape.expr import (
    FUNCTIONS,
    ONE,
    ZERO,
    Expr,
    add,
    as_expr,
    broadcast,
    call,
    ceildiv,
    const,
    divides,
    eq,
    evaluate,
    exact_quotient,
    floordiv,
    from_terms,
    le,
    logical_and,
    logical_not,
    logical_or,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    ne,
    scaled,
    select,
    sub,
    substitute,
    sym,
    terms,
)
from dlcb.errors import InternalError

NAMES = ("n", "m", "h")
n, m, h = map(sym, NAMES)

Recipe = tuple[str, tuple["Recipe | int | str", ...]]
"""A tree of function names over integers and symbol names, which no constructor has simplified."""

_ARITY = {"add": 2, "mul": 2, "select": 3, "logical_not": 1, "isqrt": 1}
_OPS = ("add", "mul", *(op for op in FUNCTIONS if op not in ("scaled", "broadcast")))

leaves = st.sampled_from(NAMES) | st.integers(-4, 9)


def _grow(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    def node(op: str) -> st.SearchStrategy[object]:
        return st.tuples(st.just(op), st.tuples(*[children] * _ARITY.get(op, 2)))

    scale = st.tuples(children, st.integers(-9, 9), st.sampled_from([1, 2, 3, (1 << 40) + 1]))
    return st.sampled_from(_OPS).flatmap(node) | st.tuples(st.just("scaled"), scale)


recipes = st.recursive(leaves, _grow, max_leaves=8)
sizes = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


def build(recipe: Any) -> Expr:
    if isinstance(recipe, int | str):
        return as_expr(recipe)
    op, args = recipe
    return call(op, *[build(a) for a in args])


class DivisionByZero(Exception):
    """The recipe has no meaning there."""


def meaning(recipe: Any, env: dict[str, int]) -> int:
    if isinstance(recipe, int):
        return recipe
    if isinstance(recipe, str):
        return env[recipe]
    op, args = recipe
    values = [meaning(a, env) for a in args]
    if op in ("floordiv", "ceildiv", "mod") and values[1] == 0:
        raise DivisionByZero
    if op == "add":
        return values[0] + values[1]
    return values[0] * values[1] if op == "mul" else FUNCTIONS[op](*values)


@given(recipes, sizes)
@settings(max_examples=400, deadline=None)
def test_an_expression_means_what_it_was_built_from(recipe: object, env: dict[str, int]) -> None:
    try:
        expected = meaning(recipe, env)
    except DivisionByZero:
        return
    assert evaluate(build(recipe), env) == expected


@given(recipes, recipes, sizes)
@settings(max_examples=200, deadline=None)
def test_substitution_agrees_with_evaluation(recipe: object, value: object, env: dict[str, int]) -> None:
    try:
        expected = meaning(recipe, env | {"n": meaning(value, env)})
    except DivisionByZero:
        return
    assert evaluate(substitute(build(recipe), {"n": build(value)}), env) == expected


@given(recipes, sizes)
@settings(max_examples=400, deadline=None)
def test_bounds_hold(recipe: object, env: dict[str, int]) -> None:
    e = build(recipe)
    value = evaluate(e, env)
    at_least = {name: env[name] // 2 for name in NAMES}
    low, high = bounds(e, at_least)
    assert low is None or low <= value
    assert high is None or value <= high
    assert not is_nonneg(e, at_least) or value >= 0


@given(recipes)
@settings(max_examples=200, deadline=None)
def test_parts_make_the_same_object_again(recipe: object) -> None:
    e = build(recipe)
    assert from_terms(reversed(terms(e))) is e
    if e.args:
        assert call(e.op, *e.args) is e


@given(st.lists(st.tuples(st.integers(-3, 3), st.lists(st.sampled_from([n, m, h]), max_size=3)), max_size=5), st.data())
@settings(max_examples=200, deadline=None)
def test_equal_polynomials_are_one_object(parts: list[tuple[int, list[Expr]]], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(parts))
    one = add(*[mul(c, *atoms) for c, atoms in parts])
    other = ZERO
    for c, atoms in shuffled:
        other = add(mul(*reversed(atoms), c), other)
    assert one is other


@given(recipes, recipes)
@settings(max_examples=100, deadline=None)
def test_a_product_divides_exactly_by_its_factors(left: object, right: object) -> None:
    a, b = build(left), build(right)
    if b is not ZERO:
        assert exact_quotient(mul(a, b), b) is a


def test_folding_is_cheap_and_sound() -> None:
    assert floordiv(n, 1) is n
    assert mod(n, 1) is ZERO
    assert minimum(n, n) is n
    assert minimum(n, add(n, 1), m) is minimum(m, n)
    assert maximum(n, add(n, 1)) is add(n, 1)
    assert broadcast(n, n) is n
    assert broadcast(n, 1) is n
    assert broadcast(n, m) is broadcast(m, n)
    assert floordiv(mul(n, m, 6), mul(m, 2)) is mul(3, n)
    assert floordiv(mul(add(n, 1), m), add(n, 1)) is m
    assert floordiv(add(mul(8, n), m, 17), 8) is add(n, 2, floordiv(add(m, 1), 8))
    assert ceildiv(n, 8) is floordiv(add(n, 7), 8)
    assert mod(add(mul(8, n), m, 17), 8) is mod(add(m, 1), 8)
    assert select(ONE, n, m) is n
    assert select(eq(n, 2), m, m) is m
    assert eq(add(n, 1), n) is ZERO
    assert le(n, add(n, 1)) is ONE
    assert logical_not(lt(n, m)) is le(m, n)
    assert logical_or(eq(n, 1), ne(n, 1)) is ONE
    assert logical_and(eq(n, 1), eq(n, 1)) is eq(n, 1)
    assert scaled(n, 6, 4) is floordiv(mul(3, n), 2)
    assert scaled(n, 1 << 41, 1 << 40) is mul(2, n)


def test_a_conv_size_is_canonical() -> None:
    assert add(floordiv(add(h, 2, -3), 2), 1) is floordiv(add(h, 1), 2)


def test_a_division_by_zero_evaluates_to_zero() -> None:
    for function in (floordiv, ceildiv, mod):
        assert evaluate(function(n, m), {"n": 5, "m": 0}) == 0
        assert function(n, 0) is ZERO


def test_zero_divides_only_zero() -> None:
    assert evaluate(divides(n, m), {"n": 0, "m": 0}) == 1
    assert evaluate(divides(n, m), {"n": 0, "m": 3}) == 0
    assert evaluate(divides(n, m), {"n": 3, "m": 6}) == 1
    assert evaluate(divides(n, m), {"n": 3, "m": 7}) == 0


def test_text_reads_like_python() -> None:
    assert str(add(mul(2, n, m), 1)) == "2*m*n + 1"
    assert str(sub(mul(2, floordiv(sub(n, 1), 2)), m)) == "-m + 2*((n + 1) // 2) - 2"
    assert str(select(lt(n, 3), n, 3)) == "select(n < 3, n, 3)"
    assert str(eq(n, 1)) == "n == 1"
    assert repr(n) == "Expr(n)"


def test_bounds_see_through_divisions() -> None:
    at_least = {"n": 1, "m": 0}
    assert lower_bound(floordiv(add(n, 7), 8), at_least) == 1
    assert bounds(mod(n, 8), at_least) == (0, 7)
    assert is_nonneg(sub(n, mul(8, floordiv(n, 8))), at_least)
    assert not is_positive(m, at_least)
    assert is_positive(add(m, n), at_least)
    assert not is_nonneg(sym("stride"), at_least)


def test_free_symbols_are_those_that_are_left() -> None:
    assert add(n, m, mul(-1, n)).free == {"m"}
    assert floordiv(n, m).free == {"n", "m"}


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(InternalError, match=r"symbol 'm' of m \+ n has no value; given: \['n'\]"):
        evaluate(add(n, m), {"n": 1})


def test_an_expression_can_not_be_copied() -> None:
    with pytest.raises(TypeError, match="one object"):
        copy.deepcopy(add(n, 1))


def test_a_deep_expression_needs_no_recursion() -> None:
    e = n
    for i in range(3000):
        e = floordiv(add(e, i, m), 2)
    assert evaluate(e, {"n": 1, "m": 2}) > 0
    assert substitute(e, {"n": ONE}).free == {"m"}
    assert str(e)


def test_unused_expressions_leave_the_table() -> None:
    before = len(nodes._interned)
    for i in range(1000):
        nodes.function_node("floordiv", (sym("n"), const(5000 + i)))
    const.cache_clear()
    gc.collect()
    assert len(nodes._interned) < before + 500


def test_the_order_of_terms_is_the_same_in_every_process() -> None:
    program = (
        "from dlcb.dialects.shape.expr import *; n, m = sym('n'), sym('m');"
        "print(add(floordiv(n, m), mod(m, n), maximum(m, n), floordiv(m, n), const(-2), mul(n, -1)))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-P", "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
