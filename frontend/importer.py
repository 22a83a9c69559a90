"""From records to a `dlcb.graph` function with its `dlcb.shape` system.

Every symbol that stands for a size of a result is replaced by the size that the op's own rule gives; the sizes of each
result are compared with the traced ones, so a wrong rule or handler is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, cast

import torch
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue

from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import Dim, dim_to_expr, dims_of, tensor, type_of
from dlcb.dialects.shape.expr import Expr, evaluate, substitute, sym
from dlcb.dialects.shape.system import Source, System
from dlcb.dialects.types import TYPE_NAME, index
from dlcb.errors import DlcbError, InternalError, UnsupportedError
from dlcb.frontend.aten import contract, creation, elementwise, indexing, nn, reductions, views
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.dtypes import element_of
from dlcb.frontend.records import Captured, Input, Operands, Record, Value
from dlcb.frontend.tracker import Ratio
from dlcb.passes.collection import without_collection
from dlcb.passes.generalize import SYMBOLIC
from dlcb.passes.solve import PINNED

TABLE: Mapping[str, Callable[..., Any]] = {
    **elementwise.TABLE,
    **views.TABLE,
    **creation.TABLE,
    **reductions.TABLE,
    **indexing.TABLE,
    **contract.TABLE,
    **nn.TABLE,
}


@dataclass(frozen=True, slots=True)
class Result:
    """One leaf of the program's result: a result of the function, or a constant."""

    place: int = -1
    """The place among the function's results, tensors first; -1 for a constant."""
    divisor: int | None = None
    """The leaf is a float: the number at that place, divided by this."""
    constant: Any = None


@dataclass(slots=True)
class Imported:
    """A module with `@main` and its system, and what the runtime needs beside it."""

    module: ModuleOp
    captured: Captured
    weights: dict[str, torch.Tensor]
    results: list[Result]


@without_collection()
def import_captured(captured: Captured) -> Imported:
    """The program as IR. Raises `UnsupportedError` for an operation that has no handler."""
    return _Importer(captured).run()


