"""Programs that use sizes where Python asks nobody: right at every size, or refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dlcb
from dlcb.errors import UserError

SIZES = ((7, 8), (128, 8), (3, 5), (64, 16), (1, 4), (0, 8))


def padded_by_a_tenth(x: Tensor) -> Tensor:
    return F.pad(x, (0, int(0.1 * x.shape[0])))


def float_on_the_left(x: Tensor) -> Tensor:
    return x * 2 if 0.5 * x.shape[0] > 50 else x * 3


def extremum_of_floats(x: Tensor) -> Tensor:
    return x * max(0.5 * x.shape[0], 20.0)


def element_by_remainder(x: Tensor) -> Tensor:
    return x * [1.0, 2.0, 3.0][x.shape[0] % 3]


def function_by_remainder(x: Tensor) -> Tensor:
    return getattr(torch, ["sin", "cos"][x.shape[0] % 2])(x)


def in_a_range(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] in range(100) else x * 3


def not_in_a_range_of_steps(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] not in range(1, 100, 3) else x * 3


def digits(x: Tensor) -> Tensor:
    return x * len(f"{x.shape[0]}")


def digits_by_format(x: Tensor) -> Tensor:
    return x * len("%d" % x.shape[0])  # noqa: UP031


def digits_by_str(x: Tensor) -> Tensor:
    return x * len("".join(map(str, x.shape)))


def asked_for_its_type(x: Tensor) -> Tensor:
    return x * 2 if type(x.shape[0]) is int else x * 3


def bytes_of_zeros(x: Tensor) -> Tensor:
    return x * 2 if len(bytes(x.shape[0])) > 100 else x * 3


def arange_of_numpy(x: Tensor) -> Tensor:
    return x * 2 if np.arange(x.shape[0]).size > 100 else x * 3


def zeros_of_numpy(x: Tensor) -> Tensor:
    return x * 2 if np.zeros(tuple(x.shape)).shape[0] > 100 else x * 3


def fraction(x: Tensor) -> Tensor:
    return x * 2 if Fraction(x.shape[0], 3) > 40 else x * 3


def bytes_of_the_number(x: Tensor) -> Tensor:
    return x * sum(x.shape[0].to_bytes(4, "big"))


def caught(x: Tensor) -> Tensor:
    try:
        return x.view(-1, 16).sum(1)
    except RuntimeError:
        return x.sum(1)


def written_where_a_slice_may_be_whole(x: Tensor) -> tuple[Tensor, Tensor]:
    width = x.shape[1]
    z = F.pad(x, (0, -width % 4))
    if z.shape[1] > 4:
        z = torch.roll(z, -2, 1)
    z = z * 2
    y = z[:, :width].contiguous()
    y.add_(1)
    return z * 1, y * 1


def memory(x: Tensor) -> Tensor:
    return x * (x.untyped_storage().nbytes() // 4)


PROGRAMS: list[Callable[[Tensor], Any]] = [
    padded_by_a_tenth,
    float_on_the_left,
    extremum_of_floats,
    element_by_remainder,
    function_by_remainder,
    in_a_range,
    not_in_a_range_of_steps,
    digits,
    digits_by_format,
    digits_by_str,
    asked_for_its_type,
    bytes_of_zeros,
    arange_of_numpy,
    zeros_of_numpy,
    fraction,
    bytes_of_the_number,
    caught,
    written_where_a_slice_may_be_whole,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("example", [(7, 8), (4, 4)], ids=str)
def test_no_size_is_wrong(program: Callable[[Tensor], Any], example: tuple[int, int]) -> None:
    compiled = dlcb.compile(program, (torch.randn(example),))
    for size in (example, *SIZES):
        x = torch.randn(size)
        try:
            found = compiled(x.clone())
        except UserError:
            assert size != example
            continue
        expected = program(x.clone())
        for one, other in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one, other, atol=1e-5)


def test_a_slice_that_may_be_whole_and_a_write() -> None:
    def program(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        y = x[:, : k.shape[0]].contiguous()
        y.add_(1)
        return y * 2, x * 1

    compiled = dlcb.compile(program, (torch.ones(3, 4), torch.ones(3)))
    for length in (3, 4, 2):
        x, k = torch.randn(3, 4), torch.ones(length)
        try:
            found = compiled(x.clone(), k)
        except UserError:
            assert length != 3
            continue
        assert all(map(torch.equal, found, program(x.clone(), k)))


def test_an_unseen_use_is_found_where_only_near_sizes_go_the_same_way() -> None:
    space: dict[str, Any] = {"FACTORS": [0.5 * n for n in range(1000)]}
    source = """
def program(x):
    rows = x.shape[0]
    if -(-rows // 57) > 4 or rows // 57 < 3:
        return x.relu()
    return x * FACTORS[rows]
"""
    exec(source, space)  # there is no source to compile anew
    program = space["program"]
    compiled = dlcb.compile(program, (torch.ones(224, 2),))
    for rows in (224, 200, 300):
        x = torch.randn(rows, 2)
        try:
            found = compiled(x)
        except UserError:
            assert rows != 224
            continue
        assert torch.equal(found, program(x))


def test_the_memory_of_a_tensor_is_not_followed() -> None:
    with pytest.raises(dlcb.errors.UnsupportedError, match="the memory of a tensor is not followed"):
        dlcb.compile(memory, (torch.ones(4, 8),))


@lru_cache
def table(n: int) -> Tensor:
    return torch.arange(n) * 1.5


@lru_cache
def constant() -> Tensor:
    return torch.arange(8) * 0.5


def test_what_the_program_keeps_for_later_is_its_own() -> None:
    def program(x: Tensor) -> Tensor:
        return x + table(x.shape[0])[:, None] + constant()

    compiled = dlcb.compile(program, (torch.randn(4, 8),))
    for n in (4, 9, 1):
        x = torch.randn(n, 8)
        assert torch.allclose(compiled(x), program(x))
