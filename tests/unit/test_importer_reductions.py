"""What reductions, norms and scans become: evaluated, it gives eager's answer, at other sizes and of odd numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dlcb.errors import UnsupportedError, UserError
from dlcb.tests.unit.test_importer_ops import agrees, evaluated, rand, simplified

NAN, INF = math.nan, math.inf

Function = Callable[[Tensor], Any]


def odd(*sizes: int) -> Tensor:
    """Ties, NaN and infinities."""
    x = torch.randint(-3, 4, sizes).float()
    special = torch.randint(0, 12, sizes)
    return torch.where(special == 0, NAN, torch.where(special == 1, INF, torch.where(special == 2, -INF, x)))


EXTREMA: list[Function] = [
    lambda x: x.argmax(), lambda x: x.argmin(), lambda x: x.argmax(1), lambda x: x.argmin(-2, True),
    lambda x: torch.argmax(x, dim=0, keepdim=True), lambda x: x.argmax(None, True), lambda x: x.max(1),
    lambda x: x.min(0, keepdim=True), lambda x: torch.max(x, dim=-1), lambda x: x.max(1).values, lambda x: x.min(1)[1],
    lambda x: x.max(), lambda x: torch.aminmax(x), lambda x: torch.aminmax(x, dim=1, keepdim=True),
    lambda x: x.amax((0, 1)), lambda x: x.amin(-1, True), lambda x: x.amax(), lambda x: x.cummax(1),
    lambda x: x.cummin(0), lambda x: torch.cummax(x, dim=-1).indices, lambda x: x.max(torch.zeros_like(x)),
    lambda x: x.T.argmax(0), lambda x: x[:, ::2].argmin(1), lambda x: (x * 2).max(0)[1] + x.argmin(0),
]  # fmt: skip


@pytest.mark.parametrize("function", EXTREMA, ids=range(len(EXTREMA)))
def test_extrema_and_where_they_are(function: Function) -> None:
    agrees(function, (odd(3, 4),), (odd(5, 2),), (odd(1, 1),), (odd(2, 300),), (odd(70, 3),))
    agrees(function, (torch.randint(-2, 3, (3, 4)),), (torch.randint(-2, 3, (5, 2)),))


SUMS: list[Function] = [
    lambda x: x.sum(), lambda x: x.sum((0, -1), keepdim=True), lambda x: x.sum(()), lambda x: x.mean(1),
    lambda x: x.prod(), lambda x: x.prod(0, True), lambda x: x.sum(0, dtype=torch.float64),
    lambda x: x.mean((), dtype=torch.float64), lambda x: x.prod(1, dtype=torch.float64), lambda x: x.std(),
    lambda x: x.std(0), lambda x: x.std(1, unbiased=False), lambda x: x.std(False), lambda x: x.var((0, 1)),
    lambda x: x.var(1, correction=0), lambda x: x.var(0, correction=0.5, keepdim=True),
    lambda x: torch.var_mean(x, 1, keepdim=True), lambda x: torch.std_mean(x), lambda x: torch.std_mean(x, dim=(0,)),
    lambda x: torch.var_mean(x, dim=[1], correction=2), lambda x: x.logsumexp(1), lambda x: x.logsumexp((0, 1), True),
    lambda x: x.norm(), lambda x: x.norm(1), lambda x: x.norm(3, 1), lambda x: x.norm(INF, 0, True),
    lambda x: x.norm("fro", (0, 1)), lambda x: x.norm(0, 1), lambda x: torch.linalg.vector_norm(x),
    lambda x: torch.linalg.vector_norm(x, 1.5, 1), lambda x: torch.linalg.vector_norm(x, -INF, 1, True),
    lambda x: torch.linalg.vector_norm(x, -2, 0), lambda x: torch.linalg.vector_norm(x, 2, -1, dtype=torch.float64),
    lambda x: torch.linalg.norm(x), lambda x: torch.linalg.norm(x, 3, 1), lambda x: F.normalize(x),
    lambda x: F.normalize(x, 1, 0), lambda x: F.cosine_similarity(x, x.flip(1)),
    lambda x: F.cosine_similarity(x, x[:1], 0), lambda x: F.cosine_similarity(x, x[0], -1, 0.5),
    lambda x: torch.count_nonzero(x.round()), lambda x: torch.count_nonzero(x.round(), (0, 1)),
    lambda x: torch.count_nonzero(x.round(), 1), lambda x: x.softmax(0), lambda x: x.log_softmax(1),
    lambda x: x.cumsum(0), lambda x: x.cumsum(-1, dtype=torch.float64), lambda x: x.cumprod(1),
    lambda x: x.logcumsumexp(0), lambda x: x.T.cumsum(0), lambda x: x.cumsum(1).flip(1), lambda x: x.cumsum(1)[:, -1],
    lambda x: x.softmax(1).cumsum(1) - x.cumsum(0), lambda x: torch.cumsum(x, dim=0).sum(1),
]  # fmt: skip


@pytest.mark.parametrize("function", SUMS, ids=range(len(SUMS)))
def test_sums_norms_and_scans(function: Function) -> None:
    agrees(function, (rand(3, 4),), (rand(5, 3),), (rand(4, 130),))


ODD_SUMS: list[Function] = [
    lambda x: x.nansum(), lambda x: torch.nansum(x, 1, True), lambda x: x.nanmean(), lambda x: torch.nanmean(x, 0),
    lambda x: torch.nansum(x, dim=0, dtype=torch.float64), lambda x: x.any(), lambda x: x.all(1),
    lambda x: torch.any(x, dim=(0, 1), keepdim=True), lambda x: torch.all(x, dim=(1,)), lambda x: torch.any(x, dim=()),
    lambda x: x.isnan().any(0), lambda x: x.logsumexp(1), lambda x: x.logcumsumexp(1), lambda x: x.cumsum(1),
    lambda x: x.norm(INF, 1), lambda x: x.amax(0), lambda x: x.prod(1), lambda x: x.cumprod(0),
]  # fmt: skip


@pytest.mark.parametrize("function", ODD_SUMS, ids=range(len(ODD_SUMS)))
def test_sums_of_odd_numbers(function: Function) -> None:
    agrees(function, (odd(3, 4),), (odd(5, 2),), (odd(20, 30),))


EMPTY: list[Function] = [
    lambda x: x.sum(1), lambda x: x.mean(1), lambda x: x.prod(1), lambda x: x.any(1), lambda x: x.all(1),
    lambda x: x.logsumexp(1), lambda x: x.nansum(1), lambda x: x.nanmean(1), lambda x: x.var(1), lambda x: x.std(1),
    lambda x: x.norm(2, 1), lambda x: x.norm(0, 1), lambda x: x.cumsum(1), lambda x: x.cummax(1), lambda x: x.cummin(0),
    lambda x: x.logcumsumexp(1), lambda x: x.count_nonzero(1), lambda x: F.normalize(x), lambda x: x.softmax(1),
]  # fmt: skip


@pytest.mark.parametrize("function", EMPTY, ids=range(len(EMPTY)))
@pytest.mark.filterwarnings("ignore:.*degrees of freedom.*")
def test_what_eager_makes_of_nothing(function: Function) -> None:
    agrees(function, (rand(3, 4),), (rand(3, 0),), (rand(0, 4),), (rand(0, 0),))


REFUSED: list[Function] = [
    lambda x: x.amax(1), lambda x: x.argmin(1), lambda x: x.max(1), lambda x: x.min(), lambda x: x.norm(INF, 1),
    lambda x: torch.linalg.vector_norm(x, -1, 1), lambda x: torch.aminmax(x, dim=1), lambda x: x.argmax(),
]  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=range(len(REFUSED)))
def test_what_eager_refuses_to_make_of_nothing(function: Function) -> None:
    nothing = (rand(3, 0),)
    with pytest.raises((IndexError, RuntimeError)):
        function(*nothing)
    imported = simplified(function, (rand(3, 4),))
    with pytest.raises(UserError, match=r"test_importer_reductions.py:\d+.*nothing"):
        evaluated(imported, nothing)


@pytest.mark.parametrize("function", REFUSED[:3], ids=range(3))
def test_no_rows_of_something(function: Function) -> None:
    agrees(function, (rand(3, 4),), (rand(0, 4),))


def test_tensors_of_rank_0() -> None:
    agrees(
        lambda x: (
            x.sum(), x.sum(0), x.amax(-1), x.max(0), x.argmax(), x.argmin(0, True), x.cumsum(0), x.cumprod(-1),
            x.cummax(0), x.logcumsumexp(0), x.any(0), x.logsumexp(0), x.norm(), x.norm(3), x.std(unbiased=False),
            x.softmax(0), torch.aminmax(x, dim=0), (x > 0).cumsum(0), x.prod(0), x.count_nonzero(), x.nanmean(0),
        ),
        (torch.randn(()),),
    )  # fmt: skip


def test_truth_values_and_integers() -> None:
    def program(t: Tensor, k: Tensor) -> Any:
        return (
            t.sum(0), t.cumsum(1), t.cumprod(0), t.any(1), t.all(), t.max(1), t.amin(0), t.cummin(1), t.prod(1),
            k.sum(), k.cumsum(0), k.prod(0), k.cumprod(1), k.cumsum(1, dtype=torch.int32), k.any(0), k.argmax(1),
            k.cummax(0), k.cumsum(0, dtype=torch.float32), k.sum(1, dtype=torch.float32), k.logsumexp(1), k.nansum(0),
            torch.mean(k, 1, dtype=torch.float32), torch.count_nonzero(t, 0), k.max(0), k.to(torch.int32).cumsum(0),
        )  # fmt: skip

    def whole(*sizes: int) -> Tensor:
        return torch.randint(-4, 5, sizes)

    agrees(program, (whole(3, 4) > 0, whole(3, 4)), (whole(5, 2) > 0, whole(5, 2)), (whole(1, 40) > 0, whole(1, 40)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_float_types(dtype: torch.dtype) -> None:
    def program(x: Tensor) -> Any:
        return (
            x.cumsum(1), x.cumprod(1), x.logcumsumexp(0), x.var(1), x.std(0), x.norm(2, 1), x.logsumexp(1),
            x.nanmean(0), F.normalize(x), F.cosine_similarity(x, x.flip(0)), x.sum(1), x.prod(0), x.amax(1),
        )  # fmt: skip

    rtol = {torch.float16: 3e-3, torch.bfloat16: 2e-2, torch.float64: 1e-12}[dtype]
    agrees(program, (rand(3, 4).to(dtype),), (rand(5, 9).to(dtype),), rtol=rtol)
    indices: Function = lambda x: (x.exp().argmax(1), x.exp().cummax(1).indices, x.exp().max(0)[1])  # noqa: E731
    agrees(indices, (rand(3, 4).to(dtype),), (rand(50, 90).to(dtype),))


def test_overloads_as_graphs_of_aten_call_them() -> None:
    aten = torch.ops.aten

    def program(x: Tensor) -> Any:
        return (
            aten.max.dim(x, 1), aten.min.dim(x, 0, True), aten.max.default(x), aten.argmax.default(x, -1),
            aten.argmin.default(x, None, True), aten.amax.default(x, [1], True), aten.aminmax.default(x, dim=0),
            aten.cumsum.default(x, 1), aten.cumprod.default(x, 0), aten.cummax.default(x, 1), aten.any.dim(x, 1),
            aten.logcumsumexp.default(x, 1), aten.any.dims(x, [0, 1], True), aten.all.default(x), aten.all.dims(x, [1]),
            aten.sum.dim_IntList(x, [1], True), aten.sum.dim_IntList(x, [0], dtype=torch.float64), aten.sum.default(x),
            aten.mean.dim(x, [0, 1]), aten.prod.dim_int(x, 1), aten.norm.Scalar(x, 3),
            aten.var_mean.correction(x, [1], correction=0, keepdim=True), aten.var.correction(x, [0], correction=1),
            aten.std.correction(x, None, correction=2),
            aten._softmax.default(x, 1, False), aten._log_softmax.default(x, 0, False), aten.logsumexp.default(x, [1]),
            aten.linalg_vector_norm.default(x, 2, [1], True), aten.norm.ScalarOpt_dim(x, 1, [1]),
            aten.count_nonzero.dim_IntList(x, [1]), aten.nansum.default(x, [1]),
        )  # fmt: skip

    agrees(program, (rand(3, 4),), (rand(5, 3),))


def test_rows_that_are_masked_wholly() -> None:
    def program(q: Tensor) -> Tensor:
        return torch.ops.aten._safe_softmax(torch.where(q > 0, -INF, q), -1)

    agrees(program, (rand(3, 4),), (rand(3, 4).abs() + 0.1,))


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: (x > 0).argmax(1), "position of truth values"),
        (lambda x: torch.linalg.norm(x, 2, (0, 1)), "of a matrix"),
    ],
)
def test_what_stays_in_eager(function: Function, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        simplified(function, (rand(3, 4),))
