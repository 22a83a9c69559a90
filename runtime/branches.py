"""A model of several programs behind one interface: where Python branches on sizes, each way is a program of its own.

The sizes of a call say which way it goes. A program refuses what goes another way by its checks, before anything is
launched; so a call of sizes that were not seen yet is given to one program after the other, and which one took it is
remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlcb.errors import BROADCASTS, UserError
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.compiled import CompiledModel, sizes_of, summed

_MOST_SIZES = 256

Arguments = tuple[Sequence[Any], Mapping[str, Any]]
Grow = Callable[[Arguments, Sequence[Any], UserError], CompiledModel]
"""The program of a call, given as its caller gave it and as the programs take it, that all others refuse, the first by
this error. Raises that error where the call goes no other way than the programs that there are, and another `UserError`
where the program itself refuses it."""


class BranchingModel(CompiledModel):
    """The first program, with the others beside it."""

    def __init__(
        self,
        first: CompiledModel,
        others: Sequence[CompiledModel] = (),
        grow: Grow | None = None,
    ) -> None:
        """`grow` makes programs as calls need them; without it there are no more."""
        super().__init__(*first.parts)
        self._others = list(others)
        self._grow = grow
        self._lock = threading.Lock()
        """Held while a program is made."""
        self._maker: int | None = None
        """The thread that makes one."""
        self._choosing = threading.Lock()
        self._chosen: LeastRecentlyUsed[Any, CompiledModel] = LeastRecentlyUsed(_MOST_SIZES)
        """By sizes, the program that takes the call, where it is not the first."""

    @property
    def branches(self) -> list[CompiledModel]:
        """All programs."""
        return [self, *self._others]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flat = self.flat(args, kwargs)
        chosen = self._chosen.get(sizes_of(flat)) if self._others else None
        if chosen is not None:
            return chosen.run_flat(flat)
        try:
            return self.run_flat(flat)
        except UserError as error:
            refusal = error
        return self._run_elsewhere((args, kwargs), flat, refusal)

    def _run_elsewhere(self, arguments: Arguments, flat: Sequence[Any], refusal: UserError) -> Any:
        tried = len(self._others)
        chosen, results = self._first_that_takes(flat, self._others[:tried])
        if isinstance(results, UserError):
            refusal = results if BROADCASTS in str(refusal) else refusal
        if chosen is None:
            if self._grow is None or self._maker == threading.get_ident():
                raise refusal
            chosen, results = self._made(self._grow, arguments, flat, refusal, tried)
        with self._choosing:
            self._chosen.put(sizes_of(flat), chosen)
        return results

    def _made(
        self, grow: Grow, arguments: Arguments, flat: Sequence[Any], refusal: UserError, tried: int
    ) -> tuple[CompiledModel, Any]:
        """A program that takes the call: another thread's by now, or a new one."""
        with self._lock:
            chosen, results = self._first_that_takes(flat, self._others[tried:])
            if chosen is not None:
                return chosen, results
            self._maker = threading.get_ident()
            try:
                chosen = grow(arguments, flat, refusal)
                results = chosen.run_flat(flat)
            finally:
                self._maker = None
            self._others.append(chosen)
            return chosen, results

    @staticmethod
    def _first_that_takes(flat: Sequence[Any], models: Sequence[CompiledModel]) -> tuple[CompiledModel | None, Any]:
        """With its results; None with the last one's refusal where none does."""
        refusal: UserError | None = None
        for model in models:
            try:
                return model, model.run_flat(flat)
            except UserError as error:
                refusal = error
        return None, refusal

    # What is asked of all

    def explain(self) -> str:
        """What was compiled, way by way."""
        texts = [super().explain(), *(other.explain() for other in self._others)]
        return (
            "\n".join(f"way {n} of {len(texts)}: {text}" for n, text in enumerate(texts, 1))
            if self._others
            else texts[0]
        )

    def stats(self) -> dict[str, int]:
        return summed([super().stats(), *(other.stats() for other in self._others)])

    def refresh_weights(self) -> None:
        for model in self.branches:
            model.module.refresh_weights()

    def to_artifact(self) -> Artifact:
        artifact = super().to_artifact()
        for other in map(CompiledModel.to_artifact, self._others):
            artifact.branches += [replace(other, branches=[]), *other.branches]
        return artifact
