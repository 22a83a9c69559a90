"""From records to a `dlcb.graph` function with its `dlcb.shape` system.

Every symbol that stands for a size of a result is replaced by the size that the op's own rule gives; the sizes of each
result are compared with the traced ones, so a wrong rule or handler is found here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NoReturn, cast

import torch
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue

from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import Dim, Dims, Layout, dense, dim_to_expr, dims_of, tensor, type_of
from dlcb.dialects.shape.expr import Expr, evaluate, substitute, sym
from dlcb.dialects.shape.system import Source, System
from dlcb.dialects.types import TYPE_NAME, index
from dlcb.errors import DlcbError, InternalError, UnsupportedError
from dlcb.frontend.aten import (
    contract,
    creation,
    elementwise,
    indexing,
    joining,
    nn,
    padding,
    parts,
    reductions,
    scans,
    statistics,
    views,
)
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.dtypes import ELEMENT_OF, element_of, why_not_dtype
from dlcb.frontend.placing import place_results, require_layouts, weight_layout
from dlcb.frontend.tracing.layouts import is_dense, order_of
from dlcb.frontend.tracing.real import Real, as_ratio
from dlcb.frontend.tracing.records import ELEMENT, Captured, Input, Operands, Record, Value, device_of, value_name
from dlcb.passes.assumed_strides import GAPS, ORDERS
from dlcb.passes.collection import without_collection
from dlcb.passes.generalize import SYMBOLIC
from dlcb.passes.solve import PINNED

TABLE: Mapping[str, Callable[..., Any]] = {
    **elementwise.TABLE,
    **views.TABLE,
    **parts.TABLE,
    **padding.TABLE,
    **joining.TABLE,
    **creation.TABLE,
    **reductions.TABLE,
    **statistics.TABLE,
    **scans.TABLE,
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

    @property
    def described(self) -> list[Any]:
        """As `Interface.outputs` has it."""
        if self.place < 0:
            return ["constant", self.constant]
        return ["result", self.place] if self.divisor is None else ["ratio", self.place, self.divisor]


@dataclass(slots=True)
class Imported:
    """A module with `@main` and its system, and what the runtime needs beside it."""

    module: ModuleOp
    captured: Captured
    weights: dict[str, torch.Tensor]
    results: list[Result]


@dataclass(slots=True)
class Survey:
    """What an import found of a program that is not wholly native."""

    left_out: dict[int, str]
    """Why the record at this place is left to eager."""
    foreign: list[str]
    """Arguments and weights that no region can take, and why."""
    dims: dict[Value, Dims]
    """The dims of every tensor, over the system's symbols. Those of a left-out record's results are symbols of their
    own: sizes of `value_name(result)`."""
    sizes: dict[str, Expr]
    """What the symbols of `Captured.result_dims` are."""
    system: System

    @property
    def reasons(self) -> str:
        """Why the program is not wholly native."""
        first, *others = dict.fromkeys([*self.foreign, *self.left_out.values()])
        if not others:
            return first
        return "\n  ".join([f"{len(others) + 1} operations are not supported:", first, *others])


@without_collection()
def import_captured(captured: Captured, known: Mapping[str, Expr] | None = None) -> Imported:
    """The program as IR; `known` are sizes of tensors that are not of it. Raises `UnsupportedError` that names every
    operation that has no handler."""
    found = _attempt(captured, known or {})
    if isinstance(found, Survey):
        raise UnsupportedError(found.reasons)
    return found


@without_collection()
def import_or_survey(captured: Captured) -> Imported | Survey:
    """The program as IR, or what of it has to be left to eager."""
    return _attempt(captured, {})


def _attempt(captured: Captured, known: Mapping[str, Expr]) -> Imported | Survey:
    eager: dict[Record, str] = {}
    while True:
        importer = _Importer(captured, known, eager)
        try:
            importer.import_records()
            return importer.survey() if importer.left_out or importer.foreign else importer.finish()
        except _Unmade as error:
            eager[error.record] = str(error)


class _Unmade(Exception):
    """A result is needed that the record's handler does not make, or not so."""

    def __init__(self, record: Record, why: str) -> None:
        super().__init__(why)
        self.record = record


