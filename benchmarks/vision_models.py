"""Models of torchvision at their real sizes.

torchvision's wheel for GPUs does not load its C++ operators beside a torch for CPUs, and then fails to import, for it
describes two of them. The models use none of them, so these two are declared for it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from dlcb.benchmarks.case import Case, Shape, images, seeded

NAMES = (
    "resnet18", "alexnet", "vgg11", "squeezenet1_0", "densenet121", "mobilenet_v2", "mobilenet_v3_small",
    "shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0", "regnet_y_400mf", "googlenet", "inception_v3", "vit_b_16",
    "swin_t", "swin_v2_t", "convnext_tiny", "maxvit_t", "fcn_resnet50", "deeplabv3_resnet50",
    "lraspp_mobilenet_v3_large", "r3d_18", "raft_small",
)  # fmt: skip
"""The models of which the operations are known that they use."""
TIMED = ("mobilenet_v3_large", "efficientnet_b0", "densenet121", "convnext_tiny", "vit_b_16", "swin_t")
"""Those timed on a GPU, beside the residual networks of zoo.py."""
FIXED_SIZE = ("vit_b_16", "maxvit_t")
"""Models that take pictures of one size only."""
_DESCRIBED = ("nms", "qnms")


def torchvision() -> Any:
    """The package, also where its C++ operators do not load."""
    try:
        return import_module("torchvision.models")
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in _DESCRIBED:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _declared.append(library)
        return import_module("torchvision.models")


_declared: list[torch.library.Library] = []
"""What is declared stays so as long as its library object lives."""


def _build(name: str) -> Callable[[], nn.Module]:
    settings: dict[str, Any] = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    if name in ("fcn_resnet50", "deeplabv3_resnet50", "lraspp_mobilenet_v3_large"):
        settings["weights_backbone"] = None
    return seeded(lambda: torchvision().get_model(name, weights=None, **settings))


def _videos(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
    n, frames, h, w = shape
    return {"x": torch.randn(n, 3, frames, h, w, dtype=dtype)}


class Flow(nn.Module):
    """The last of the flows that RAFT refines."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image1: Tensor, image2: Tensor) -> Tensor:
        return self.model(image1, image2, num_flow_updates=2)[-1]


def _pairs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
    n, h, w = shape
    return {name: torch.randn(n, 3, h, w, dtype=dtype) for name in ("image1", "image2")}


def case(name: str) -> Case:
    """A model of torchvision by its name there."""
    build, inputs = _build(name), images("input" if name.startswith("lraspp") else "x")
    example: Shape = (2, 224, 224)
    if name == "r3d_18":
        inputs, example = _videos, (2, 8, 56, 56)
    elif name == "raft_small":
        inputs, example = _pairs, (2, 128, 144)
    elif name == "inception_v3":
        example = (2, 299, 299)
    made = (lambda: Flow(build()).eval()) if name == "raft_small" else build
    return Case(name, made, inputs, example, _shapes(name))


def _shapes(name: str) -> tuple[Shape, ...]:
    sizes = (224,) if name in FIXED_SIZE else (224, 160)
    return tuple((n, s, s) for s in sizes for n in (1, 4, 8, 16, 32))


REAL: dict[str, Callable[[], Case]] = {name: (lambda name=name: case(name)) for name in TIMED}
