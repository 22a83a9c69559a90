"""Each stage reads only the IR, so its text goes on as the module does; and no stage changes an answer."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from dlcb.dialects._xdsl import to_text
from dlcb.errors import InternalError
from dlcb.lowering.lower import context, lower
from dlcb.lowering.pipeline import STAGES, remaining
from dlcb.passes.stages import Stage
from dlcb.tests.graph_cases import CASES
from dlcb.tests.graphs import Case, Graph
from dlcb.tools.validation import Validator

LARGE = ("deep", "forty", "a chain of 200", "a window over forty")
SMALL = [case for case in CASES if not case.name.startswith(LARGE)]

each_case = pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)


def module_of(case: Case) -> ModuleOp:
    g = Graph()
    case.build(g)
    return g.module()


def parse(text: str) -> ModuleOp:
    return Parser(context(), text).parse_module()


@each_case
def test_going_on_from_the_text_of_any_stage_gives_the_same(case: Case) -> None:
    texts: dict[str, str] = {}

    def keep(stage: Stage, module: ModuleOp) -> None:
        texts[stage.name] = to_text(module)

    start = module_of(case)
    current = parse(to_text(start))
    expected = lower(start, check=True, observer=keep)
    for stage in STAGES:
        if stage.name in texts:
            stage.load()().apply(context(), current)
            assert to_text(current) == texts[stage.name]
            current = parse(texts[stage.name])
    actual = lower(current)
    assert actual.kernels == expected.kernels
    assert actual.programs == expected.programs


@each_case
def test_no_stage_changes_an_answer(case: Case) -> None:
    module, validator = module_of(case), Validator(seeds=(0,))
    validator.begin(module)
    for stage in remaining(module, "schedule"):
        stage.load()().apply(context(), module)
        validator.check(stage.name, module)


SCALED = """dlcb.graph.func @main(%x: tensor<[n], f32> input "x") {{
    %y = dlcb.graph.{} %x, %x : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
    dlcb.graph.return %y : !dlcb.graph.tensor<[n], f32> }}"""


def test_a_stage_that_changes_an_answer_is_named() -> None:
    validator = Validator()
    validator.begin(parse(SCALED.format("add")))
    validator.check("collect", parse(SCALED.format("add")))
    with pytest.raises(InternalError, match=r"^simplify changes what @main computes: result 0 at \[0\] is .*, it was"):
        validator.check("simplify", parse(SCALED.format("mul")))


def test_what_was_not_evaluated_is_said() -> None:
    validator = Validator()
    validator.begin(parse(SCALED.format("add")))
    validator.check("collect", parse(SCALED.format("add")))
    validator.check("cuda", parse("dlcb.cuda.kernel @k() threads 32 {}"))
    validator.check("host", parse("dlcb.cuda.kernel @k() threads 32 {}"))
    assert validator.summary() == "same answers after collect; not evaluated: cuda, host"
