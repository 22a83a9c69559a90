"""Whatever runs a program: eager, torch.compile and DLCB, each in its ways, as something that is called like it.

Each is built with nothing known from before, in memory or on disk, in a process that used it for something else; it is
to be used only while its context lasts. Gradients are off.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor

import dlcb
from dlcb.benchmarks import inductor
from dlcb.benchmarks.accuracy import tensors_of
from dlcb.benchmarks.timing import Call, record, seconds_to_host

Inputs = Mapping[str, Any] | tuple[Any, ...]
Program = Callable[..., Any]
Weights = Literal["live", "frozen"]

COMMON = ("eager", "eager_graph", "tc", "tc_dynamic", "tc_best", "dlcb", "dlcb_dynamic")
"""`eager_graph` is eager in a CUDA graph, `tc` is torch.compile: for these sizes, for all sizes, and in its best mode
(CUDA graphs, parameters folded). `dlcb` is DLCB for these sizes and for all. More: `tc_auto` lets torch.compile choose
which sizes are free, `dlcb_jit` compiles at a call, without examples, `dlcb_hot` compiles sizes that come often."""
HOT_AFTER = 300
"""Calls of one size after which `dlcb_hot` has it compiled in another process."""
ONE_SIZE = ("eager_graph", "tc", "tc_best", "dlcb")
"""Those that are built for the sizes of one call."""


@dataclass(slots=True)
class Built:
    """A contender that has run once. `first_s`: seconds from the call of the compiler to the first result on the host;
    `stages_s`: those of DLCB's stages; `how`: how it was set up."""

    call: Program
    first_s: float
    how: str = ""
    stages_s: dict[str, float] = field(default_factory=dict[str, float])

    def bind(self, inputs: Inputs) -> Call:
        return bound(self.call, inputs)


def bound(program: Program, inputs: Inputs) -> Call:
    """The call with these arguments, by position or by name."""
    if isinstance(inputs, Mapping):
        return lambda: program(**inputs)
    return lambda: program(*inputs)


def why_not(kind: str, device: torch.device) -> str | None:
    """Why there is no such contender on the device; None where there is."""
    return "needs CUDA" if kind == "eager_graph" and device.type != "cuda" else None


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be built at these inputs. `graphs=False`: nothing has CUDA graphs of its own, for it runs in one of
    the benchmark's. `fresh=False`: the caches of a build before are used; their context is the caller's."""

    program: Program
    inputs: Inputs
    weights: Weights = "live"
    graphs: bool = True
    fresh: bool = True


@contextmanager
def build(kind: str, request: Request) -> Generator[Built]:
    _warm_up(kind, tensors_of(request.inputs)[0].device)
    with _built(kind, request) as built:
        yield built


@contextmanager
def _built(kind: str, request: Request) -> Generator[Built]:
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        if request.fresh:
            stack.enter_context(fresh_caches())
        yield KINDS[kind](stack, request)


@contextmanager
def fresh_caches() -> Generator[None]:
    """Nothing that was compiled is known, in memory or on disk."""
    with inductor.fresh(), _fresh_dlcb():
        yield


@cache
def _warm_up(kind: str, device: torch.device) -> None:
    """It compiles something small, so that what a process does once is in no measurement."""
    program = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Softmax(-1)).eval().to(device)
    with _built(kind, Request(program, (torch.ones(3, 8, device=device),))):
        pass


class Recorded:
    """A program as one CUDA graph, for inputs of these sizes, which are copied into its own; results are its own too.
    Integers and texts among the inputs are those it was recorded with."""

    def __init__(self, program: Program, inputs: Inputs) -> None:
        self._inputs = copied(inputs)
        self._tensors = tensors_of(self._inputs)
        (device,) = {t.device for t in self._tensors}
        self._graph, (self._results,) = record([bound(program, self._inputs)], device)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for own, given in zip(self._tensors, tensors_of((args, kwargs)), strict=True):
            if own.shape != given.shape:
                raise ValueError(f"recorded for {tuple(own.shape)}, called with {tuple(given.shape)}")
            own.copy_(given)
        return self.replay()

    def replay(self) -> Any:
        """With the inputs of the call before."""
        self._graph.replay()
        return self._results


def copied(value: Any) -> Any:
    """Nested tensors with memory of their own, laid out alike."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {k: copied(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(copied(v) for v in value)
    return value


