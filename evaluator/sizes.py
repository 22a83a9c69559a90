"""The values of a function's symbols, from its arguments and its `dlcb.shape.system`; checks of sizes as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from xdsl.ir import Operation

from dlcb.dialects.graph.base import GraphOp, ShapeScope
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, TensorType, type_of
from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.dialects.shape.ops import SystemOp
from dlcb.dialects.shape.requirement import REQUIREMENTS
from dlcb.dialects.shape.system import Source, System
from dlcb.dialects.types import TYPE_NAME
from dlcb.errors import UnsupportedError, UserError
from dlcb.evaluator.scalars import DTYPE, Array

OpT = TypeVar("OpT", bound=Operation)


class Symbols(ShapeScope):
    """What each symbol is worth. Requirements are checked at once: one that does not hold is a `UserError`."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self.values = dict(values)

    def number(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else evaluate(self.dim(dim), self.values)

    def numbers(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        return tuple(map(self.number, dims))

    def sizes(self, tensor: TensorType) -> tuple[int, ...]:
        """The sizes of a tensor of this type; `UserError` where one is less than 0."""
        sizes = self.numbers(tensor.dims)
        for dim, size in zip(tensor.dims, sizes, strict=True):
            if size < 0:
                raise UserError(f"the size {dim} is {size}, less than 0")
        return sizes

    def require(self, kind: str, lhs: Expr, rhs: Expr, what: str) -> None:
        if not evaluate(REQUIREMENTS[kind](lhs, rhs), self.values):
            raise UserError(f"{what}: {evaluate(lhs, self.values)} and {evaluate(rhs, self.values)}")

    def bind(self, dim: Dim, size: int, what: str) -> None:
        """The dim has this size: from here on, if it is a symbol that has no value yet."""
        if isinstance(dim, str):
            dim_size = self.values.setdefault(dim, size)
        else:
            dim_size = dim
        if dim_size != size:
            raise UserError(f"{what} is {size}, expected {dim_size}")

    def check(self, op: GraphOp) -> None:
        """What the op demands of its sizes, and that its results have the sizes that follow from its operands."""
        for result, sizes in zip(op.results, op.infer(self), strict=True):
            for axis, (dim, size) in enumerate(zip(type_of(result).dims, sizes, strict=True)):
                self.bind(dim, evaluate(size, self.values), f"{op.title}: size of dim {axis} of the result")
            self.sizes(type_of(result))


def bind_symbols(func: FuncOp, arguments: Mapping[str, Array | int], given: Mapping[str, int]) -> Symbols:
    """The symbols of the function called with these arguments."""
    symbols = Symbols(given)
    for argument, name, kind in zip(func.body.block.args, func.names, func.kinds, strict=True):
        value = arguments[name]
        if isinstance(argument.type, TensorType) and not isinstance(value, int):
            _bind_tensor(symbols, name, argument.type, value)
        elif kind != "int" or not isinstance(value, int):
            expected = "an integer" if kind == "int" else "an array"
            raise UserError(f"{name}: got {type(value).__name__}, expected {expected}")
    system = system_of(func)
    if system is not None:
        _apply(system, symbols, arguments)
    return symbols


def _bind_tensor(symbols: Symbols, name: str, expected: TensorType, array: Array) -> None:
    if not expected.ranked:
        raise UnsupportedError(f"{name}: the evaluator needs a rank, the argument is a tensor of any")
    if array.ndim != expected.rank:
        raise UserError(f"{name}: got rank {array.ndim}, expected {expected.rank}")
    element = expected.element
    wanted = DTYPE[element]
    half = TYPE_NAME[element] == array.dtype.name.replace("float", "f")
    if array.dtype != wanted and not half:
        raise UserError(f"{name}: got {array.dtype}, expected {wanted.__name__} for {TYPE_NAME[element]}")
    for axis, (dim, size) in enumerate(zip(expected.dims, array.shape, strict=True)):
        symbols.bind(dim, size, f"{name}.shape[{axis}]")


def system_of(func: FuncOp) -> System | None:
    """What the module says of the function's sizes."""
    module = func.parent_op()
    if module is None:
        return None
    for op in module.regions[0].block.ops:
        if isinstance(op, SystemOp) and op.function == func.symbol:
            return System.from_op(op)
    return None


def _apply(system: System, symbols: Symbols, arguments: Mapping[str, Array | int]) -> None:
    for name, source in system.symbols.items():
        symbols.bind(name, _value(source, arguments), str(source))
    for name, expr in system.defines.items():
        symbols.bind(name, evaluate(expr, symbols.values), name)
    for require in system.requires:
        symbols.require(require.kind, require.lhs, require.rhs, require.text)


def _value(source: Source, arguments: Mapping[str, Array | int]) -> int:
    value = arguments[source.argument]
    if isinstance(value, int):
        return value
    assert source.dim is not None
    return value.shape[source.dim] if source.kind == "size" else value.strides[source.dim] // value.itemsize


def lookup(anchor: Operation, name: str, kind: type[OpT]) -> OpT:
    """The op of that class and symbol name in the module around `anchor`."""
    module = anchor
    while (outer := module.parent_op()) is not None:
        module = outer
    for op in module.regions[0].block.ops:
        if isinstance(op, kind) and getattr(op, "symbol", None) == name:
            return op
    raise UserError(f"{anchor.name}: there is no {kind.name} @{name} in the module")
