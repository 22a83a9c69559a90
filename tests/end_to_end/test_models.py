"""Real models, compiled once each, right at every size, in every float type, with nothing left to eager."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dlcb.benchmarks.accuracy import as_float64, in_float64
from dlcb.benchmarks.zoo import SMALL
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.plan import CallPlan, Launch, Root
from dlcb.tests.end_to_end.agreement import compiled, plan_of
from dlcb.tests.end_to_end.growing_cache import HEADS, GrowingCache, decoder, past_inputs
from dlcb.tests.end_to_end.shapes import (
    DTYPES,
    Judge,
    assess,
    refuses_or_agrees_for_wrong_arguments,
    right_at_every_shape,
)
from dlcb.tests.wrong_arguments import Subject
from dlcb.tests.wrong_calls import refuses_or_agrees

transformers = pytest.importorskip("transformers")

FIXED = {
    "resnet18": {"x.shape[1]": "pinned to 3 by convolution: zoo.py"},
    "resnet50": {"x.shape[1]": "pinned to 3 by convolution: zoo.py"},
    "bert": {},
    "gpt2": {},
}
"""The input dims that the model itself fixes, and who says so."""


pytestmark = pytest.mark.filterwarnings("ignore:.*past_key_values.*:FutureWarning")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FIXED)
def test_a_model_compiled_once_is_right_at_every_shape(name: str, dtype: torch.dtype) -> None:
    right_at_every_shape(SMALL[name](), dtype, FIXED[name])


@pytest.mark.usefixtures("as_traced")
@pytest.mark.parametrize("name", FIXED)
def test_wrong_arguments_are_refused_or_answered_as_in_eager(name: str) -> None:
    refuses_or_agrees_for_wrong_arguments(SMALL[name]())


# A decoder step whose cache grows: each step returns longer tensors

PAST_SHAPES = ((2, 5), (1, 1), (3, 7), (1, 0), (4, 13), (2, 31), (7, 2), (1, 40))
DRAWS = 5


@cache
def step(kind: str, dtype: torch.dtype) -> tuple[nn.Module, CompiledModel]:
    network = GrowingCache(decoder(kind)).to(dtype).eval()
    torch.manual_seed(0)
    return network, compiled(network, past_inputs(kind, PAST_SHAPES[0], dtype), f"{kind} step")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", HEADS)
def test_a_decoder_step_whose_cache_grows(kind: str, dtype: torch.dtype) -> None:
    network, model = step(kind, dtype)
    judge = Judge(model, network)
    for number, shape in enumerate(PAST_SHAPES):
        torch.manual_seed(number)
        judge.check(*(past_inputs(kind, shape, dtype) for _ in range(DRAWS)))
    found = model.dimensions()
    fixed = [dim for dim, state in found.items() if not state.startswith(("free", "equal"))]
    assert found["ids.shape[0]"].startswith("free")
    assert found["past_0_0.shape[2]"].startswith("free")
    assert all(dim == "ids.shape[1]" or dim.endswith(("shape[1]", "shape[3]")) for dim in fixed), fixed
    assert all(".py:" in found[dim] for dim in fixed)


@pytest.mark.usefixtures("as_traced")
@pytest.mark.parametrize("kind", HEADS)
def test_a_step_refuses_wrong_arguments_or_answers_as_eager_does(kind: str) -> None:
    network, model = step(kind, torch.float32)
    torch.manual_seed(0)
    inputs = past_inputs(kind, PAST_SHAPES[0], torch.float32)
    refuses_or_agrees(model, Subject(f"{kind} step", network, (), inputs))


def test_a_whole_text_from_one_compiled_step() -> None:
    network, model = step("gpt2", torch.float32)
    ids = torch.tensor([[3], [14]])
    mine: Any = [(torch.zeros(2, 4, 0, 8), torch.zeros(2, 4, 0, 8)) for _ in range(2)]
    theirs = mine
    for _ in range(14):
        with torch.no_grad():
            expected, theirs = network(ids, theirs)
        actual, mine = model(ids, mine)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
        ids = expected[:, -1].argmax(-1, keepdim=True)


# A decoder step whose cache is written in place


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, position: Any) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        places = torch.arange(keys.shape[2])
        if isinstance(position, Tensor):
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
        else:
            keys[:, :, position] = k[:, :, 0]
            values[:, :, position] = v[:, :, 0]
        mask = places <= position
        attended = nn.functional.scaled_dot_product_attention(q, keys, values, mask[None])
        return self.out(attended.transpose(1, 2).flatten(2))


class InPlaceDecoder(nn.Module):
    """Embeds, attends twice over caches of any length, and says the next token's logits."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(61, 32), nn.Embedding(512, 32)
        self.layers = nn.ModuleList(Attention(32, 4) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 61)

    def forward(self, ids: Tensor, position: Any, keys: list[Tensor], values: list[Tensor]) -> Tensor:
        place = self.places(position) if isinstance(position, Tensor) else self.places.weight[position]
        x = self.embed(ids) + place
        for layer, k, v in zip(self.layers, keys, values, strict=True):
            x = x + layer(self.norm(x), k, v, position)
        return self.head(x)


