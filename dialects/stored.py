"""Where the weights of a module lie: its attribute `dlcb.weights = {file = "m.safetensors", keys = {"w" = "3fa9…"}}`.

`file` is relative to the folder of the module's own file (`/` between its parts); who writes the text elsewhere calls
`move`. `keys` gives each weight, by name, the key of its tensor in that file: a hash of the content, so that it is the
right tensor wherever the file is found, and equal tensors are stored once.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr

WEIGHTS_FILE: Final = "dlcb.weights"


@dataclass(frozen=True, slots=True)
class StoredWeights:
    file: str
    keys: Mapping[str, str]


def stored_weights(module: ModuleOp) -> StoredWeights | None:
    """What the module says of its weights; None where it says nothing, or nothing that makes sense."""
    match module.attributes.get(WEIGHTS_FILE):
        case DictionaryAttr(data={"file": StringAttr(data=file), "keys": DictionaryAttr(data=keys)}):
            return StoredWeights(file, {name: key.data for name, key in keys.items() if isinstance(key, StringAttr)})
        case _:
            return None


def set_stored_weights(module: ModuleOp, stored: StoredWeights) -> None:
    keys = DictionaryAttr({name: StringAttr(key) for name, key in stored.keys.items()})
    module.attributes[WEIGHTS_FILE] = DictionaryAttr({"file": StringAttr(stored.file), "keys": keys})


def relative(file: Path, folder: Path) -> str:
    """How a module in the folder names the file; the whole path where no relative one leads there."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.resolve().as_posix()


def move(module: ModuleOp, before: Path, after: Path) -> None:
    """The module's text was in the folder `before` and will be in `after`."""
    stored = stored_weights(module)
    if stored is not None and before != after:
        set_stored_weights(module, StoredWeights(relative(before / stored.file, after), stored.keys))


@contextmanager
def moved(module: ModuleOp, before: Path, after: Path) -> Generator[None]:
    """`move`, for as long as the text is written."""
    kept = module.attributes.get(WEIGHTS_FILE)
    move(module, before, after)
    try:
        yield
    finally:
        if kept is not None:
            module.attributes[WEIGHTS_FILE] = kept
