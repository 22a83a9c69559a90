"""Weights in a safetensors file, each under a hash of its content: equal tensors once, and never the wrong one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file  # pyright: ignore[reportUnknownVariableType]  # a bare PathLike
from torch import Tensor

from dlcb.errors import UserError

_DIGITS: Final = 32
"""Of the hash's 64 hexadecimal digits, those that make the key."""


def key_of(tensor: Tensor) -> str:
    """The first digits of the SHA-256 of dtype, sizes and elements."""
    plain = tensor.detach().cpu().contiguous()
    digest = hashlib.sha256(f"{plain.dtype} {tuple(plain.shape)} ".encode())
    if plain.numel():
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:_DIGITS]


def save_weights(weights: Mapping[str, Tensor], path: Path) -> dict[str, str]:
    """Write the file, whole or not at all; the key of each weight."""
    keys = {name: key_of(weight) for name, weight in weights.items()}
    stored = {keys[name]: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    apart = {key: tensor.clone() for key, tensor in stored.items()}  # the file refuses tensors that share memory
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    try:
        save_file(apart, temporary)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return keys


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by their names there."""
    try:
        return load(path.read_bytes())
    except SafetensorError as error:
        raise UserError(f"{path}: not a safetensors file, or damaged: {error}") from None


def load_weights(path: Path, keys: Mapping[str, str]) -> dict[str, Tensor]:
    """The tensors of these keys, by name. A `UserError` where one is not there, or has other content than its key."""
    tensors = read_tensors(path)
    missing = sorted(name for name, key in keys.items() if key not in tensors)
    if missing:
        raise UserError(
            f"{path}: no tensor {keys[missing[0]]}, which is weight '{missing[0]}': the file belongs to another module"
        )
    for key in set(keys.values()):
        if key_of(tensors[key]) != key:
            raise UserError(f"{path}: the tensor {key} is damaged: its content has another hash")
    return {name: tensors[key] for name, key in keys.items()}
