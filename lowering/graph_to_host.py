"""What is left of a function → its host program.

    dlcb.graph.func @main {launches, library ops, views}
    →  dlcb.host.program @main {sizes, checks, arena, launches, calls, return}

First what is known and what is checked, then one allocation, then the work in order. Kernels stay in the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.base import GraphOp, calls_library
from dlcb.dialects.graph.creation import EmptyOp
from dlcb.dialects.graph.derived import derived_weights
from dlcb.dialects.graph.roots import is_view, root
from dlcb.dialects.graph.structure import FuncOp, LaunchOp, ReturnOp
from dlcb.dialects.graph.types import DenseLayout, TensorType, type_of
from dlcb.dialects.host.attributes import ArgumentAttr, InputAttr, IntegerArgumentAttr, WeightAttr
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.host.ops import ProgramOp
from dlcb.dialects.host.options import Option
from dlcb.dialects.shape.ops import SystemOp
from dlcb.errors import UnsupportedError
from dlcb.lowering.coord_to_cuda import FORM
from dlcb.lowering.host.choice import Choice
from dlcb.lowering.host.facts import Facts
from dlcb.lowering.host.memory import WRITES_OUT, Memory
from dlcb.passes.functions import functions, system_of
from dlcb.passes.sizes import DefinedSizes
from dlcb.passes.stages import mark_stage
from dlcb.passes.weights import NAME as WEIGHTS


class _Writer:
    """Writes the host program of one function."""

    def __init__(self, func: FuncOp, result_names: Sequence[str], kernels: dict[str, list[CudaKernelOp]]):
        self.func = func
        system = system_of(func)
        self.sizes = DefinedSizes.from_system(system)
        self.builder = HostBuilder(func.symbol, self.arguments(), result_names)
        self.facts = Facts(self.builder, func, system)
        self.memory = Memory(self.builder, func, self.sizes)
        self.choice = Choice(self.builder, self.memory, self.sizes, kernels)

    def write(self) -> ProgramOp:
        self.facts.define()
        self.facts.check()
        self.memory.place_arguments()
        launches = [op for op in self.func.body.block.ops if isinstance(op, LaunchOp)]
        self.memory.plan({op: self.choice.workspace(op) for op in launches})
        for op in self.func.body.block.ops:
            if isinstance(op, LaunchOp):
                self.launch(op)
            elif calls_library(op):
                self.library(op)
            elif isinstance(op, EmptyOp):
                self.memory.create(op.res)
            else:
                assert isinstance(op, ReturnOp) or is_view(op), op
        returned = self.func.returned
        results = [self.memory.result(v, returned.view_of(i)) for i, v in enumerate(returned.results_returned)]
        numbers = returned.numbers.dims if returned.numbers is not None else ()
        return self.builder.finish([*results, *(self.builder.index_value(self.sizes.dim(n)) for n in numbers)])

    def arguments(self) -> list[ArgumentAttr]:
        updated = {root(self.func.body.block.args[i]) for i in self.func.returned.updated}
        found: list[ArgumentAttr] = []
        for argument, name, kind in zip(self.func.body.block.args, self.func.names, self.func.kinds, strict=True):
            if kind == "int":
                found.append(IntegerArgumentAttr.make(name))
            elif kind == "input":
                t = type_of(argument)
                found.append(InputAttr.make(name, t.element, t.rank, argument in updated))
            else:
                found.append(self.weight(name, type_of(argument)))
        return found

    def weight(self, name: str, t: TensorType) -> WeightAttr:
        shape = [d for d in t.dims if isinstance(d, int)]
        if len(shape) != t.rank:
            raise UnsupportedError(f"weight '{name}' has sizes [{', '.join(map(str, t.dims))}], expected literals")
        strides, _ = self.sizes.laid(t)
        return WeightAttr.make(name, t.element, shape, [s.value or 0 for s in strides])

    def launch(self, op: LaunchOp) -> None:
        over = op.written_over
        fresh = [r for i, r in enumerate(op.results) if i not in over]
        tensors = [self.memory.whole(v) for v in op.operands]
        tensors += [self.memory.create(r) for r in fresh]
        buffers: list[SSAValue] = [*op.operands, *fresh]
        *steps, whole = self.choice.launches(op, buffers)
        shared = self.memory.workspace(op)
        for step in steps:
            self.builder.launch([*tensors, *shared], step, op.failures)
        self.builder.launch(tensors, whole, op.failures)

    def library(self, op: GraphOp) -> None:
        assert op.LIBRARY is not None
        (result,) = op.results
        tensors = [self.memory.tensor(v) for v in op.operands]
        options: dict[str, Option] = dict(op.library_options())
        if op.LIBRARY in WRITES_OUT:
            self.builder.library_into(self.memory.create(result), op.LIBRARY, tensors, options)
            return
        layout = type_of(result).layout
        if isinstance(layout, DenseLayout):
            options["order"] = list(layout.order)
        made = self.builder.library(op.LIBRARY, tensors, options, type_of(result).element)
        self.memory.tensors[result] = made


@dataclass(frozen=True)
class HostPass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = op.body.block
        kernels: dict[str, list[CudaKernelOp]] = {}
        for kernel in block.ops:
            if isinstance(kernel, CudaKernelOp):
                form = kernel.attributes[FORM]
                assert isinstance(form, StringAttr)
                kernels.setdefault(form.data, []).append(kernel)
        names = _derived_names(op)
        for func in functions(op):
            program = _Writer(func, names if func.symbol == WEIGHTS else (), kernels).write()
            block.insert_op_before(program, func)
        for done in list(block.ops):
            if isinstance(done, (FuncOp, SystemOp)):
                block.erase_op(done, safe_erase=False)
        mark_stage(op, "host")


def _derived_names(module: ModuleOp) -> list[str]:
    """The names that the results of `@weights` have as weights of `@main`."""
    for func in functions(module):
        derived = derived_weights(func)
        if derived:
            return sorted(derived, key=derived.__getitem__)
    return []
