"""Tensors of more elements than 32 bits count: 64-bit kernels take them, or the call is refused before a launch. The
tensors are expanded ones, which take no memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dlcb.dialects.coord.schedule import INDEX_LIMIT
from dlcb.errors import UserError
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.plan import Launch
from dlcb.tests.end_to_end.agreement import compiled, modules_of, plan_of, rand
from dlcb.tests.programs.unit import Unit


def planned(program: Callable[..., Any], *example: Any) -> CompiledModel:
    """Without kernels: only plans of calls are looked at."""
    return Unit().add_program(program, example)


def launches(model: CompiledModel, *arguments: Any) -> list[Launch]:
    return [step for step in plan_of(model, arguments).steps if isinstance(step, Launch)]


def are_wide(model: CompiledModel, *arguments: Any) -> list[bool]:
    types = {
        kernel: {type for _, type in integers}
        for module in modules_of(model)
        for row in module.program.code
        if row[0] == "launch"
        for kernel, _, _, _, integers in row[2]
    }
    found = [step.kernel for step in launches(model, *arguments)]
    assert all(types[kernel] <= {"i64" if kernel.endswith("_i64") else "i32"} for kernel in found)
    return [kernel.endswith("_i64") for kernel in found]


def test_coordinates_on_the_way_to_a_few_elements_may_need_64_bits() -> None:
    width = 2**18

    def program(x: Tensor) -> Tensor:
        return x.reshape(-1)[:: width + 1] * 1.0

    model = compiled(program, (torch.zeros(1, width).expand(5, width),))
    row = torch.arange(width, dtype=torch.float32)[None]
    for rows, wide in ((8, False), (2**12, False), (2**13 + 2, True), (2**14, True)):
        x = row.expand(rows, width)
        assert are_wide(model, x) == [wide]
        actual = model(x)
        places = torch.arange(0, rows * width, width + 1)
        assert torch.equal(actual, (places % width).float())


@pytest.mark.parametrize("rows", [1, 2**20, INDEX_LIMIT // 3, INDEX_LIMIT // 3 + 1, 2**30])
def test_a_variant_of_the_right_width_is_chosen(rows: int) -> None:
    wide = 3 * rows >= INDEX_LIMIT
    for program in (lambda x: x * 2 + 1, lambda x: torch.softmax(x, 1), lambda x: x.sum(1)):
        model = planned(program, rand(2, 3))
        x = torch.zeros(1, 3).expand(rows, 3)
        (result,) = plan_of(model, (x,)).results
        assert not isinstance(result, int)
        assert result.sizes[0] == rows
        assert any(are_wide(model, x)) == wide


def test_sizes_of_what_is_gathered_from_count() -> None:
    model = planned(lambda x, grid: F.grid_sample(x, grid, align_corners=False), rand(2, 3, 4, 5), rand(2, 3, 3, 2))
    grid = torch.zeros(2, 3, 3, 2)
    assert not any(are_wide(model, torch.zeros(2, 3, 4, 5), grid))
    assert any(are_wide(model, torch.zeros(2, 3, 4, 1).expand(2, 3, 4, 2**33), grid))


def test_a_stride_of_a_dim_of_size_1_may_be_anything() -> None:
    def program(x: Tensor) -> Tensor:
        x.add_(1)
        return x.t()

    model = compiled(program, (rand(3, 4),))
    x = torch.zeros(4).as_strided((1, 4), (2**40, 1))
    assert torch.equal(model(x), torch.ones(4, 1))
    assert torch.equal(x, torch.ones(1, 4))


TOO_LARGE: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], str]] = {
    "bytes of a result": (
        lambda x, y: x[:, None] + y,
        (rand(2), rand(3)),
        (torch.zeros(1).expand(2**40), torch.zeros(1).expand(2**40)),
        "too large for one call: a result or the workspace would take 4835703278458516698824704 bytes",
    ),
    "bytes of the workspace": (
        lambda x, y: (x[:, None] + y).cumsum(1).cumsum(0).sum(),
        (rand(2), rand(3)),
        (torch.zeros(1).expand(2**40), torch.zeros(1).expand(2**40)),
        "too large for one call: a result or the workspace would take .* bytes",
    ),
    "blocks": (
        lambda x: x + 1,
        (rand(2),),
        (torch.zeros(1).expand(2**50),),
        r"too large for one call: k\w+ would take \d+ blocks of 256 threads, 2147483647 at most",
    ),
    "a size of no elements": (
        lambda x: x.repeat(x.shape[0], 0),
        (rand(2, 3),),
        (torch.zeros(1, 3).expand(2**33, 3),),
        "too large for one call: a result or the workspace would take .* bytes",
    ),
    "an integer": (
        lambda x, k: x.repeat(k),
        (rand(2), 3),
        (torch.zeros(5), 2**62),
        "too large for one call: .*",
    ),
}


@pytest.mark.parametrize(("program", "example", "given", "text"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_products_of_sizes_that_overflow_are_errors(
    program: Callable[..., Any], example: tuple[Any, ...], given: tuple[Any, ...], text: str
) -> None:
    model = planned(program, *example)
    assert plan_of(model, example).results
    with pytest.raises(UserError, match=text):
        model(*given)
