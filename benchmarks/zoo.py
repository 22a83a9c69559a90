"""The models that tests, the demo and the benchmarks compile: a size of each for the CPU target, and the real one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dlcb.benchmarks import transformer_models, vision_models
from dlcb.benchmarks.case import Case, Shape, images, seeded

__all__ = ["REAL", "SMALL", "Case", "Shape"]


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


def resnet(name: str, blocks: tuple[int, int, int, int], bottleneck: bool, real: bool) -> Case:
    width, classes = (64, 1000) if real else (8, 61)
    if real:
        shapes = tuple((n, s, s) for s in (224, 160) for n in (1, 4, 8, 16, 32))
        return Case(
            name, seeded(lambda: ResNet(blocks, bottleneck, width, classes)), images("x"), (2, 224, 224), shapes
        )
    shapes = ((1, 32, 32), (2, 33, 47), (3, 64, 32), (5, 40, 56), (0, 32, 32), (1, 37, 32), (7, 32, 35), (4, 48, 48))
    return Case(name, seeded(lambda: ResNet(blocks, bottleneck, width, classes)), images("x"), (2, 40, 48), shapes)


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
    **transformer_models.SMALL,
}
REAL: dict[str, Callable[[], Case]] = {
    "resnet18": lambda: resnet("resnet18", (2, 2, 2, 2), False, True),
    "resnet50": lambda: resnet("resnet50", (3, 4, 6, 3), True, True),
    **vision_models.REAL,
    **transformer_models.REAL,
}
