"""Models of `transformers`, made from a configuration: tiny ones that keep every kind of layer, and real ones.

The library is imported where a model is built, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dlcb.benchmarks.case import Case, Inputs, Shape, images, masked_tokens, seeded, tokens

VOCABULARY = 97
TEXTS: tuple[Shape, ...] = ((1, 1), (2, 7), (3, 16), (5, 31), (1, 64), (4, 13), (7, 2), (6, 5), (2, 33))
REAL_TEXTS: tuple[Shape, ...] = tuple((n, t) for t in (32, 77, 128, 384) for n in (1, 8, 32))
PICTURES: tuple[Shape, ...] = ((1, 32, 32), (3, 33, 47), (5, 64, 40), (2, 35, 96), (7, 32, 35), (4, 48, 48))
SPECIAL: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TINY: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    **SPECIAL,
}


def _from_config(family: str, kind: str = "Model", **settings: Any) -> Callable[[], nn.Module]:
    """Builds the class `{family}{kind}` from `{family}Config`."""

    def build() -> nn.Module:
        import transformers

        config = getattr(transformers, f"{family}Config")(**settings)
        return getattr(transformers, f"{family}{kind}")(config)

    return seeded(build)


def _classifier(family: str, **settings: Any) -> Callable[[], nn.Module]:
    return _from_config(family, "ForImageClassification", num_labels=61, **settings)


def _text(name: str, build: Callable[[], nn.Module], inputs: Inputs) -> Case:
    return Case(name, build, inputs, (2, 12), TEXTS)


def _encoder(name: str, family: str, **settings: Any) -> Case:
    return _text(name, _from_config(family, **TINY | settings), masked_tokens(VOCABULARY))


def _decoder(name: str, family: str, **settings: Any) -> Case:
    return _text(name, _from_config(family, use_cache=False, **TINY | settings), tokens(VOCABULARY))


def bert() -> Case:
    return _encoder("bert", "Bert", intermediate_size=64)


def distilbert() -> Case:
    settings: dict[str, Any] = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64}
    build = _from_config("DistilBert", vocab_size=VOCABULARY, **settings)
    return _text("distilbert", build, masked_tokens(VOCABULARY))


def gpt2() -> Case:
    settings: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    build = _from_config("GPT2", use_cache=False, vocab_size=VOCABULARY, **settings, **SPECIAL)
    return _text("gpt2", build, tokens(VOCABULARY))


def mamba() -> Case:
    """Its scan is a loop in Python over the tokens, so a compile is for one length."""
    settings: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 4}
    shapes = tuple((n, 3) for n in (1, 2, 3, 7, 13, 16))
    return Case("mamba", _from_config("Mamba", use_cache=False, **settings), tokens(VOCABULARY), (2, 3), shapes)


class Step(nn.Module):
    """A decoder at new tokens after a past of any length, the keys and values of each layer; they come back with
    theirs."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(
        self, input_ids: Tensor, past: list[tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        import transformers

        kept: Any = transformers.DynamicCache(past)
        found = self.decoder(input_ids, kept, use_cache=True)
        return found.last_hidden_state, [(layer.keys, layer.values) for layer in kept.layers]


def gpt2_cached(real: bool) -> Case:
    """One token after a past, for shapes (n, length of the past)."""
    tiny: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": VOCABULARY}
    vocabulary, layers, heads, width = (50257, 12, 12, 64) if real else (VOCABULARY, 2, 4, 8)
    build = _from_config("GPT2", **({} if real else tiny | SPECIAL))

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        n, length = shape
        past = [tuple(torch.randn(n, heads, length, width, dtype=dtype) for _ in range(2)) for _ in range(layers)]
        return {"input_ids": torch.randint(0, vocabulary, (n, 1)), "past": past}

    return Case("gpt2_cached", lambda: Step(build()).eval(), inputs, (2, 64) if real else (2, 12), TEXTS)


# T5: an encoder, and a decoder over what an encoder made


def _t5(real: bool) -> dict[str, Any]:
    small = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    return {"use_cache": False, "decoder_start_token_id": 0} | ({} if real else small)


def t5_encoder() -> Case:
    return _text("t5_encoder", _from_config("T5", "EncoderModel", **_t5(False)), masked_tokens(VOCABULARY))


class T5Decoder(nn.Module):
    """The decoder alone, with the encoder's states as an argument."""

    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.decoder = whole.decoder

    def forward(self, input_ids: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        found = self.decoder(
            input_ids=input_ids, encoder_hidden_states=states, encoder_attention_mask=mask, use_cache=False
        )
        return found.last_hidden_state


def t5_decoder() -> Case:
    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        n, target, source = shape
        mask = masked_tokens(VOCABULARY)((n, source), dtype)["attention_mask"]
        ids = torch.randint(0, VOCABULARY, (n, target))
        return {"input_ids": ids, "states": torch.randn(n, source, 32, dtype=dtype), "mask": mask}

    whole = _from_config("T5", **_t5(False))
    shapes = ((1, 1, 1), (2, 7, 5), (3, 16, 2), (5, 3, 31), (1, 40, 64), (4, 13, 13), (7, 2, 9))
    return Case("t5_decoder", lambda: T5Decoder(whole()).eval(), inputs, (2, 9, 12), shapes)


def t5() -> Case:
    """Encoder and decoder in one call."""

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        n, target, source = shape
        ids = torch.randint(0, VOCABULARY, (n, source))
        return {"input_ids": ids, "decoder_input_ids": torch.randint(0, VOCABULARY, (n, target))}

    shapes = ((1, 1, 1), (2, 7, 5), (3, 16, 2), (5, 3, 31), (1, 40, 64), (4, 13, 13), (7, 2, 9))
    return Case("t5", _from_config("T5", **_t5(False)), inputs, (2, 9, 12), shapes)


# Pictures and sound


def _pictures(name: str, build: Callable[[], nn.Module], example: Shape, shapes: tuple[Shape, ...]) -> Case:
    return Case(name, build, images("pixel_values"), example, shapes)


def vit() -> Case:
    """It takes pictures of one size only."""
    settings = {k: TINY[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")}
    shapes = tuple((n, 32, 32) for n in (1, 2, 3, 5, 8, 13))
    return _pictures("vit", _from_config("ViT", image_size=32, patch_size=8, **settings), (2, 32, 32), shapes)


def swin() -> Case:
    """It pads to patches, to windows and to halves. Pictures of fewer windows change the model itself for good."""
    settings = {"embed_dim": 16, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4}
    build = _classifier("Swin", image_size=32, patch_size=2, **settings)
    shapes = ((1, 24, 40), (3, 33, 47), (5, 40, 40), (2, 65, 18), (7, 17, 31), (4, 40, 88))
    return _pictures("swin", build, (2, 40, 56), shapes)


def convnext() -> Case:
    build = _classifier("ConvNext", hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 2, 1])
    return _pictures("convnext", build, (2, 40, 56), PICTURES)


def mobilenet_v2() -> Case:
    """It halves a picture five times and asks each time if the size is even."""
    shapes = ((1, 40, 56), (3, 33, 47), (5, 8, 88), (2, 1, 97), (7, 31, 64), (4, 72, 6))
    return _pictures("mobilenet_v2", _classifier("MobileNetV2", depth_multiplier=0.25), (2, 40, 56), shapes)


def regnet() -> Case:
    settings = {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 40], "depths": [1, 1, 1, 1], "groups_width": 8}
    return _pictures("regnet", _classifier("RegNet", **settings), (2, 40, 56), PICTURES)


def whisper_encoder() -> Case:
    """It takes sound of one length only: 60 frames of 20 bands."""

    def build() -> nn.Module:
        sizes = {"d_model": 32, "num_mel_bins": 20, "max_source_positions": 30, "vocab_size": VOCABULARY}
        layers = {"encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48}
        other = {"decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 48, "decoder_start_token_id": 1}
        whole: Any = _from_config("Whisper", **sizes, **layers, **other, **SPECIAL)()
        return whole.encoder

    def inputs(shape: Shape, dtype: torch.dtype) -> dict[str, Any]:
        return {"input_features": torch.randn(*shape, 20, 60, dtype=dtype)}

    return Case("whisper_encoder", build, inputs, (2,), ((1,), (2,), (3,), (5,), (8,), (13,)))


# Real sizes


def _real(name: str, build: Callable[[], nn.Module], vocabulary: int, masked: bool) -> Case:
    return Case(name, build, (masked_tokens if masked else tokens)(vocabulary), (2, 64), REAL_TEXTS)


def bert_base() -> Case:
    return _real("bert_base", _from_config("Bert"), 30522, masked=True)


def gpt2_124m() -> Case:
    return _real("gpt2_124m", _from_config("GPT2", use_cache=False), 50257, masked=False)


def llama_1b() -> Case:
    """The layers of a Llama of 1.1 thousand million parameters, with a small vocabulary."""
    heads: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8}
    sizes: dict[str, Any] = {
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "intermediate_size": 8192,
        "vocab_size": 8192,
    }
    return _real("llama_1b", _from_config("Llama", use_cache=False, **sizes, **heads), 8192, masked=False)


SMALL: dict[str, Callable[[], Case]] = {
    "bert": bert,
    "distilbert": distilbert,
    "roberta": lambda: _encoder("roberta", "Roberta", max_position_embeddings=80),
    "albert": lambda: _encoder("albert", "Albert", embedding_size=16),
    "electra": lambda: _encoder("electra", "Electra", embedding_size=16),
    "gpt2": gpt2,
    "gpt_neox": lambda: _decoder("gpt_neox", "GPTNeoX"),
    "llama": lambda: _decoder("llama", "Llama", num_key_value_heads=2),
    "mistral": lambda: _decoder("mistral", "Mistral", num_key_value_heads=2, sliding_window=6),
    "qwen2": lambda: _decoder("qwen2", "Qwen2", num_key_value_heads=2),
    "gemma": lambda: _decoder("gemma", "Gemma", num_key_value_heads=1, head_dim=8),
    "t5_encoder": t5_encoder,
    "t5_decoder": t5_decoder,
    "t5": t5,
    "mamba": mamba,
    "vit": vit,
    "swin": swin,
    "convnext": convnext,
    "mobilenet_v2": mobilenet_v2,
    "regnet": regnet,
    "whisper_encoder": whisper_encoder,
}
REAL: dict[str, Callable[[], Case]] = {"bert_base": bert_base, "gpt2_124m": gpt2_124m, "llama_1b": llama_1b}
