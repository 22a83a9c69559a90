"""Which arguments share memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dlcb.runtime.overlap import first_overlap
from dlcb.runtime.plan import extent

_BASE = torch.zeros(4, 6, 8)


def _first(tensors: list[Tensor], updated: list[bool]) -> tuple[int, int] | None:
    spans = [(t.data_ptr(), extent(t.shape, t.stride()) * t.element_size()) for t in tensors]
    return first_overlap(tensors, spans, updated)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (_BASE[0], _BASE[1]),
        (_BASE[:, :3], _BASE[:, 3:]),
        (_BASE[..., :4], _BASE[..., 4:]),
        (_BASE[..., ::2], _BASE[..., 1::2]),
        (_BASE[:, 1:3, 2:4], _BASE[:, 3:5, 1:3]),
        (_BASE[:0], _BASE),
        (_BASE.mT[:, :2], _BASE.mT[:, 2:4]),
    ],
)
def test_parts_that_are_apart_may_be_passed(a: Tensor, b: Tensor) -> None:
    for pair in ([a, b], [b, a]):
        assert _first(pair, [True, False]) is None
        assert _first(pair, [True, True]) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (_BASE, _BASE),
        (_BASE[0], _BASE),
        (_BASE[:, :4], _BASE[:, 3:]),
        (_BASE[0, :2], _BASE[0].T[:2]),
        (_BASE[:, 1:3, 2:4], _BASE[:, 2:5, 3:6]),
        (_BASE[0, 0].view(torch.int16), _BASE[0, 0]),
    ],
)
def test_parts_that_meet_are_named(a: Tensor, b: Tensor) -> None:
    other = torch.zeros(3)
    assert _first([other, a, b], [False, True, False]) == (1, 2)
    assert _first([other, a, b], [False, False, True]) == (2, 1)
    assert _first([other, a, b], [False, False, False]) is None


_Box = tuple[int, tuple[int, ...], tuple[int, ...]]


@st.composite
def _boxes(draw: st.DrawFn) -> tuple[_Box, _Box]:
    rank = draw(st.integers(1, 3))
    strides = tuple(draw(st.integers(1, 8)) for _ in range(rank))
    sizes = st.tuples(*[st.integers(1, 4)] * rank)
    return (draw(st.integers(0, 9)), draw(sizes), strides), (draw(st.integers(0, 9)), draw(sizes), strides)


@given(_boxes())
def test_what_is_called_apart_is_apart(boxes: tuple[_Box, _Box]) -> None:
    memory = torch.zeros(200)
    a, b = (memory.as_strided(sizes, strides, offset) for offset, sizes, strides in boxes)
    a.fill_(1)
    meets = bool((b == 1).any())
    assert not meets or _first([a, b], [True, False]) is not None
