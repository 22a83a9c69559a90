"""Capture of real models: free where eager accepts sizes to vary, and equal to eager at other sizes."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.retrace import retrace
from dlcb.frontend.tracing.records import Captured
from dlcb.frontend.tracing.replay import replay

transformers = pytest.importorskip("transformers")


class Block(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer))
        self.second = nn.Sequential(nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.relu(self.first(x)))
        y += self.down(x)
        return self.relu(y)


class SmallResNet(nn.Module):
    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.body = nn.Sequential(*(Block(8, 8, 1) for _ in range(blocks)), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.pool(self.body(self.stem(x))), 1))


def agrees(captured: Captured, program: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Eager's answers, and where no size is 1 the same program when it is traced at these sizes."""
    sizes = [n for leaf in private.flatten((args, kwargs))[0] if isinstance(leaf, Tensor) for n in leaf.shape]
    if 1 not in sizes:
        assert retrace(captured, program, args, kwargs) is None
    with torch.no_grad():
        expected = private.flatten(program(*args, **kwargs))[0]
    actual = private.flatten(replay(captured, args, kwargs))[0]
    for want, got in zip(expected, actual, strict=True):
        torch.testing.assert_close(got, want)


def free(captured: Captured) -> set[str]:
    return {str(s) for i in captured.inputs for s in i.symbols} - {p.symbol for p in captured.pins}


def test_a_resnet_varies_in_batch_and_image_size() -> None:
    model = SmallResNet(1).eval()
    captured = capture(model, (torch.randn(2, 3, 32, 32),))
    assert free(captured) == {"x_0", "x_2", "x_3"}
    assert not captured.checks
    for sizes in ((1, 3, 32, 32), (3, 3, 33, 47)):
        agrees(captured, model, (torch.randn(sizes),), {})


def test_a_resnet_of_fifty_convolutions_is_captured_in_half_a_second() -> None:
    model = SmallResNet(16).eval()
    capture(model, (torch.randn(2, 3, 32, 32),))
    start = time.process_time()
    capture(model, (torch.randn(2, 3, 32, 32),))
    assert time.process_time() - start < 0.5


def tokens(*sizes: int) -> Tensor:
    return torch.randint(0, 100, sizes)


@pytest.mark.parametrize("masked", [False, True])
def test_bert_varies_in_batch_and_length(masked: bool) -> None:
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=100
    )
    model = transformers.BertModel(config).eval()

    def kwargs(*sizes: int) -> dict[str, Any]:
        return {"attention_mask": torch.ones(sizes, dtype=torch.int64)} if masked else {}

    captured = capture(model, (tokens(2, 7),), kwargs(2, 7))
    assert not captured.pins
    assert not captured.checks
    for sizes in ((1, 1), (3, 5), (1, 9)):
        agrees(captured, model, (tokens(*sizes),), kwargs(*sizes))


def gpt2() -> Any:
    config = transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=64, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2Model(config).eval()


@pytest.mark.parametrize("masked", [False, True])
def test_gpt2_varies_in_batch_and_length(masked: bool) -> None:
    model = gpt2()

    def kwargs(*sizes: int) -> dict[str, Any]:
        mask = {"attention_mask": torch.ones(sizes, dtype=torch.int64)} if masked else {}
        return {"use_cache": False, **mask}

    captured = capture(model, (tokens(2, 7),), kwargs(2, 7))
    assert not captured.pins
    assert all("pinned by the number of parts" in check.text for check in captured.checks)
    for sizes in ((1, 1), (3, 5), (1, 9)):
        agrees(captured, model, (tokens(*sizes),), kwargs(*sizes))


def test_a_gpt2_decoder_step_varies_in_batch_and_length_of_the_cache() -> None:
    model = gpt2()

    def step(ids: Tensor, keys: list[Tensor], values: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        cache = transformers.DynamicCache()
        for layer, (key, value) in enumerate(zip(keys, values, strict=True)):
            cache.update(key, value, layer)
        result = model(ids, cache=cache, use_cache=True)
        return result.last_hidden_state, [x.keys for x in cache.layers], [x.values for x in cache.layers]

    def inputs(batch: int, length: int) -> tuple[Any, ...]:
        keys, values = ([torch.randn(batch, 4, length, 8) for _ in range(2)] for _ in range(2))
        return tokens(batch, 1), keys, values

    captured = capture(step, inputs(2, 5))
    assert {"ids_0", "keys_0_0", "keys_0_2", "values_1_2"} <= free(captured)
    for batch, length in ((1, 1), (3, 9)):
        agrees(captured, step, inputs(batch, length), {})


def test_a_cache_that_is_written_in_place_is_an_update() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(32, 32) for _ in range(3))

        def forward(self, x: Tensor, keys: Tensor, values: Tensor, position: int) -> Tensor:
            q, k, v = (f(x).view(x.shape[0], 4, 8) for f in (self.query, self.key, self.value))
            keys[:, :, position] = k
            values.select(2, position).copy_(v)
            seen = slice(0, position + 1)
            scores = (q.unsqueeze(-2) @ keys[:, :, seen].transpose(-1, -2)).softmax(-1)
            return (scores @ values[:, :, seen]).flatten(1)

    def inputs(batch: int, length: int, position: int) -> tuple[Any, ...]:
        return torch.randn(batch, 32), torch.randn(batch, 4, length, 8), torch.randn(batch, 4, length, 8), position

    model = Layer().eval()
    captured = capture(model, inputs(2, 16, 5))
    assert [u.target for u in captured.updates] == [captured.inputs[1].value, captured.inputs[2].value]
    assert {"x_0", "keys_0", "keys_2", "values_2", "position"} <= free(captured)
    for case in ((1, 6, 0), (3, 9, 8)):
        args = inputs(*case)
        copies = tuple(a.clone() if isinstance(a, Tensor) else a for a in args)
        with torch.no_grad():
            expected = model(*args)
        torch.testing.assert_close(replay(captured, copies), expected)
        assert all(torch.equal(a, b) for a, b in zip(args[:3], copies[:3], strict=True))
