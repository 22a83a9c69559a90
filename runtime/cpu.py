"""Kernels of the CPU target: a shared library, called in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dlcb.errors import UserError
from dlcb.runtime.plan import Launch

HOSTILE_VARIABLE = "DLCB_HOSTILE"


def hostile_seed() -> int:
    """The order seed that the environment asks for; 0 is the natural order."""
    text = os.environ.get(HOSTILE_VARIABLE, "0")
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{HOSTILE_VARIABLE} must be an integer, got {text!r}") from None


class CpuKernels:
    """`extern "C" void launch_NAME(void** arguments, long long blocks, int order_seed)` of a shared library. Threads a
    block are part of the compiled kernel; blocks and threads run in the order that the seed says."""

    def __init__(self, library: Path, order_seed: int | None = None) -> None:
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise UserError(f"cannot load the compiled kernels {library}: {error}") from None
        self._path = library
        self._order_seed = hostile_seed() if order_seed is None else order_seed

    def function(self, name: str) -> Any:
        try:
            function = getattr(self._library, f"launch_{name}")
        except AttributeError:
            raise UserError(f"{self._path.name} has no kernel {name!r}") from None
        function.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int]
        function.restype = None
        return function

    def activate(self) -> None:
        pass

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        return partial(function, pointers, step.blocks, self._order_seed)