def _takes(handler: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature(handler).bind(None, *args, **kwargs)
    except TypeError:
        return False
    return True


class _Importer:
    def __init__(self, captured: Captured) -> None:
        self._captured = captured
        self._system = System()
        self._builder = Builder(self._system)
        self._values: dict[Value, SSAValue] = {}
        self._arguments: list[tuple[SSAValue, str, str]] = []
        self._block = Block()
        self._sizes: dict[str, Expr] = {}
        self._traced: dict[Dim, int] = {}
        self._dims: dict[Value, list[tuple[str, int]]] = {}
        for name, (value, dim) in captured.result_dims.items():
            self._dims.setdefault(value, []).append((name, dim))

    def run(self) -> Imported:
        captured = self._captured
        for given in captured.inputs:
            self._add_input(given)
        for weight in captured.weights:
            self._add_argument(
                weight.name, "weight", tensor(weight.value.shape, element_of(weight.value.dtype)), weight.value
            )
        for record in captured.records:
            self._import(record)
        results, returned = self._returned()
        self._block.add_ops([*self._builder.ops, returned])
        self._add_checks()
        _, names, kinds = zip(*self._arguments, strict=True) if self._arguments else ((), (), ())
        func = FuncOp.build_from("main", self._block, names, kinds)
        func.attributes[SYMBOLIC] = UnitAttr()
        module = ModuleOp([self._system.to_op("main"), func])
        return Imported(module, captured, {w.name: w.tensor for w in captured.weights}, results)

    # Arguments

    def _add_input(self, given: Input) -> None:
        traced = self._captured.traced
        for dim, symbol in enumerate(given.symbols):
            is_int = given.kind == "int"
            self._system.symbols[symbol] = Source.integer(given.name) if is_int else Source.size(given.name, dim)
            self._system.traced[symbol] = traced[symbol]
            if not is_int:
                self._builder.at_least[symbol] = 0
        if given.kind == "int":
            self._add_argument(given.name, "int", index, None)
        elif given.value is not None:
            self._add_argument(given.name, "input", tensor(given.symbols, element_of(given.value.dtype)), given.value)

    def _add_argument(self, name: str, kind: str, type: Attribute, value: Value | None) -> None:
        argument = self._block.insert_arg(type, len(self._block.args))
        self._arguments.append((argument, name, kind))
        if value is not None:
            self._values[value] = argument

    # Records

    def _import(self, record: Record) -> None:
        handler = TABLE.get(record.op)
        if handler is None:
            raise UnsupportedError(f"{record.op}: {record.line}: DLCB has no such operation")
        builder = self._builder
        builder.op, builder.line = record.op, record.line
        builder.dtypes = tuple(value.dtype for value in record.results)
        args = [self._operand(a) for a in record.args]
        kwargs = {key: self._operand(value) for key, value in record.kwargs.items()}
        try:
            built = handler(builder, *args, **kwargs)
        except DlcbError:
            raise
        except TypeError as error:
            if _takes(handler, args, kwargs):
                raise
            raise UnsupportedError(f"{record.op}: {record.line}: {error}") from error
        results = cast(tuple[SSAValue | None, ...], built) if isinstance(built, tuple) else (built,)
        for value, result in zip(record.results, results, strict=True):
            if result is not None:
                self._place(record, value, result)

    def _place(self, record: Record, value: Value, result: SSAValue) -> None:
        dims = dims_of(result)
        if type_of(result).element != element_of(value.dtype) or tuple(map(self._traced_dim, dims)) != value.shape:
            found = f"{list(map(self._traced_dim, dims))} of {TYPE_NAME[type_of(result).element]}"
            raise InternalError(
                f"importing {record}: the graph ops give {found}, torch {list(value.shape)} of {value.dtype}"
            )
        self._values[value] = result
        for name, dim in self._dims.get(value, ()):
            self._sizes[name] = dim_to_expr(dims[dim])

    def _traced_dim(self, dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        known = self._traced.get(dim)
        if known is None:
            known = self._traced[dim] = evaluate(self._system.value(dim), self._system.traced)
        return known

    def _operand(self, operand: Any) -> Any:
        if isinstance(operand, Value):
            return self._value(operand)
        if isinstance(operand, Expr):
            return self._literal(self._expr(operand))
        if isinstance(operand, Ratio):
            return Ratio(self._expr(operand.numerator), operand.denominator)
        return tuple(map(self._operand, cast(Operands, operand))) if isinstance(operand, tuple) else operand

    def _value(self, value: Value) -> SSAValue:
        found = self._values.get(value)
        if found is None:
            made = next(r for r in self._captured.records if value in r.results)
            place = made.results.index(value)
            raise UnsupportedError(f"{made.op}: {made.line}: DLCB does not compute result {place} of it")
        return found

    def _expr(self, expr: Expr) -> Expr:
        """An expression over symbols of the function."""
        return substitute(expr, self._sizes)

    def _literal(self, expr: Expr) -> Expr | int:
        return expr if expr.value is None else expr.value

    # Results

    def _returned(self) -> tuple[list[Result], ReturnOp]:
        captured = self._captured
        place_of = {argument: place for place, (argument, _, _) in enumerate(self._arguments)}
        updated = [place_of[self._values[update.target]] for update in captured.updates]
        values = [self._values[update.value] for update in captured.updates]
        tensors = [self._value(output) for output in captured.outputs if isinstance(output, Value)]
        numbers: list[Dim] = []
        places = iter(range(len(tensors)))
        results = [self._result(output, places, len(tensors), numbers) for output in captured.outputs]
        aliases: list[tuple[int, int]] = []
        shares: list[tuple[int, int]] = []
        for alias in captured.aliases:
            result = results[alias.output].place
            if isinstance(alias.of, Value):
                aliases.append((result, place_of[self._values[alias.of]]))
            else:
                shares.append((result, results[alias.of].place))
        return results, ReturnOp.make([*values, *tensors], updated, aliases, shares, tuple(numbers))

    def _result(self, output: Any, places: Iterator[int], tensors: int, numbers: list[Dim]) -> Result:
        if isinstance(output, Value):
            return Result(next(places))
        if isinstance(output, Expr | Ratio):
            expr, divisor = (output, None) if isinstance(output, Expr) else (output.numerator, output.denominator)
            numbers.append(self._system.define_fresh(self._expr(expr)))
            return Result(tensors + len(numbers) - 1, divisor)
        return Result(constant=output)

    def _add_checks(self) -> None:
        for check in self._captured.checks:
            lhs, rhs = self._expr(check.lhs), self._expr(check.rhs)
            self._system.require(check.kind, lhs, rhs, check.text)
        for pin in self._captured.pins:
            self._system.require("eq", sym(pin.symbol), pin.value, f"{PINNED}{pin.reason}")
