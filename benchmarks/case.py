"""What a model needs to be compiled, checked at many shapes and timed: how it is built, and its inputs for a shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Shape = tuple[int, ...]
Inputs = Callable[[Shape, torch.dtype], dict[str, Any]]

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Case:
    """`build()` makes the model; `inputs(shape, dtype)` its keyword arguments; `example` is the shape to compile
    with."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Inputs
    example: Shape
    shapes: tuple[Shape, ...]


def placed(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """Nested tensors on the device, floating ones in the dtype."""
    if isinstance(value, Tensor):
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)
    if isinstance(value, Mapping):
        return {k: placed(v, device, dtype) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(placed(v, device, dtype) for v in value)
    return value


def with_statistics(model: nn.Module) -> nn.Module:
    """Give batch norms the statistics of a trained network, not 0 and 1."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d):
            nn.init.normal_(module.running_mean, 0, 0.2)  # pyright: ignore[reportArgumentType]
            nn.init.uniform_(module.running_var, 0.5, 1.5)  # pyright: ignore[reportArgumentType]
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.1)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and not parameter.any():
            nn.init.normal_(parameter, 0, 0.1)
        elif name.rpartition(".")[2].startswith("layer_scale"):
            nn.init.uniform_(parameter, 0.2, 1)
    return model.eval()


def seeded(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        torch.manual_seed(7)
        return with_statistics(build())

    return make


def images(name: str) -> Inputs:
    """Pictures of three colours, for shapes (n, height, width)."""

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        n, h, w = shape
        return {name: torch.randn(n, 3, h, w, dtype=dtype)}

    return inputs


def tokens(vocabulary: int) -> Inputs:
    """Token numbers, for shapes (n, length)."""
    return lambda shape, dtype: {"input_ids": _numbers(shape, vocabulary)}


def masked_tokens(vocabulary: int) -> Inputs:
    """Token numbers with a mask; in half of the texts the last two are padding."""

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        mask = torch.ones(shape, dtype=torch.int64)
        if shape[1] > 3:
            mask[shape[0] // 2 :, -2:] = 0
        return {"input_ids": _numbers(shape, vocabulary), "attention_mask": mask}

    return inputs


def _numbers(shape: Shape, vocabulary: int) -> Tensor:
    return torch.randint(0, vocabulary, shape)
