"""Convolutions that the vendor's routine for convolutions does not compute: patches side by side, pictures of one
pixel, and those that sum over no channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import dlcb
from dlcb.dialects.coord.ops import KernelOp, LoopOp, StoreOp
from dlcb.dialects.graph.contract import Matmul, MatmulOp, MatmulReluOp
from dlcb.dialects.graph.convolution import Convolution, DepthwiseOp
from dlcb.dialects.graph.structure import FuncOp, LaunchOp
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.lowering import pipeline

HALVES = (torch.float16, torch.bfloat16)


def lowered(model: nn.Module, example: Tensor, until: str) -> ModuleOp:
    module = import_captured(capture(model, (example,))).module
    pipeline.run(module, Context(), until=until)
    return module


def count(module: ModuleOp, *kinds: type) -> int:
    return sum(isinstance(op, kinds) for op in module.walk())


def is_as_good_as_eager(model: nn.Module, compiled: Callable[..., Tensor], x: Tensor) -> None:
    exact = model.double()(x.double())
    expected = model.to(x.dtype)(x)
    found = compiled(x)
    assert found.shape == expected.shape
    if found.numel():
        allowed = 2 * (expected.double() - exact).abs().max() + 1e-3
        assert (found.double() - exact).abs().max() <= allowed


class Stem(nn.Module):
    """A convolution of patches, and one of what it made."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 16, 2, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.sigmoid(self.first(x)))


SIZES = [(2, 3, 16, 24), (1, 3, 19, 8), (3, 3, 8, 31), (0, 3, 8, 8)]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_patches_are_multiplied(dtype: torch.dtype) -> None:
    model = Stem().eval().to(dtype)
    example = torch.randn(2, 3, 16, 16).to(dtype)
    module = lowered(model, example, "strides")
    assert (count(module, MatmulOp), count(module, Convolution)) == (2, 0)
    compiled = dlcb.compile(model, (example,))
    for size in SIZES:
        x = torch.randn(size).to(dtype)
        is_as_good_as_eager(model, compiled, x)
        is_as_good_as_eager(model, compiled, x.contiguous(memory_format=torch.channels_last))


@pytest.mark.parametrize(
    "convolution",
    [nn.Conv2d(3, 8, 4, 2), nn.Conv2d(3, 8, 4, 4, padding=1), nn.Conv2d(3, 6, 2, 2, groups=3), nn.Conv2d(3, 8, 1)],
    ids=["windows overlap", "padding", "groups", "points"],
)
def test_other_windows_are_left_to_the_vendor(convolution: nn.Module) -> None:
    module = lowered(convolution.eval().half(), torch.randn(2, 3, 16, 16).half(), "strides")
    assert (count(module, MatmulOp), count(module, Convolution)) == (0, 1)


def test_single_precision_is_left_to_the_vendor() -> None:
    assert count(lowered(Stem().eval(), torch.randn(2, 3, 16, 16), "strides"), MatmulOp) == 0


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(12, 5, 1), nn.Conv2d(5, 12, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.up(torch.tanh(self.down(x.mean((2, 3), keepdim=True)))))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_gates_of_channels_are_generated(dtype: torch.dtype) -> None:
    model = Gate().eval().to(dtype)
    example = torch.randn(2, 12, 6, 6).to(dtype)
    assert count(lowered(model, example, "strides"), Matmul, Convolution) == 0
    assert count(lowered(model, example, "coordinates"), LaunchOp) == 4
    compiled = dlcb.compile(model, (example,))
    for size in ((2, 12, 6, 6), (1, 12, 5, 3), (4, 12, 1, 1), (0, 12, 4, 4), (3, 12, 7, 2)):
        is_as_good_as_eager(model, compiled, torch.randn(size).to(dtype))


def test_many_weights_for_pictures_of_one_pixel_are_multiplied() -> None:
    model = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(600, 500, 1), nn.ReLU()).eval().half()
    example = torch.randn(2, 600, 6, 6).half()
    assert count(lowered(model, example, "strides"), MatmulReluOp) == 1
    compiled = dlcb.compile(model, (example,))
    for size in ((2, 600, 6, 6), (1, 600, 5, 3), (0, 600, 4, 4)):
        is_as_good_as_eager(model, compiled, torch.randn(size).half())


def test_a_relu_is_taken_along_by_the_product_of_points() -> None:
    layers = [nn.Conv2d(3, 8, 3), nn.Conv2d(8, 16, 1), nn.ReLU(), nn.Conv2d(16, 8, 2, 2), nn.ReLU()]
    model = nn.Sequential(*layers).eval().half()
    example = torch.randn(2, 3, 9, 9).half()
    module = lowered(model, example, "strides")
    assert (count(module, MatmulReluOp), count(module, Convolution)) == (2, 1)
    compiled = dlcb.compile(model, (example,))
    for size in ((2, 3, 9, 9), (1, 3, 14, 6), (0, 3, 8, 8), (3, 3, 4, 5)):
        is_as_good_as_eager(model, compiled, torch.randn(size).half())


