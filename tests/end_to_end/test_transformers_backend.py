"""Models of test_transformers.py through `torch.compile(backend="dlcb", dynamic=True)`, at the same shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dlcb.benchmarks.zoo import SMALL
from dlcb.frontend import dynamo
from dlcb.tests.end_to_end.shapes import Judge

MODELS = ("distilbert", "llama", "mistral", "t5_encoder", "t5_decoder", "vit", "convnext")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_right_at_every_shape_and_wholly_native(name: str) -> None:
    torch.compiler.reset()
    known = dynamo.programs()[-1:]
    case = SMALL[name]()
    network = case.build()
    model: Any = torch.compile(network, backend="dlcb", dynamic=True)
    judge = Judge(model, network)
    assert len(case.shapes) >= 6
    for number, shape in enumerate((case.example, *case.shapes)):
        torch.manual_seed(number)
        with torch.no_grad():
            judge.check(case.inputs(shape, torch.float32))
    programs = dynamo.programs()
    made = programs[programs.index(known[0]) + 1 :] if known else programs
    assert made
    for program in made:
        assert not program.refusals, program.explain()
        assert program.reports, program.explain()
        assert not any(report.eager for report in program.reports), program.explain()
