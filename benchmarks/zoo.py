"""The models that tests, the demo and the benchmarks compile: a size of each for the CPU target, and the real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """`build()` makes the model; `inputs(shape, dtype)` its keyword arguments; `example` is the shape to compile
    with."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[Shape, torch.dtype], dict[str, Any]]
    example: Shape
    shapes: tuple[Shape, ...]


class Block(nn.Module):
    """Two 3×3 convolutions, or a 1×1, 3×3, 1×1 bottleneck, around a shortcut."""

    def __init__(self, inside: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        out = width * 4 if bottleneck else width
        if bottleneck:
            shapes = [(inside, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        else:
            shapes = [(inside, width, 3, stride), (width, out, 3, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(o) for _, o, _, _ in shapes)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.out = out

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(y))
            if i + 1 < len(self.convs):
                y = torch.relu(y)
        return torch.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    """A residual network (He et al., 2015, arXiv 1512.03385): stem, four stages, mean over the image, classifier."""

    def __init__(
        self, blocks: tuple[int, int, int, int], bottleneck: bool, width: int = 64, classes: int = 1000
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        stages: list[nn.Module] = []
        inside = width
        for stage, count in enumerate(blocks):
            for i in range(count):
                block = Block(inside, width * 2**stage, 2 if stage and not i else 1, bottleneck)
                stages.append(block)
                inside = block.out
        self.stages = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(inside, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stages(self.stem(x))
        return self.classifier(torch.flatten(self.pool(x), 1))


def with_statistics(model: nn.Module) -> nn.Module:
    """Give batch norms the statistics of a trained network, not 0 and 1."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, 0, 0.2)  # pyright: ignore[reportArgumentType]
            nn.init.uniform_(module.running_var, 0.5, 1.5)  # pyright: ignore[reportArgumentType]
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.1)
    return model.eval()


def seeded(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        torch.manual_seed(7)
        return with_statistics(build())

    return make


def images(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
    n, h, w = shape
    return {"x": torch.randn(n, 3, h, w, dtype=dtype)}


def resnet(name: str, blocks: tuple[int, int, int, int], bottleneck: bool, real: bool) -> Case:
    width, classes = (64, 1000) if real else (8, 61)
    if real:
        shapes = tuple((n, s, s) for s in (224, 160) for n in (1, 4, 8, 16, 32))
        return Case(name, seeded(lambda: ResNet(blocks, bottleneck, width, classes)), images, (2, 224, 224), shapes)
    shapes = ((1, 32, 32), (2, 33, 47), (3, 64, 32), (5, 40, 56), (0, 32, 32), (1, 37, 32), (7, 32, 35), (4, 48, 48))
    return Case(name, seeded(lambda: ResNet(blocks, bottleneck, width, classes)), images, (2, 40, 48), shapes)


def tokens(shape: Shape, vocabulary: int) -> Tensor:
    return torch.randint(0, vocabulary, shape)


def bert(real: bool) -> Case:
    from transformers import BertConfig, BertModel

    small: dict[str, Any] = dict(
        vocab_size=97,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )

    def build() -> nn.Module:
        return BertModel(BertConfig() if real else BertConfig(**small), add_pooling_layer=True)

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        mask = torch.ones(shape, dtype=torch.int64)
        if shape[1] > 3:
            mask[shape[0] // 2 :, -2:] = 0
        return {"input_ids": tokens(shape, 30522 if real else 97), "attention_mask": mask}

    if real:
        shapes = tuple((n, t) for t in (32, 77, 128, 384) for n in (1, 8, 32))
        return Case("bert_base", seeded(build), inputs, (2, 64), shapes)
    shapes = ((1, 1), (2, 7), (3, 16), (5, 31), (1, 64), (4, 13), (7, 2), (6, 5), (2, 33))
    return Case("bert", seeded(build), inputs, (2, 12), shapes)


def gpt2(real: bool) -> Case:
    from transformers import GPT2Config, GPT2Model

    small: dict[str, Any] = dict(vocab_size=89, n_embd=32, n_layer=2, n_head=4, n_positions=64)

    def build() -> nn.Module:
        return GPT2Model(GPT2Config(use_cache=False) if real else GPT2Config(use_cache=False, **small))

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        return {"input_ids": tokens(shape, 50257 if real else 89)}

    shapes = ((1, 1), (2, 7), (3, 16), (5, 31), (1, 64), (4, 13), (7, 2), (6, 5), (2, 33))
    return Case("gpt2", seeded(build), inputs, (2, 12), shapes)


class Rows(nn.Module):
    """Generated kernels only: norms, softmax, means and activations, no library routine."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = self.norm(nn.functional.gelu(x) + x)
        return torch.softmax(y, -1), y.mean(0), (y * x).sum((0, 1))


def rows() -> Case:
    shapes = ((1, 1, 40), (3, 7, 40), (0, 5, 40), (130, 2, 40), (2, 300, 40))
    return Case(
        "rows",
        seeded(lambda: Rows(40)),
        lambda shape, dtype: {"x": torch.randn(shape, dtype=dtype)},
        (2, 3, 40),
        shapes,
    )


SMALL: dict[str, Callable[[], Case]] = {
    "rows": rows,
    "resnet18": lambda: resnet("resnet18", (2, 2, 2, 2), False, False),
    "resnet50": lambda: resnet("resnet50", (3, 4, 6, 3), True, False),
    "bert": lambda: bert(False),
    "gpt2": lambda: gpt2(False),
}
REAL: dict[str, Callable[[], Case]] = {
    "resnet18": lambda: resnet("resnet18", (2, 2, 2, 2), False, True),
    "resnet50": lambda: resnet("resnet50", (3, 4, 6, 3), True, True),
    "bert_base": lambda: bert(True),
}
