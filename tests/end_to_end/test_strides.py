"""Results lie as in eager: strides of every dim, offset, whose memory they lie in; at several sizes from one compile.

What is asked of many operations is read off the plans of calls: no kernel has to be compiled for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dlcb
from dlcb.errors import LayoutError, UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.lowering.lower import lower
from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.plan import Place
from dlcb.runtime.program import compile_program
from dlcb.runtime.rows import check_program

Lay = Callable[[tuple[int, ...]], Tensor]


def contiguous(sizes: tuple[int, ...]) -> Tensor:
    return torch.randn(sizes)


def reversed_order(sizes: tuple[int, ...]) -> Tensor:
    return torch.randn(sizes[::-1]).permute(*reversed(range(len(sizes))))


def sliced(sizes: tuple[int, ...]) -> Tensor:
    whole = torch.randn([size * 2 + 1 for size in sizes])
    return whole[tuple(slice(1, 2 * size + 1, 2) for size in sizes)]


def expanded(sizes: tuple[int, ...]) -> Tensor:
    return torch.randn(sizes[1:]).expand(sizes)


def channels_last(sizes: tuple[int, ...]) -> Tensor:
    n, c, h, w = sizes
    return torch.randn(n, h, w, c).permute(0, 3, 1, 2)


def crossed(sizes: tuple[int, ...]) -> Tensor:
    n, c, h, w = sizes
    return torch.randn(c, n, w, h).permute(1, 0, 3, 2)


MATRICES = [contiguous, reversed_order, sliced, expanded]
IMAGES = [contiguous, channels_last, crossed, sliced]


def lies(arguments: Any, results: Any) -> list[Any]:
    """Of every tensor: sizes, strides, and the first one in whose memory it lies, with the place there."""
    tensors = [t for t in private.flatten((arguments, results))[0] if isinstance(t, Tensor)]
    memory = [t.untyped_storage().data_ptr() for t in tensors]
    return [
        (tuple(t.shape), t.stride() if t.numel() > 1 else (), memory.index(at) if t.numel() else -1, t.storage_offset())
        for t, at in zip(tensors, memory, strict=True)
    ]


def holds(program: Callable[..., Any], *calls: tuple[Callable[[], Tensor], ...]) -> None:
    """One compile, for the first call; at each call results and arguments lie and are as in eager."""
    model: Callable[..., Any] | None = None
    for call in calls:
        theirs, mine, example = (made(call) for _ in range(3))
        model = model or dlcb.compile(program, example, target="cpu")
        with torch.no_grad():
            expected = program(*theirs)
        actual = model(*mine)
        assert lies(mine, actual) == lies(theirs, expected)
        pairs = zip(private.flatten((mine, actual))[0], private.flatten((theirs, expected))[0], strict=True)
        for number, (a, b) in enumerate(pairs):
            torch.testing.assert_close(a, b, msg=lambda text, number=number: f"tensor {number}: {text}")


def plans(program: Callable[..., Any], *calls: tuple[Callable[[], Tensor], ...]) -> None:
    """One lowering, for the first call; by the plan of each call its results lie as in eager."""
    captured = capture(program, made(calls[0]))
    checked = check_program(lower(import_captured(captured).module).programs["main"])
    weights = [n for n, a in enumerate(checked.arguments) if a.kind == "weight"]
    plan_function = compile_program(checked)
    for call in calls:
        arguments = made(call)
        facts = CallerArguments(checked, torch.device("cpu")).facts(arguments, [16] * len(weights), weights)
        found = plan_function(facts)
        with torch.no_grad():
            expected = private.flatten(program(*arguments))[0]
        for number, (place, tensor) in enumerate(zip(found.results, expected, strict=True)):
            assert isinstance(place, Place)
            if found.roots[place.root].kind != "result":  # memory that a library routine makes
                assert (place.sizes, place.strides) == (tensor.shape, tensor.stride()), f"result {number}"


def made(call: tuple[Callable[[], Tensor], ...]) -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    return tuple(make() for make in call)


def at(lay: Lay, *all_sizes: tuple[int, ...]) -> list[tuple[Callable[[], Tensor], ...]]:
    return [(lambda sizes=sizes: lay(sizes),) for sizes in all_sizes]


# Memory of their own


def computed(x: Tensor) -> Any:
    turned = x.t().contiguous().t()
    return (
        x.relu() + 1, x.exp(), x.double(), x.half(), x > 0, x * x[0], x + turned, turned + x, x[:, :1] + x[:1],
        torch.where(x > 0, x, turned), x.softmax(-1), x.sum(0), x.mean(1, keepdim=True), x.amax(0, keepdim=True),
        x.clone(), x.t().clone(), x.contiguous() * 2, x.clone(memory_format=torch.contiguous_format),
        torch.zeros_like(x), torch.full_like(x.t(), 2.0), torch.cat([x, x]), torch.stack([x, x], -1), x.flip(0),
        x @ x.t(), x.t() @ x, F.layer_norm(x, x.shape[1:]), x[torch.tensor([0, 0])], x.gather(0, x.long() * 0),
    )  # fmt: skip


@pytest.mark.parametrize("lay", MATRICES)
def test_what_is_computed_of_a_matrix(lay: Lay) -> None:
    plans(computed, *at(lay, (3, 4), (7, 2), (2, 33)))


def image(x: Tensor) -> Any:
    kernel = torch.ones(4, 3, 3, 3)
    return (
        x.relu() + 1, x * x.mean((2, 3), keepdim=True), torch.copysign(x, x - 0.5), x.sum(1), x.mean((2, 3)),
        F.interpolate(x, scale_factor=2, mode="nearest"), F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.conv2d(x, kernel),
        F.conv2d(x, kernel, padding=1).relu(), x.to(memory_format=torch.channels_last) + 0, x.softmax(1),
        x.to(torch.float64, memory_format=torch.channels_last), x.clone(memory_format=torch.contiguous_format),
        x.contiguous(memory_format=torch.channels_last) + x, F.group_norm(x, 3), torch.cat([x, x], 1),
        F.pad(x, (1, 1)), x @ x.transpose(-1, -2), F.linear(x, torch.ones(5, x.shape[-1])), x + torch.ones(3, 1, 1),
    )  # fmt: skip


@pytest.mark.parametrize("lay", IMAGES)
def test_what_is_computed_of_an_image(lay: Lay) -> None:
    plans(image, *at(lay, (2, 3, 4, 6), (5, 3, 6, 4)))


def some_of_an_image(x: Tensor) -> Any:
    normal = x * x.mean((2, 3), keepdim=True)
    return normal.relu() + 1, F.conv2d(normal, torch.ones(4, 3, 3, 3)), F.max_pool2d(x, 2)


@pytest.mark.parametrize("lay", IMAGES)
def test_kernels_and_library_routines_write_results_as_they_lie(lay: Lay) -> None:
    holds(some_of_an_image, *at(lay, (2, 3, 4, 6), (5, 3, 6, 4)))


def test_half_precision_convolutions_lie_as_in_eager() -> None:
    kernel = torch.randn(4, 3, 3, 3).bfloat16()

    def convolves(x: Tensor) -> Any:
        return F.conv2d(x.bfloat16(), kernel).relu()

    holds(convolves, *at(contiguous, (2, 3, 6, 6)))
    holds(convolves, *at(channels_last, (2, 3, 6, 6), (1, 3, 7, 5)))


def test_dims_of_size_one_have_the_strides_of_eager() -> None:
    def program(x: Tensor) -> Any:
        return x.relu() + 1, x.exp() * x, x + x[0], x.sum(0), x.t(), x.unsqueeze(1), x.expand(2, *x.shape)

    holds(program, *at(reversed_order, (3, 4), (1, 4), (3, 1), (1, 1)))
    plans(program, *at(contiguous, (3, 4), (1, 4), (3, 1)))
    plans(lambda x: (x.relu(), F.max_pool2d(x, 2)), *at(channels_last, (2, 3, 4, 6), (1, 5, 6, 4)))


def test_a_layout_that_was_not_compiled_for_gives_right_values_in_the_order_of_the_example() -> None:
    model = dlcb.compile(lambda x: (x * 2, x.sum(0)), (torch.randn(3, 4),), target="cpu")
    x = torch.randn(5, 3).t()
    doubled, total = model(x)
    torch.testing.assert_close(doubled, x * 2)
    torch.testing.assert_close(total, x.sum(0))
    assert doubled.stride() == (5, 1)


# Views of what is computed


def views_of_one(x: Tensor) -> Any:
    b = x + 1
    return b.T.flatten(), b.T, b.sum(0).unsqueeze(0).expand(b.shape[1], -1), b[1:], b[:, 0], (x * 2)[:, ::2], b * 1


@pytest.mark.parametrize("lay", MATRICES)
def test_views_of_a_value_lie_in_its_memory(lay: Lay) -> None:
    holds(views_of_one, *at(lay, (3, 4), (2, 5), (4, 2)))


def test_a_value_and_its_copies_have_memory_of_their_own() -> None:
    def program(x: Tensor) -> Any:
        b = x.exp()
        return b, b.clone(), b.t(), b.t().clone(), b.t().contiguous(), x.clone()[0]

    holds(program, *at(contiguous, (3, 4), (2, 5)))
    holds(program, *at(reversed_order, (3, 4), (2, 5)))


# Views of arguments


def views_of_argument(x: Tensor) -> Any:
    return x, x.t()[1:], x[:, 0], x[::2].unsqueeze(-1), x.expand(3, *x.shape), *x.chunk(2, 0), x.detach(), x.t().t()


@pytest.mark.parametrize("lay", MATRICES)
def test_views_of_an_argument_lie_in_it(lay: Lay) -> None:
    holds(views_of_argument, *at(lay, (4, 5), (4, 2), (4, 1)))


def test_reshapes_of_an_argument_are_views_where_eager_has_views() -> None:
    holds(lambda x: (x.view(-1), x.reshape(2, -1), x.flatten()), *at(contiguous, (4, 6), (2, 3), (1, 2), (2, 1)))
    holds(lambda x: (x.t().view(-1), x.reshape(-1)), *at(reversed_order, (4, 6), (2, 3)))
    holds(lambda x: (x.view(-1, 2, x.shape[1]), x.unflatten(0, (2, -1))), *at(sliced, (4, 6), (6, 3)))


def test_writing_into_a_returned_view_writes_into_the_argument() -> None:
    model = dlcb.compile(lambda x: (x.view(-1), x.t()[1:]), (torch.randn(3, 4),), target="cpu")
    x = torch.zeros(2, 5)
    flat, turned = model(x)
    flat[3] = 1
    turned[0, 1] = 2
    assert x[0, 3] == 1
    assert x[1, 1] == 2


def test_views_of_updated_arguments() -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        x.add_(1)
        y.copy_(x.t())
        return x.view(-1), y.t(), y[1:], x.t() * 1

    for lay in (contiguous, reversed_order):
        pairs = zip(at(contiguous, (3, 4), (5, 2)), at(lay, (4, 3), (2, 5)), strict=True)
        holds(program, *((*one, *other) for one, other in pairs))


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 6))
        self.register_buffer("turned", torch.randn(6, 4).t())

    def forward(self, x: Tensor) -> Any:
        turned = self.get_buffer("turned")
        return x + self.weight[0, 0], self.weight.t(), self.weight[1:], turned, turned.t(), turned[:, 1]


def test_views_of_weights_lie_in_them() -> None:
    holder = Holder().eval().requires_grad_(False)
    model = dlcb.compile(holder, (torch.randn(2),), target="cpu")
    x = torch.randn(3)
    for mine, theirs in zip(model(x)[1:], holder(x)[1:], strict=True):
        assert mine.data_ptr() == theirs.data_ptr()
        assert mine.stride() == theirs.stride()
        assert torch.equal(mine, theirs)


def test_a_channels_last_model_takes_its_weights_as_they_lie() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval()
    model = model.requires_grad_(False).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    holds(model, *at(contiguous, (2, 3, 8, 8), (1, 3, 9, 7)))


# What strides do not allow


def test_a_view_that_eager_refuses_is_refused() -> None:
    model = dlcb.compile(lambda x: x.view(-1), (torch.randn(3, 4),), target="cpu")
    with pytest.raises(
        UserError, match=r"test_strides.py:\d+ .* which its strides do not allow: there are gaps"
    ) as error:
        model(torch.randn(4, 3).t())
    assert not isinstance(error.value, LayoutError)


def test_a_reshape_that_would_be_a_copy_is_told_apart() -> None:
    model = dlcb.compile(lambda x: x.reshape(-1), (torch.randn(3, 4),), target="cpu")
    with pytest.raises(LayoutError, match=r"test_strides.py:\d+ .* compiled for arguments whose strides do"):
        model(torch.randn(4, 3).t())


# What programs ask


def test_a_program_that_asks_for_strides_gets_those_of_its_arguments() -> None:
    def program(x: Tensor) -> Any:
        return x * x.stride(0), x + x.stride(-1), x * 2 if x.is_contiguous() else x * 3

    holds(program, *at(contiguous, (3, 4), (2, 5)))
    holds(program, *at(reversed_order, (3, 4), (2, 5)))


def test_through_dynamo_each_layout_is_compiled_for() -> None:
    def program(x: Tensor) -> Any:
        return x.relu() + 1, x.t()

    compiled = torch.compile(program, backend="dlcb", dynamic=True)
    for lay in MATRICES:
        x = lay((3, 4))
        for mine, theirs in zip(compiled(x), program(x), strict=True):
            torch.testing.assert_close(mine, theirs)
            assert mine.stride() == theirs.stride()


def test_a_program_that_asks_how_its_arguments_lie_takes_no_others() -> None:
    def program(x: Tensor) -> Tensor:
        return x * 2 if x.is_contiguous() else x * 3

    def by_stride(x: Tensor) -> Tensor:
        return x * x.stride(0)

    for asked in (program, by_stride):
        model = dlcb.compile(asked, (torch.randn(3, 4),))
        for shape in ((3, 4), (5, 2), (1, 7), (4, 1), (0, 3), (3, 0)):
            x = torch.randn(shape)
            assert torch.equal(model(x), asked(x))
        for other in (torch.randn(4, 3).t(), torch.randn(3, 8)[:, ::2], torch.randn(3, 8)[:, :4]):
            with pytest.raises(LayoutError, match="x lies in memory otherwise"):
                model(other)
        each = dlcb.compile(asked)
        for x in (torch.randn(3, 4), torch.randn(4, 3).t()):
            assert torch.equal(each(x), asked(x))
