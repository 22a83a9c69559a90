"""The builder of host programs: expressions become values once, and what is known becomes a constant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcb.dialects.host.attributes import InputAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.facts import ConstantOp
from dlcb.dialects.host.integers import AddOp, AndOp, BroadcastOp, MaxOp, MulOp, NotOp, OrOp, SelectOp
from dlcb.dialects.shape.expr import (
    Expr,
    add,
    broadcast,
    ceildiv,
    eq,
    evaluate,
    floordiv,
    le,
    logical_and,
    logical_not,
    logical_or,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    scaled,
    select,
    sym,
)
from dlcb.dialects.types import f32, index
from dlcb.errors import InternalError
from dlcb.evaluator.host import TensorFacts, run_host_program

_NAMES = ("n", "m")


def _builder() -> HostBuilder:
    builder = HostBuilder("main", [InputAttr.make("x", f32, 2)])
    builder.symbols.update({name: builder.size("x", dim) for dim, name in enumerate(_NAMES)})
    return builder


def _value_of(expr: Expr, n: int, m: int) -> int:
    builder = _builder()
    program = builder.finish([builder.index_value(expr)])
    program.verify()
    ((_, ((_, value),)),) = run_host_program(program, {"x": TensorFacts((n, m), (m, 1))})
    return value


def _extend(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    two = st.sampled_from(
        [add, mul, floordiv, ceildiv, mod, minimum, maximum, broadcast, eq, lt, le, logical_and, logical_or]
    )
    return st.one_of(
        st.builds(lambda f, a, b: f(a, b), two, inner, inner),
        st.builds(select, inner, inner, inner),
        st.builds(logical_not, inner),
        st.builds(lambda a: scaled(a, 3, (1 << 21) + 1), inner),
    )


_EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(
    st.sampled_from(_NAMES).map(sym) | st.integers(-3, 9).map(lambda i: add(i)), _extend, max_leaves=12
)


@given(_EXPRESSIONS, st.integers(0, 9), st.integers(0, 9))
def test_a_value_is_what_its_expression_evaluates_to(expr: Expr, n: int, m: int) -> None:
    assert _value_of(expr, n, m) == evaluate(expr, {"n": n, "m": m})


def test_an_expression_is_computed_once() -> None:
    builder = _builder()
    expr = floordiv(add(sym("n"), 1), sym("m"))
    assert builder.value(expr) is builder.value(expr)
    assert builder.add(sym("n"), 1) is builder.add(sym("n"), 1)


def test_known_operands_leave_no_op() -> None:
    b = _builder()
    n, yes, no = b.symbols["n"], b.truth(True), b.truth(False)
    condition = b.eq(n, 3)
    for value, expected in (
        (b.compute(AddOp, 2, 3), b.constant(5)),
        (b.compute(AddOp, 0, n), n),
        (b.compute(MulOp, n, 1), n),
        (b.compute(MulOp, n, 0), b.constant(0)),
        (b.compute(BroadcastOp, 1, n), n),
        (b.compute(MaxOp, n, n), n),
        (b.compute(AndOp, condition, yes), condition),
        (b.compute(AndOp, no, condition), no),
        (b.compute(OrOp, condition, yes), yes),
        (b.compute(NotOp, no), yes),
        (b.compute(SelectOp, yes, n, 2), n),
        (b.compute(SelectOp, condition, n, n), n),
        (b.eq(n, n), yes),
        (b.lt(n, n), no),
    ):
        assert value is expected


def test_a_check_that_is_known_to_hold_is_left_out() -> None:
    builder = _builder()
    builder.check(eq(sym("n"), sym("n")), "never")
    builder.check(eq(sym("n"), 3), "x.shape[0] is {0}", [sym("n")])
    names = [op.name for op in builder.finish([]).body.block.ops]
    assert names.count("dlcb.host.check") == 1


def test_a_symbol_without_a_value_is_our_bug() -> None:
    with pytest.raises(InternalError, match="symbol 'k' has no value yet"):
        _builder().value(add(sym("k"), 1))


def test_constants_of_both_kinds_are_told_apart() -> None:
    builder = _builder()
    one, true = builder.constant(1), builder.truth(True)
    assert one is not true
    owners: list[Any] = [one.owner, true.owner]
    assert all(isinstance(owner, ConstantOp) for owner in owners)
    assert one.type == index