def in_place_inputs(batch: int, length: int, position: Any, dtype: torch.dtype) -> dict[str, Any]:
    def caches() -> list[Tensor]:
        return [torch.randn(batch, 4, length, 8, dtype=dtype) for _ in range(2)]

    return {"ids": torch.randint(0, 61, (batch, 1)), "position": position, "keys": caches(), "values": caches()}


def caches_of(inputs: dict[str, Any]) -> list[Tensor]:
    return [*inputs["keys"], *inputs["values"]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("by", [int, torch.tensor], ids=["an integer", "a tensor"])
def test_a_cache_is_written_in_place_and_never_copied(by: Any, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    network = InPlaceDecoder().to(dtype).eval()
    make = (lambda p: torch.tensor([p])) if by is torch.tensor else int
    model = compiled(network, in_place_inputs(2, 24, make(5), dtype), "decoder with caches in place")
    assert model.dimensions()["ids.shape[0]"].startswith("free")
    assert model.dimensions()["keys_0.shape[2]"].startswith("free")
    exact_network = in_float64(network)
    for batch, length in ((2, 24), (1, 12), (3, 17), (0, 16), (5, 31), (1, 64), (4, 13), (2, 33)):
        mine = in_place_inputs(batch, length, make(0), dtype)
        theirs, exact = copy.deepcopy(mine), as_float64(mine)
        addresses = [t.data_ptr() for t in caches_of(mine)]
        answers: list[Any] = []
        for position in range(12):
            mine["position"] = theirs["position"] = exact["position"] = make(position)
            with torch.no_grad():
                answers.append((model(**mine), network(**theirs), exact_network(**exact)))
            mine["ids"] = theirs["ids"] = exact["ids"] = answers[-1][1][:, -1].argmax(-1, keepdim=True)
        assess(*map(list, zip(*answers, strict=True)))
        assess(*([caches_of(side)] for side in (mine, theirs, exact)))
        assert [t.data_ptr() for t in caches_of(mine)] == addresses
    touches_only_what_it_writes(plan_of(model, in_place_inputs(2, 500, make(7), dtype)), 2 * 4 * 500 * 8, dtype)


def touches_only_what_it_writes(plan: CallPlan, cache_elements: int, dtype: torch.dtype) -> None:
    """No memory of the call has room for a cache, and no kernel that is given a cache has a thread for each element."""
    size = {root: _bytes(root) for root in plan.roots if root.kind in ("arena", "output")}
    assert sum(size.values()) < cache_elements * dtype.itemsize
    caches = {n for n, root in enumerate(plan.roots) if root.kind == "argument" and root.updated}
    assert len(caches) == 4
    launches = [s for s in plan.steps if isinstance(s, Launch) and any(root in caches for root, _ in s.tensors)]
    assert launches
    for launch in launches:
        assert launch.blocks * launch.threads < cache_elements / 8, launch.kernel


def _bytes(root: Root) -> int:
    elements = 1
    for n in root.sizes:
        elements *= n
    return elements * root.dtype.itemsize


@pytest.mark.parametrize("kind", HEADS)
def test_the_static_cache_of_transformers(kind: str) -> None:
    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = decoder(kind)

        def forward(self, ids: Tensor, position: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
            kept = transformers.StaticCache(config=self.model.config, max_cache_len=32)
            for layer, k, v in zip(kept.layers, keys, values, strict=True):
                layer.lazy_initialization(k, v)
                layer.keys, layer.values = k, v
            return self.model(
                input_ids=ids, past_key_values=kept, position_ids=position[None], cache_position=position
            ).logits

    def inputs(batch: int) -> dict[str, Any]:
        caches = [[torch.zeros(batch, HEADS[kind], 32, 8) for _ in range(2)] for _ in range(2)]
        ids = torch.randint(0, 89, (batch, 1))
        return {"ids": ids, "position": torch.tensor([0]), "keys": caches[0], "values": caches[1]}

    network = Step().eval()
    model = compiled(network, inputs(2), f"{kind} with a static cache")
    for batch in (2, 1, 3, 5):
        mine, theirs = inputs(batch), inputs(batch)
        for position in range(11):
            mine["ids"] = theirs["ids"] = torch.randint(0, 89, (batch, 1))
            mine["position"] = theirs["position"] = torch.tensor([position])
            with torch.no_grad():
                expected = network(**theirs)
            torch.testing.assert_close(model(**mine), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(caches_of(mine), caches_of(theirs), rtol=1e-4, atol=1e-5)
