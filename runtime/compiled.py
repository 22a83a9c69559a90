"""What a user holds: a compiled model, called like the original."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.artifact import KERNEL_STAGE, Artifact, save_artifact
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.cuda import CudaKernels, arch_of, choose_cubin
from dlcb.runtime.interface import Interface, constant_maker, is_constant, result_maker
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.report import Report
from dlcb.runtime.session import Limits
from dlcb.runtime.structure import RecordMaker, builder, flatten_like, is_flat

CompileCpu = Callable[[str, str], Path]
"""The shared library of the kernels in printed IR, and the name of the module for errors."""


class Program(Protocol):
    """What runs: flat arguments in, a flat list out."""

    @property
    def why_not_saved(self) -> str:
        """Why there is nothing of it to save; empty where there is."""
        ...

    def run(self, arguments: Sequence[Any]) -> Sequence[Any]: ...

    def refresh_weights(self) -> None: ...

    def stats(self) -> dict[str, int]:
        """What is kept of its calls, counted: `sizes`, `graphs`, `specialized`, `failed`."""
        ...

    def others(self) -> list[Artifact]:
        """Programs beside it that take calls which it refuses; compiled if they are not yet."""
        ...


class CompiledModel:
    """A model compiled once for every size that its report calls free. Call it as the model was called."""

    def __init__(
        self,
        artifact: Artifact,
        program: Program,
        interface: Interface,
        report: Report,
        make_record: RecordMaker | None = None,
    ) -> None:
        self.module = program
        self._artifact = artifact
        self._interface = interface
        self._report = report
        self._make_record = make_record
        self._is_flat = is_flat(interface.structure) and all(i[0] == "argument" for i in interface.inputs)
        self._results = builder(interface.result_structure, map(result_maker, interface.outputs), make_record)

    @property
    def parts(self) -> tuple[Artifact, Program, Interface, Report, RecordMaker | None]:
        """What it is made of."""
        return self._artifact, self.module, self._interface, self._report, self._make_record

    @property
    def name(self) -> str:
        return self._artifact.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run_flat(self.flat(args, kwargs))

    def run_flat(self, flat: Sequence[Any]) -> Any:
        """The model's results for the program's arguments."""
        return self._results(self.module.run(flat))

    def flat(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The program's arguments. Where each of the caller's is one, their kinds are left to the program to check."""
        interface = self._interface
        bound = args if not kwargs and len(args) == len(interface.parameters) else self._bind(args, kwargs)
        if self._is_flat:
            return bound
        leaves = flatten_like(interface.structure, list(bound), self.name)
        flat: list[Any] = []
        for leaf, wanted in zip(leaves, interface.inputs, strict=True):
            if wanted[0] == "argument":
                flat.append(leaf)
            elif not is_constant(leaf, wanted[2]):
                raise UserError(
                    f"{self.name}: {wanted[1]} is {leaf!r}, compiled for {wanted[2]!r}; compile again for another value"
                )
        return flat

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments in the order of the compiled ones; every name that was given then must be given, and no other."""
        names = self._interface.parameters
        if len(args) + len(kwargs) == len(names):
            try:
                return [*args, *[kwargs[name] for name in names[len(args) :]]]
            except KeyError:
                pass
        given = dict(zip(names, args, strict=False))
        twice = sorted(given.keys() & kwargs.keys())
        given.update(kwargs)
        missing = [n for n in names if n not in given]
        extra = [n for n in given if n not in names]
        if missing or extra or twice or len(args) > len(names):
            raise UserError(
                f"{self.name}: compiled for the arguments ({', '.join(names)}); "
                + "; ".join(
                    part
                    for part in (
                        f"missing: {', '.join(missing)}" if missing else "",
                        f"unknown: {', '.join(extra)}" if extra else "",
                        f"given twice: {', '.join(twice)}" if twice else "",
                        f"{len(args)} positional" if len(args) > len(names) else "",
                    )
                    if part
                )
            )
        return [given[n] for n in names]

    def with_program(self, program: Program) -> CompiledModel:
        """Called as this one, but run by another program."""
        return CompiledModel(self._artifact, program, self._interface, self._report)

    @property
    def weights(self) -> dict[str, Tensor]:
        """The tensors that the program reads, by the names that it has for them."""
        return dict(self._artifact.weights)

    def arguments(self, values: Sequence[Any]) -> list[Any]:
        """The caller's arguments in the order of `parameters`, for the program's flat ones."""
        interface = self._interface
        places = iter(range(len(values)))
        makers = [
            itemgetter(next(places)) if leaf[0] == "argument" else constant_maker(leaf[2]) for leaf in interface.inputs
        ]
        return builder(interface.structure, iter(makers))(values)

    @property
    def parameters(self) -> list[str]:
        return list(self._interface.parameters)

    @property
    def target(self) -> str:
        return self._artifact.target

    @property
    def size_names(self) -> dict[str, str]:
        """What the user calls a size → one place where it is: `batch` → `x.shape[0]`."""
        return dict(self._report.names)

    # What a user asks

    def dimensions(self) -> dict[str, str]:
        """Each dim of each input: `x.shape[0]` → `free as x_0`, `pinned to 64 by linear: model.py:12`, …"""
        return dict(self._report.dimensions)

    def explain(self) -> str:
        """What was compiled, what runs in eager and why, in words."""
        return self._report.text(self._artifact)

    def stats(self) -> dict[str, int]:
        """What there is of the model: `programs` (ways through its Python), `sizes` that a plan is kept for, CUDA
        `graphs`, `specialized` programs for sizes that came often, and how many of these `failed`."""
        return summed([{"programs": 1}, self.module.stats()])

    @property
    def seconds(self) -> dict[str, float]:
        """Compile seconds by stage."""
        return dict(self._report.seconds)

    @property
    def ir(self) -> dict[str, str]:
        """The printed IR after the stages that were kept, by stage."""
        return dict(self._artifact.ir)

    @property
    def cuda_text(self) -> str:
        """The text of all kernels, without the prelude."""
        return self._artifact.kernels

    def refresh_weights(self) -> None:
        """With `weights="frozen"`: derive folded weights anew from the parameters as they are."""
        self.module.refresh_weights()

    def save(self, path: str | Path) -> None:
        """Write a `.dlcb` file with a snapshot of the weights."""
        save_artifact(self.to_artifact(), Path(path))

    def to_artifact(self) -> Artifact:
        """All that a file needs to hold; a UserError where there is no such thing."""
        if self.module.why_not_saved:
            raise UserError(f"{self.name} can't be saved: {self.module.why_not_saved}")
        extra = {"interface": self._interface.to_json(), "report": vars(self._report)}
        others = [replace(other, extra=extra) for other in self.module.others()]
        return replace(self._artifact, extra=extra, branches=others)


def module_of(
    artifact: Artifact,
    kernels: Kernels | Callable[[], Kernels],
    device: torch.device,
    *,
    graphs: bool = True,
    limits: Limits | None = None,
) -> CompiledModule:
    """The artifact's programs, with its weights, ready to run. Kernels as `CompiledModule` takes them."""
    return CompiledModule(
        artifact.programs["main"],
        kernels,
        device,
        artifact.weights,
        weights_program=artifact.programs.get("weights"),
        mode="frozen" if artifact.mode == "frozen" else "live",
        graphs=graphs,
        limits=limits,
    )


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of parts as those of the whole."""
    total: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            total[name] = total.get(name, 0) + number
    return total


def sizes_of(flat: Sequence[Any]) -> tuple[Any, ...]:
    """All sizes and integers among a program's arguments, by which ways through it and programs for sizes are told
    apart."""
    return tuple([v.shape if isinstance(v, Tensor) else v if type(v) is int else type(v) for v in flat])


def kernels_for(artifact: Artifact, device: torch.device, compile_cpu: CompileCpu) -> Kernels:
    if device.type != artifact.target:
        raise UserError(f"{artifact.name} was compiled for {artifact.target}, not for {device}")
    if artifact.target == "cuda":
        return CudaKernels(choose_cubin(artifact.cubins, arch_of(device)), device)
    return CpuKernels(compile_cpu(artifact.ir[KERNEL_STAGE], artifact.name))