def test_a_norm_before_a_convolution_is_folded_into_the_product_of_points() -> None:
    layers = [nn.Conv2d(3, 8, 3), nn.SiLU(), nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16), nn.Conv2d(16, 4, 3)]
    model = nn.Sequential(*layers).eval().half()
    for value in (layers[3].running_mean, layers[3].running_var):
        assert isinstance(value, Tensor)
        value.uniform_(0.5, 2)
    example = torch.randn(2, 3, 9, 9).half()
    module = lowered(model, example, "coordinates")
    assert (count(module, MatmulOp), count(module, Convolution)) == (1, 2)
    main = next(f for f in module.walk() if isinstance(f, FuncOp) and f.symbol == "main")
    assert sum(isinstance(op, LaunchOp) for op in main.walk()) == 3, "channels last, silu, and the last bias"
    compiled = dlcb.compile(model, (example,))
    for size in ((2, 3, 9, 9), (1, 3, 14, 6), (0, 3, 8, 8), (3, 3, 7, 5)):
        is_as_good_as_eager(model, compiled, torch.randn(size).half())


class Depthwise(nn.Module):
    """Between convolutions of points, as in a MobileNet."""

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, channels, 1)
        self.depthwise = nn.Conv2d(channels, channels, groups=channels, **options)
        self.norm = nn.BatchNorm2d(channels)
        self.after = nn.Conv2d(channels, 4, 1)
        for value in (self.norm.running_mean, self.norm.running_var):
            assert value is not None
            value.uniform_(0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(nn.functional.hardswish(self.norm(self.depthwise(self.before(x)))))


DEPTHWISE = [
    (8, {"kernel_size": 3, "padding": 1}),
    (16, {"kernel_size": 5, "padding": 2, "stride": 2}),
    (8, {"kernel_size": 7, "padding": 3}),
    (5, {"kernel_size": 3}),
    (12, {"kernel_size": 3, "padding": 2, "dilation": 2}),
]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(("channels", "options"), DEPTHWISE, ids=str)
def test_depthwise_convolutions_are_generated(channels: int, options: dict[str, int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Depthwise(channels, **options).eval().to(dtype)
    example = torch.randn(2, 3, 14, 13).to(dtype)
    compiled = dlcb.compile(model, (example,))
    for size in ((2, 3, 14, 13), (1, 3, 9, 11), (3, 3, 7, 7), (2, 3, 8, 16), (0, 3, 10, 10)):
        is_as_good_as_eager(model, compiled, torch.randn(size).to(dtype))


def kernels_with(module: ModuleOp, kind: type) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp) and any(isinstance(o, kind) for o in op.walk())]


def test_neighbours_share_one_loop() -> None:
    """What follows elementwise is computed with it, and each of a block's results is stored."""
    module = lowered(
        Depthwise(8, kernel_size=3, padding=1).eval().half(), torch.randn(2, 3, 9, 9).half(), "coordinates"
    )
    (kernel,) = kernels_with(module, LoopOp)
    (loop,) = [op for op in kernel.walk() if isinstance(op, LoopOp)]
    assert len(loop.results) == 4
    assert len([op for op in kernel.walk() if isinstance(op, StoreOp)]) == 4


def test_layers_of_other_widths_have_the_same_kernel() -> None:
    layers = [nn.Conv2d(c, c, 3, padding=1, groups=c) for c in (8, 8)]
    between = [nn.Conv2d(3, 8, 1), nn.Conv2d(8, 24, 1), nn.Conv2d(24, 4, 1)]
    wide = nn.Conv2d(24, 24, 3, padding=1, groups=24)
    model = nn.Sequential(between[0], layers[0], between[1], wide, between[2]).eval().half()
    module = lowered(model, torch.randn(2, 3, 9, 9).half(), "coordinates")
    assert len(kernels_with(module, LoopOp)) == 1


def test_a_mean_over_places_is_no_part_of_the_kernel() -> None:
    class Pooled(Depthwise):
        def forward(self, x: Tensor) -> Tensor:
            return self.depthwise(self.before(x)).mean((2, 3))

    model = Pooled(8, kernel_size=3, padding=1).eval().half()
    example = torch.randn(2, 3, 9, 9).half()
    assert count(lowered(model, example, "simplify"), DepthwiseOp) == 1
    compiled = dlcb.compile(model, (example,))
    for size in ((2, 3, 9, 9), (1, 3, 5, 6)):
        is_as_good_as_eager(model, compiled, torch.randn(size).half())


def test_stacks_at_unequal_distances_are_copied_by_a_kernel() -> None:
    """Heads of one product of queries, keys and values."""

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)

        def forward(self, x: Tensor) -> Tensor:
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
            return torch.tanh(q @ k.transpose(-1, -2)) @ v

    model = Heads().eval()
    compiled = dlcb.compile(model, (torch.randn(2, 5, 16),))
    for size in ((2, 5, 16), (1, 7, 16), (3, 1, 16)):
        x = torch.randn(size)
        assert torch.allclose(compiled(x), model(x), atol=1e-5)
