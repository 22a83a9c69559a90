"""Many compiled programs whose kernels share a translation unit: rehearse all calls, then call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dlcb
from dlcb.frontend import build
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.cpu import CpuKernels
from dlcb.tests.graphs import Batch
from dlcb.tests.programs.check import Failure, compile_subject, expected, quiet
from dlcb.tests.programs.program import Subject


@dataclass
class Unit:
    """While it collects, kernels only note that they are launched; the first launch after that compiles those."""

    batch: Batch = field(default_factory=Batch)
    collects: bool = True

    def add(self, subject: Subject) -> CompiledModel | Failure | None:
        """Compile a program for the CPU, and rehearse its calls."""
        with self.collecting():
            model = compile_subject(subject, "cpu")
        if isinstance(model, CompiledModel):
            for number in range(len(subject.calls)):
                if expected(subject, number) is not None:
                    with suppress(Exception):  # what eager gets of kernels that do nothing can be anything
                        quiet(partial(model, *subject.arguments(number)))
        return model

    def add_program(self, program: Callable[..., Any], example: Any) -> CompiledModel:
        """Compile any program for the CPU; its calls are the caller's to rehearse."""
        with self.collecting():
            return dlcb.compile(program, example, target="cpu")

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Until it ends, whatever is compiled for the CPU takes its kernels from the unit."""
        before = build.kernels_for

        def kernels_for(artifact: Artifact, *_: Any) -> _Kernels:
            return _Kernels(self, self.batch.take(artifact.kernels))

        build.kernels_for = kernels_for
        try:
            yield
        finally:
            build.kernels_for = before

    def library(self, name: str) -> CpuKernels:
        number = int(name[1:])
        if name in self.batch.needed:
            libraries = self.batch.compiled()
            path = libraries[number % len(libraries)]
        else:
            path = compile_cpu(self.batch.text([name]))
        return CpuKernels(path, order_seed=number % 3)


@dataclass
class _Kernels:
    """The kernels of one module, under the names that they have in the unit."""

    unit: Unit
    names: dict[str, str]

    def function(self, name: str) -> Any:
        return name

    def activate(self) -> None:
        pass

    def launcher(self, function: Any, *how: Any) -> Callable[[], None]:
        name = self.names[function]
        found: list[Callable[[], None]] = []

        def launch() -> None:
            if self.unit.collects:
                self.unit.batch.needed[name] = None
                return
            if not found:
                library = self.unit.library(name)
                found.append(library.launcher(library.function(name), *how))
            found[0]()

        return launch
