"""Kernels of the CPU target: a shared library, called in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from dlcb.errors import ELEMENT_ERRORS, InternalError, UserError
from dlcb.runtime.plan import Launch
from dlcb.runtime.program import fill

HOSTILE_VARIABLE = "DLCB_HOSTILE"


def hostile_seed() -> int:
    """The order seed that the environment asks for; 0 is the natural order."""
    text = os.environ.get(HOSTILE_VARIABLE, "0")
    try:
        return int(text)
    except ValueError:
        raise UserError(f"{HOSTILE_VARIABLE} must be an integer, got {text!r}") from None


class CpuKernels:
    """`extern "C" int launch_NAME(void** arguments, long long blocks, int order_seed)` of a shared library. Threads a
    block are part of the compiled kernel; blocks and threads run in the order that the seed says. A launch returns 1
    where a check failed, or where a vector lies as a GPU moves none; `dlcb_failure` then says which, in this thread."""

    def __init__(self, library: Path, order_seed: int | None = None) -> None:
        try:
            self._library = ctypes.CDLL(str(library))
        except OSError as error:
            raise UserError(f"cannot load the compiled kernels {library}: {error}") from None
        self._path = library
        self._order_seed = hostile_seed() if order_seed is None else order_seed
        self._functions: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        known = self._functions.get(name)
        if known is None:
            try:
                known = getattr(self._library, f"launch_{name}")
            except AttributeError:
                raise UserError(f"{self._path.name} has no kernel {name!r}") from None
            known.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int]
            known.restype = ctypes.c_int
            self._functions[name] = known
        return known

    def activate(self) -> None:
        pass

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        run = partial(function, pointers, step.blocks, self._order_seed)

        def launch() -> None:
            if run():
                raise self._failure(step)

        return launch

    def _failure(self, step: Launch) -> Exception:
        """What eager raises; no `UserError`, for parts of the program have run."""
        read = self._library.dlcb_failure
        read.restype = ctypes.POINTER(ctypes.c_longlong)
        check, value, size = read()[:3]
        if check < 0:
            return InternalError(
                f"{step.kernel}: moves {size} bytes at an address that is {value} past a multiple of it"
            )
        if check > len(step.failures):
            return InternalError(f"{step.kernel}: check {check - 1} failed, the program knows {len(step.failures)}")
        kind, text = cast("tuple[str, str]", step.failures[check - 1])
        return ELEMENT_ERRORS[kind](fill(text, (value, size)))