def _takes(handler: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    try:
        signature(handler).bind(None, *args, **kwargs)
    except TypeError:
        return False
    return True


class _Importer:
    def __init__(self, captured: Captured, known: Mapping[str, Expr], eager: Mapping[Record, str]) -> None:
        self.left_out: dict[int, str] = {}
        self.foreign: list[str] = []
        self._eager = eager
        self._record: Record | None = None
        self._unmade: dict[Value, Record] = {}
        self._strange: dict[Value, Dims] = {}
        self._captured = captured
        self._device = device_of(captured)
        self._system = System()
        self._builder = Builder(self._system)
        self._values: dict[Value, SSAValue] = {}
        self._arguments: list[tuple[SSAValue, str, str]] = []
        self._orders: dict[str, Attribute] = {}
        self._gaps: list[str] = []
        self._block = Block()
        self._sizes: dict[str, Expr] = dict(known)
        self._traced: dict[Dim, int] = {}
        self._dims: dict[Value, list[tuple[str, int]]] = {}
        for name, (value, dim) in captured.result_dims.items():
            self._dims.setdefault(value, []).append((name, dim))

    def import_records(self) -> None:
        captured = self._captured
        for given in captured.inputs:
            self._add_input(given)
        for weight in captured.weights:
            value = weight.value
            self._add_argument(weight.name, "weight", value.shape, value, weight_layout(weight.tensor))
            self._note_foreign(weight.name, value)
        for place, record in enumerate(captured.records):
            try:
                self._import(record)
            except UnsupportedError as error:
                self.left_out[place] = str(error)
                self._stand_in(record)

    def survey(self) -> Survey:
        for value in (*self._captured.outputs, *(update.value for update in self._captured.updates)):
            if value in self._unmade:
                self._value(value)
        dims = {value: dims_of(found) for value, found in self._values.items()}
        return Survey(self.left_out, self.foreign, {**self._strange, **dims}, self._sizes, self._system)

    def finish(self) -> Imported:
        captured = self._captured
        results, returned = self._returned()
        self._block.add_ops([*self._builder.ops, returned])
        self._add_checks()
        if captured.keeps_layouts or captured.asks_layouts:
            require_layouts(captured, self._system)
        _, names, kinds = zip(*self._arguments, strict=True) if self._arguments else ((), (), ())
        func = FuncOp.build_from("main", self._block, names, kinds)
        func.attributes[SYMBOLIC] = UnitAttr()
        if self._orders:
            func.attributes[ORDERS] = DictionaryAttr(self._orders)
        if self._gaps:
            func.attributes[GAPS] = ArrayAttr(map(StringAttr, self._gaps))
        module = ModuleOp([self._system.to_op("main"), func])
        return Imported(module, captured, {w.name: w.tensor for w in captured.weights}, results)

    # Arguments

    def _add_input(self, given: Input) -> None:
        is_int = given.kind == "int"
        for dim, symbol in enumerate(given.symbols):
            if isinstance(symbol, str) and symbol not in self._system.symbols:
                source = Source.integer(given.name) if is_int else Source.size(given.name, dim)
                self._add_symbol(symbol, source, self._captured.traced[symbol])
                if not is_int:
                    self._builder.at_least[symbol] = 0
        if is_int:
            self._take(given.name, "int", index)
        elif given.value is not None:
            self._add_argument(given.name, "input", given.symbols, given.value)
            self._note_foreign(given.name, given.value)

    def _note_foreign(self, name: str, value: Value) -> None:
        if value.dtype not in ELEMENT_OF or value.device != self._device:
            self.foreign.append(f"argument {name}: {self._why_not(value)}")

    def _add_symbol(self, name: str, source: Source, traced: int) -> None:
        self._system.symbols[name] = source
        self._system.traced[name] = traced

    def _add_argument(self, name: str, kind: str, dims: Dims, value: Value, layout: Layout | None = None) -> None:
        if value.dtype in ELEMENT_OF:
            self._values[value] = self._take(name, kind, tensor(dims, ELEMENT_OF[value.dtype], layout))
            if kind == "input":
                self._note_layout(name, value)
        else:
            self._strange[value] = dims

    def _note_layout(self, name: str, value: Value) -> None:
        order = order_of(value.shape, value.strides)
        if order != tuple(range(len(order))):
            self._orders[name] = dense(order)
        if not is_dense(value.shape, value.strides):
            self._gaps.append(name)

    def _take(self, name: str, kind: str, type: Attribute) -> SSAValue:
        argument = self._block.insert_arg(type, len(self._block.args))
        self._arguments.append((argument, name, kind))
        return argument

    def _stand_in(self, record: Record) -> None:
        """The results of a record that is left out are as inputs to all that follows."""
        for value in record.results:
            symbols = tuple(f"{value_name(value)}_{dim}" for dim in range(len(value.shape)))
            for dim, (symbol, size) in enumerate(zip(symbols, value.shape, strict=True)):
                self._add_symbol(symbol, Source.size(value_name(value), dim), size)
                self._builder.at_least[symbol] = 0
            self._add_argument(value_name(value), "input", symbols, value)
            for name, dim in self._dims.get(value, ()):
                if dim == ELEMENT:
                    self._add_symbol(name, Source.integer(value_name(value)), self._captured.traced[name])
                else:
                    self._sizes[name] = sym(symbols[dim])

    # Records

    def _import(self, record: Record) -> None:
        handler = TABLE.get(record.op)
        if record in self._eager:
            raise UnsupportedError(self._eager[record])
        if record.why_eager or handler is None:
            why = record.why_eager or "DLCB has no such operation"
            raise UnsupportedError(f"{record.op}: {record.line}: {why}")
        self._record = record
        self._check_results(record)
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
            if result is None:
                self._unmade[value] = record
            else:
                self._place(record, value, result)

    def _check_results(self, record: Record) -> None:
        for value in record.results:
            if value.dtype not in ELEMENT_OF or value.device != self._device:
                self._refuse_tensor(value)

    def _refuse_tensor(self, value: Value) -> NoReturn:
        where = "" if self._record is None else f"{self._record.op}: {self._record.line}: "
        raise UnsupportedError(where + self._why_not(value))

    def _refuse_view(self, value: Value) -> NoReturn:
        made = next(record for record in self._captured.records if value in record.results)
        raise _Unmade(made, f"{made.op}: {made.line}: a result that is a view of an argument in this way")

    def _why_not(self, value: Value) -> str:
        if value.device != self._device:
            return f"a tensor on {value.device} in a program on {self._device}"
        return why_not_dtype(value.dtype)

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
        if isinstance(operand, Real):
            return operand.replaced(self._expr)
        return tuple(map(self._operand, cast(Operands, operand))) if isinstance(operand, tuple) else operand

    def _value(self, value: Value) -> SSAValue:
        found = self._values.get(value)
        if found is not None and value.device == self._device:
            return found
        if value in self._unmade:
            made = self._unmade[value]
            place = made.results.index(value)
            raise _Unmade(made, f"{made.op}: {made.line}: DLCB does not compute result {place} of it")
        self._refuse_tensor(value)

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
        tensors = place_results(captured, self._system, self._value, place_of, self._refuse_view)
        numbers: list[Dim] = []
        places = iter(range(len(tensors)))
        results = [self._result(output, places, len(tensors), numbers) for output in captured.outputs]
        returned = ReturnOp.make(
            [*values, *(placed.memory for placed in tensors)],
            updated,
            [(number, placed.argument) for number, placed in enumerate(tensors) if placed.argument is not None],
            [(number, placed.shares) for number, placed in enumerate(tensors) if placed.shares is not None],
            tuple(numbers),
            [placed.layout for placed in tensors],
            [placed.view for placed in tensors],
        )
        return results, returned

    def _result(self, output: Any, places: Iterator[int], tensors: int, numbers: list[Dim]) -> Result:
        if isinstance(output, Value):
            return Result(next(places))
        if isinstance(output, Expr | Real):
            expr, divisor = as_ratio(output)
            numbers.append(self._system.define_fresh(self._expr(expr)))
            return Result(tensors + len(numbers) - 1, divisor)
        return Result(constant=output)

    def _add_checks(self) -> None:
        for check in self._captured.checks:
            lhs, rhs = self._expr(check.lhs), self._expr(check.rhs)
            self._system.require(check.kind, lhs, rhs, check.text)
        for pin in self._captured.pins:
            self._system.require("eq", sym(pin.symbol), pin.value, f"{PINNED}{pin.reason}")
