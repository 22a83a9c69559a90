"""Training through `torch.compile(backend="dlcb")` against eager: outputs, gradients, buffers, several steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

from dlcb.tests.cases.gradients import CASES
from dlcb.tests.end_to_end.through_dynamo import Graphs


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    torch.manual_seed(0)
    yield
    torch.compiler.reset()


def leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (tuple, list)) else [value]


def train(program: Any, arguments: Sequence[Any]) -> list[Any]:
    """What a call gives, what it does to its arguments and parameters, and all gradients of a weighted sum of its
    results."""
    torch.manual_seed(7)
    results = leaves(program(*arguments))
    wanted = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
    terms = [(r.float() * torch.linspace(0.5, 1.5, r.numel()).reshape(r.shape)).sum() for r in wanted]
    if terms:
        sum(terms).backward()  # pyright: ignore[reportAttributeAccessIssue]
    state: list[Any] = [*results, *arguments]
    if isinstance(program, nn.Module):
        state += [*program.parameters(), *program.buffers()]
    return state


def assert_same(
    got: Sequence[Any], expected: Sequence[Any], rtol: float | None = None, atol: float | None = None
) -> None:
    assert len(got) == len(expected)
    for place, (one, other) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(other, Tensor):
            assert type(one) is type(other), place
            assert one == other, place
            continue
        torch.testing.assert_close(one, other, equal_nan=True, msg=f"result {place} differs", rtol=rtol, atol=atol)
        assert strides(one) == strides(other), place
        assert one.requires_grad == other.requires_grad, place
        if other.is_leaf:
            assert_same([one.grad], [other.grad], rtol, atol)


def strides(tensor: Tensor) -> list[int]:
    """Where there is more than one element."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]


AS_TORCH_FINDS = ("double use", "views", "put", "numbers", "in place", "partly", "embedding", "dropout", "checkpoint")
"""Cases that are also compiled for the sizes of the first call, and again for all where another call has others."""


@pytest.mark.parametrize(
    ("name", "dynamic"), [*((name, True) for name in CASES), *((name, None) for name in AS_TORCH_FINDS)]
)
def test_outputs_and_gradients_are_those_of_eager(name: str, dynamic: bool | None) -> None:
    graphs = Graphs()
    program = CASES[name].make()
    tolerance = {"rtol": 1.6e-2, "atol": 1e-2} if CASES[name].half else {}
    other = copy.deepcopy(program)
    compiled = torch.compile(program, backend="dlcb", dynamic=dynamic)
    for call in CASES[name].calls():
        own = copy.deepcopy(call)
        assert_same(train(compiled, call), train(other, own), **tolerance)
    assert len(graphs), "nothing was compiled"
    assert not [reason for graph in graphs for reason in graph.refusals]


def test_one_backward_graph_serves_all_sizes() -> None:
    """Also where gradients are divided by numbers of elements, as those of norms are."""
    graphs = Graphs()
    model = nn.Sequential(nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4), nn.GroupNorm(2, 4))
    compiled = torch.compile(model, backend="dlcb", dynamic=True)
    for batch, length in ((3, 5), (2, 7), (6, 8), (4, 11)):
        compiled(torch.randn(batch, 4, length)).square().sum().backward()
    assert [len(graph.reports) for graph in graphs] == [1, 1]


def test_backward_twice_and_gradients_that_add_up() -> None:
    def program(x: Tensor) -> Tensor:
        return (x.sin() * x).sum(0)

    x = torch.randn(3, 4, requires_grad=True)
    compiled = torch.compile(program, backend="dlcb", dynamic=True)
    result = compiled(x)
    result.sum().backward(retain_graph=True)
    result.sum().backward()
    compiled(x).sum().backward()
    (expected,) = torch.autograd.grad(program(x).sum(), x)
    torch.testing.assert_close(x.grad, expected * 3)


def tiny_bert() -> nn.Module:
    config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
    config.num_labels = 3
    return BertForSequenceClassification(config)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_transformer_that_is_trained_has_eagers_parameters(optimizer: Any) -> None:
    model = tiny_bert()
    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend="dlcb", dynamic=True)
    batches = [(torch.randint(0, 30, (n, length)), torch.randint(0, 3, (n,))) for n, length in ((3, 6), (2, 9), (4, 5))]
    for program, trained in ((compiled, model), (other, other)):
        steps = optimizer(trained.parameters(), lr=0.01)
        for number, (words, labels) in enumerate(batches):
            torch.manual_seed(number)
            steps.zero_grad()
            program(input_ids=words, labels=labels).loss.backward()
            steps.step()
    for one, same in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, same, rtol=1e-4, atol=1e-4)
