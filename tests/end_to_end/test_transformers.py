"""Models of `transformers`, tiny but with every kind of layer: compiled once each, right at every size that eager
accepts."""

from __future__ import annotations

import pytest
import torch

from dlcb.benchmarks import transformer_models
from dlcb.benchmarks.zoo import SMALL
from dlcb.tests.end_to_end.shapes import (
    DTYPES,
    refuses_or_agrees_for_wrong_arguments,
    right_at_every_shape,
    same_trace_elsewhere,
)

pytest.importorskip("transformers")

COLOURS = "pinned to 3 by convolution: modeling_{}.py"
FIXED = {
    "distilbert": {},
    "llama": {},
    "mistral": {},
    "t5_encoder": {},
    "t5_decoder": {"states.shape[2]": "pinned to 32 by matmul: modeling_t5.py"},
    "vit": {
        "pixel_values.shape[1]": COLOURS.format("vit"),
        "pixel_values.shape[2]": "pinned to 32: at other sizes, Input image size",
        "pixel_values.shape[3]": "pinned to 32: at other sizes, Input image size",
    },
    "swin": {"pixel_values.shape[1]": COLOURS.format("swin")},
    "convnext": {"pixel_values.shape[1]": COLOURS.format("convnext")},
    "mobilenet_v2": {"pixel_values.shape[1]": COLOURS.format("mobilenet_v2")},
    "regnet": {"pixel_values.shape[1]": COLOURS.format("regnet")},
    "whisper_encoder": {
        "input_features.shape[1]": "pinned to 20 by convolution: modeling_whisper.py",
        "input_features.shape[2]": "pinned to 60: at other sizes, Whisper expects the mel input features to be of",
    },
    "mamba": {"input_ids.shape[1]": "pinned to 3 by range() at modeling_mamba.py"},
}
"""The input dims that the model itself fixes, and who says so."""

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers.*")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FIXED)
def test_a_model_compiled_once_is_right_at_every_shape(name: str, dtype: torch.dtype) -> None:
    right_at_every_shape(SMALL[name](), dtype, FIXED[name])


@pytest.mark.usefixtures("as_traced")
@pytest.mark.parametrize("name", FIXED)
def test_wrong_arguments_are_refused_or_answered_as_in_eager(name: str) -> None:
    refuses_or_agrees_for_wrong_arguments(SMALL[name]())


@pytest.mark.parametrize("name", sorted(transformer_models.SMALL.keys() - FIXED.keys()))
def test_another_model_traced_at_other_sizes_is_the_program_that_was_captured(name: str) -> None:
    """Those that are right at every shape as their like are; of these the program alone is compared."""
    case = SMALL[name]()
    same_trace_elsewhere(case.build(), case)
