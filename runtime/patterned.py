"""A program made for one pattern of broadcasting, and the one for all patterns beside it.

Which sizes are equal and which are 1 makes kernels simple: dims merge, loads are whole vectors. So the first program
takes the example's pattern alone; a call of another is given to one that takes all, which is made when it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from dlcb.errors import UserError
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.compiled import Program, sizes_of, summed

_MOST_SIZES = 256

Made = tuple[Artifact, Program]


class PatternedProgram:
    """Runs as the program for all patterns does. Safe to call from several threads."""

    def __init__(self, first: Program, fits: Callable[[Sequence[Any]], bool], make: Callable[[], Made]) -> None:
        """`fits`: whether arguments of the right kinds and ranks have the first program's pattern; `make`: the program
        for all."""
        self._first = first
        self._fits = fits
        self._make = make
        self._made: Made | None = None
        self._lock = threading.Lock()
        self._elsewhere: LeastRecentlyUsed[Any, bool] = LeastRecentlyUsed(_MOST_SIZES)
        """Sizes of another pattern."""
        self._choosing = threading.Lock()

    @property
    def first(self) -> Program:
        return self._first

    @property
    def why_not_saved(self) -> str:
        return self._first.why_not_saved

    def run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        if self._made is not None and self._elsewhere.get(sizes_of(arguments)):
            return self._made[1].run(arguments)
        try:
            return self._first.run(arguments)
        except UserError:
            if self._has_pattern(arguments):
                raise
        results = self.general.run(arguments)
        with self._choosing:
            self._elsewhere.put(sizes_of(arguments), True)
        return results

    def _has_pattern(self, arguments: Sequence[Any]) -> bool:
        try:
            return self._fits(arguments)
        except (TypeError, AttributeError, IndexError, ValueError):
            return True  # they are no arguments of the program at all, as its error says

    @property
    def general(self) -> Program:
        """The program for all patterns, compiled if it is not yet."""
        return self._complete()[1]

    def _complete(self) -> Made:
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def refresh_weights(self) -> None:
        with self._lock:
            self._first.refresh_weights()
            if self._made is not None:
                self._made[1].refresh_weights()

    def stats(self) -> dict[str, int]:
        made = self._made
        return summed([self._first.stats(), *([] if made is None else [made[1].stats()])])

    def others(self) -> list[Artifact]:
        return [self._complete()[0]]
