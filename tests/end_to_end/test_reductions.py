"""Reductions and scans through the whole compiler: ties, NaN, rank 0, no rows, views that are reduced."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dlcb
from dlcb.errors import UserError
from dlcb.tests.end_to_end.agreement import agrees, rand, same, whole

MATRICES = ((3, 5), (7, 33), (2, 130), (1, 1), (40, 3), (2, 1030))


def with_nans(n: int, m: int) -> tuple[Tensor]:
    """Some rows and columns have a NaN or several, some have none; ties everywhere."""
    x = whole(n, m, low=-3, high=4).float()
    return (torch.where(torch.rand(n, m) < 0.5 / m, math.nan, x),)


def finds(x: Tensor) -> Any:
    y = (x - 1).exp()
    low = y.min(-1)
    return y.argmax(-1), y.argmin(0), y.max(-1).values, low.indices, low.values + 1, torch.cummax(y, 1).indices


def test_extrema_find_ties_and_nan_where_eager_does() -> None:
    agrees(finds, with_nans, MATRICES)


def runs(x: Tensor, k: Tensor) -> Any:
    c = torch.full((), 5.0)
    t = torch.full((), True)
    p = x.softmax(-1)
    kept = p.cumsum(-1) - p < 0.6
    first = c.cumsum(0) + x[0]
    return first, t.cumsum(-1), x.sum().cumsum(0), torch.where(kept, p, 0).sum(-1), x.T.cumsum(0), k.cumprod(1)


def test_scans_of_every_kind_and_of_rank_0() -> None:
    agrees(runs, lambda n, m: (rand(n, m), whole(n, m)), MATRICES)


def views(h: Tensor) -> Any:
    n, d = h.shape
    r = torch.arange(n).view(1, -1).expand(4, -1).reshape(-1, 1).expand(-1, d).to(h.dtype)
    v = r.view(4, n, d)
    place = h.argmin(1)
    return v.sum(0) + h, v.sum(2), (v * h).amax((0, 1)), v.cumsum(1), place.reshape(n, 1).expand(-1, 4), F.normalize(h)


def test_reductions_of_views_and_of_no_rows() -> None:
    agrees(views, lambda n, m: (rand(n, m),), ((3, 6), (8, 5), (21, 2), (1, 64), (2, 700)))


def test_no_rows_are_reduced_and_scanned_but_nothing_has_no_least() -> None:
    def program(x: Tensor) -> Any:
        v = x.argmin(1)
        return v.reshape(x.shape[0], 1).expand(-1, 4), x.mean(0), x.cumsum(0), x.cummax(1)

    model = dlcb.compile(program, (rand(5, 3),), check=True)
    for n in (5, 0, 2, 1):
        x = rand(n, 3)
        same(model(x), program(x), program(x.double()), f"{n} rows")
    with pytest.raises(UserError, match=r"x.shape\[1\] is 0 but .* test_reductions\.py:\d+: nothing to reduce"):
        model(rand(2, 0))


def parts(x: Tensor) -> Any:
    """Values of rows that are wanted at some places of the row only: all of the row makes them even so."""
    n, m = x.shape
    top = torch.cat([x.softmax(0)[: n // 2], x[n // 2 :]])
    left = torch.cat([x[:, : m // 2], (x - x.mean(1, keepdim=True))[:, m // 2 :].exp()], 1)
    later = x.slice_scatter(x.cumsum(0)[1:], 0, 1)
    framed = F.pad(x.cumsum(1)[:, 1:], (0, 1))
    return top, left, later, framed


def test_a_part_of_a_row_is_made_of_the_whole_row() -> None:
    agrees(parts, lambda n, m: (rand(n, m),), ((6, 5), (7, 33), (2, 130), (40, 3), (3, 1030), (2100, 2)))


@pytest.mark.parametrize("size", [4, 33, 1030])
def test_reductions_stand_beside_other_values_in_a_row_as_long_as_theirs(size: int) -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        columns = torch.cat([x.sum(0, keepdim=True), y[2:], x.exp().amax(0, keepdim=True)])
        rows = torch.cat([x.T.mean(1, keepdim=True), y.T[:, 1:]], 1)
        return columns, rows, F.pad(x.sum(0)[None], (0, 0, 1, size - 2))

    x, y = rand(size, 6), rand(size, 6)
    model = dlcb.compile(program, (x, y), dynamic=False, check=True)
    same(model(x, y), program(x, y), program(x.double(), y.double()), f"{size} rows")
