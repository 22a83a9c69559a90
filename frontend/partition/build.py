"""Build a program that is not wholly native."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from dlcb.dialects.shape.expr import Expr, evaluate, sym
from dlcb.errors import UnsupportedError
from dlcb.frontend.build import Built, build
from dlcb.frontend.importer import Imported, Result, Survey, import_captured, import_or_survey
from dlcb.frontend.options import TORCH_RANGE, Options
from dlcb.frontend.partition.programs import RegionPrograms
from dlcb.frontend.partition.regions import Region, Split, split
from dlcb.frontend.partition.spliced import EagerStep, RegionStep, SplicedProgram
from dlcb.frontend.tracing.real import Real, as_ratio
from dlcb.frontend.tracing.records import Captured, Record, Value
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.report import Report


def build_captured(captured: Captured, name: str, options: Options, fullgraph: bool) -> tuple[Built, list[Result]]:
    """The program ready to run, and where each of its outputs is among its results. With `fullgraph` an operation that
    DLCB does not compile is an error."""
    began = time.perf_counter()
    found = import_or_survey(captured)
    if fullgraph and isinstance(found, Survey):
        raise UnsupportedError(f"{found.reasons}\nfullgraph=False lets eager run what is not compiled")
    seconds = {"import": time.perf_counter() - began}
    if isinstance(found, Imported):
        built, results = build(found, name, options), found.results
    else:
        built, results = _build_spliced(captured, found, name, options), _results_of(captured)
    built.report.seconds = seconds | built.report.seconds
    return built, results


def _build_spliced(captured: Captured, survey: Survey, name: str, options: Options) -> Built:
    parts = split(captured, survey)
    programs = RegionPrograms(captured, survey)
    steps: list[RegionStep | EagerStep] = []
    built: list[Built] = []
    for step in parts.steps:
        if isinstance(step, Region):
            program = programs.make(step, len(built))
            imported = import_captured(program.captured, program.known)
            built.append(build(imported, f"{name}_{len(built)}", options))
            steps.append(RegionStep(step, built[-1].program, program.numbers))
        else:
            steps.append(EagerStep(step, programs.checks_after(step)))
    expanded = {n: programs.expanded(e) for n, e in survey.sizes.items()}
    checks = programs.early_checks()
    spliced = SplicedProgram(captured, expanded, checks, steps, parts.updates, parts.views_of_updated)
    artifact = Artifact(name, options.target, options.weights, {}, "", {}, {}, {}, TORCH_RANGE)
    for number, one in enumerate(built):
        artifact.kernels += one.artifact.kernels
        artifact.ir |= {f"{stage}_{number}": text for stage, text in one.artifact.ir.items()}
    report = _report(captured, survey, parts, built)
    for given in captured.inputs:
        if given.kind == "tensor":
            given.example = None  # the program lives on with what was captured; the first call's tensors need not
    return Built(artifact, spliced, report)


def _results_of(captured: Captured) -> list[Result]:
    """Where each output is among the results of a `SplicedProgram`."""
    tensors = sum(isinstance(o, Value) for o in captured.outputs)
    places = iter(range(tensors))
    numbers = iter(range(tensors, len(captured.outputs)))
    return [_result(output, places, numbers) for output in captured.outputs]


def _result(output: object, places: Iterator[int], numbers: Iterator[int]) -> Result:
    if isinstance(output, Value):
        return Result(next(places))
    if isinstance(output, Expr):
        return Result(next(numbers))
    return Result(next(numbers), as_ratio(output)[1]) if isinstance(output, Real) else Result(constant=output)


def _report(captured: Captured, survey: Survey, parts: Split, built: list[Built]) -> Report:
    report = Report(nodes=len(captured.records), notes=list(captured.notes))
    report.eager = list(parts.left.values())
    report.regions = len(built)
    report.native_bytes, report.eager_bytes = _bytes(captured, survey, parts.left)
    report.dimensions = _dimensions(captured)
    for one in built:
        report.launches += one.report.launches
        for stage, seconds in one.report.seconds.items():
            report.seconds[stage] = report.seconds.get(stage, 0.0) + seconds
    return report


def _dimensions(captured: Captured) -> dict[str, str]:
    pins = {pin.symbol: f"pinned to {pin.value}: {pin.reason}" for pin in captured.pins}
    return {
        given.name if given.kind == "int" else f"{given.name}.shape[{dim}]": pins.get(str(symbol), f"free as {symbol}")
        for given in captured.inputs
        for dim, symbol in enumerate(given.symbols)
    }


def _bytes(captured: Captured, survey: Survey, left: dict[Record, str]) -> tuple[int, int]:
    """The bytes of results made in regions and in eager, at the example's sizes; eager results at the traced ones."""
    sizes = dict(survey.system.traced)
    for given in captured.inputs:
        example = given.example.shape if given.kind == "tensor" else (given.example,)
        sizes |= {s: n for s, n in zip(given.symbols, example, strict=False) if isinstance(s, str)}
    native = eager = 0
    for record in captured.records:
        count = sum(_bytes_of(value, survey, sizes) for value in record.results)
        native, eager = (native, eager + count) if record in left else (native + count, eager)
    return native, eager


def _bytes_of(value: Value, survey: Survey, sizes: dict[str, int]) -> int:
    system = survey.system
    dims = survey.dims.get(value, value.shape)
    numbers = [d if isinstance(d, int) else evaluate(system.value(sym(d)), sizes) for d in dims]
    return math.prod(numbers) * value.dtype.itemsize
