"""What must hold between stages: definitions before uses, and only the ops that a stage allows."""

import pytest
from xdsl.context import Context
from xdsl.dialects import cf, test
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from dlcb.lowering.pipeline import STAGES, position
from dlcb.passes.checks import OpVerifyException, check_dominance
from dlcb.passes.legality import check_stage, family_of
from dlcb.passes.rule_examples import parse_example


def parse(text: str) -> ModuleOp:
    ctx = Context()
    for dialect in (Builtin, test.Test, cf.Cf):
        ctx.load_dialect(dialect)
    return Parser(ctx, text).parse_module()


BRANCHES = """
"test.op"() ({{
^entry:
  %0 = "test.op"() : () -> i32
  %c = "test.op"() : () -> i1
  cf.cond_br %c, ^left, ^right
^left:
  %1 = "test.op"() : () -> i32
  cf.br ^end
^right:
  cf.br ^end
^end:
  "test.termop"({use}) : (i32) -> ()
}}) : () -> ()
"""


def test_a_value_of_a_dominating_block_is_visible() -> None:
    check_dominance(parse(BRANCHES.format(use="%0")))


def test_a_value_of_one_branch_is_not_visible_after_both() -> None:
    with pytest.raises(OpVerifyException, match="operand 0 is used before its definition"):
        check_dominance(parse(BRANCHES.format(use="%1")))


def test_values_around_a_region_are_visible_in_it() -> None:
    check_dominance(parse('%0 = "test.op"() : () -> i32\n"test.op"() ({ "test.termop"(%0) : (i32) -> () }) : () -> ()'))


def test_a_value_of_a_region_is_not_visible_after_it() -> None:
    module = parse('"test.op"() ({ %0 = "test.op"() : () -> i32 "test.termop"() : () -> () }) : () -> ()')
    inner = next(op for op in module.walk() if op.results)
    module.body.block.add_op(test.TestOp([inner.results[0]]))
    with pytest.raises(OpVerifyException, match="used before its definition"):
        check_dominance(module)


def test_the_error_names_the_source_line() -> None:
    text = '"test.op"(%0) : (i32) -> () loc("model.py":9:0)\n%0 = "test.op"() : () -> i32'
    with pytest.raises(OpVerifyException, match=r"\(model\.py:9\)"):
        check_dominance(parse(text))


def test_ops_of_other_compilers_are_not_judged() -> None:
    module = parse('"test.op"() : () -> ()')
    assert {family_of(op) for op in module.walk()} == {None}
    check_stage(module, STAGES[0])


SYSTEM = "dlcb.shape.system @main {}"


def test_a_shape_system_must_not_be_left_after_the_host_stage() -> None:
    module = parse_example(SYSTEM, "example")
    check_stage(module, STAGES[position("cuda")])
    with pytest.raises(OpVerifyException, match=r"dlcb\.shape\.system \(shape\) must not exist after stage 'host'"):
        check_stage(module, STAGES[position("host")])
