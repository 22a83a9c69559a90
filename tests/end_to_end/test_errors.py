"""What is wrong is refused before anything runs, in words that name the argument, both values, and who asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.errors import UnsupportedError, UserError
from dlcb.runtime.call import BoundCall
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import compiled, rand

HERE = r"test_errors\.py:\d+"


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj, self.norm = nn.Linear(768, 32), nn.LayerNorm(32)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.norm(self.proj(x)) + y


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


def refuses(model: CompiledModel, text: str, *args: Any, **kwargs: Any) -> None:
    """The call is refused with this text, and nothing was launched."""
    launched: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoundCall, "execute", lambda *given: launched.append(given))
        with pytest.raises(UserError) as caught:
            model(*args, **kwargs)
    assert re.fullmatch(text, str(caught.value)), str(caught.value)
    assert not launched


@pytest.fixture(scope="module")
def encoder() -> CompiledModel:
    return compiled(Encoder().eval(), (rand(2, 5, 768), rand(2, 5, 32)), name="encoder")


def test_a_size_that_a_weight_fixes(encoder: CompiledModel) -> None:
    text = rf"Encoder: x\.shape\[2\] is 700 but weight 'proj\.weight' needs 768 \(matmul, {HERE}\)"
    refuses(encoder, text, rand(2, 5, 700), rand(2, 5, 32))
    net = compiled(Net().eval(), (rand(2, 3, 9, 9),))
    refuses(
        net, rf"Net: x\.shape\[1\] is 4 but weight 'conv\.weight' needs 3 \(convolution, {HERE}\)", rand(2, 4, 9, 9)
    )
    larger = rf"Net: x\.shape\[2\] is 2 but must be at least 3 \(convolution, {HERE}: the kernel is larger.*"
    refuses(net, larger, rand(2, 3, 2, 9))


def test_sizes_that_do_not_fit_each_other(encoder: CompiledModel) -> None:
    broadcast = rf"Encoder: x\.shape\[0\] is 2 but y\.shape\[0\] is 3 \(add, {HERE}: sizes that do not broadcast\)"
    refuses(encoder, broadcast, rand(2, 5, 768), rand(3, 5, 32))

    def program(a: Tensor, b: Tensor, k: int) -> tuple[Tensor, ...]:
        return torch.cat([a, b], 1), a[k], a.view(-1, 2), a @ b.t()

    model = compiled(program, (rand(4, 6), rand(4, 6), 2))
    concat = rf"program: b\.shape\[0\] is 5 but a\.shape\[0\] is 4 \(concat, {HERE}: .*\)"
    refuses(model, concat, rand(4, 6), rand(5, 6), 2)
    matmul = rf"program: b\.shape\[1\] is 7 but a\.shape\[1\] is 6 \(matmul, {HERE}: inner sizes differ\)"
    refuses(model, matmul, rand(4, 6), rand(4, 7), 2)
    index = rf"program: k \+ 1 is 5 but must be at most a\.shape\[0\] is 4 \(slice, {HERE}: slice out of range\)"
    refuses(model, index, rand(4, 6), rand(4, 6), 4)
    divided = rf"program: a\.shape\[0\]\*a\.shape\[1\] is 15 but must be divisible by 2 \(reshape, {HERE}: .*\)"
    refuses(model, divided, rand(3, 5), rand(3, 5), 1)


def test_a_branch_that_the_trace_did_not_take() -> None:
    def program(x: Tensor) -> Tensor:
        return x + 1 if x.shape[0] > 3 else x - 1

    model = compiled(program, (rand(5, 2),), branches=1)
    refuses(model, rf"program: x\.shape\[0\] is 2 but must be more than 3: compared at {HERE}", rand(2, 2))


def test_a_size_at_which_alone_the_program_runs() -> None:
    def program(x: Tensor) -> Tensor:
        return x.reshape(-1, 2, 3).sum(1) + x

    model = compiled(program, (rand(2, 3),))
    assert model.dimensions()["x.shape[1]"].startswith("pinned to 3")
    refuses(model, rf"program: x\.shape\[1\] is 4 but must be 3: at other sizes, .*\({HERE}\)", rand(2, 4))


def test_arguments_of_the_wrong_kind(encoder: CompiledModel) -> None:
    x, y = rand(2, 5, 768), rand(2, 5, 32)
    refuses(encoder, r"Encoder: y has dtype torch\.float16, expected torch\.float32", x, y.half())
    refuses(encoder, r"Encoder: x has rank 2 \(shape \[5, 768\]\), expected rank 3", x[0], y)
    refuses(encoder, r"Encoder: y is on meta, expected cpu", x, y.to("meta"))
    refuses(encoder, r"Encoder: y must be a tensor, got int 3", x, 3)
    refuses(encoder, r"Encoder: y has layout torch\.sparse_coo, expected a dense tensor", x, y.to_sparse())
    refuses(encoder, r"Encoder: compiled for the arguments \(x, y\); missing: y", x)
    refuses(encoder, r"Encoder: compiled for the arguments \(x, y\); unknown: z", x, y, z=y)
    refuses(encoder, r"Encoder: compiled for the arguments \(x, y\); given twice: x", x, y, x=x)
    refuses(encoder, r"Encoder: compiled for the arguments \(x, y\); 3 positional", x, y, y)

    def program(parts: dict[str, Tensor], n: int) -> Tensor:
        return parts["a"] * n

    model = compiled(program, ({"a": x}, 2))
    refuses(model, r"program: the arguments are .*'b'.*, compiled for .*'a'.*", {"b": x}, 2)
    refuses(model, r"program: n must be an int, got .*2\.5", {"a": x}, 2.5)


def test_updated_arguments_that_share_memory() -> None:
    def program(x: Tensor, y: Tensor) -> None:
        x.add_(y)

    model = compiled(program, (rand(4, 3), rand(4, 3)))
    whole = rand(5, 3)
    refuses(model, r"program: x is updated in place, but shares memory with y; pass a copy.*", whole[1:], whole[:-1])
    refuses(model, r"program: x is updated in place, but .*", rand(1, 3).expand(4, 3), rand(4, 3))


HINT = r"\nfullgraph=False lets eager run what is not compiled"
NOT_COMPILED: dict[str, tuple[Callable[..., Any], str]] = {
    "an op": (lambda x: torch.fft.fft(x), rf"fft_fft: {HERE}: DLCB has no such operation{HINT}"),
    "a branch on elements": (lambda x: x + 1 if x.sum() > 0 else x, rf"__bool__: {HERE}: .*depend on elements"),
    "an integer from elements": (lambda x: x + int(x.sum()), rf"__int__: {HERE}: .*depend on elements"),
    "sizes from elements": (lambda x: x[x > 0], rf"index: {HERE}: .*depends on elements{HINT}"),
    "several ops": (
        lambda x: torch.fft.fft(x).abs().sort(),
        rf"3 operations are not supported:\n  fft_fft: {HERE}: .*\n  abs: .*complex64.*\n  sort: .*\nfullgraph.*",
    ),
    "random numbers": (lambda x: x + torch.randn(3), rf"randn: {HERE}: random numbers.*{HINT}"),
    "an object as result": (lambda x: object(), r"the program returns a object.*"),
}


@pytest.mark.parametrize(("program", "text"), NOT_COMPILED.values(), ids=NOT_COMPILED.keys())
def test_what_is_not_compiled_is_named_with_its_line(program: Callable[..., Any], text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        dlcb.compile(program, (rand(3, 3),))
    assert re.fullmatch(text, str(caught.value)), str(caught.value)


def test_programs_that_eager_refuses_too() -> None:
    linear = nn.Linear(3, 4).eval()
    for example, text in (
        ((rand(3, 5),), r"fails on its example inputs: .*\(test_errors\.py:\d+\)"),
        ((rand(3, 3), 4), "fails on its example inputs"),
        ({"wrong": rand(3, 3)}, "fails on its example inputs: .*'wrong'"),
    ):
        with pytest.raises(UserError, match=text):
            dlcb.compile(linear, example)
    with pytest.raises(UserError, match=r"example_inputs is a Tensor; pass a tuple"):
        dlcb.compile(linear, rand(3, 3))  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_training_mode() -> None:
    with pytest.raises(UserError, match=r"Dropout is in training mode; call \.eval\(\) first"):
        dlcb.compile(nn.Dropout(), (rand(3),))
    inner = nn.Sequential(nn.Linear(3, 3), nn.Dropout()).eval()
    inner[1].train()
    with pytest.raises(UnsupportedError, match=r"dropout: .*random numbers; call \.eval\(\)"):
        dlcb.compile(inner, (rand(2, 3),))


def test_the_machine_lacks_something(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="target 'cuda', but the model and its inputs are on cpu; move them first"):
        dlcb.compile(nn.ReLU().eval(), (rand(2),), target="cuda")
    with pytest.raises(UserError, match="target is 'tpu', expected cuda, cpu, reference"):
        dlcb.compile(nn.ReLU().eval(), (rand(2),), target="tpu")  # pyright: ignore[reportCallIssue, reportArgumentType]
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "2.99.1+cpu")
        with pytest.raises(UserError, match=r"torch 2\.99\.1\+cpu is installed; .* torch >= 2\.11, < 2\.16: pip"):
            dlcb.compile(nn.ReLU().eval(), (rand(2),))
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        patch.delenv("CXX", raising=False)
        with pytest.raises(
            UserError, match=r"the cpu target needs a C\+\+17 compiler, but none of .* is there; install"
        ):
            dlcb.compile(nn.ReLU().eval(), (rand(2),))
