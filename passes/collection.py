"""Garbage collection stands still while IR is made: ops and values refer to each other and live until the end, and each
collection would visit them, and all that torch has made, again."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Generator[None]:
    """No garbage collection inside, if there was any."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
