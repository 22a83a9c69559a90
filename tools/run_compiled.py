"""A program that `dlcb.load` or `dlcb.compile` gave: an artifact, or an exported program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import torch

import dlcb
from dlcb.errors import UserError
from dlcb.evaluator.widened import in_float64
from dlcb.frontend.api import Target, compile
from dlcb.frontend.capture.inputs import read_arguments
from dlcb.frontend.exported_program import ExportedProgram, eager_of, exact_of, example_of, graph_module, on_device
from dlcb.frontend.reference import ReferenceProgram
from dlcb.runtime.call import StepObserver
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.module import CompiledModule
from dlcb.tools.run_ir import parse, signature_of
from dlcb.tools.runnable import Results, Runnable, leaves, placed, updated_inputs, widened
from dlcb.tools.signature import Given, Parameter, Signature, program_signature

_EVALUATED: Final = "simplify"
Call = Callable[..., Any]


class CompiledProgram(Runnable):
    """`eager` and `exact` are called as the model is."""

    def __init__(self, model: CompiledModel, signature: Signature, target: str, eager: Call, exact: Call) -> None:
        self.target = target
        self.device = torch.device("cuda" if target == "cuda" else "cpu")
        self.signature = signature
        self._model = model
        self._eager = eager
        self._exact = exact

    def call(self, inputs: Mapping[str, Given]) -> Results:
        return self._run(self._model, placed(inputs, self.device))

    def eager(self, inputs: Mapping[str, Given]) -> Results:
        return self._run(self._eager, placed(inputs, self.device))

    def exact(self, inputs: Mapping[str, Given]) -> Results:
        return self._run(self._exact, widened(inputs))

    def observed(self, observer: StepObserver) -> AbstractContextManager[Any]:
        module = self._model.module
        return module.observed(observer) if isinstance(module, CompiledModule) else super().observed(observer)

    def _run(self, program: Call, given: Mapping[str, Given]) -> Results:
        names = self._model.parameters
        arguments = self._model.arguments([given[p.name] for p in self.signature.parameters])
        with torch.no_grad():
            result = program(**dict(zip(names, arguments, strict=True)))
        return [*leaves(result), *updated_inputs(self.signature, given)]


# Artifacts


def artifact_program(path: Path, target: Target | None) -> CompiledProgram:
    """A `.dlcb` file; compared with the IR of its graph, where that was kept."""
    model = dlcb.load(path)
    reference, exact = _kept_graph(model, "--compare eager")
    if target == "reference":
        model = reference()
    elif target is not None and target != model.target:
        raise UserError(f"{path}: was compiled for {model.target}, not for --target {target}")

    def run_reference(**arguments: Any) -> Any:
        return reference()(**arguments)

    def run_exact(**arguments: Any) -> Any:
        return exact()(**arguments)

    return CompiledProgram(model, _signature(model), target or model.target, run_reference, run_exact)


def _kept_graph(model: CompiledModel, asked: str) -> tuple[Callable[[], CompiledModel], Callable[[], CompiledModel]]:
    """The model run by the evaluator, in its own dtypes and in float64, with the weights as they are now."""
    weights = {name: weight.to("cpu", copy=True) for name, weight in model.weights.items()}

    def module() -> Any:
        if _EVALUATED not in model.ir:
            raise UserError(
                f"{asked}: {model.name} was saved without the IR of its graph; compile it with keep_ir=True, or"
                " compare what it was made from"
            )
        return parse(model.ir[_EVALUATED].encode(), f"{model.name}: the IR that was kept")

    def plain() -> CompiledModel:
        given = {name: weight.clone() for name, weight in weights.items()}
        return model.with_program(ReferenceProgram(module(), model.name, given, frozen=False))

    def exact() -> CompiledModel:
        wide = {name: weight for name, weight in widened(weights).items() if isinstance(weight, torch.Tensor)}
        return model.with_program(ReferenceProgram(in_float64(module()), model.name, wide, frozen=False))

    return plain, exact


# Exported programs


def exported_program(program: ExportedProgram, target: Target | None) -> CompiledProgram:
    """Compiled for where its tensors are, or moved to the target; compared with its graph in PyTorch."""
    if target is not None:
        program = on_device(program, "cuda" if target == "cuda" else "cpu")
    eager, exact = eager_of(program), exact_of(program)
    model = compile(program, target=target, fullgraph=False)
    signature = _signature(model) if isinstance(model.module, CompiledModule | ReferenceProgram) else Signature([])
    args, kwargs = example_of(program)
    given = read_arguments(graph_module(program), args, kwargs)
    sizes = {s: n for leaf in given.leaves for s, n in zip(leaf.symbols, leaf.sizes, strict=True)}
    if not signature.parameters:
        taken = [leaf for leaf in given.leaves if leaf.kind != "constant"]
        found = [Parameter(v.name, v.example.dtype if v.kind == "tensor" else None, v.symbols) for v in taken]
        signature = Signature(found)
    signature = Signature(signature.parameters, sizes, model.size_names)
    return CompiledProgram(model, signature, model.target, eager, exact)


def _signature(model: CompiledModel) -> Signature:
    module = model.module
    if isinstance(module, CompiledModule):
        found = program_signature(module.program)
    elif isinstance(module, ReferenceProgram):
        found = signature_of(module.module)
    else:
        raise UserError(f"{model.name}: parts of it run in eager, so its signature is not known")
    return Signature(found.parameters, found.defaults, model.size_names)
