"""What a user reads after a typical mistake: the whole text, which names what was given, what was expected, where."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dlcb
from dlcb.errors import DlcbError

rand = torch.randn
HERE = r"test_error_texts\.py:\d+"


def linear() -> nn.Module:
    return nn.Linear(4, 3).eval()


def compile(*args: Any, **words: Any) -> Any:
    return dlcb.compile(linear(), *args, **words)


Dims = dict[str, dict[int, str]]


def named(program: Callable[..., Any], sizes: list[tuple[int, ...]], dynamic: Dims | None = None, **first: str) -> Any:
    """With names for dims, or for first dims."""
    return dlcb.compile(program, tuple(map(rand, sizes)), dynamic or {name: {0: dim} for name, dim in first.items()})


def one_more(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.shape[0] != y.shape[0] + 1:
        raise ValueError("other sizes")
    return x.sum() + y.sum()


X = (rand(2, 4),)
AT_COMPILE: dict[str, tuple[Callable[[], Any], str]] = {
    "a tensor, no tuple": (
        lambda: compile(rand(2, 4)),
        r"example_inputs is a Tensor; pass a tuple of positional arguments, \(x,\), or a dict",
    ),
    "a number as the example": (
        lambda: compile(3),
        r"example_inputs is a int; pass a tuple of positional arguments, \(x,\), or a dict",
    ),
    "too many arguments": (
        lambda: compile((rand(2, 4), rand(2))),
        r"the program fails on its example inputs: Linear.forward\(\) takes 2 positional arguments but 3 were given .*",
    ),
    "a wrong size": (
        lambda: compile((rand(2, 5),)),
        rf"the program fails on its example inputs: .*\[2, 5\] X \[4, 3\].*\({HERE}\)",
    ),
    "an example on meta": (
        lambda: compile((rand(2, 4, device="meta"),)),
        r"a parameter or example input is on the meta device, where nothing can run; move it to cpu or cuda",
    ),
    "a target elsewhere": (
        lambda: compile(X, target="cuda"),
        r"target 'cuda', but the model and its inputs are on cpu; move them first",
    ),
    "no such target": (lambda: compile(X, target="tpu"), r"target is 'tpu', expected cuda, cpu, reference"),
    "no such weights": (lambda: compile(X, weights="cold"), r"weights is 'cold', expected 'live' or 'frozen'"),
    "one name for dims that differ": (
        lambda: compile((rand(3, 4),), dynamic={"input": {0: "n", 1: "n"}}),
        r"dynamic calls both input.shape\[0\] and input.shape\[1\] 'n', but they are 3 and 4 in the example; "
        rf"at other sizes, linear \({HERE}\) gets \[input.shape\[0\], input.shape\[1\]\] = \[11, 11\] and "
        r"\[3, 4\] and \[3\]: .*",
    ),
    "one name for dims that differ, as the program wants": (
        lambda: named(lambda x, y: x[1:] + y, [(5, 3), (4, 3)], x="n", y="n"),
        r"dynamic calls both x.shape\[0\] and y.shape\[0\] 'n', but they are 5 and 4 in the example; at other sizes, "
        rf"add \({HERE}\) gets \[x.shape\[0\] - 1, 3\] = \[10, 3\] and \[y.shape\[0\], 3\] = \[11, 3\]: .*",
    ),
    "one name for dims that differ in the example alone": (
        lambda: named(lambda x, y: x.sum(0) * y.sum(0), [(5, 3), (4, 3)], x="n", y="n"),
        r"dynamic calls both x.shape\[0\] and y.shape\[0\] 'n', but they are 5 and 4 in the example; "
        r"give an example where they are equal, which the program takes",
    ),
    "one name for dims that are asserted to differ": (
        lambda: named(one_more, [(5, 3), (4, 3)], x="n", y="n"),
        r"dynamic calls both x.shape\[0\] and y.shape\[0\] 'n', but they are 5 and 4 in the example; at other sizes, "
        rf"other sizes \({HERE}; x.shape\[0\] is 11 and y.shape\[0\] \+ 1 is 12, compared at {HERE}\)",
    ),
    "two names for dims of which one follows from the other": (
        lambda: named(lambda x, y: x.view(-1, 2) + y[:, None], [(8,), (4,)], x="n", y="m"),
        r"dynamic lets x.shape\[0\] vary \('n'\), which the program refuses: at other sizes, add "
        rf"\({HERE}\) gets \[x.shape\[0\] // 2, 2\] = \[\d+, 2\] and \[y.shape\[0\], 1\] = \[\d+, 1\]: .*",
    ),
    "a name for one of two dims that must be equal": (
        lambda: named(lambda x, y: x @ y, [(2, 4), (4, 3)], {"x": {1: "k"}}),
        r"dynamic lets x.shape\[1\] vary \('k'\), which the program refuses: at other sizes, matmul "
        rf"\({HERE}\) gets \[2, x.shape\[1\]\] = \[2, 11\] and \[4, 3\]: .*",
    ),
    "a name for a dim that broadcasts in the example alone": (
        lambda: named(lambda x, y: x[1:] + y, [(7, 3), (1, 3)], x="n", y="m"),
        r"dynamic lets y.shape\[0\] vary \('m'\), which the program refuses: at other sizes, add "
        rf"\({HERE}\) gets \[x.shape\[0\] - 1, 3\] = \[12, 3\] and \[y.shape\[0\], 3\] = \[11, 3\]: .*",
    ),
    "no such dynamic": (
        lambda: compile(X, dynamic="all"),
        r"dynamic is 'all', expected 'auto', True, False or a dict such as \{'x': \{0: 'batch'\}\}",
    ),
    "no such argument": (
        lambda: compile(X, dynamic={"y": {0: "n"}}),
        r"dynamic names 'y'; the arguments with sizes are \['input'\]",
    ),
    "no such dim": (
        lambda: compile(X, dynamic={"input": {3: "n"}}),
        r"dynamic names dim 3 of 'input', which has 2 dims",
    ),
    "a dim that can't vary": (
        lambda: compile(X, dynamic={"input": {1: "n"}}),
        r"dynamic lets input.shape\[1\] vary \('n'\), which the program refuses: at other sizes, linear "
        rf"\({HERE}\) gets \[2, input.shape\[1\]\] = \[2, 11\] and \[3, 4\] and \[3\]: .*",
    ),
    "no model": (
        lambda: dlcb.compile(3, X),  # pyright: ignore[reportCallIssue, reportArgumentType]
        r"the model is a int; pass a module, a function or an exported program",
    ),
    "TorchScript": (
        lambda: dlcb.compile(torch.jit.ScriptModule(), X),
        r"the model is TorchScript; compile the Python module or function that it was made of",
    ),
    "in training": (
        lambda: dlcb.compile(nn.Sequential(nn.Linear(4, 3), nn.Dropout()), X),
        r"Sequential is in training mode; call .eval\(\) first",
    ),
    "control flow on data": (
        lambda: dlcb.compile(lambda x: x if x.sum() > 0 else -x, X),
        rf"__bool__: {HERE}: Python would wait for elements of a tensor; DLCB compiles programs whose branches and"
        " sizes do not depend on elements",
    ),
    "a size that is an element": (
        lambda: dlcb.compile(lambda x: torch.arange(int(x.long().sum().item())), X, fullgraph=False),
        rf"int\(\): {HERE}: Python would wait for elements of a tensor; DLCB compiles programs whose branches and"
        " sizes do not depend on elements",
    ),
    "an op without a kernel": (
        lambda: dlcb.compile(lambda x: x.sort()[0], X),
        rf"sort: {HERE}: DLCB has no such operation\nfullgraph=False lets eager run what is not compiled",
    ),
    "a sparse argument": (
        lambda: dlcb.compile(lambda x: x * 2, (rand(2, 4).to_sparse(),)),
        r"argument x: a tensor of torch.float32, torch.sparse_coo; DLCB takes dense tensors",
    ),
    "an object as argument": (
        lambda: dlcb.compile(lambda x, o: x, (*X, object())),
        r"argument o is a object; pass the tensors in it",
    ),
    "a missing file": (lambda: dlcb.load("nowhere.dlcb"), r"nowhere.dlcb: no such file"),
}


@pytest.mark.parametrize(("mistake", "text"), AT_COMPILE.values(), ids=AT_COMPILE.keys())
def test_a_mistake_is_named_before_anything_is_compiled(mistake: Callable[[], Any], text: str) -> None:
    with pytest.raises(DlcbError) as caught:
        mistake()
    assert re.fullmatch(text, str(caught.value)), str(caught.value)


def test_mistakes_with_a_compiled_model(tmp_path: Path) -> None:
    model = dlcb.compile(linear(), X)
    file = tmp_path / "linear.dlcb"
    model.save(file)
    whole = file.read_bytes()
    (tmp_path / "half.dlcb").write_bytes(whole[: len(whole) // 2])
    partly = dlcb.compile(lambda x: (x * 2 + 1).sort(-1)[0].exp() + 1, X, fullgraph=False, name="partly")
    mistakes: dict[str, Callable[[], Any]] = {
        r"Linear: input has rank 1 \(shape \[4\]\), expected rank 2": lambda: model(rand(4)),
        r"Linear: input has dtype torch.float16, expected torch.float32": lambda: model(rand(2, 4).half()),
        r"Linear: input is on meta, expected cpu": lambda: model(rand(2, 4, device="meta")),
        r"Linear: input.shape\[1\] is 5 but weight 'weight' needs 4 .*": lambda: model(rand(2, 5)),
        r"Linear: compiled for the arguments \(input\); missing: input": lambda: model(),
        r"Linear: refresh_weights\(\) is for weights='frozen'; .*": model.refresh_weights,
        r".*half.dlcb: not a usable .dlcb file: .*": lambda: dlcb.load(tmp_path / "half.dlcb"),
        r"Linear was compiled for cpu, not for cuda": lambda: dlcb.load(file, device="cuda"),
        r".*x.dlcb: can't be written: No such file or directory": lambda: model.save(tmp_path / "no" / "x.dlcb"),
        r"partly can't be saved: it runs operations in eager, .*": lambda: partly.save(tmp_path / "partly.dlcb"),
    }
    for text, mistake in mistakes.items():
        with pytest.raises(DlcbError) as caught:
            mistake()
        assert re.fullmatch(text, str(caught.value)), str(caught.value)


def test_two_names_for_dims_that_must_be_equal_are_one_size() -> None:
    model = named(lambda x, y: x @ y, [(2, 4), (4, 3)], {"x": {1: "k"}, "y": {0: "m"}})
    assert re.fullmatch(rf"equal to x_1 by matmul: {HERE}: inner sizes differ", model.dimensions()["y.shape[0]"])
    with pytest.raises(DlcbError) as caught:
        model(rand(2, 6), rand(5, 3))
    text = rf"<lambda>: y.shape\[0\] is 5 but x.shape\[1\] is 6 \(matmul, {HERE}: inner sizes differ\)"
    assert re.fullmatch(text, str(caught.value)), str(caught.value)
