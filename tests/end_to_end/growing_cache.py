"""A step of a decoder of `transformers` whose cache grows."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

transformers = pytest.importorskip("transformers")


class GrowingCache(nn.Module):
    """One step of a `transformers` model; keys and values of the past come and go as tensors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, past: list[tuple[Tensor, Tensor]]) -> Any:
        kept = transformers.DynamicCache()
        for layer, (keys, values) in enumerate(past):
            kept.update(keys, values, layer)
        out = self.model(input_ids=ids, past_key_values=kept, use_cache=True)
        return out.logits, [(layer.keys, layer.values) for layer in out.past_key_values.layers]


def decoder(kind: str) -> nn.Module:
    torch.manual_seed(5)
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=89, n_embd=32, n_layer=2, n_head=4, n_positions=64)
        return transformers.GPT2LMHeadModel(config)
    small = dict(vocab_size=89, hidden_size=32, num_hidden_layers=2, intermediate_size=48, max_position_embeddings=64)
    config = transformers.LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **small)
    return transformers.LlamaForCausalLM(config)


HEADS = {"gpt2": 4, "llama": 2}


def past_inputs(kind: str, shape: tuple[int, int], dtype: torch.dtype) -> dict[str, Any]:
    batch, length = shape
    past = [tuple(torch.randn(batch, HEADS[kind], length, 8, dtype=dtype) for _ in range(2)) for _ in range(2)]
    return {"ids": torch.randint(0, 89, (batch, 1)), "past": past}
