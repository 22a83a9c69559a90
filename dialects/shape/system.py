"""The constraint system of one function as plain Python. Its printed form is the op `dlcb.shape.system`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from xdsl.ir import Operation, SSAValue

from dlcb.dialects.shape.expr import Expr, ExprLike, as_expr, call, const, substitute, sym
from dlcb.dialects.shape.list_ops import ConcatOp, ListOp, PermuteOp
from dlcb.dialects.shape.ops import (
    FUNCTION_OPS,
    CalculationOp,
    ConstantOp,
    DefineOp,
    RequireOp,
    SymbolOp,
    SystemOp,
)
from dlcb.dialects.shape.requirement import Require
from dlcb.errors import InternalError


@dataclass(frozen=True, slots=True)
class Source:
    """Where the value of an input symbol is found when the program runs."""

    kind: Literal["size", "stride", "int"]
    argument: str
    dim: int | None = None

    @classmethod
    def size(cls, argument: str, dim: int) -> Source:
        return cls("size", argument, dim)

    @classmethod
    def stride(cls, argument: str, dim: int) -> Source:
        return cls("stride", argument, dim)

    @classmethod
    def integer(cls, argument: str) -> Source:
        return cls("int", argument)

    @property
    def at_least(self) -> int | None:
        """Sizes and strides are not negative; integers can be any."""
        return None if self.kind == "int" else 0

    @property
    def call(self) -> str:
        """As `text.parse_system` reads it."""
        return f"{self.kind}({self.argument})" if self.dim is None else f"{self.kind}({self.argument}, {self.dim})"

    def __str__(self) -> str:
        """As a user knows it: `x.shape[0]`."""
        match self.kind:
            case "size":
                return f"{self.argument}.shape[{self.dim}]"
            case "stride":
                return f"{self.argument}.stride({self.dim})"
            case "int":
                return self.argument


@dataclass
class System:
    """All that is known of a function's sizes. Passes work on this; symbols of `defines` are in order of definition."""

    symbols: dict[str, Source] = field(default_factory=dict[str, Source])
    traced: dict[str, int] = field(default_factory=dict[str, int])
    """The value that each input symbol had when the program was traced."""
    defines: dict[str, Expr] = field(default_factory=dict[str, Expr])
    requires: list[Require] = field(default_factory=list[Require])
    _values: dict[str, Expr] = field(default_factory=dict[str, Expr], repr=False, compare=False)
    _names: dict[Expr, str] = field(default_factory=dict[Expr, str], repr=False, compare=False)

    def require(self, kind: str, lhs: ExprLike, rhs: ExprLike, text: str = "") -> None:
        self.requires.append(Require(kind, as_expr(lhs), as_expr(rhs), text))

    def symbol_of(self, source: Source, name: str) -> str:
        """The symbol of that source; a new one of this name, or one like it, where there is none."""
        known = next((symbol for symbol, other in self.symbols.items() if other == source), None)
        if known is not None:
            return known
        while name in self.symbols or name in self.defines:
            name += "_"
        self.symbols[name] = source
        return name

    def value(self, dim: int | str | Expr) -> Expr:
        """The dim or expression over input symbols alone."""
        self._catch_up()
        return substitute(as_expr(dim), self._values)

    def define_fresh(self, expr: ExprLike, prefix: str = "d") -> int | str:
        """A dim with that value: a literal, a symbol that has it already, or a new symbol `prefix0`, `prefix1`, …"""
        value = self.value(as_expr(expr))
        if value.value is not None:
            return value.value
        if value.op == "symbol":
            return value.name
        known = self._names.get(value)
        if known is None:
            known = self._fresh_name(prefix)
            self.defines[known] = as_expr(expr)
            self._values[known] = value
            self._names[value] = known
        return known

    def _fresh_name(self, prefix: str) -> str:
        number = len(self.defines)
        while (name := f"{prefix}{number}") in self.symbols or name in self.defines:
            number += 1
        return name

    def _catch_up(self) -> None:
        """Expands the defines that were added since the last look."""
        if len(self._values) == len(self.defines):
            return
        for name, expr in self.defines.items():
            if name not in self._values:
                value = self._values[name] = substitute(expr, self._values)
                self._names.setdefault(value, name)

    @classmethod
    def from_op(cls, op: SystemOp) -> System:
        """The content of the op."""
        system = cls(traced=dict(op.traced_sizes))
        values: dict[SSAValue, Expr] = {}
        for inner in op.body.block.ops:
            match inner:
                case SymbolOp():
                    kind, argument, dim = inner.source
                    system.symbols[inner.symbol] = Source(kind, argument, dim)
                    values[inner.results[0]] = sym(inner.symbol)
                case ConstantOp():
                    values[inner.results[0]] = const(inner.number)
                case PermuteOp():
                    values[inner.results[0]] = call("permute", values[inner.operands[0]], *inner.places)
                case CalculationOp():
                    values[inner.results[0]] = call(inner.function, *[values[a] for a in inner.operands])
                case DefineOp():
                    system.defines[inner.symbol] = values[inner.operands[0]]
                    values[inner.results[0]] = sym(inner.symbol)
                case RequireOp():
                    system.requires.append(_requirement(inner, [values[a] for a in inner.operands]))
                case _:
                    raise InternalError(f"{inner.name} in a dlcb.shape.system")
        return system

    def to_op(self, name: str = "main") -> SystemOp:
        """A new op of the symbol name `name`, with one value for each distinct expression."""
        writer = _Writer()
        for symbol, source in self.symbols.items():
            writer.symbol(symbol, SymbolOp.make(symbol, source.kind, source.argument, source.dim))
        for symbol, expr in self.defines.items():
            writer.symbol(symbol, DefineOp.make(symbol, writer.value(expr)))
        for require in self.requires:
            sides = require.alternatives if require.kind == "any_of" else (require.lhs, require.rhs)
            writer.ops.append(RequireOp.make(require.kind, [writer.value(side) for side in sides], require.text))
        return SystemOp.make(name, self.traced, writer.ops)

    def __str__(self) -> str:
        lines = [f"{name} = {source.call}" for name, source in self.symbols.items()]
        lines += [f"{name} = {expr}" for name, expr in self.defines.items()]
        return "\n".join(lines + [f"{r}  # {r.text}" if r.text else str(r) for r in self.requires])


