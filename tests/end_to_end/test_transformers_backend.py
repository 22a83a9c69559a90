"""The models of test_transformers.py through `torch.compile(backend="dlcb", dynamic=True)`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dlcb.benchmarks.case import Shape
from dlcb.benchmarks.zoo import SMALL
from dlcb.tests.end_to_end.shapes import Judge
from dlcb.tests.end_to_end.test_transformers import FIXED
from dlcb.tests.end_to_end.through_dynamo import Graphs

SHAPES: dict[str, tuple[Shape, ...]] = {
    "swin": ((3, 40, 56), (5, 56, 72), (4, 40, 88), (7, 24, 40), (2, 72, 24), (3, 40, 40)),
    "mobilenet_v2": ((3, 40, 56), (4, 104, 56), (7, 40, 88), (2, 104, 88), (5, 40, 120), (3, 33, 47)),
}
"""Dynamo makes a graph for each way through the model's own branches, and needs up to a minute for one: few ways."""

pytestmark = pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`:UserWarning")


@pytest.mark.parametrize("name", FIXED)
def test_a_model_is_right_at_every_shape_and_wholly_native(name: str) -> None:
    torch.compiler.reset()
    graphs = Graphs()
    case = SMALL[name]()
    network = case.build()
    model: Any = torch.compile(network, backend="dlcb", dynamic=True)
    judge = Judge(model, network)
    shapes = SHAPES.get(name, case.shapes)
    assert len(shapes) >= 6
    for number, shape in enumerate((case.example, *shapes)):
        torch.manual_seed(number)
        with torch.no_grad():
            judge.check(case.inputs(shape, torch.float32))
    graphs.assert_native()
