"""Runs a `dlcb.graph.func` on arrays, every op by its own rule for an element: what all else is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IntAttr, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue

from dlcb.dialects.coord.ops import KernelOp as CoordKernelOp
from dlcb.dialects.failure import failures_of
from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.derived import NAME as WEIGHTS
from dlcb.dialects.graph.derived import derived_weights
from dlcb.dialects.graph.indexing import Put
from dlcb.dialects.graph.structure import FuncOp, KernelOp, LaunchOp, ReturnOp, YieldOp
from dlcb.dialects.graph.types import Dim, TensorType, dims_of, tensor, type_of
from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.evaluator.coord import run_kernel
from dlcb.evaluator.elements import ArrayBuilder, compute
from dlcb.evaluator.memory import new_memory, to_memory, view_of
from dlcb.evaluator.scalars import Array, convert
from dlcb.evaluator.sizes import Symbols, bind_symbols, lookup

Argument: TypeAlias = Array | int


def run(
    func: FuncOp, arguments: Mapping[str, Argument] | Sequence[Argument], sizes: Mapping[str, int] | None = None
) -> list[Array]:
    """What the function returns, updates of arguments first, as its `return` lists them.

    Arguments by name or in order; half precision as float32 or float16 arrays, and as float32 in the results.
    `sizes` gives symbols that neither the arguments nor the function's `dlcb.shape.system` determine.
    """
    named = arguments if isinstance(arguments, Mapping) else _by_name(func, arguments)
    missing = [name for name in func.names if name not in named]
    if missing:
        raise UserError(f"@{func.symbol}: no value for the argument '{missing[0]}'; given: {', '.join(named)}")
    symbols = bind_symbols(func, named, sizes or {})
    program = _Program(symbols)
    for argument, name in zip(func.body.block.args, func.names, strict=True):
        if isinstance(argument.type, TensorType):
            program.tensors[argument] = convert(np.asarray(named[name]), argument.type.element)
    return [np.array(a) for a in program.block(func.body.block.ops)]


def run_program(
    module: ModuleOp, arguments: Mapping[str, Argument], function: str = "main", sizes: Mapping[str, int] | None = None
) -> list[Array]:
    """`run` of a function of the module, after `@weights` where it takes weights that this derives from given ones."""
    func = lookup(module, function, FuncOp)
    derived = derived_weights(func)
    if derived:
        weights = run(lookup(module, WEIGHTS, FuncOp), arguments)
        arguments = {**arguments, **{name: weights[number] for name, number in derived.items()}}
    return run(func, arguments, sizes)


def _by_name(func: FuncOp, arguments: Sequence[Argument]) -> dict[str, Argument]:
    if len(arguments) != len(func.names):
        raise UserError(f"@{func.symbol}: got {len(arguments)} arguments, expected {len(func.names)}")
    return dict(zip(func.names, arguments, strict=True))


class _Program:
    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.tensors: dict[SSAValue, Array] = {}

    def block(self, ops: Iterable[Operation]) -> list[Array]:
        """Runs the ops; gives what the last one returns."""
        for op in ops:
            if isinstance(op, ReturnOp):
                return self._returned(op)
            if isinstance(op, YieldOp):
                return [self.tensors[v] for v in op.operands]
            self.tensors.update(zip(op.results, self._results(op), strict=True))
        raise InternalError("the block gives nothing back")

    def _returned(self, op: ReturnOp) -> list[Array]:
        """The new values of arguments, then of each result what the caller gets of its memory."""
        given = [self.tensors[v] for v in op.operands]
        for result, value in enumerate(op.results_returned):
            view, place = op.view_of(result), len(op.updated) + result
            if view is not None:
                base = type_of(value)
                lies = tensor(base.dims, base.element, op.layout_of(result))
                given[place] = view_of(to_memory(given[place], lies, self.symbols), view, self.symbols)
        return given

    def _results(self, op: Operation) -> list[Array]:
        match op:
            case KernelOp():
                inner = op.body.block
                self.tensors.update(zip(inner.args, [self.tensors[v] for v in op.operands], strict=True))
                return self.block(inner.ops)
            case LaunchOp():
                return self._launch(op)
            case GraphOp():
                return self._graph_op(op)
            case _:
                raise InternalError(f"the evaluator does not know {op.name}")

    def _graph_op(self, op: GraphOp) -> list[Array]:
        if op.FAMILY == "composite":
            raise UnsupportedError(f"{op.title}: an op that `simplify` decomposes; run that stage before the evaluator")
        self.symbols.check(op)
        if isinstance(op, Put):
            return [self._put(op)]
        sizes = [self.symbols.numbers(dims_of(r)) for r in op.results]
        return [compute(op, i, self.tensors, self.symbols.values, s) for i, s in enumerate(sizes)]

    def _put(self, op: Put) -> Array:
        """The base with one element of the source after the other written into it."""
        out = self.tensors[op.base].copy()
        source = self.tensors[op.src]
        if source.size:
            b = ArrayBuilder(self.tensors, self.symbols.values, source.shape)
            target, _ = op.target(b, b.coords)
            out[tuple(b.value_of(c) for c in target)] = source
        return out

    def _launch(self, op: LaunchOp) -> list[Array]:
        """The kernel's buffers are the operands, then the results that are not written over an operand."""
        given = [to_memory(self.tensors[v], type_of(v), self.symbols) for v in op.operands]
        over = op.written_over
        fresh = {i: new_memory(type_of(r), self.symbols) for i, r in enumerate(op.results) if i not in over}
        kernel, params = self._form(op)
        run_kernel(kernel, [*given, *fresh.values()], params, failures_of(op.failures))
        memory = [given[over[i]] if i in over else fresh[i] for i in range(len(op.results))]
        return [view_of(m, type_of(r), self.symbols).copy() for m, r in zip(memory, op.results, strict=True)]

    def _form(self, op: LaunchOp) -> tuple[CoordKernelOp, dict[str, int]]:
        """The first form whose condition holds, and what its kernel's parameters are."""
        for form in op.forms.data:
            if self.symbols.number(_dim(form.data["when"])):
                name = cast(SymbolRefAttr, form.data["kernel"]).string_value()
                bindings = cast(DictionaryAttr, form.data["bindings"])
                params = {k: self.symbols.number(_dim(v)) for k, v in bindings.data.items()}
                return lookup(op, name, CoordKernelOp), params
        raise InternalError(f"{op.name}: the condition of no form holds")


def _dim(attribute: Attribute) -> Dim:
    match attribute:
        case StringAttr() | IntAttr():
            return attribute.data
        case IntegerAttr():
            return attribute.value.data
        case _:
            raise InternalError(f"{attribute} is no dim: expected an integer or the name of a symbol")
