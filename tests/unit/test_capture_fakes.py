"""What torch's operations make of fake tensors, remembered: the same as torch makes, and never where it may not be."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dlcb.errors import UnsupportedError
from dlcb.frontend.capture import capture
from dlcb.frontend.torch_private import FakeTensor, real_tensors, storage_key
from dlcb.frontend.tracing.fakes import Fakes, form_of
from dlcb.frontend.tracing.tracked import symbol
from dlcb.frontend.tracing.tracker import Tracker

F32 = torch.float32


@pytest.fixture
def fakes() -> Generator[Fakes]:
    fakes = Fakes()
    with torch.no_grad(), fakes.mode:
        yield fakes


class Counting:
    """A function that counts how often it runs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.runs = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return self.function(*args, **kwargs)


def tensor(fakes: Fakes, *shape: int, strides: tuple[int, ...] | None = None, dtype: torch.dtype = F32) -> Tensor:
    dense = torch.empty(shape, device="meta").stride() if strides is None else strides
    return fakes.new(shape, dense, dtype, torch.device("cpu"))


def as_list(result: Any) -> list[Any]:
    return [result] if isinstance(result, Tensor) else list(result)


CALLS: dict[str, tuple[Callable[..., Any], Callable[[Fakes], tuple[Any, ...]]]] = {
    "a pointwise one": (torch.add, lambda f: (tensor(f, 3, 4), tensor(f, 4, dtype=torch.float16))),
    "a convolution": (torch.conv2d, lambda f: (tensor(f, 2, 3, 9, 8, strides=(216, 1, 24, 3)), tensor(f, 5, 3, 3, 3))),
    "several results": (torch.topk, lambda f: (tensor(f, 3, 7), 2, -1)),
    "a list": (torch.chunk, lambda f: (tensor(f, 3, 7), 2, 1)),
    "a view": (torch.permute, lambda f: (tensor(f, 3, 7), (1, 0))),
    "a view of a part": (torch.select, lambda f: (tensor(f, 3, 7, strides=(20, 2)), 0, 1)),
    "a view of other elements": (Tensor.view, lambda f: (tensor(f, 3, 8), torch.float16)),
    "an operand": (Tensor.contiguous, lambda f: (tensor(f, 3, 8),)),
    "an operand of two": (lambda a, b: b, lambda f: (tensor(f, 3, 8), tensor(f, 3, 8))),
    "an empty one": (torch.matmul, lambda f: (tensor(f, 0, 8), tensor(f, 8, 5))),
    "expanded": (Tensor.expand, lambda f: (tensor(f, 3, 1), (4, 3, 5))),
    "statistics": (
        torch.batch_norm,
        lambda f: (tensor(f, 2, 4, 5), *[tensor(f, 4) for _ in range(4)], False, 0.1, 1e-5, False),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_the_same_forms_gives_what_torch_gives(fakes: Fakes, name: str) -> None:
    function, operands = CALLS[name]
    counting, tracker = Counting(function), Tracker({})
    fakes.call(counting, operands(fakes), {}, tracker)
    args = operands(fakes)
    found, expected = as_list(fakes.call(counting, args, {}, tracker)), as_list(function(*args))
    assert counting.runs == 1
    assert [form_of(t) for t in found] == [form_of(t) for t in expected]
    given = [a for a in args if isinstance(a, Tensor)]
    for mine, theirs in zip(found, expected, strict=True):
        assert type(mine) is FakeTensor
        assert mine.shape == theirs.shape
        assert mine.stride() == theirs.stride()
        assert mine.device == theirs.device
        assert mine.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
        assert [mine is a for a in given] == [theirs is a for a in given]
        assert [storage_key(mine) == storage_key(a) for a in given] == [
            storage_key(theirs) == storage_key(a) for a in given
        ]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ((1,), (1.0,)),
        ((1,), (True,)),
        ((2,), (3,)),
        (((2, 3),), ((2, 4),)),
        ((torch.float16,), (torch.float32,)),
        ((slice(0, 2),), (slice(0, 3),)),
    ],
)
def test_other_numbers_are_another_call(fakes: Fakes, first: tuple[Any, ...], then: tuple[Any, ...]) -> None:
    counting, tracker = Counting(lambda x, *_: x.clone()), Tracker({})
    for given in (first, then, first):
        fakes.call(counting, (tensor(fakes, 3), *given), {}, tracker)
    assert counting.runs == 2


