"""Checks whose two answers compute the same by other operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dlcb.frontend.capture import capture
from dlcb.frontend.capture.equivalence import same_numbers
from dlcb.frontend.capture.inputs import read_arguments
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan


def run_of(program: Callable[..., object], *args: Tensor) -> Run:
    session = Session(program, read_arguments(program, args, {}))
    return session.run(Plan(session.arguments.example_sizes, frozenset()))


def test_a_sum_in_another_order_is_the_same() -> None:
    x = torch.randn(3, 5, dtype=torch.float16)
    one, other = run_of(lambda x: x.sum((0, 1)), x), run_of(lambda x: x.float().t().sum(0).sum(0).half(), x)
    assert same_numbers(one, other)


@pytest.mark.parametrize(
    "other",
    [
        lambda x, m: (x * 1.0001).sum(),
        lambda x, m: (x.sum(), x.sum()),
        lambda x, m: x.sum()[None],
        lambda x, m: torch.where(m, x, 0.0).sum(),
        lambda x, m: x.sum().to(torch.int64),
        lambda x, m: torch.rand_like(x).sum(),
    ],
)
def test_what_differs_in_numbers_shape_structure_or_by_a_mask_is_not(other: Callable[..., object]) -> None:
    """Every place of the example's mask is set, but the next call's need not be."""
    arguments = torch.randn(3, 5), torch.ones(3, 5, dtype=torch.bool)
    assert not same_numbers(run_of(lambda x, m: x.sum(), *arguments), run_of(other, *arguments))


def test_a_view_of_an_argument_is_not_a_copy_of_it() -> None:
    x = torch.randn(3, 5)
    assert not same_numbers(run_of(lambda x: x[0], x), run_of(lambda x: x[0].clone(), x))


class OneRow(nn.Module):
    """Another way for a single row, that comes to the same."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * x).sum(1) if x.shape[0] == 1 else torch.einsum("ij,ij->i", x, x)


class OneRowOtherwise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(1) if x.shape[0] == 1 else torch.einsum("ij,ij->i", x, x)


def test_a_branch_that_computes_the_same_by_other_operations_leaves_no_check() -> None:
    assert not capture(OneRow().eval(), (torch.randn(4, 5),)).checks


def test_a_branch_that_computes_something_else_is_checked() -> None:
    (check,) = capture(OneRowOtherwise().eval(), (torch.randn(4, 5),)).checks
    assert check.kind == "ne"