def _requirement(op: RequireOp, sides: list[Expr]) -> Require:
    if op.kind == "any_of":
        return Require.any_of(sides, op.text)
    lhs, rhs = sides
    return Require(op.kind, lhs, rhs, op.text)


def _operands(node: Expr) -> tuple[Expr, ...]:
    """What the op of the node has as operands: the order of a permutation is none."""
    return node.args[:1] if node.op == "permute" else node.args


def _calculation(node: Expr, operands: list[SSAValue]) -> CalculationOp:
    match node.op:
        case "list":
            return ListOp.make(operands)
        case "concat":
            return ConcatOp.make(operands)
        case "permute":
            return PermuteOp.make_ordered(operands[0], [place.value or 0 for place in node.args[1:]])
        case function:
            return FUNCTION_OPS[function].make(operands)


_COUNTER = re.compile(r"_(\d+)$")
"""The end of a name that xDSL would cut off, so that `x_2` would print as `%x`."""


class _Writer:
    """The ops of a system in order, each expression once."""

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self._values: dict[Expr, SSAValue] = {}

    def symbol(self, name: str, op: SymbolOp | DefineOp) -> None:
        op.results[0].name_hint = _COUNTER.sub(r"\1", name)
        self.ops.append(op)
        self._values[sym(name)] = op.results[0]

    def value(self, expr: Expr) -> SSAValue:
        pending = [expr]
        while pending:
            node = pending[-1]
            missing = [] if node in self._values else [a for a in _operands(node) if a not in self._values]
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if node not in self._values:
                self._values[node] = self._append(node)
        return self._values[expr]

    def _append(self, node: Expr) -> SSAValue:
        if node.op == "symbol":
            raise InternalError(f"symbol '{node.name}' is used in a shape system that does not define it before")
        if node.value is not None:
            op = ConstantOp.make(node.value)
        else:
            op = _calculation(node, [self._values[a] for a in _operands(node)])
        self.ops.append(op)
        return op.results[0]