def test_other_forms_are_another_call(fakes: Fakes) -> None:
    counting, tracker = Counting(torch.relu), Tracker({})
    base = tensor(fakes, 8, 4)
    for operand in (base, base[2:], base.t(), tensor(fakes, 8, 4, dtype=torch.float64), tensor(fakes, 4, 8)):
        assert form_of(fakes.call(counting, (operand,), {}, tracker)) == form_of(torch.relu(operand))
    assert counting.runs == 5


def test_which_operands_are_one_or_share_memory_is_told_apart(fakes: Fakes) -> None:
    """A function may give the one or the other back, or a view of it."""
    counting, tracker = Counting(lambda a, b: a if a is b else b), Tracker({})
    one, other = tensor(fakes, 4), tensor(fakes, 4)
    assert fakes.call(counting, (one, one), {}, tracker) is one
    assert fakes.call(counting, (one, other), {}, tracker) is other
    assert fakes.call(counting, (one, one[:]), {}, tracker) is not one
    assert counting.runs == 3


def test_the_dtype_of_numbers_belongs_to_a_call(fakes: Fakes) -> None:
    counting, tracker = Counting(torch.true_divide), Tracker({})
    operand = tensor(fakes, 4, dtype=torch.int64)
    assert fakes.call(counting, (operand, 2), {}, tracker).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert fakes.call(counting, (operand, 2), {}, tracker).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_function_that_asks_of_sizes_is_asked_again(fakes: Fakes) -> None:
    tracker = Tracker({})
    size = symbol(tracker, "n", 5)
    counting = Counting(lambda x, n: x.relu() if n > 3 else x.clone())
    for _ in range(2):
        fakes.call(counting, (tensor(fakes, 4), size), {}, tracker)
    assert counting.runs == 2


def test_what_needs_gradients_or_can_not_be_made_again_is_not_remembered(fakes: Fakes) -> None:
    tracker = Tracker({})
    part = Counting(lambda x: torch.relu(x)[1:])
    for _ in range(2):
        assert fakes.call(part, (tensor(fakes, 4),), {}, tracker).storage_offset() == 1
    assert part.runs == 2
    counting = Counting(torch.relu)
    with torch.enable_grad():
        fakes.call(counting, (tensor(fakes, 4).requires_grad_(),), {}, tracker)
    assert not fakes.call(counting, (tensor(fakes, 4),), {}, tracker).requires_grad
    assert counting.runs == 2


def test_an_error_comes_each_time(fakes: Fakes) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match="reduction dim"):
            fakes.check(torch.mm, (tensor(fakes, 2, 3), tensor(fakes, 4, 5)), {}, Tracker({}))


def test_twins_are_what_torch_makes_and_share_memory_as_the_tensors_do(fakes: Fakes) -> None:
    with real_tensors():
        base = nn.Parameter(torch.randn(4, 6))
        tensors = [base, base.detach().t(), base.detach()[1:, 2], base.detach().view(torch.int32)]
    twins = [fakes.twin(t) for t in tensors]
    for real, twin in zip(tensors, twins, strict=True):
        expected = fakes.mode.from_tensor(real)
        assert form_of(twin) == form_of(expected)
        assert twin.requires_grad == expected.requires_grad
        assert storage_key(twin) == storage_key(twins[0])
        assert fakes.twin(real) is twin
    assert twins[0].untyped_storage().nbytes() == 96


def test_attention_is_asked_again_where_the_program_allows_other_forms() -> None:
    def program(q: Tensor) -> tuple[Tensor, Tensor]:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            one = functional.scaled_dot_product_attention(q, q, q)
        return one, functional.scaled_dot_product_attention(q, q, q)

    captured = capture(program, (torch.randn(2, 4, 16, 8),))
    assert [record.op for record in captured.records] == ["scaled_dot_product_attention"] * 2


def test_a_tensor_given_other_memory_is_refused() -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 2
        y.data = y + 1
        return y

    with pytest.raises(UnsupportedError, match=r"test_capture_fakes.py:\d+.*data"):
        capture(program, (torch.randn(3, 4),))
