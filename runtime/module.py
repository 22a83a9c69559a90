"""A compiled module, ready to be called: flat tensors and integers in, a flat list out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.arguments import Addresses, CallerArguments, Key
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.call import StepObserver, Target, Value
from dlcb.runtime.cuda import device_index
from dlcb.runtime.device import CpuPlace, CudaPlace, Place
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.memory import Allocator
from dlcb.runtime.program import compile_derivation, compile_program
from dlcb.runtime.rows import Program, check_program
from dlcb.runtime.session import Limits, Session
from dlcb.runtime.weights import Mode, Weights


class CompiledModule:
    """Runs a host program and its kernels. Calls from several threads and on several streams are safe: each stream has
    its own session, with a lock, plans and graphs. Live weights are derived for each stream apart, at addresses that
    stay; frozen ones once for all.

    `main` and `weights_program` are serialized host programs (`runtime/rows.py`). `weights` binds tensors to the names
    that they use; the results of `weights_program` are weights of `main`. `graphs=False` switches CUDA graphs off.
    Kernels that are still being compiled are given by a function: it is called when all else is ready.
    """

    why_not_saved = ""

    def __init__(
        self,
        main: Any,
        kernels: Kernels | Callable[[], Kernels],
        device: torch.device,
        weights: Mapping[str, Tensor],
        *,
        weights_program: Any = None,
        mode: Mode = "live",
        graphs: bool = True,
        allocator: Allocator | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.program = check_program(main)
        self.device = _with_index(device)
        self._derive = None if weights_program is None else check_program(weights_program)
        allocator = allocator or Allocator()
        self._arguments = CallerArguments(self.program, self.device)
        self._plan_function = compile_program(self.program, allocator.separate_buffers)
        self._derive_plan = self._derive and compile_derivation(self._derive)
        loaded = kernels() if callable(kernels) else kernels
        self._place: Place = CudaPlace(self.device, loaded.activate) if self.device.type == "cuda" else CpuPlace()
        self._target = Target(self.device, loaded, allocator)
        self._bound = weights
        self._mode: Mode = mode
        self._graphs = graphs and self.device.type == "cuda"
        self._limits = limits or Limits()
        self._lock = threading.RLock()
        self._sessions: dict[int, Session] = {}
        self._observer: StepObserver | None = None
        self._check_kernels(self.program, *(() if self._derive is None else (self._derive,)))
        self._frozen = self._new_weights() if mode == "frozen" else None

    @property
    def name(self) -> str:
        return self.program.name

    def __call__(self, *arguments: Value) -> list[Value]:
        return self.run(arguments)

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        """The results of the program. A wrong argument, or one that a check refuses, is a UserError and nothing was
        launched."""
        key, addresses = self._arguments.read(arguments)
        if self._place.is_current():
            return self._run_here(key, addresses, arguments)
        with self._place.entered():
            return self._run_here(key, addresses, arguments)

    def check(self, arguments: Sequence[Any]) -> None:
        """A UserError for arguments of the wrong number, kind, rank, dtype or device."""
        self._arguments.check(arguments)

    @contextmanager
    def observed(self, observer: StepObserver) -> Generator[None]:
        """While it lasts, every call tells the observer of its steps, and none runs as a CUDA graph."""
        before, self._observer = self._observer, observer
        try:
            yield
        finally:
            self._observer = before

    def refresh_weights(self) -> None:
        """With frozen weights: derive anew from the parameters as they are, into the addresses that are in use."""
        with self.paused():
            self.refresh_paused()

    @contextmanager
    def paused(self) -> Generator[None]:
        """While it lasts, no call runs, and the device has nothing left to do."""
        with self._place.entered(), self._lock, ExitStack() as calls:
            for session in self._sessions.values():
                calls.enter_context(session.lock)
            self._place.synchronize()
            yield

    def refresh_paused(self) -> None:
        """`refresh_weights` where calls are paused already."""
        if self._frozen is None:
            raise UserError(
                f"{self.name}: refresh_weights() is for weights='frozen'; live weights are fresh in every call"
            )
        self._frozen.refresh(self._place.stream())
        self._place.synchronize()

    def frozen_weights(self) -> Mapping[str, Tensor]:
        """With frozen weights: what this module reads, by name, derived weights too. Another module that is bound to
        it reads the same memory, and what this module's last refresh left when it refreshes itself."""
        if self._frozen is None:
            raise UserError(f"{self.name}: frozen_weights() is for weights='frozen'; live weights are the parameters")
        return _FrozenWeights(self)

    def others(self) -> list[Artifact]:
        return []

    def stats(self) -> dict[str, int]:
        """Of how many sizes a plan is kept, and how many CUDA graphs, on all streams."""
        sessions = list(self._sessions.values())
        return {"sizes": sum(s.known for s in sessions), "graphs": sum(s.recorded for s in sessions)}

    def _run_here(self, key: Key, addresses: Addresses, arguments: Sequence[Value]) -> list[Value]:
        stream = self._place.stream()
        session = self._sessions.get(stream)
        if session is None:
            session = self._new_session(stream)
        with session.lock:
            return session.run(key, addresses, arguments, self._observer)

    def _new_session(self, stream: int) -> Session:
        with self._lock:
            if stream not in self._sessions:
                weights = self._frozen_weights(stream) if self._frozen is not None else self._new_weights()
                while len(self._sessions) >= self._limits.streams:
                    del self._sessions[next(iter(self._sessions))]
                self._sessions[stream] = Session(
                    self.program,
                    self._plan_function,
                    self._arguments,
                    weights,
                    self._target,
                    stream,
                    self._graphs,
                    self._limits,
                )
            return self._sessions[stream]

    def _frozen_weights(self, stream: int) -> Weights:
        """The weights that all sessions share, made before any of them reads them. Under the module's lock."""
        assert self._frozen is not None
        self._frozen.locate()
        self._frozen.current(stream)
        self._place.synchronize()
        return self._frozen

    def held_weights(self) -> Mapping[str, Tensor]:
        """The frozen weights as they are; the first time, they are derived."""
        assert self._frozen is not None
        with self._place.entered(), self._lock:
            return self._frozen.held or self._frozen_weights(self._place.stream()).held

    def _new_weights(self) -> Weights:
        return Weights(self._bound, self.program, self._derive, self._target, self._mode, self._derive_plan)

    def _check_kernels(self, *programs: Program) -> None:
        with self._place.entered():
            for program in programs:
                for kernel in sorted(program.kernels()):
                    self._target.kernels.function(kernel)


class _FrozenWeights(Mapping[str, Tensor]):
    def __init__(self, module: CompiledModule) -> None:
        self._module = module

    def __getitem__(self, name: str) -> Tensor:
        return self._module.held_weights()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._module.held_weights())

    def __len__(self) -> int:
        return len(self._module.held_weights())


def _with_index(device: torch.device) -> torch.device:
    return torch.device("cuda", device_index(device)) if device.type == "cuda" else device
