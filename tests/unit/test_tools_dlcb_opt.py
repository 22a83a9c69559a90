"""`dlcb-opt`: no input makes a traceback, and the stages go on from where a module stands."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp

from dlcb.dialects._xdsl import to_text
from dlcb.errors import UserError
from dlcb.lowering.pipeline import STAGES, position, remaining
from dlcb.passes.stages import Stage, mark_stage, stage_of
from dlcb.tools import dlcb_opt

TEXT = """\
builtin.module {
  func.func @f(%a : i32) -> i32 {
    %0 = "test.op"(%a) {list = [1 : i32, "x"]} : (i32) -> i32
    func.return %0 : i32
  }
}
"""
PIECES = [
    "%",
    "@",
    "#",
    "!",
    "^",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    '"',
    "->",
    "=",
    "loc(",
    "dense<",
    "i",
    "0x",
    "\x00",
    "é",
    "//",
    "dlcb.",
]


def run(text: str | bytes, *arguments: str) -> tuple[int, str]:
    """Exit status and error text of the tool on a text as its standard input."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    errors = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        patch.setattr(sys, "stdout", io.StringIO())
        patch.setattr(sys, "stderr", errors)
        return dlcb_opt.main(["-", *arguments]), errors.getvalue()


@given(st.integers(0, len(TEXT)), st.integers(0, 12), st.sampled_from(PIECES))
def test_a_damaged_text_gives_one_message(start: int, length: int, piece: str) -> None:
    status, errors = run(TEXT[:start] + piece + TEXT[start + length :])
    assert status in (0, 1)
    assert status == 0 or errors.count("error: ") == 1
    assert "internal error" not in errors


def test_bytes_that_are_no_text_give_one_message() -> None:
    assert run(b"builtin.module {\xff}") == (1, "dlcb-opt: error: the input is not UTF-8 text: byte 16 is 0xff\n")


def test_an_empty_input_gives_one_message() -> None:
    status, errors = run("")
    assert status == 1
    assert errors.startswith("<stdin>:1:1: error: ")


def test_deep_nesting_gives_an_answer_or_one_message() -> None:
    status, errors = run('"test.op"() ({' * 3000 + "}) : () -> ()" * 3000)
    assert status == 1
    assert errors.count("\n") <= 3


def test_a_folder_as_input_gives_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dlcb_opt.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith(": Is a directory\n")


def test_a_stage_attribute_that_is_no_string_is_refused() -> None:
    module = ModuleOp([], attributes={"dlcb.stage": IntAttr(3)})
    with pytest.raises(UserError, match=r"dlcb\.stage must be a string"):
        stage_of(module)


def test_the_pipeline_goes_on_from_where_the_module_stands() -> None:
    module = ModuleOp([])
    assert [stage.name for stage in remaining(module)] == [stage.name for stage in STAGES]
    mark_stage(module, "strides")
    assert [stage.name for stage in remaining(module, "schedule")] == ["fuse", "coordinates", "schedule"]
    mark_stage(module, "host")
    assert not remaining(module)


def test_an_earlier_stop_than_the_module_stands_runs_nothing() -> None:
    module = ModuleOp([])
    mark_stage(module, "fuse")
    assert not remaining(module, "solve")


def test_the_stage_survives_printing_and_parsing() -> None:
    module = ModuleOp([])
    mark_stage(module, "fuse")
    assert 'dlcb.stage = "fuse"' in to_text(module)


def test_an_unknown_stage_is_named_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="unknown stage 'fusion'; the stages are generalize, collect"):
        position("fusion")


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_every_stage_has_a_pass_of_its_name_that_marks_the_module(stage: Stage) -> None:
    module = ModuleOp([])
    stage_pass = stage.load()
    stage_pass().apply(Context(), module)
    assert stage_pass.name == stage.pass_name
    assert stage_of(module) == stage.name


def test_it_starts_fast() -> None:
    command = [sys.executable, "-P", "-m", "dlcb.tools.dlcb_opt", "--list-stages"]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2] / ".typecheck")}

    def seconds() -> float:
        began = os.times()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        ended = os.times()
        return ended.children_user + ended.children_system - began.children_user - began.children_system

    assert min(seconds() for _ in range(3)) < 0.6, "0.3 s on an idle machine; a loaded one is given twice as much"
