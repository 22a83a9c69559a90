"""A system of sizes as plain Python: values of dims, fresh symbols, text and IR."""

import pytest

from dlcb.dialects.shape.expr import add, const, eq, floordiv, logical_or, lt, mul, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.dialects.shape.text import parse_expr, parse_system
from dlcb.errors import InternalError, UserError

n, m = sym("n"), sym("m")


def example() -> System:
    return System(symbols={"n": Source.size("x", 0), "m": Source.size("x", 1)})


def test_a_fresh_dim_is_a_literal_where_the_value_is_one() -> None:
    assert example().define_fresh(const(3)) == 3
    assert example().define_fresh(7) == 7


def test_a_fresh_dim_is_the_symbol_that_has_the_value() -> None:
    system = example()
    assert system.define_fresh(n) == "n"
    first = system.define_fresh(add(n, m))
    assert first == "d0"
    assert system.define_fresh(add(m, n)) == first
    assert system.defines == {"d0": add(n, m)}


def test_a_fresh_dim_sees_through_defined_symbols() -> None:
    system = example()
    double = system.define_fresh(mul(2, n), "size")
    assert double == "size0"
    assert system.define_fresh(floordiv(sym("size0"), 2)) == "n"
    assert system.define_fresh(add(sym("size0"), n)) == "d1"
    assert system.define_fresh(mul(3, n)) == "d1"


def test_a_fresh_name_is_new() -> None:
    system = System(symbols={"d0": Source.size("d", 0)})
    assert system.define_fresh(add(sym("d0"), 1)) == "d1"


def test_a_define_from_outside_is_seen() -> None:
    system = example()
    system.define_fresh(mul(2, n))
    system.defines["outside"] = add(n, 5)
    assert system.define_fresh(add(n, 5)) == "outside"
    assert system.value("outside") is add(n, 5)


def test_a_value_is_over_input_symbols() -> None:
    system = parse_system("n = size(x, 0)\nd0 = n + 1\nd1 = 2*d0")
    assert system.value("d1") is add(mul(2, n), 2)
    assert system.value(4) is const(4)
    assert system.value(mul(sym("d0"), sym("d0"))) is mul(add(n, 1), add(n, 1))


def test_a_source_reads_as_a_user_knows_it() -> None:
    assert str(Source.size("x", 2)) == "x.shape[2]"
    assert str(Source.stride("x", 0)) == "x.stride(0)"
    assert str(Source.integer("k")) == "k"
    assert [s.at_least for s in (Source.size("x", 2), Source.stride("x", 0), Source.integer("k"))] == [0, 0, None]


def test_a_requirement_is_a_condition() -> None:
    assert Require("eq", n, m).condition is eq(n, m)
    assert Require("lt", n, m).condition is lt(n, m)
    assert Require("broadcastable", n, m).condition is logical_or(eq(n, m), eq(n, 1), eq(m, 1))
    assert Require("expandable", n, m).condition is logical_or(eq(n, m), eq(n, 1))
    assert Require.any_of([eq(n, 1), eq(m, 1)]).condition is logical_or(eq(m, 1), eq(n, 1))
    assert Require.any_of([eq(n, 1)]).alternatives == (eq(n, 1),)


def test_an_unknown_kind_of_requirement_is_refused() -> None:
    with pytest.raises(InternalError, match="requirement of kind 'ge', expected one of eq, ne"):
        Require("ge", n, m)


TEXT = """\
n = size(x, 0)
s = stride(x, 1)
k = int(k)
d0 = 2*n + 1
d1 = (d0 // k) + maximum(n, s)
d0 == 40  # linear: model.py:12
n != 3
n < 3
n <= k
divides(8, n)
broadcastable(n, k)
expandable(n, k)
any_of(k == 2, n == 1, n < s)"""


def test_text_survives() -> None:
    text = str(parse_system(TEXT))
    assert str(parse_system(text)) == text
    assert len(text.splitlines()) == len(TEXT.splitlines())


def test_ir_keeps_the_content() -> None:
    system = parse_system(TEXT)
    system.traced = {"n": 11}
    op = system.to_op("f")
    op.verify()
    assert op.function == "f"
    assert System.from_op(op) == system


def test_ir_has_each_expression_once() -> None:
    system = parse_system("d0 = (n + m)*(n + m) // 2\nd1 = (n + m)*(n + m) // 2 + 7\nn + m == 2")
    values = [line.split("= ", 1)[-1] for line in str(system.to_op()).splitlines() if "dlcb.shape.define" not in line]
    assert len(set(values)) == len(values)


def test_a_symbol_must_be_defined_before_its_use() -> None:
    with pytest.raises(InternalError, match="symbol 'm' is used in a shape system that does not define it before"):
        System(defines={"d": add(m, 1)}).to_op()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n +", "no expression: n +"),
        ("f(n) == 2", r"no expression over sizes: f\(n\)"),
        ("n + 1", "no requirement: n \\+ 1"),
        ("n = size(x)", r"no source of a symbol: size\(x\)"),
    ],
)
def test_malformed_text_is_named(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_system(text)


def test_an_expression_is_read_as_python() -> None:
    assert parse_expr("-n + 2*(m - 1)") is add(mul(-1, n), mul(2, m), -2)
    assert parse_expr("n == 1 or m == 1") is logical_or(eq(n, 1), eq(m, 1))
