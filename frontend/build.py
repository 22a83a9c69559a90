"""From an imported program to one that runs: lowered, its kernels compiled and loaded."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.parser import Parser

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.graph.base import calls_library
from dlcb.dialects.graph.structure import FuncOp, LaunchOp
from dlcb.frontend.importer import Imported
from dlcb.frontend.options import TORCH_RANGE, Options
from dlcb.frontend.patterns import Pattern
from dlcb.frontend.reference import ReferenceProgram
from dlcb.frontend.specialize import Specializer, Template
from dlcb.frontend.tracing.records import Captured
from dlcb.frontend.tracing.tracker import COMPARED, USED
from dlcb.lowering.lower import Lowered, context, lower
from dlcb.lowering.pipeline import Observer, run
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.solve import DIMENSIONS, PINNED
from dlcb.passes.stages import Stage
from dlcb.runtime.artifact import KERNEL_STAGE, Artifact
from dlcb.runtime.compiled import Program, kernels_for, module_of
from dlcb.runtime.cuda import arch_of
from dlcb.runtime.hot_shapes import HotShapes
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.patterned import PatternedProgram
from dlcb.runtime.report import Report

Weights = dict[str, Tensor]


@dataclass(slots=True)
class Built:
    artifact: Artifact
    program: Program
    report: Report


def build(imported: Imported, name: str, options: Options) -> Built:
    captured, module = imported.captured, imported.module
    kept: dict[str, str] = {"capture": to_text(module)} if options.keep_ir else {}
    report = Report(nodes=len(captured.records), notes=list(captured.notes))
    patterns: list[Pattern] = []

    def observe(stage: Stage, current: ModuleOp) -> None:
        if options.keep_ir:
            kept[stage.name] = to_text(current)
        if stage.name == "solve":
            report.dimensions = _dimensions(current, captured)
            patterns.extend(Pattern.assumed_in(current))
        if stage.name == "coordinates":
            report.launches = _launches(current)

    template = None if options.hot_shapes == "off" else Template.of(module)
    if options.target == "reference":
        report.seconds = run(module, context(), until="simplify", check=options.check, observer=observe)
        program = ReferenceProgram(module, name, imported.weights, options.weights == "frozen")
        return Built(_artifact(imported.weights, name, options, kept), program, report)
    first = _binary(imported.weights, name, options, module, kept, observe)
    report.seconds = first.seconds
    program: Program = first.program
    if template is not None:
        specializer = Specializer(template, options, first.artifact, program)
        program = HotShapes(first.program, specializer, options.hot_after, options.hot_shapes == "sync")
    for pattern in patterns:
        program = PatternedProgram(program, pattern.fits, partial(_general, imported.weights, name, options, pattern))
    return Built(first.artifact, program, report)


@dataclass(slots=True)
class _Binary:
    artifact: Artifact
    program: CompiledModule
    seconds: dict[str, float]


def _general(weights: Weights, name: str, options: Options, pattern: Pattern) -> tuple[Artifact, Program]:
    """The program for all patterns of broadcasting."""
    kept: dict[str, str] = {}

    def observe(stage: Stage, current: ModuleOp) -> None:
        if options.keep_ir:
            kept[stage.name] = to_text(current)

    module = Parser(context(), pattern.general, name).parse_module()
    made = _binary(weights, name, options, module, kept, observe)
    return made.artifact, made.program


def _binary(
    weights: Weights, name: str, options: Options, module: ModuleOp, kept: dict[str, str], observe: Observer
) -> _Binary:
    """A module lowered, its kernels compiled and loaded. They are compiled while the host program is written and made
    ready; `binary` is what is left to wait for them then."""
    artifact = _artifact(weights, name, options, kept)
    device, seconds = options.device, dict[str, float]()
    arch = arch_of(device) if device.type == "cuda" else None
    binaries: list[Future[Any]] = []

    def load() -> Kernels:
        began = time.perf_counter()
        binary = binaries[0].result()
        if arch is not None:
            artifact.cubins = {arch: binary}
        kernels = kernels_for(artifact, device, lambda ir, name: binary)
        seconds["binary"] = time.perf_counter() - began
        return kernels

    with ThreadPoolExecutor(1) as beside:
        lowered = lower(
            module,
            check=options.check,
            observer=observe,
            on_kernels=lambda text: binaries.append(beside.submit(_compiled, text, arch)),
        )
        seconds |= lowered.seconds
        artifact.programs = {n: {**p, "name": name} if n == "main" else p for n, p in lowered.programs.items()}
        artifact.kernels = lowered.kernels
        bound = _bound_weights(lowered)
        artifact.weights = {n: w for n, w in weights.items() if n in bound}
        if arch is None:
            artifact.ir.setdefault(KERNEL_STAGE, to_text(module))
        program = module_of(artifact, load, device, graphs=options.graphs)
    return _Binary(artifact, program, seconds)


def _compiled(kernels: str, arch: str | None) -> bytes | Path:
    """A cubin for the architecture, or the path of a shared library for the CPU."""
    return compile_cpu(kernels) if arch is None else compile_cubin(kernels, arch).data


def _artifact(weights: Weights, name: str, options: Options, kept: dict[str, str]) -> Artifact:
    return Artifact(name, options.target, options.weights, {}, "", {}, kept, weights, TORCH_RANGE)


def _bound_weights(lowered: Lowered) -> set[str]:
    """The names of the weights that the programs take."""
    return {row[1] for p in lowered.programs.values() for row in p["arguments"] if row[0] == "weight"}


def _dimensions(module: ModuleOp, captured: Captured) -> dict[str, str]:
    found: dict[str, str] = {}
    for func in module.body.block.ops:
        known = func.attributes.get(DIMENSIONS) if isinstance(func, FuncOp) else None
        if isinstance(known, DictionaryAttr):
            found |= {k: _on_this_way(v.data) for k, v in known.data.items() if isinstance(v, StringAttr)}
    for pin in captured.pins:
        for given in captured.inputs:
            if pin.symbol in given.symbols:
                key = given.name if given.kind == "int" else f"{given.name}.shape[{given.symbols.index(pin.symbol)}]"
                if pin.reason.startswith(USED):
                    found[key] = f"pinned to {pin.value} by {pin.reason.removeprefix(USED)}"
                elif f"by {PINNED}" in found.get(key, f"by {PINNED}"):
                    found[key] = f"pinned to {pin.value}: {pin.reason}"
    return found


def _on_this_way(state: str) -> str:
    """A size that Python asks for is fixed only where the answer is this."""
    fixed, by, reason = state.partition(f" by {COMPARED}")
    return f"{fixed.removeprefix('pinned to ')} on this way: {COMPARED}{reason}" if by else state


def _launches(module: ModuleOp) -> list[str]:
    found: list[str] = []
    for func in module.body.block.ops:
        if isinstance(func, FuncOp):
            for op in func.body.block.ops:
                if isinstance(op, LaunchOp):
                    found.append(f"@{func.symbol}: kernel {op.forms.data[0].data['kernel'].root_reference.data}")  # pyright: ignore
                elif calls_library(op):
                    found.append(f"@{func.symbol}: library {op.LIBRARY} ({op.line})")
    return found
