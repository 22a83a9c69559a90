"""A model as benchmarks run it: on the device, in one dtype, with random inputs, and judged."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from dlcb.benchmarks import vision_models, zoo
from dlcb.benchmarks.accuracy import Verdict, judge_all
from dlcb.benchmarks.case import Case, Shape, placed
from dlcb.benchmarks.report import Row, verdict_fields

VISION = (
    "resnet18", "resnet50", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "convnext_tiny", "vit_b_16",
    "swin_t", "regnet_y_400mf", "squeezenet1_1",
)  # fmt: skip
"""Of torchvision, at their real sizes."""
JUDGED_CALLS = 3
"""A first launch, a recorded one, a replayed one."""


def case_of(name: str, quick: bool) -> Case:
    """The model at its real size, or small; small where there is no other."""
    if name in zoo.SMALL and (quick or name not in zoo.REAL):
        return zoo.SMALL[name]()
    return vision_models.case(name) if name in VISION else zoo.REAL[name]()


class Network:
    """`model` is in the dtype. What results should be is computed in float64, with parameters that were never
    rounded."""

    def __init__(self, case: Case, dtype: torch.dtype, device: torch.device) -> None:
        self.case, self.dtype, self.device = case, dtype, device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):  # models seed what inputs are drawn from
            self._original = case.build()
        self.model: nn.Module = copy.deepcopy(self._original).to(device, dtype)

    @cached_property
    def _exact(self) -> nn.Module:
        return self._original.double().to(self.device)

    def inputs(self, shape: Shape) -> dict[str, Any]:
        with torch.device(self.device):
            return placed(self.case.inputs(shape, torch.float32), self.device, self.dtype)

    def judged(self, call: Callable[..., Any], inputs: dict[str, Any], times: int = JUDGED_CALLS) -> Row:
        """The results of some calls, as fields of a row."""
        return verdict_fields(self.verdicts(call, inputs, times))

    def verdicts(self, call: Callable[..., Any], inputs: dict[str, Any], times: int) -> list[Verdict]:
        with torch.no_grad():
            eager = self.model(**inputs)
            exact = self._exact(**placed(inputs, self.device, torch.float64))
            return [v for _ in range(times) for v in judge_all(call(**inputs), eager, exact)]


LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def layouts(contender: str, inputs: dict[str, Any]) -> dict[str, torch.memory_format]:
    """How pictures lie: as they come, and for the best mode of torch.compile channels-last too."""
    both = contender == "tc_best" and any(_is_picture(value) for value in inputs.values())
    return {name: layout for name, layout in LAYOUTS.items() if both or name == "contiguous"}


def in_layout(value: Any, layout: torch.memory_format) -> Any:
    """A model, or named inputs, with pictures in this layout."""
    if layout is torch.contiguous_format:
        return value
    if isinstance(value, nn.Module):
        model: Any = copy.deepcopy(value)
        return model.to(memory_format=layout)
    return {k: v.to(memory_format=layout) if _is_picture(v) else v for k, v in value.items()}


def _is_picture(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() == 4


def fastest(rows: dict[str, Row]) -> Row:
    """The row of the layout with the least `ms`, which it names, and the milliseconds of the other."""
    best = min(rows, key=lambda name: rows[name]["ms"])
    others = {f"{name}_ms": row["ms"] for name, row in rows.items() if name != best}
    return rows[best] | ({"layout": best, **others} if others else {})
