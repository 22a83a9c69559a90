"""How a program is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch

TORCH_RANGE = ("2.11", "2.16")

HotMode = Literal["off", "on", "sync"]
HOT_MODES: tuple[str, ...] = get_args(HotMode)
HOT_AFTER = 64


@dataclass(frozen=True, slots=True)
class Options:
    """`dlcb.compile` says what each means."""

    device: torch.device
    target: str
    weights: Literal["live", "frozen"] = "live"
    keep_ir: bool = False
    check: bool = False
    graphs: bool = True
    hot_shapes: HotMode = "off"
    hot_after: int = HOT_AFTER
