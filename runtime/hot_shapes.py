"""Sizes that come often get a program of their own, in which all sizes are literals.

Each call is answered by one program as a whole: the one for all sizes until the other is there, that one from then on.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, cast

from dlcb.runtime.artifact import Artifact
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.compiled import sizes_of, summed
from dlcb.runtime.module import CompiledModule

_MOST_COUNTED = 1024
_MOST_PROGRAMS = 16
_MOST_FAILURES = 16


class Specialize(Protocol):
    """Compiles programs for the sizes of one call."""

    def sizes_of(self, arguments: Sequence[Any]) -> dict[str, int]: ...

    def start(self, sizes: Mapping[str, int], done: Callable[[CompiledModule | None, str], None]) -> bool:
        """In the background; `done` gets the program, or None and the reason why there is none. False where it can't be
        taken on yet: ask again later."""
        ...

    def now(self, sizes: Mapping[str, int]) -> CompiledModule:
        """Waits for it. A `DlcbError` says why there is none."""
        ...


@dataclass(eq=False, slots=True)
class _Shape:
    """What is known of calls of the same sizes."""

    calls: int = 0
    program: CompiledModule | None = None
    is_asked: bool = False


class HotShapes:
    """Runs as the program for all sizes does. Safe to call from several threads."""

    def __init__(self, general: CompiledModule, specialize: Specialize, after: int, is_synchronous: bool) -> None:
        """After that many calls of the same sizes their program is asked for, and waited for where `is_synchronous`.
        Of the programs the least recently used leave."""
        self.general = general
        self._specialize = specialize
        self._after = after
        self._is_synchronous = is_synchronous
        self._lock = threading.Lock()
        self._shapes: LeastRecentlyUsed[Any, _Shape] = LeastRecentlyUsed(_MOST_COUNTED)
        self._hot: LeastRecentlyUsed[_Shape, None] = LeastRecentlyUsed(_MOST_PROGRAMS, _drop)
        self._has_warned = False
        self._failed = 0
        self.failures: deque[str] = deque(maxlen=_MOST_FAILURES)
        """Why there is no program for sizes that came often, of the last ones."""

    @property
    def why_not_saved(self) -> str:
        return self.general.why_not_saved

    def run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        sizes = sizes_of(arguments)
        shape = self._shapes.get(sizes)
        program = None if shape is None else shape.program
        if program is not None:
            self._hot.get(cast(_Shape, shape))
            return program.run(arguments)
        results = self.general.run(arguments)
        self._count(sizes, arguments)
        return results

    def others(self) -> list[Artifact]:
        return self.general.others()

    def refresh_weights(self) -> None:
        """All programs read the same memory, so none runs meanwhile."""
        with self._lock, ExitStack() as paused:
            programs = [self.general, *self._programs()]
            for program in programs:
                paused.enter_context(program.paused())
            for program in programs:
                program.refresh_paused()

    def _programs(self) -> list[CompiledModule]:
        return [shape.program for shape in self._hot if shape.program is not None]

    def stats(self) -> dict[str, int]:
        with self._lock:
            programs = self._programs()
            own = {"specialized": len(programs), "failed": self._failed}
        return summed([own, self.general.stats(), *(program.stats() for program in programs)])

    def _count(self, sizes: Any, arguments: Sequence[Any]) -> None:
        """After a call that the program for all sizes took."""
        with self._lock:
            shape = self._shapes.get(sizes)
            if shape is None:
                shape = _Shape()
                self._shapes.put(sizes, shape)
            shape.calls += 1
            if shape.calls < self._after or shape.is_asked:
                return
            shape.is_asked = True
        wanted = self._specialize.sizes_of(arguments)
        if not self._is_synchronous:
            if not self._specialize.start(wanted, lambda program, reason: self._done(shape, program, reason)):
                with self._lock:
                    _drop(shape, None)
            return
        try:
            self._done(shape, self._specialize.now(wanted), "")
        except Exception as error:  # the call has its results already
            self._done(shape, None, str(error) or type(error).__name__)

    def _done(self, shape: _Shape, program: CompiledModule | None, reason: str) -> None:
        with self._lock:
            if program is not None:
                shape.program = program
                self._hot.put(shape, None)
                return
            self._failed += 1
            self.failures.append(reason)
            if self._has_warned:
                return
            self._has_warned = True
        warnings.warn(f"DLCB: {reason}; calls go on by the program for all sizes", stacklevel=3)


def _drop(shape: _Shape, _: None) -> None:
    shape.program, shape.calls, shape.is_asked = None, 0, False
