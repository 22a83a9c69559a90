"""One plan, bound to loaded kernels and a stream: run as often as its call key comes again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dlcb.errors import InternalError
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.memory import Allocator, Tensors
from dlcb.runtime.packing import ArgumentPack
from dlcb.runtime.plan import CallPlan, Launch, LibraryCall, Place, Step

Value = Tensor | int
NOTHING: frozenset[int] = frozenset()
StepObserver = Callable[[Step | None], None]
"""Told of each step when it was launched; before a program's first step it is told None."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where calls run: the device, its kernels, and where memory comes from."""

    device: torch.device
    kernels: Kernels
    allocator: Allocator


@dataclass(frozen=True, slots=True)
class Values:
    """All arguments of a program's call by number, weights among them. While `weights_version` is the same, so are the
    weights and their addresses."""

    arguments: Sequence[Value]
    weights_version: int


class BoundCall:
    """A plan with its launches ready and its argument arrays written. Not for two threads at once."""

    def __init__(self, plan: CallPlan, target: Target, stream: int | Sequence[int], quick: bool = False) -> None:
        """On one stream, or on one for each step; the library uses the current one, and its `quick` routines if so
        asked."""
        self.streams = [stream] * len(plan.steps) if isinstance(stream, int) else stream
        """Of each step."""
        self.plan = plan
        self.target = target
        self.quick = quick
        self.pack = ArgumentPack(plan)
        kernels = target.kernels
        self.functions: tuple[Any, ...] = tuple(
            kernels.function(step.kernel) if isinstance(step, Launch) else None for step in plan.steps
        )
        self._launchers = [
            kernels.launcher(self.functions[n], step, self.pack.pointers[n], self.streams[n])
            if isinstance(step, Launch)
            else None
            for n, step in enumerate(plan.steps)
        ]
        self._weights_version = -1
        self._weights: list[Tensor | None] = [None] * len(plan.roots)
        """The roots that are weights, at their numbers."""
        self._moving = [(n, root) for n, root in enumerate(plan.roots) if root.kind not in ("weight", "result")]
        self._calls_library = any(isinstance(step, LibraryCall) for step in plan.steps)

    def run(
        self, values: Values, outputs: Mapping[int, Tensor] | None = None, observer: StepObserver | None = None
    ) -> list[Value]:
        """One call; `outputs` are roots that are written instead of fresh memory."""
        tensors = self.tensors(values, outputs=outputs)
        if observer is None:
            self.execute(tensors, tensors)
        else:
            observer(None)
            self.execute(tensors, tensors, lambda number: observer(self.plan.steps[number]))
        return self.results(tensors)

    def tensors(
        self, values: Values, skip: Collection[int] = NOTHING, outputs: Mapping[int, Tensor] | None = None
    ) -> Tensors:
        """The roots that are there before the first step, their addresses written into the argument arrays; fresh ones
        are allocated. `skip` names those to leave out."""
        if values.weights_version != self._weights_version:
            self._take_weights(values)
        point, allocator, device = self.pack.point, self.target.allocator, self.target.device
        roots = self._weights.copy()
        for number, root in self._moving:
            if number in skip:
                continue
            if root.number >= 0:
                tensor = values.arguments[root.number]
                assert isinstance(tensor, Tensor)
            elif outputs is not None and number in outputs:
                tensor = outputs[number]
            else:
                tensor = allocator.root(root, device)
            roots[number] = tensor
            point(number, tensor.data_ptr())
        return Tensors(self.plan, roots)

    def execute(
        self,
        tensors: Tensors,
        library: Tensors,
        done: Callable[[int], None] | None = None,
        before: Callable[[int], None] | None = None,
    ) -> None:
        """All steps in order. Kernels take the addresses that were pointed to, library calls their tensors from
        `library`; `before` and after each, `done`, are told its number."""
        with library_mode(self.target.device) if self._calls_library else nullcontext():
            for number, (launch, step) in enumerate(zip(self._launchers, self.plan.steps, strict=True)):
                if before is not None:
                    before(number)
                if launch is None:
                    self._call_library(number, tensors, library)
                else:
                    launch()
                if done is not None:
                    done(number)
                for root in step.ends:
                    tensors.roots[root] = library.roots[root] = None

    def results(self, tensors: Tensors) -> list[Value]:
        return [r if isinstance(r, int) else tensors.tensor(r) for r in self.plan.results]

    def _take_weights(self, values: Values) -> None:
        for number, root in enumerate(self.plan.roots):
            if root.kind == "weight":
                tensor = values.arguments[root.number]
                assert isinstance(tensor, Tensor)
                self._weights[number] = tensor
                self.pack.point(number, tensor.data_ptr())
        self._weights_version = values.weights_version

    def _call_library(self, number: int, tensors: Tensors, library: Tensors) -> None:
        step = self.plan.steps[number]
        assert isinstance(step, LibraryCall)
        out = None if step.out is None else library.tensor(step.out)
        function = step.function
        run = function.quick if self.quick and function.quick is not None else function.run
        result = run([library.tensor(t) for t in step.tensors], step.options, out)
        if step.result is None:
            return
        if result.dtype != step.dtype:
            raise InternalError(f"a library call gave {result.dtype}, the program expects {step.dtype}")
        tensors.roots[step.result] = library.roots[step.result] = result
        self.pack.point(step.result, result.data_ptr())


def library_mode(device: torch.device) -> AbstractContextManager[Any]:
    """Library functions compute what they are asked, whatever modes the caller is in: no gradients, no autocast."""
    if not torch.is_autocast_enabled(device.type):
        return torch.no_grad() if torch.is_grad_enabled() else nullcontext()
    modes = ExitStack()
    modes.enter_context(torch.no_grad())
    modes.enter_context(torch.autocast(device.type, enabled=False))
    return modes


def result_roots(plan: CallPlan) -> set[int]:
    return {r.root for r in plan.results if isinstance(r, Place)}
