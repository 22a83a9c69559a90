"""`dlcb.compile`: capture, import, lower, compile, and hand over what is called like the original."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast, get_args

import torch
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.structure import FuncOp, LaunchOp
from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import Imported, Result, import_captured
from dlcb.frontend.inputs import Dynamic
from dlcb.frontend.records import Captured
from dlcb.frontend.reference import ReferenceModel, ReferenceProgram
from dlcb.frontend.retrace import retrace
from dlcb.frontend.torch_private import flatten
from dlcb.lowering.cuda_to_text import cuda_unit
from dlcb.lowering.lower import Lowered, context, lower
from dlcb.lowering.pipeline import run
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.solve import DIMENSIONS, PINNED
from dlcb.passes.stages import Stage
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.compiled import KERNEL_STAGE, CompiledModel, Interface, Report, kernels_for, parameter_names
from dlcb.runtime.cuda import arch_of
from dlcb.runtime.structure import structure_of

TORCH_RANGE = ("2.11", "2.16")
Target = Literal["cuda", "cpu", "reference"]
TARGETS: tuple[str, ...] = get_args(Target)


def compile(
    model: Callable[..., Any],
    example_inputs: Sequence[Any] | Mapping[str, Any],
    dynamic: Dynamic = "auto",
    weights: Literal["live", "frozen"] = "live",
    target: Target | None = None,
    *,
    name: str | None = None,
    keep_ir: bool = False,
    check: bool = False,
    graphs: bool = True,
) -> CompiledModel:
    """Compile a module or function once, for every size that it accepts.

    `example_inputs`: positional arguments (a tuple) or keyword arguments (a dict). `dynamic`: "auto" frees every size
    that can be free; False keeps all; `{"x": {0: "batch"}}` frees these, equal names being equal sizes. `weights`:
    "live" sees every change of the parameters at the next call, "frozen" folds them once (`refresh_weights()` folds
    again). `target`: "cuda" or "cpu", by default where the example is; or "reference", which runs each op by its own
    rule, slowly, on the CPU. `keep_ir` keeps the printed IR of every stage; `check` verifies every stage, and that the
    program traced at the example's sizes is the one that was captured. Raises `UserError` for a program that eager
    refuses too, `UnsupportedError` for one that DLCB does not compile.
    """
    _check_torch()
    args, kwargs = _arguments(example_inputs)
    device = _device(target, [*args, *kwargs.values()], model)
    seconds: dict[str, float] = {}
    began = time.perf_counter()
    captured = capture(model, args, kwargs, dynamic)
    seconds["capture"] = time.perf_counter() - began
    began = time.perf_counter()
    imported = import_captured(captured)
    module = imported.module
    seconds["import"] = time.perf_counter() - began
    kept: dict[str, str] = {"capture": to_text(module)} if keep_ir else {}
    report = Report(nodes=len(captured.records))

    def observe(stage: Stage, current: ModuleOp) -> None:
        if keep_ir:
            kept[stage.name] = to_text(current)
        if stage.name == "solve":
            report.dimensions = _dimensions(current, captured)
        if stage.name == "coordinates":
            report.launches = _launches(current)

    name = name or captured.name
    interface = _interface(model, imported, args, kwargs)
    make_record = _record_maker(captured)
    artifact = Artifact(name, target or device.type, weights, {}, "", {}, kept, imported.weights, TORCH_RANGE)
    report.seconds = seconds
    if check:
        _check_retrace(captured, model, args, kwargs)
    if target == "reference":
        seconds |= run(module, context(), until="simplify", check=check, observer=observe)
        program = ReferenceProgram(module, name, imported.weights, weights == "frozen")
        return ReferenceModel(artifact, program, interface, report, make_record)
    lowered = lower(module, check=check, observer=observe)
    seconds |= lowered.seconds
    artifact.programs = {n: {**p, "name": name} if n == "main" else p for n, p in lowered.programs.items()}
    artifact.kernels = lowered.kernels
    bound = _bound_weights(lowered)
    artifact.weights = {n: w for n, w in imported.weights.items() if n in bound}
    began = time.perf_counter()
    if device.type == "cuda":
        arch = arch_of(device)
        artifact.cubins = {arch: compile_cubin(lowered.kernels, arch).data}
    else:
        artifact.ir.setdefault(KERNEL_STAGE, to_text(module))
    kernels = kernels_for(artifact, device, lambda ir, name: compile_cpu(lowered.kernels))
    seconds["binary"] = time.perf_counter() - began
    return CompiledModel(artifact, kernels, device, interface, report, graphs=graphs, make_record=make_record)


def cuda_text(model: CompiledModel) -> str:
    """The whole text that NVRTC compiles."""
    return cuda_unit(model.cuda_text)


def _check_torch() -> None:
    version = tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2])
    first, end = (tuple(map(int, t.split("."))) for t in TORCH_RANGE)
    if not first <= version < end:
        raise UserError(
            f"torch {torch.__version__} is installed; DLCB works with torch >= {TORCH_RANGE[0]}, < {TORCH_RANGE[1]}: "
            f"pip install 'torch>={TORCH_RANGE[0]},<{TORCH_RANGE[1]}'"
        )


def _arguments(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return (), dict(cast("Mapping[str, Any]", example_inputs))
    if isinstance(example_inputs, (tuple, list)):
        return tuple(cast("Sequence[Any]", example_inputs)), {}
    raise UserError(
        f"example_inputs is a {type(example_inputs).__name__}; pass a tuple of positional arguments, (x,), or a dict"
    )


def _check_retrace(
    captured: Captured, model: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    found = retrace(captured, model, args, kwargs)
    if found is not None:
        raise InternalError(f"{captured.name}: traced at the example's sizes it is another program: {found}")


def _device(target: str | None, values: Sequence[Any], model: Callable[..., Any]) -> torch.device:
    """Where the program runs: where its tensors are; a target that says otherwise is an error."""
    tensors = [v for v in flatten(list(values))[0] if isinstance(v, torch.Tensor)]
    if isinstance(model, torch.nn.Module):
        tensors += list(model.parameters())
    devices = {t.device for t in tensors}
    if len(devices) > 1:
        raise UserError(f"the model and its inputs are on several devices: {', '.join(sorted(map(str, devices)))}")
    device = devices.pop() if devices else torch.device("cuda" if target == "cuda" else "cpu")
    if device.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"tensors on {device}; DLCB compiles for cuda and cpu")
    if target not in (None, *TARGETS):
        raise UserError(f"target is {target!r}, expected {', '.join(TARGETS)}")
    where = "cpu" if target == "reference" else target
    if where is not None and where != device.type:
        raise UserError(f"target {target!r}, but the model and its inputs are on {device}; move them first")
    return device


def _bound_weights(lowered: Lowered) -> set[str]:
    """The names of the weights that the programs take."""
    return {row[1] for p in lowered.programs.values() for row in p["arguments"] if row[0] == "weight"}


def _dimensions(module: ModuleOp, captured: Captured) -> dict[str, str]:
    found: dict[str, str] = {}
    for func in module.body.block.ops:
        known = func.attributes.get(DIMENSIONS) if isinstance(func, FuncOp) else None
        if isinstance(known, DictionaryAttr):
            found |= {k: v.data for k, v in known.data.items() if isinstance(v, StringAttr)}
    for pin in captured.pins:
        for given in captured.inputs:
            if pin.symbol in given.symbols:
                key = given.name if given.kind == "int" else f"{given.name}.shape[{given.symbols.index(pin.symbol)}]"
                if f"by {PINNED}" in found.get(key, f"by {PINNED}"):
                    found[key] = f"pinned to {pin.value}: {pin.reason}"
    return found


def _launches(module: ModuleOp) -> list[str]:
    found: list[str] = []
    for func in module.body.block.ops:
        if isinstance(func, FuncOp):
            for op in func.body.block.ops:
                if isinstance(op, LaunchOp):
                    found.append(f"@{func.symbol}: kernel {op.forms.data[0].data['kernel'].root_reference.data}")  # pyright: ignore
                elif isinstance(op, GraphOp) and op.LIBRARY is not None:
                    found.append(f"@{func.symbol}: library {op.LIBRARY} ({op.line})")
    return found


def _interface(
    model: Callable[..., Any], imported: Imported, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Interface:
    captured = imported.captured
    names = parameter_names(model, args, kwargs)
    given: list[Any] = [*args, *(kwargs[n] for n in names[len(args) :])]
    structure = structure_of(given, [])
    inputs: list[list[Any]] = []
    for described in captured.inputs:
        constant = described.kind == "constant"
        inputs.append(["constant", described.name, described.example] if constant else ["argument"])
    outputs = [_output(result) for result in imported.results]
    filled = captured.out_spec.unflatten(list(range(len(outputs))))
    order: list[Any] = []
    return Interface(names, structure, inputs, structure_of(filled, order), [outputs[i] for i in order])


def _output(result: Result) -> list[Any]:
    if result.place < 0:
        return ["constant", result.constant]
    return ["result", result.place] if result.divisor is None else ["ratio", result.place, result.divisor]


def _record_maker(captured: Captured) -> Callable[[str, dict[str, Any]], Any]:
    """Makes results of the type that the model returns."""
    example = captured.out_spec.unflatten(list(range(len(captured.outputs))))
    kinds: dict[str, type[Any]] = {}

    def visit(value: Any) -> None:
        if isinstance(value, Mapping):
            kinds[type(value).__name__] = type(value)  # pyright: ignore[reportUnknownArgumentType]
            for v in value.values():  # pyright: ignore[reportUnknownVariableType]
                visit(v)
        elif isinstance(value, (tuple, list)):
            for v in value:  # pyright: ignore[reportUnknownVariableType]
                visit(v)

    visit(example)
    return lambda name, items: kinds[name](**items)
