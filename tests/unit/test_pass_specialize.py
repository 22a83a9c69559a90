"""The pass `dlcb-specialize`: what is left of a program's sizes when the inputs' are given."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.host.ops import ProgramOp
from dlcb.errors import UserError
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.lowering.host_to_json import program_to_json
from dlcb.lowering.lower import context
from dlcb.lowering.pipeline import run
from dlcb.passes.functions import functions, system_of
from dlcb.passes.specialize import SPECIALIZED, specialize


def imported(program: Callable[..., Any], *args: Any) -> ModuleOp:
    return import_captured(capture(program, args, {}, "auto")).module


def dims(func: FuncOp) -> set[int | str]:
    """Every size that a type of the function names."""
    values = [value for op in func.walk() for value in (*op.operands, *op.results)]
    return {dim for value in values if isinstance(value.type, TensorType) for dim in value.type.dims}


def checks(module: ModuleOp) -> list[str]:
    """The texts of what the host program of `@main` checks."""
    programs = [op for op in module.body.block.ops if isinstance(op, ProgramOp) and op.sym_name.data == "main"]
    return [row[2] for row in program_to_json(programs[0])["code"] if row[0] == "check"]


def repeated(x: Tensor, k: int) -> Tensor:
    return torch.softmax(x.repeat(k, 1), 0) + k


CONV = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).eval()

CASES: dict[str, tuple[Callable[..., Any], Sequence[Any], dict[str, int]]] = {
    "convolution": (
        CONV,
        (torch.zeros(2, 3, 20, 24),),
        {"input_0": 5, "input_1": 3, "input_2": 17, "input_3": 31},
    ),
    "integer": (repeated, (torch.zeros(2, 3), 4), {"x_0": 6, "x_1": 7, "k": 3}),
    "no elements": (repeated, (torch.zeros(2, 3), 4), {"x_0": 0, "x_1": 1, "k": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_after_solve_every_dim_is_a_literal(case: str) -> None:
    program, args, sizes = CASES[case]
    module = imported(program, *args)
    assert any(isinstance(dim, str) for dim in dims(functions(module)[0]))
    specialize(module, sizes)
    run(module, context(), until="solve")
    (main,) = functions(module)
    assert all(isinstance(dim, int) for dim in dims(main))
    assert not system_of(main).defines


@pytest.mark.parametrize("case", CASES)
def test_the_launch_checks_each_size(case: str) -> None:
    program, args, sizes = CASES[case]
    module = imported(program, *args)
    sources = [str(system_of(functions(module)[0]).symbols[name]) for name in sizes]
    specialize(module, sizes)
    run(module, context(), check=True)
    assert not [source for source in sources if not any(t.startswith(f"{source} is {{0}}") for t in checks(module))]


def test_without_it_the_launch_checks_no_size_that_is_free() -> None:
    module = imported(repeated, torch.zeros(2, 3), 4)
    run(module, context())
    assert not any(SPECIALIZED in text for text in checks(module))


def test_sizes_that_are_not_named_stay_free() -> None:
    module = imported(repeated, torch.zeros(2, 3), 4)
    specialize(module, {"k": 3})
    run(module, context(), until="solve")
    assert {"x_0", "x_1"} <= dims(functions(module)[0])


def test_sizes_that_the_program_refuses_are_a_contradiction() -> None:
    module = imported(CONV, torch.zeros(2, 3, 20, 24))
    specialize(module, {"input_1": 4})
    with pytest.raises(UserError, match="input_1 == 4 can not hold"):
        run(module, context(), until="solve")


@pytest.mark.parametrize(
    ("name", "number", "text"),
    [
        ("y_0", 3, r"no input gives 'y_0'; the symbols that inputs give are: x_0 \(x.shape\[0\]\), .*, k \(k\)"),
        ("d0", 3, "no input gives 'd0'"),
        ("x_0", -1, r"x_0 \(x.shape\[0\]\) can't be -1"),
    ],
)
def test_what_no_input_can_be_is_refused(name: str, number: int, text: str) -> None:
    module = imported(repeated, torch.zeros(2, 3), 4)
    with pytest.raises(UserError, match=text):
        specialize(module, {"x_1": 3, name: number})


def test_an_integer_may_be_negative() -> None:
    module = imported(lambda x, k: x + k, torch.zeros(2, 3), 4)
    specialize(module, {"k": -2})
    run(module, context(), until="host")
    assert any(SPECIALIZED in text for text in checks(module))
