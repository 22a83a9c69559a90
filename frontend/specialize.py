"""Programs for the sizes of one call, compiled in another process from the IR of the program for all sizes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.graph.structure import FuncOp
from dlcb.errors import DlcbError, UnsupportedError, UserError
from dlcb.frontend.options import Options
from dlcb.frontend.workers import Workers, shared_workers
from dlcb.lowering.cuda_to_text import kernel_texts
from dlcb.lowering.worker import Request
from dlcb.passes.functions import functions, system_of
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.compiled import Program
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.cuda import CudaKernels, arch_of
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.rows import check_program

Done = Callable[[CompiledModule | None, str], None]
"""Gets the program and an empty text, or None and the reason."""

Derivation = tuple[Any, list[str]]
"""The program `@weights` and the text of its kernels; None where no weights are derived."""


@dataclass(frozen=True, slots=True)
class GivenSize:
    """Where the flat arguments of a call have the value of an input symbol. `dim` is None for an integer."""

    symbol: str
    place: int
    dim: int | None

    def read(self, arguments: Sequence[Any]) -> int:
        value = arguments[self.place]
        return int(value if self.dim is None else value.shape[self.dim])


def given_sizes(func: FuncOp) -> tuple[GivenSize, ...]:
    """All sizes and integers that the arguments of a function give."""
    callers = [name for name, kind in zip(func.names, func.kinds, strict=True) if kind != "weight"]
    given = [(symbol, s) for symbol, s in system_of(func).symbols.items() if s.kind != "stride"]
    return tuple(GivenSize(symbol, callers.index(source.argument), source.dim) for symbol, source in given)


@dataclass(frozen=True, slots=True)
class Template:
    """A program for all sizes as it was after import: what programs for one call's sizes are made of."""

    ir: str
    sizes: tuple[GivenSize, ...]
    """All sizes and integers that the arguments of `@main` give. Strides are not among them: a program for one call's
    sizes serves all strides."""

    @classmethod
    def of(cls, module: ModuleOp) -> Template:
        """Of a module that no stage has changed yet."""
        (main,) = functions(module)
        return cls(to_text(module), given_sizes(main))


class Specializer:
    """Compiles one program for given sizes, as often as it is asked. Safe to call from several threads."""

    def __init__(
        self,
        template: Template,
        options: Options,
        artifact: Artifact,
        program: Program,
        workers: Workers | None = None,
    ) -> None:
        """`artifact` and `program`: of the program for all sizes. What is made here reads the same weights."""
        if not isinstance(program, CompiledModule):
            raise UserError(f"{artifact.name}: target '{options.target}' has no kernels that could be specialized")
        self._template = template
        self._options = options
        self._artifact = artifact
        self._general = program
        self._workers = workers or shared_workers()
        self.seconds: dict[str, float] = {}
        """What the parts of the last request took: start, parse, lower, binary, load."""

    def sizes_of(self, arguments: Sequence[Any]) -> dict[str, int]:
        """The sizes of a call by their symbols; `arguments` are the program's, flat, and fit it."""
        return {size.symbol: size.read(arguments) for size in self._template.sizes}

    def start(self, sizes: Mapping[str, int], done: Done) -> bool:
        """Compile in the background and call `done`, in another thread; not at all where the interpreter ends before.
        False where too many requests wait: ask again later."""
        wanted = dict(sizes)
        return not self._workers.submit(lambda: self._compile_for(wanted, done))

    def now(self, sizes: Mapping[str, int]) -> CompiledModule:
        """Compile and wait for it. A `DlcbError` says why there is no program."""
        try:
            return self._compile(sizes)
        except DlcbError as error:
            raise type(error)(self._reason(sizes, str(error))) from error

    def _compile_for(self, sizes: Mapping[str, int], done: Done) -> None:
        try:
            program = self._compile(sizes)
        except Exception as error:  # whatever it is, calls go on by the program for all sizes
            if not self._workers.is_closed:
                done(None, self._reason(sizes, str(error) or type(error).__name__))
        else:
            done(program, "")

    def _compile(self, sizes: Mapping[str, int]) -> CompiledModule:
        device = self._options.device
        arch = arch_of(device) if device.type == "cuda" else ""
        with tempfile.TemporaryDirectory(prefix="dlcb-") as folder:
            request = Request(self._template.ir, self._name, sizes, self._options.target, folder, arch)
            answer = self._workers.run(request)
            began = time.perf_counter()
            program = self._load(answer)
        self.seconds = {**answer["seconds"], "load": time.perf_counter() - began}
        return program

    def _load(self, answer: Mapping[str, Any]) -> CompiledModule:
        device = self._options.device
        programs: Mapping[str, Any] = answer["programs"]
        frozen = self._options.weights == "frozen"
        if frozen and "weights" in programs and derivation(programs, answer["kernels"]) != self._derivation():
            raise UnsupportedError("it would derive other frozen weights than the program for all sizes has")
        return CompiledModule(
            programs["main"],
            load_kernels(Path(answer["binary"]), device),
            device,
            self._general.frozen_weights() if frozen else self._artifact.weights,
            weights_program=None if frozen else programs.get("weights"),
            mode=self._options.weights,
            graphs=self._options.graphs,
        )

    def _derivation(self) -> Derivation:
        return derivation(self._artifact.programs, self._artifact.kernels)

    @property
    def _name(self) -> str:
        return self._artifact.name

    def _reason(self, sizes: Mapping[str, int], why: str) -> str:
        given = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        return f"{self._name}: no program for {given or 'these sizes'}: {why}"


def derivation(programs: Mapping[str, Any], kernels: str) -> Derivation:
    """Where those of two modules agree, their derived weights of the same names are the same."""
    program = programs.get("weights")
    if program is None:
        return None, []
    texts = kernel_texts(kernels)
    return program, [texts[name] for name in sorted(check_program(program).kernels())]


def load_kernels(binary: Path, device: torch.device) -> Kernels:
    """A cubin, or a shared library for the CPU."""
    return CudaKernels(binary.read_bytes(), device) if device.type == "cuda" else CpuKernels(binary)
