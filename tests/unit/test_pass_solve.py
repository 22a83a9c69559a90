"""What is known of a function's sizes after `generalize`, `collect` and `solve`."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.shape.expr import floordiv, mul, sym
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import UserError
from dlcb.passes.collect import CollectPass
from dlcb.passes.derivations import equal_runs
from dlcb.passes.functions import functions, system_of
from dlcb.passes.generalize import GeneralizePass
from dlcb.passes.rule_examples import parse_example
from dlcb.passes.solve import Dimension, SolvePass, dimensions_of, without_unused

LINEAR = """dlcb.graph.func @main(%x: tensor<[5, 8], f32> input "x", %w: tensor<[8, 4], f32> weight "w") {
    %r = dlcb.graph.matmul %x, %w : (tensor<[5, 8], f32>, tensor<[8, 4], f32>) -> tensor<[5, 4], f32>
    dlcb.graph.return %r : !dlcb.graph.tensor<[5, 4], f32> }"""


def solved(text: str, *, static: bool = False) -> FuncOp:
    module: ModuleOp = parse_example(text, "main")
    for stage in (GeneralizePass(static=static), CollectPass(), SolvePass()):
        stage.apply(Context(), module)
    module.verify()
    return functions(module)[0]


def test_the_report_can_be_read_back_from_the_function():
    assert dimensions_of(solved(LINEAR)) == [
        Dimension("x", 0, "free as x_0"),
        Dimension("x", 1, "pinned to 8 by matmul: ?: inner sizes differ; weight 'w'"),
    ]


def test_sizes_stay_where_they_are_to_be_static():
    assert [d.state for d in dimensions_of(solved(LINEAR, static=True))] == ["given as 5", "given as 8"]


def test_the_pinned_size_is_still_checked_at_launch():
    (require,) = system_of(solved(LINEAR)).requires
    assert str(require) == "x_1 == 8"


def test_an_update_must_keep_the_sizes_of_its_argument():
    text = """dlcb.graph.func @main(%c: tensor<[c_0], f32> input "c", %x: tensor<[x_0], f32> input "x") {
        %r = dlcb.graph.exp %x : (tensor<[x_0], f32>) -> tensor<[x_0], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[x_0], f32> {updates = [#builtin.int<0>]} }"""
    assert dimensions_of(solved(text))[1].state == "equal to c_0 by update of 'c': size of dim 0"


def test_literals_that_contradict_are_an_error_at_once():
    text = """dlcb.shape.system @main { %n = dlcb.shape.symbol "n" size "x" 0
        %k = dlcb.shape.constant 7
        %d = dlcb.shape.define "d" = %k }
      dlcb.graph.func @main(%x: tensor<[n, d], f32> input "x", %w: tensor<[8, 4], f32> weight "w") {
        %r = dlcb.graph.matmul %x, %w : (tensor<[n, d], f32>, tensor<[8, 4], f32>) -> tensor<[n, 4], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[n, 4], f32> }"""
    with pytest.raises(UserError, match=r"inner sizes differ: d = 7 and 8"):
        solved(text)


def test_a_definition_that_only_another_kept_one_needs_is_kept():
    defines = {"a": floordiv(sym("n"), 2), "b": mul(sym("a"), 3), "c": mul(sym("a"), 5)}
    system = System({"n": Source.size("x", 0)}, defines=defines)
    assert list(without_unused(system, {"b"}).defines) == ["a", "b"]


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), max_size=4), st.randoms())
def test_equal_runs_have_equal_products_and_leave_only_ones_out(parts: list[list[int]], random) -> None:
    left = [n for part in parts for n in part]
    right = [n for part in parts for n in ([prod(part)] if random.random() < 0.5 else reversed(part))]
    runs = list(equal_runs(left, right))
    for source, target in runs:
        assert prod(left[i] for i in source) == prod(right[j] for j in target)
    assert [i for source, _ in runs for i in source] == [i for i, n in enumerate(left) if n != 1]
    assert [j for _, target in runs for j in target] == [j for j, n in enumerate(right) if n != 1]
