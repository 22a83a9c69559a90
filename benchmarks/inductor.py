"""How torch.compile is set up to be measured: caches of its own, which are empty, and its best mode."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch._inductor import config
from torch._inductor.utils import fresh_cache


@contextmanager
def fresh() -> Generator[None]:
    """Nothing is known from before: not in memory, nor on disk."""
    torch.compiler.reset()
    try:
        with fresh_cache():
            yield
    finally:
        torch.compiler.reset()


@contextmanager
def freezing() -> Generator[None]:
    """What is compiled meanwhile, without gradients, folds its parameters."""
    with config.patch(freezing=True):
        yield
