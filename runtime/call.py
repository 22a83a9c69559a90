"""One plan, bound to loaded kernels: run as often as its call key comes again."""

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
from dlcb.runtime.plan import CallPlan, Launch, LibraryCall, Place

Value = Tensor | int
NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Target:
    """Where calls run: the device, its kernels, and where memory comes from."""

    device: torch.device
    kernels: Kernels
    allocator: Allocator


@dataclass(frozen=True, slots=True)
class Values:
    """All arguments of a program's call by number, weights among them. While `weights_version` is the same, so are the
    weights' addresses."""

    arguments: Sequence[Value]
    weights_version: int


class BoundCall:
    """A plan with its kernels looked up and its argument arrays written. Not for two threads at once."""

    def __init__(self, plan: CallPlan, target: Target) -> None:
        self.plan = plan
        self.target = target
        self.pack = ArgumentPack(plan)
        self.functions: tuple[Any, ...] = tuple(
            target.kernels.function(step.kernel) if isinstance(step, Launch) else None for step in plan.steps
        )
        self._weights_version = -1
        self._calls_library = any(isinstance(step, LibraryCall) for step in plan.steps)

    def run(self, values: Values, stream: int, outputs: Mapping[int, Tensor] | None = None) -> list[Value]:
        """One call; `outputs` are roots that are written instead of fresh memory."""
        tensors = self.tensors(values, outputs=outputs)
        self.point(tensors, values.weights_version)
        self.execute(tensors, tensors, stream)
        return self.results(tensors)

    def tensors(
        self, values: Values, skip: Collection[int] = NOTHING, outputs: Mapping[int, Tensor] | None = None
    ) -> Tensors:
        """The roots that are there before the first step, fresh ones allocated; `skip` names those to leave out."""
        roots: list[Tensor | None] = []
        for number, root in enumerate(self.plan.roots):
            if number in skip or root.kind == "result":
                roots.append(None)
            elif root.number >= 0:
                value = values.arguments[root.number]
                roots.append(value if isinstance(value, Tensor) else None)
            elif outputs is not None and number in outputs:
                roots.append(outputs[number])
            else:
                roots.append(self.target.allocator.root(root, self.target.device))
        return Tensors(self.plan, roots)

    def execute(
        self, tensors: Tensors, library: Tensors, stream: int, launched: Callable[[int], None] | None = None
    ) -> None:
        """All steps in order. Kernels take the addresses that were pointed to, library calls their tensors from
        `library`; after each launch, `launched` is told its step."""
        launch, pointers, functions = self.target.kernels.launch, self.pack.pointers, self.functions
        with library_mode(self.target.device) if self._calls_library else nullcontext():
            for number, step in enumerate(self.plan.steps):
                if isinstance(step, Launch):
                    launch(functions[number], step.blocks, step.threads, pointers[number], stream)
                    if launched is not None:
                        launched(number)
                else:
                    self._call_library(step, tensors, library)
                for root in self.plan.releases[number]:
                    tensors.roots[root] = library.roots[root] = None

    def point(self, tensors: Tensors, weights_version: int) -> None:
        """Write the addresses of all roots that are there into the argument arrays; those of weights when their version
        is new."""
        point = self.pack.point
        known = weights_version == self._weights_version
        self._weights_version = weights_version
        for number, (tensor, root) in enumerate(zip(tensors.roots, self.plan.roots, strict=True)):
            if tensor is not None and not (known and root.kind == "weight"):
                point(number, tensor.data_ptr())

    def results(self, tensors: Tensors) -> list[Value]:
        return [r if isinstance(r, int) else tensors.tensor(r) for r in self.plan.results]

    def _call_library(self, step: LibraryCall, tensors: Tensors, library: Tensors) -> None:
        out = None if step.out is None else library.tensor(step.out)
        result = step.function.run([library.tensor(t) for t in step.tensors], step.options, out)
        if step.result is None:
            return
        if result.dtype != step.dtype:
            raise InternalError(f"a library call gave {result.dtype}, the program expects {step.dtype}")
        tensors.roots[step.result] = library.roots[step.result] = result
        self.pack.point(step.result, result.data_ptr())


def library_mode(device: torch.device) -> AbstractContextManager[Any]:
    """Library functions compute what they are asked, whatever modes the caller is in: no gradients, no autocast."""
    if not torch.is_autocast_enabled(device.type):
        return torch.no_grad()
    modes = ExitStack()
    modes.enter_context(torch.no_grad())
    modes.enter_context(torch.autocast(device.type, enabled=False))
    return modes


def result_roots(plan: CallPlan) -> set[int]:
    return {r.root for r in plan.results if isinstance(r, Place)}
