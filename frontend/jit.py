"""The tier for programs without examples: compiled at the first call of each kind of arguments, for all their sizes.

The *kind* of a call: the structure of its arguments, the rank, dtype, device and layout class of each tensor, and the
values of what is neither tensor nor integer.

What can't be compiled for one call may be for another of its kind: sizes decide which way Python goes. So a failure is
remembered for calls of the same sizes, as long as the program's tensors stay and it is in training or not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import torch

from dlcb.errors import LayoutError, UnsupportedError, UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture.exported import in_training
from dlcb.frontend.capture.inputs import in_order, may_vary, signature_of
from dlcb.frontend.tracing.layouts import layout_class
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.compiled import CompiledModel, sizes_of, summed

MOST_KINDS = 64

Compile = Callable[[Sequence[Any], Mapping[str, Any]], CompiledModel]
"""Compiles the program at the arguments of a call."""


class JitModel:
    """Called like the program. Safe to call from several threads: each kind is compiled once, by the first that needs
    it, while the others wait."""

    def __init__(self, program: Callable[..., Any], compile_at: Compile, name: str, most: int) -> None:
        self.name = name
        self._signature = signature_of(program)
        self._compile_at = compile_at
        self._lock = threading.Lock()
        self._program = program
        self._models: LeastRecentlyUsed[Any, Future[CompiledModel]] = LeastRecentlyUsed(most, self._left)
        self._failed: LeastRecentlyUsed[Any, UserError | UnsupportedError] = LeastRecentlyUsed(most)
        self._counts = {"calls": 0, "compiles": 0, "failures": 0, "repeated": 0, "left": 0}
        self._seconds = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = in_order(self._signature, args, kwargs)
        kind = kind_of(args, kwargs, self.name)
        with self._lock:
            self._counts["calls"] += 1
            model, is_ours = self._look_up(kind, args, kwargs)
        while not is_ours and model.exception() is not None:  # another call's of this kind, for its sizes maybe
            with self._lock:
                model, is_ours = self._look_up(kind, args, kwargs)
        if is_ours:
            self._compile(kind, model, args, kwargs)
        return model.result()(*args, **kwargs)

    def models(self) -> list[CompiledModel]:
        """One for each kind of arguments that is kept."""
        with self._lock:
            kept = self._models.values()
        return [future.result() for future in kept if future.done() and future.exception() is None]

    def stats(self) -> dict[str, int]:
        """`kinds` of arguments that are kept, and what was counted since the model was made: `calls`; `compiles`, and
        `failures` of others; calls for which a failure was `repeated` that is remembered; how many kinds `left`. With
        the sums of what `CompiledModel.stats` counts."""
        models = self.models()
        with self._lock:
            own = {"kinds": len(models), **self._counts}
        return own | summed([model.stats() for model in models])

    @property
    def compile_seconds(self) -> float:
        """What all compiles took."""
        return self._seconds

    def explain(self) -> str:
        """What was compiled for each kind of arguments."""
        models = self.models()
        lines = [f"{self.name}: compiled for {len(models)} kinds of arguments"]
        return "\n".join(lines + [model.explain() for model in models])

    def dimensions(self) -> list[dict[str, str]]:
        """What is known of each dim of each input, as `CompiledModel.dimensions` says it: for each kind of arguments
        that is kept."""
        return [model.dimensions() for model in self.models()]

    def refresh_weights(self) -> None:
        """With frozen weights: derive them anew, in all that is kept."""
        for model in self.models():
            model.refresh_weights()

    def _look_up(self, kind: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Future[CompiledModel], bool]:
        """The kind's model, and whether this call has to make it; under the lock. Where such a call failed before, it
        fails again."""
        model = self._models.get(kind)
        if model is not None:
            return model, False
        failure = self._failed.get((kind, *_rest_of(self._program, args, kwargs))) if len(self._failed) else None
        if failure is not None:
            self._counts["repeated"] += 1
            raise _again(failure)
        model = Future[CompiledModel]()
        self._models.put(kind, model)
        return model, True

    def _compile(self, kind: Any, model: Future[CompiledModel], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        began = time.perf_counter()
        try:
            compiled = self._compile_at(args, kwargs)
        except BaseException as error:
            with self._lock:
                self._counts["failures"] += 1
                self._models.drop(kind)
                if type(error) in _REMEMBERED:
                    self._failed.put((kind, *_rest_of(self._program, args, kwargs)), _again(error))
            model.set_exception(error)
            return
        with self._lock:
            self._counts["compiles"] += 1
            self._seconds += time.perf_counter() - began
        model.set_result(compiled)

    def _left(self, kind: Any, model: Future[CompiledModel]) -> None:
        self._counts["left"] += 1


_REMEMBERED = (UserError, LayoutError, UnsupportedError)
"""What the program and the arguments are the reason for; all else, a `MachineError` too, may be otherwise next time."""


def _again(error: Any) -> UserError | UnsupportedError:
    """The same error, without the frames of the failed call, which hold its tensors."""
    return type(error)(str(error))


def _rest_of(program: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a compile depends on beside the kind of a call."""
    leaves = private.flatten((tuple(args), dict(kwargs)))[0]
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided]
    strides = tuple([tensor.stride() for tensor in tensors])
    if not isinstance(program, torch.nn.Module):
        return sizes_of(leaves), strides
    own = [(t.dtype, t.device, t.shape) for t in (*program.parameters(), *program.buffers())]
    return sizes_of(leaves), strides, in_training(program), tuple(own)


def kind_of(args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> Any:
    """What tells calls apart that need programs of their own. A `UserError` for an argument that has no such thing, and
    for a call while another program is traced."""
    if not kwargs and all(type(a) is torch.Tensor for a in args):
        return tuple([_kind_of_leaf(a) for a in args])
    leaves, spec = private.flatten((tuple(args), dict(kwargs)))
    if any(isinstance(leaf, private.FakeTensor) for leaf in leaves):
        raise UserError(
            f"{name} is compiled already, and called where a program is traced; compile the outer one alone"
        )
    kind = (spec, *[_kind_of_leaf(leaf) for leaf in leaves])
    try:
        hash(kind)
    except TypeError as error:
        raise UserError(
            f"{name}: an argument can't tell calls apart: {error}; pass tensors, numbers and texts"
        ) from None
    return kind


def _kind_of_leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.dtype, leaf.device, layout_class(leaf)
    if may_vary(leaf):
        return int
    return type(leaf), leaf.hex() if isinstance(leaf, float) else leaf
