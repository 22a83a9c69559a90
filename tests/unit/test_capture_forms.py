"""Forms of results that are told without torch are those that torch tells."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from dlcb.frontend.torch_private import storage_key
from dlcb.frontend.tracing.fakes import Fakes, form_of
from dlcb.frontend.tracing.forms import Form, New, View, has_rule, result_of

Call = tuple[Any, ...]
Function = Callable[..., Tensor]
CPU = torch.device("cpu")
DTYPES = (torch.float32, torch.float16, torch.int64)


@pytest.fixture
def fakes() -> Generator[Fakes]:
    fakes = Fakes()
    with torch.no_grad(), fakes.mode:
        yield fakes


def tensors(*shapes: tuple[int, ...]) -> Iterator[Tensor]:
    """Of these sizes and of each dtype, lying in all ways."""
    for shape, dtype in product(shapes, DTYPES):
        rank = len(shape)
        yield torch.empty(shape, dtype=dtype)
        if rank == 4:
            yield torch.empty(shape, dtype=dtype, memory_format=torch.channels_last)
        if rank > 1:
            yield torch.empty(shape[::-1], dtype=dtype).permute(*reversed(range(rank)))
            yield torch.empty((shape[0] + 2, *shape[1:]), dtype=dtype)[2:]
            yield torch.empty((*shape[:-1], 2 * shape[-1]), dtype=dtype)[..., ::2]
            yield torch.empty((1, *shape[1:]), dtype=dtype).expand(shape)


ROWS = ((3, 4, 6), (1, 4, 6), (3, 1, 6), (0, 4, 6), (6,), (2, 3, 5, 6))
PICTURES = ((2, 6, 8, 9), (2, 6, 1, 1), (1, 6, 5, 5), (0, 6, 8, 8), (2, 1, 4, 4), (6, 8, 9))


def pointwise() -> Iterator[Call]:
    yield from ((x,) for x in tensors(*ROWS, *PICTURES))


def arithmetic() -> Iterator[Call]:
    for x in tensors(*ROWS, *PICTURES[:3]):
        yield from ((x, x), (x, x.clone()), (x, x[:1]), (x, 2), (x, 2.5), (2, x), (x, True), (x, x.double()))


def broadcast() -> Iterator[Call]:
    for shape in ((6,), (4, 6), (1, 6), (4, 1), (3, 1, 6), (3, 4, 1), (1, 3, 4, 6), ()):
        for x, dtype in product(tensors((3, 4, 6), (2, 3, 4, 6), (1, 4, 6)), DTYPES[:2]):
            yield from ((x, torch.empty(shape, dtype=dtype)), (torch.empty(shape, dtype=dtype), x))
            yield (x, torch.empty((*shape[::-1], 2), dtype=dtype)[..., 0].mT if len(shape) == 2 else x[:, :1])


def masked_fill() -> Iterator[Call]:
    for x, value in product(tensors(*ROWS), (0.0, 2, float("-inf"), True)):
        yield from ((x, x > 0, value), (x, x[:1] > 0, value), (x, torch.empty(x.shape, dtype=torch.bool), value))


def full_like() -> Iterator[Call]:
    yield from ((x, value) for x in tensors(*ROWS, *PICTURES[:3]) for value in (0, 1.5))
    yield from ((x[1:, 2:3], 1) for x in tensors(*ROWS[:3]))
    yield from ((x[:2, 1:3, ::2], 1) for x in tensors(*ROWS[:3]))


def roll() -> Iterator[Call]:
    for x in tensors(*ROWS):
        yield from ((x, (1,), (0,)), (x, (1, -2), (0, -1)), (x, (0, 0), (0, 1)), (x, (9,), (5,)), (x, (1, 2), (0,)))


def matmul() -> Iterator[Call]:
    for x in tensors((3, 4, 6), (2, 3, 4, 6), (1, 4, 6), (4, 6), (3, 0, 6)):
        yield from ((x, x), (x, x.transpose(-2, -1)), (x.transpose(-2, -1), x), (x, x[:1].transpose(-2, -1)))
        yield from ((x, torch.empty(*x.shape[:-2], 6, 5)), (x, torch.empty(6)), (x, torch.empty(6, 5)))


def copied() -> Iterator[Call]:
    yield from view()
    for x in tensors((3, 4, 6), (2, 3, 4, 6), (2, 2, 2, 2), (2, 1, 3, 4)):
        turned = x.transpose(1, 2)
        for y in (x, turned, x[..., :4], x[:, 1:], turned.transpose(0, 1), x.expand(5, *x.shape)):
            yield from ((y, shape) for shape in ((-1, 2), (2, -1), (3, 2, -1), (-1,), (2, 2, 2, -1), (-1, 4, 2)))
            yield (y, (*y.shape[:-2], -1))
            yield (y, (-1, *y.shape[2:]))


def batch_norm() -> Iterator[Call]:
    for x, dtype in product(tensors(*PICTURES), DTYPES[:2]):
        some, other = torch.empty(6, dtype=dtype), torch.empty(5, dtype=dtype)
        yield (x, some, some, some, some, False, 0.1, 1e-5, True)
        yield (x, None, None, some, some, False, 0.1, 1e-5, True)
        yield (x, other, some, some, some, False, 0.1, 1e-5, True)


def layer_norm() -> Iterator[Call]:
    for x, dtype in product(tensors(*ROWS), DTYPES[:2]):
        some = torch.empty(6, dtype=dtype)
        yield from ((x, [6], some, some, 1e-5, True), (x, (6,), None, None, 1e-5), (x, [5], None, None, 1e-5))


def softmax() -> Iterator[Call]:
    yield from ((x, dim) for x in tensors(*ROWS) for dim in (0, -1, 3, 7))


def linear() -> Iterator[Call]:
    for x, weight in product(tensors(*ROWS, (3, 5)), tensors((7, 6), (0, 6))):
        yield from ((x, weight), (x, weight, torch.empty(7)), (x, weight, torch.empty(1)))


def convolution() -> Iterator[Call]:
    bias = torch.empty(8)
    for x in tensors(*PICTURES):
        for weight in tensors((8, 6, 3, 3), (8, 6, 1, 1), (8, 3, 3, 3), (8, 1, 3, 2), (0, 6, 3, 3)):
            yield (x, weight, bias, (1, 1), (0, 0), (1, 1), 1)
            yield (x, weight, None, [2, 1], [1, 2], [1, 2], 2)
            yield (x, weight, None, 2, 1, 1, 6)
            yield (x, weight, None, (1, 1), "same", (1, 1), 1)


def cat() -> Iterator[Call]:
    for x, dim in product(tensors(*ROWS), (0, 1, -1, 5)):
        yield from (([x, x], dim), ((x, x[:1]), dim), ([x, torch.empty(0)], dim), ([x, x.sum(0)], dim), ([x],))
    for shape in (*ROWS[:3], *PICTURES[:5], (1, 1, 1, 1), (3, 1, 5, 1)):
        for x, y in product(tensors(shape), tensors(shape)):
            yield from (([x, y], 0), ([y, x, y], 1), ([y, y, x], 2))


def view() -> Iterator[Call]:
    for x in tensors(*ROWS):
        shape = tuple(x.shape)
        yield from ((x, (-1, 6)), (x, -1), (x, shape), (x, *shape), (x, (*shape, 1)), (x, (2, -1, 3)), (x, (5, 5)))


def flatten() -> Iterator[Call]:
    yield from ((x, *dims) for x in tensors(*ROWS, ()) for dims in ((), (1,), (0, 1), (1, 1), (-2, -1), (2, 1), (9,)))


def permute() -> Iterator[Call]:
    yield from ((x, order) for x in tensors(*ROWS) for order in ((1, 0, 2), (2, 0, 1, 3), (0,), (0, 0, 1)))


def one_dim() -> Iterator[Call]:
    yield from ((x, dim) for x in tensors(*ROWS, ()) for dim in (0, 1, -1, -2, 3, 7))


def select() -> Iterator[Call]:
    yield from ((x, dim, at) for x in tensors(*ROWS) for dim in (0, 1, -1, 4) for at in (0, 2, -1, 9))


def cut() -> Iterator[Call]:
    ends = ((0, None, 1), (1, 3, 1), (-2, None, 1), (0, 100, 2), (5, 2, 1), (9, 100, 1), (0, -1, 1))
    yield from ((x, dim, *end) for x in tensors(*ROWS) for dim in range(x.dim()) for end in ends)


def expand() -> Iterator[Call]:
    for x in tensors((3, 1, 6), (1,), (), (1, 4), (0, 1)):
        yield from ((x, size) for size in ((3, 4, 6), (2, 3, -1, 6), (5,), (1, 1, 4), (2, 1, 4), (7, 0, 3), (-1, 6)))


def sliced(x: Tensor, dim: int, start: int, end: int | None, step: int) -> Tensor:
    return x[(slice(None),) * dim + (slice(start, end, step),)]


CALLS: dict[str, tuple[Function, Callable[[], Iterator[Call]]]] = {
    "relu": (torch.relu, pointwise),
    "gelu": (torch.ops.aten.gelu, pointwise),
    "silu": (torch.ops.aten.silu, pointwise),
    "hardswish": (torch.ops.aten.hardswish, pointwise),
    "sigmoid": (torch.sigmoid, pointwise),
    "rsqrt": (torch.rsqrt, pointwise),
    "add": (torch.add, arithmetic),
    "sub": (torch.sub, arithmetic),
    "mul": (torch.mul, arithmetic),
    "div": (torch.div, arithmetic),
    "masked_fill": (torch.masked_fill, masked_fill),
    "full_like": (torch.full_like, full_like),
    "roll": (torch.roll, roll),
    "matmul": (torch.matmul, matmul),
    "batch_norm": (torch.batch_norm, batch_norm),
    "layer_norm": (torch.layer_norm, layer_norm),
    "softmax": (torch.softmax, softmax),
    "linear": (functional.linear, linear),
    "conv2d": (torch.conv2d, convolution),
    "cat": (torch.cat, cat),
    "view": (Tensor.view, view),
    "reshape": (Tensor.reshape, copied),
    "flatten": (torch.flatten, flatten),
    "permute": (torch.permute, permute),
    "unsqueeze": (torch.unsqueeze, one_dim),
    "select": (torch.select, select),
    "slice": (sliced, cut),
    "expand": (Tensor.expand, expand),
}
SLOW = {"conv2d": 3, "batch_norm": 3, "linear": 3, "add": 2, "sub": 7, "mul": 7, "div": 7, "gelu": 3, "rsqrt": 3}
"""Of these, each so many-th call is made."""


def forms(operand: Any) -> Any:
    if isinstance(operand, Tensor):
        return form_of(operand)
    return tuple(map(forms, operand)) if isinstance(operand, (tuple, list)) else operand


@pytest.mark.parametrize("op", CALLS)
def test_forms_are_torchs(fakes: Fakes, op: str) -> None:
    function, calls = CALLS[op]
    told = 0
    for args in list(calls())[:: SLOW.get(op, 1)]:
        found = result_of(op, forms(args), {})
        if found is None:
            continue
        told += 1
        expected = function(*args)
        assert found.form == form_of(expected), args
        of = next((a for a in args if isinstance(a, Tensor)), None)
        is_view = of is not None and storage_key(of) == storage_key(expected)
        assert isinstance(found, View) == is_view
    assert told > 3


def test_forms_of_what_broadcasts_are_torchs(fakes: Fakes) -> None:
    told = 0
    for args in broadcast():
        found = result_of("add", forms(args), {})
        told += found is not None
        assert found is None or found.form == form_of(torch.add(*args)), args
    assert told > 30


@pytest.mark.parametrize("shape", [(2, 6, 4, 6), (2, 6, 3, 4, 6), (3, 6, 5), (2, 6, 1, 1)])
@pytest.mark.parametrize("last", [False, True])
def test_group_norm_lies_as_in_eager(shape: tuple[int, ...], last: bool) -> None:
    """Fakes of torch 2.14 are no witness here."""
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(shape) if last else 0, torch.contiguous_format)
    x, weight = torch.randn(shape).to(memory_format=layout), torch.randn(6)
    found = result_of("group_norm", forms((x, 3, weight, weight, 1e-5, True)), {})
    assert isinstance(found, New)
    assert found.form == form_of(torch.group_norm(x, 3, weight, weight))
    assert result_of("group_norm", forms((x, 4, weight, weight, 1e-5, True)), {}) is None


def test_every_usual_call_has_a_form() -> None:
    x = Form((2, 6, 8, 8), (384, 64, 8, 1), 5, torch.float32, CPU)
    row = Form((6,), (1,), 0, torch.float32, CPU)
    weight = Form((8, 6, 3, 3), (54, 9, 3, 1), 0, torch.float32, CPU)
    found = result_of("conv2d", (x, weight, None, (2, 2), (1, 1), (1, 1), 1), {})
    assert found == New(Form((2, 8, 4, 4), (128, 16, 4, 1), 0, torch.float32, CPU))
    assert result_of("batch_norm", (x, row, row, row, row, False, 0.1, 1e-5, True), {}) == New(x._replace(offset=0))
    assert result_of("batch_norm", (x, row, row, row, row, True, 0.1, 1e-5, True), {}) is None
    assert not has_rule("topk")
