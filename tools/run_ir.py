"""A program given as textual IR of any stage: compiled from where it stands, or run by the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from dlcb.dialects._xdsl import SpanParser
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.host.ops import ProgramOp
from dlcb.dialects.types import TYPE_NAME
from dlcb.errors import UserError
from dlcb.evaluator.sizes import lookup, system_of
from dlcb.evaluator.widened import in_float64
from dlcb.frontend.reference import ReferenceProgram
from dlcb.frontend.weight_store import read_tensors
from dlcb.lowering.host_to_json import program_to_json
from dlcb.lowering.lower import Lowered, context, lower
from dlcb.lowering.pipeline import position, run
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.checks import check_module
from dlcb.passes.functions import functions, unranked
from dlcb.passes.instantiate import instantiate_main, parse_ranks
from dlcb.passes.stages import stage_of
from dlcb.runtime.call import StepObserver
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.cuda import CudaKernels, arch_of
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.rows import check_program
from dlcb.tools.runnable import Results, Runnable, placed, updated_inputs, widened
from dlcb.tools.signature import Given, Parameter, Signature, program_signature

_SIMPLE: Final = "simplify"
_LAST_EVALUATED: Final = "schedule"


def parse(text: bytes, name: str) -> ModuleOp:
    """The module, verified; errors say where."""
    module = SpanParser(context(), text, name).parse_module()
    check_module(module)
    if not any(isinstance(op, (FuncOp, ProgramOp)) and _symbol(op) == "main" for op in module.body.block.ops):
        raise UserError(f"{name}: the module has no function @main to run")
    return module


def give_ranks(module: ModuleOp, given: Sequence[str], inputs: Path | None) -> None:
    """Instantiate `@main` where it takes tensors of any rank: as `given` says (`x=3`), else as the inputs have them."""
    main = next((func for func in functions(module) if func.symbol == "main"), None)
    open_ranks = {} if main is None else unranked(main)
    if not open_ranks and not given:
        return
    ranks = parse_ranks(given)
    if inputs is not None:
        tensors = read_tensors(inputs)
        ranks = {name: tensors[name].dim() for name in open_ranks if name in tensors} | ranks
    missing = [name for name in open_ranks if name not in ranks]
    if missing:
        raise UserError(f"input {missing[0]} is a tensor of any rank: give --rank {missing[0]}=N, or --input")
    instantiate_main(module, ranks)


class IrProgram(Runnable):
    """`@main` of a module. `weights` has all that it takes, by name."""

    def __init__(self, module: ModuleOp, weights: Mapping[str, Tensor], target: str) -> None:
        self.target = target
        self.device = torch.device("cuda" if target == "cuda" else "cpu")
        self._weights = weights
        self._graph = _evaluable(module)
        self.signature = signature_of(module if self._graph is None else self._graph)
        if target == "reference":
            self._evaluated_module("--target reference")
        else:
            self._module = _compiled(lower(module), self.device, weights)

    def call(self, inputs: Mapping[str, Given]) -> Results:
        if self.target == "reference":
            return self.eager(inputs)
        given = placed(inputs, self.device)
        results = self._module.run(list(given.values()))
        return [*_named(results), *updated_inputs(self.signature, given)]

    def eager(self, inputs: Mapping[str, Given]) -> Results:
        weights = {n: w.clone() for n, w in self._weights.items()}
        return self._evaluated(self._evaluated_module("--compare eager"), weights, placed(inputs, torch.device("cpu")))

    def exact(self, inputs: Mapping[str, Given]) -> Results:
        module = in_float64(self._evaluated_module("--compare eager"))
        weights = {n: w for n, w in widened(self._weights).items() if isinstance(w, Tensor)}
        return self._evaluated(module, weights, widened(inputs))

    def observed(self, observer: StepObserver) -> AbstractContextManager[Any]:
        return super().observed(observer) if self.target == "reference" else self._module.observed(observer)

    def _evaluated_module(self, asked: str) -> ModuleOp:
        if self._graph is None:
            raise UserError(
                f"{asked}: the evaluator runs IR up to the stage '{_LAST_EVALUATED}', and this module is past it; give"
                " the IR of an earlier stage"
            )
        return self._graph

    def _evaluated(self, module: ModuleOp, weights: dict[str, Tensor], given: Mapping[str, Given]) -> Results:
        results = ReferenceProgram(module, "main", weights, frozen=False).run(list(given.values()))
        return [*_named(results), *updated_inputs(self.signature, given)]


def _named(results: list[Any]) -> Results:
    return [(f"result[{number}]", value) for number, value in enumerate(results)]


def _symbol(op: FuncOp | ProgramOp) -> str:
    return op.symbol if isinstance(op, FuncOp) else op.sym_name.data


def _evaluable(module: ModuleOp) -> ModuleOp | None:
    """A copy that the evaluator runs, simplified at least; None past the levels that it knows."""
    stage = stage_of(module)
    if stage is not None and position(stage) > position(_LAST_EVALUATED):
        return None
    copy = module.clone()
    run(copy, context(), until=_SIMPLE)
    return copy


def signature_of(module: ModuleOp) -> Signature:
    """By the types of `@main`, or by the checks of its host program."""
    for op in module.body.block.ops:
        if isinstance(op, ProgramOp) and _symbol(op) == "main":
            return program_signature(check_program(program_to_json(op)))
    func = lookup(module, "main", FuncOp)
    updated = {func.names[place] for place in func.returned.updated}
    taken = zip(func.body.block.args, func.names, func.kinds, strict=True)
    found = [_parameter(name, a.type, name in updated) for a, name, kind in taken if kind != "weight"]
    system = system_of(func)
    return Signature(found, {} if system is None else system.traced)


def _parameter(name: str, type: Attribute, updated: bool) -> Parameter:
    if not isinstance(type, TensorType):
        return Parameter(name, None, ())
    return Parameter(name, DTYPES[TYPE_NAME[type.element]], type.dims, updated)


def _compiled(lowered: Lowered, device: torch.device, weights: Mapping[str, Tensor]) -> CompiledModule:
    if device.type == "cuda":
        kernels = CudaKernels(compile_cubin(lowered.kernels, arch_of(device)).data, device)
    else:
        kernels = CpuKernels(compile_cpu(lowered.kernels))
    bound = {name: weight.to(device, copy=True) for name, weight in weights.items()}
    return CompiledModule(
        lowered.programs["main"], kernels, device, bound, weights_program=lowered.programs.get("weights")
    )
