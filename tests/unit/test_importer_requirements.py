"""What operations ask of sizes beyond what their results need: a call that eager refuses is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dlcb.dialects.graph.base import GraphOp
from dlcb.errors import UserError
from dlcb.tests.graphs import main_of
from dlcb.tests.unit.test_importer_ops import agrees, evaluated

aten = torch.ops.aten
Shapes = tuple[tuple[int, ...], ...]


def of(*cases: Shapes | tuple[int, ...]) -> list[Shapes]:
    """Shapes of the tensors of each call; of one tensor, its sizes alone."""
    return [case if not case or isinstance(case[0], tuple) else (case,) for case in cases]  # pyright: ignore


PLANES = of((2, 4, 6), (0, 4, 7))
IMAGES = of((2, 4, 6, 7), (0, 2, 5, 6))
NO_IMAGES = of((2, 0, 6, 7), (2, 4, 0, 7), (2, 4, 6, 0))

CASES: dict[str, tuple[Callable[..., Any], list[Shapes], list[Shapes]]] = {
    "bmm": (torch.bmm, of(((2, 3, 4), (2, 4, 5))), of(((2, 3, 4), (1, 4, 5)), ((1, 3, 4), (2, 4, 5)))),
    "addmm": (torch.addmm, of(((3, 5), (3, 4), (4, 5)), ((1, 5), (2, 4), (4, 5))), of(((3, 5), (1, 4), (4, 5)))),
    "baddbmm": (
        torch.baddbmm,
        of(((2, 3, 5), (2, 3, 4), (2, 4, 5)), ((1, 1, 5), (2, 3, 4), (2, 4, 5))),
        of(((2, 3, 5), (1, 3, 4), (1, 4, 5))),
    ),
    "addbmm": (torch.addbmm, of(((3, 5), (2, 3, 4), (2, 4, 5))), of(((3, 5), (2, 3, 4), (4, 2, 5)))),
    "addr": (torch.addr, of(((3, 4), (3,), (4,)), ((1, 4), (3,), (4,))), of(((3, 4), (1,), (4,)))),
    "tensordot": (
        lambda x, y: torch.tensordot(x, y, ([0, 1], [0, 1])),  # pyright: ignore[reportArgumentType]
        of(((2, 3, 4), (2, 3, 5)), ((4, 2, 1), (4, 2, 2))),
        of(((2, 3, 4), (3, 2, 5))),
    ),
    "bilinear": (
        F.bilinear,
        of(((2, 3), (2, 4), (5, 3, 4))),
        of(((2, 3), (1, 4), (5, 3, 4)), ((2, 3), (2, 1), (5, 3, 4))),
    ),
    "grid_sample": (
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        of(((2, 3, 4, 5), (2, 6, 7, 2)), ((2, 0, 4, 5), (2, 6, 7, 2))),
        of(
            ((2, 3, 4, 5), (1, 6, 7, 2)),
            ((1, 3, 4, 5), (2, 6, 7, 2)),
            ((2, 3, 4, 5), (2, 6, 7, 3)),
            ((2, 3, 0, 5), (2, 6, 7, 2)),
        ),
    ),
    "conv2d": (
        F.conv2d,
        of(((2, 3, 5, 6), (4, 3, 2, 3)), ((0, 3, 5, 6), (4, 3, 2, 3))),
        of(((2, 3, 5, 6), (0, 3, 2, 3))),
    ),
    "conv1d with padding for a whole kernel": (
        lambda x, w: F.conv1d(x, w, padding=3),
        of(((2, 3, 1), (4, 3, 4)), ((0, 3, 0), (4, 3, 4))),
        of(((2, 3, 0), (4, 3, 4))),
    ),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        of(((2, 3, 2, 5), (3, 4, 4, 4)), ((0, 3, 0, 5), (3, 4, 4, 4))),
        of(((2, 3, 0, 5), (3, 4, 4, 4)), ((2, 3, 2, 0), (3, 4, 4, 4))),
    ),
    "view by -1": (
        lambda x: x.view(x.shape[0], -1, 2, x.shape[2]),
        of((3, 4, 5), (3, 2, 1), (3, 0, 5)),
        of((0, 4, 5), (3, 4, 0), (3, 3, 5)),
    ),
    "unflatten by -1": (
        lambda x: x.unflatten(0, (x.shape[1], -1)),
        of((6, 3), (0, 3)),
        of((6, 0), (0, 0), (5, 3)),
    ),
    "index by a range": (
        lambda x, y: x[torch.arange(y.shape[0])],
        of(((5, 3), (4,)), ((5, 3), (5,)), ((4, 0), (7,)), ((0, 3), (0,))),
        of(((4, 3), (5,)), ((0, 3), (1,))),
    ),
    "index by ranges together": (
        lambda x, y: x[torch.arange(y.shape[0])[:, None], torch.arange(1, y.shape[1])],
        of(((5, 6), (4, 6)), ((2, 1), (2, 1)), ((1, 2), (3, 1)), ((3, 0), (0, 5))),
        of(((3, 6), (4, 6)), ((4, 5), (4, 6)), ((0, 6), (4, 6))),
    ),
    "embedding at positions": (
        lambda x, y, w: F.embedding((torch.arange(x.shape[1]) + y.shape[0]).expand(x.shape[0], -1), w),
        of(((2, 3), (4,), (7, 5)), ((0, 3), (5,), (7, 5))),
        of(((2, 3), (5,), (7, 5)), ((1, 8), (0,), (7, 5))),
    ),
    "index_copy to a range": (
        lambda x, y: x.index_copy(1, torch.arange(0, 2 * y.shape[1], 2), y),
        of(((2, 5), (2, 3)), ((0, 1), (0, 1))),
        of(((2, 4), (2, 3))),
    ),
    "gather from the end": (
        lambda x, y: x.gather(0, torch.arange(y.shape[0] - 1, -1, -1)),
        of(((4,), (4,)), ((4,), (3,)), ((0,), (0,))),
        of(((4,), (5,))),
    ),
    "slice_scatter": (
        lambda x, y: torch.slice_scatter(x, y, 1, 1),
        of(((3, 4), (3, 3)), ((2, 6), (2, 5))),
        of(((3, 4), (0, 3)), ((3, 4), (1, 3)), ((3, 4), (3, 2))),
    ),
    "select_scatter": (
        lambda x, y: torch.select_scatter(x, y, 0, 1),
        of(((3, 4), (4,)), ((2, 6), (6,))),
        of(((3, 4), (3,)), ((3, 4), (1,))),
    ),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), PLANES, of((2, 0, 6))),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), IMAGES, NO_IMAGES),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGES, NO_IMAGES),
    "adaptive_avg_pool2d": (
        lambda x: F.adaptive_avg_pool2d(x, 2),
        [*IMAGES, *of((2, 0, 6, 7))],
        of((2, 4, 0, 7), (2, 4, 6, 0)),
    ),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), IMAGES, NO_IMAGES),
    "interpolate nearest": (lambda x: F.interpolate(x, scale_factor=2), IMAGES, NO_IMAGES),
    "interpolate bilinear": (lambda x: F.interpolate(x, size=(3, 4), mode="bilinear"), IMAGES, NO_IMAGES),
    "interpolate to nothing": (lambda x: F.interpolate(x, scale_factor=0.5), IMAGES, of((2, 4, 1, 7))),
    "pad reflect": (lambda x: F.pad(x, (2, 3), mode="reflect"), PLANES, of((2, 4, 3), (2, 4, 0), (2, 0, 6))),
    "pad replicate": (lambda x: F.pad(x, (2, 3), mode="replicate"), PLANES, of((2, 4, 0), (2, 0, 6))),
    "pad circular": (lambda x: F.pad(x, (2, 3), mode="circular"), [*PLANES, *of((2, 4, 3))], of((2, 4, 2), (2, 4, 0))),
    "pad with less than nothing": (lambda x: F.pad(x, (-2, 1, -1, -1)), PLANES, of((2, 4, 1), (2, 1, 6), (2, 4, 0))),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), of((2, 3, 4, 6), (1, 1, 2, 4)), of((2, 3, 5, 6))),
    "affine_grid": (
        lambda x, y: F.affine_grid(x, [y.shape[0], 3, 4, 5], align_corners=False),
        of(((2, 2, 3), (2,)), ((4, 2, 3), (4,))),
        of(((1, 2, 3), (2,)), ((2, 3, 3), (2,)), ((2, 2, 4), (2,))),
    ),
    "unfold": (lambda x: F.unfold(x, 2, padding=1), IMAGES, NO_IMAGES),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b),
        of(((2, 4, 6), (4,), (4,)), ((1, 2, 3), (2,), (2,))),
        of(((2, 4, 6), (4,), (1,)), ((2, 4, 6), (1,), (4,))),
    ),
    "batch norm of a batch": (
        lambda x: aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-5)[0],
        of((2, 4, 6, 7), (1, 2, 5, 6)),
        of((0, 4, 6, 7), (2, 4, 0, 7)),
    ),
}


def tensors(shapes: Shapes) -> tuple[Tensor, ...]:
    torch.manual_seed(3)
    return tuple(torch.rand(shape) for shape in shapes)


@pytest.mark.parametrize("name", CASES)
def test_what_eager_takes_is_taken_and_what_it_refuses_is_refused(name: str) -> None:
    program, taken, refused = CASES[name]
    imported = agrees(program, *map(tensors, taken), rtol=1e-4)
    for shapes in refused:
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            program(*tensors(shapes))
        with pytest.raises(UserError, match=r"expected \d|test_importer_\w+\.py:\d+"):
            evaluated(imported, tensors(shapes))


INDICES: dict[str, tuple[Callable[..., Any], bool]] = {
    "a range": (lambda x: x[torch.arange(x.shape[0] - 1)], False),
    "a range from the end": (lambda x: x[torch.arange(-3, x.shape[0])], True),
    "a range of other integers": (lambda x: x[torch.arange(3, dtype=torch.int32)], True),
    "a product": (lambda x: x[torch.arange(3) * 2], True),
}


@pytest.mark.parametrize("name", INDICES)
def test_what_sizes_tell_of_indices_is_not_asked_of_elements(name: str) -> None:
    program, is_checked = INDICES[name]
    imported = agrees(program, tensors(((6, 2),)))
    failures = [op.failure() for op in main_of(imported.module).walk() if isinstance(op, GraphOp)]
    assert any(failures) == is_checked


def test_an_image_without_elements_that_eager_returns_as_it_is_is_refused() -> None:
    imported = agrees(lambda x: F.pixel_unshuffle(x, 2), tensors(((2, 3, 4, 6),)))
    empty = torch.zeros(2, 3, 0, 6)
    assert F.pixel_unshuffle(empty, 2).shape == empty.shape
    with pytest.raises(UserError, match="an image without elements"):
        evaluated(imported, (empty,))


def test_a_bias_that_is_too_short_and_that_eager_reads_past_is_refused() -> None:
    def program(x: Tensor, bias: Tensor) -> Tensor:
        return aten._native_batch_norm_legit.no_stats(x, None, bias, True, 0.1, 1e-5)[0]

    imported = agrees(program, tensors(((2, 3, 4), (3,))), rtol=1e-4)
    with pytest.raises(UserError, match=r"a weight or bias for each channel|expected 3"):
        evaluated(imported, tensors(((2, 3, 4), (1,))))