@contextmanager
def _fresh_dlcb() -> Generator[None]:
    """DLCB with an empty cache on disk."""
    name = "DLCB_CACHE_DIR"
    before = os.environ.get(name)
    with tempfile.TemporaryDirectory(prefix="dlcb-benchmark-") as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


def _first(make: Callable[[], Program], inputs: Inputs) -> tuple[Program, float]:
    """The program that is made, and the seconds until its first result is on the host."""
    made: list[Program] = []

    def run() -> Any:
        made.append(make())
        return bound(made[0], inputs)()

    _, seconds = seconds_to_host(run)
    return made[0], seconds


Builder = Callable[[ExitStack, Request], Built]


def _eager(stack: ExitStack, asked: Request) -> Built:
    return Built(*_first(lambda: asked.program, asked.inputs))


def _eager_graph(stack: ExitStack, asked: Request) -> Built:
    return Built(*_first(lambda: Recorded(asked.program, asked.inputs), asked.inputs))


def _torch_compile(dynamic: bool | None) -> Builder:
    def make(stack: ExitStack, asked: Request) -> Built:
        torch.compiler.reset()
        compiled = _first(lambda: torch.compile(asked.program, dynamic=dynamic), asked.inputs)
        return Built(*compiled, how=f"dynamic={dynamic}")

    return make


def _torch_compile_best(stack: ExitStack, asked: Request) -> Built:
    mode = "reduce-overhead" if asked.graphs else "max-autotune-no-cudagraphs"
    torch.compiler.reset()
    stack.enter_context(inductor.freezing())
    compiled = _first(lambda: torch.compile(asked.program, dynamic=False, mode=mode), asked.inputs)
    return Built(*compiled, how=f"{mode}, freezing")


def _dlcb(dynamic: Literal["auto", False]) -> Builder:
    def make(stack: ExitStack, asked: Request) -> Built:
        model, seconds = _first(
            lambda: dlcb.compile(
                asked.program, asked.inputs, dynamic=dynamic, weights=asked.weights, graphs=asked.graphs
            ),
            asked.inputs,
        )
        assert isinstance(model, dlcb.CompiledModel)
        return Built(model, seconds, f"dynamic={dynamic}, weights={asked.weights}", model.seconds)

    return make


def _dlcb_jit(stack: ExitStack, asked: Request) -> Built:
    made = _first(lambda: dlcb.compile(asked.program, weights=asked.weights, graphs=asked.graphs), asked.inputs)
    return Built(*made, how=f"no examples, weights={asked.weights}")


def _dlcb_hot(stack: ExitStack, asked: Request) -> Built:
    made = _first(
        lambda: dlcb.compile(
            asked.program,
            asked.inputs,
            weights=asked.weights,
            graphs=asked.graphs,
            hot_shapes="on",
            hot_after=HOT_AFTER,
        ),
        asked.inputs,
    )
    return Built(*made, how=f"hot shapes after {HOT_AFTER} calls, weights={asked.weights}")


KINDS: dict[str, Builder] = {
    "eager": _eager,
    "eager_graph": _eager_graph,
    "tc": _torch_compile(False),
    "tc_auto": _torch_compile(None),
    "tc_dynamic": _torch_compile(True),
    "tc_best": _torch_compile_best,
    "dlcb": _dlcb(False),
    "dlcb_dynamic": _dlcb("auto"),
    "dlcb_jit": _dlcb_jit,
    "dlcb_hot": _dlcb_hot,
}
