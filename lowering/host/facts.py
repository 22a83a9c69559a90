"""What a host program knows of its inputs, and what it checks before anything is launched."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System

DIMENSIONS = "dlcb.dimensions"
WORDS = {"eq": "but", "ne": "and both are", "lt": "but must be less than", "le": "but must be at most"}


class Facts:
    """Symbols of the system as values of the program."""

    def __init__(self, builder: HostBuilder, func: FuncOp, system: System):
        self.builder = builder
        self.func = func
        self.system = system

    def define(self) -> None:
        """Give every symbol its value."""
        b = self.builder
        for name, source in self.system.symbols.items():
            b.symbols[name] = self._read(source)
        for name, expr in self.system.defines.items():
            b.symbols[name] = b.index_value(expr)

    def _read(self, source: Source) -> SSAValue:
        b = self.builder
        if source.kind == "int":
            return b.integer(source.argument)
        assert source.dim is not None
        return b.size(source.argument, source.dim) if source.kind == "size" else b.stride(source.argument, source.dim)

    def check(self) -> None:
        """Sizes that the program fixes or ties, then what else it requires."""
        self._check_sizes()
        for require in self.system.requires:
            self._check(require)

    def _check_sizes(self) -> None:
        b = self.builder
        why = self._reasons()
        for argument, name, kind in zip(self.func.body.block.args, self.func.names, self.func.kinds, strict=True):
            if kind != "input" or not isinstance(argument.type, TensorType):
                continue
            for axis, dim in enumerate(argument.type.dims):
                source = Source.size(name, axis)
                if isinstance(dim, str) and self.system.symbols.get(dim) == source:
                    continue
                reason = why.get(str(source), "")
                have = b.size(name, axis)
                if isinstance(dim, int):
                    text = f"{source} is {{0}}, but it must be {dim}{_because(reason)}"
                    b.check(b.eq(have, dim), text, [have])
                else:
                    other = self.system.symbols.get(dim)
                    shown = str(other) if other is not None else dim
                    text = f"{source} is {{0}}, but {shown} is {{1}}{_because(reason)}"
                    b.check(b.eq(have, b.symbols[dim]), text, [have, b.symbols[dim]])

    def _reasons(self) -> dict[str, str]:
        known = self.func.attributes.get(DIMENSIONS)
        if not isinstance(known, DictionaryAttr):
            return {}
        return {k: v.data.partition(" by ")[2] for k, v in known.data.items() if isinstance(v, StringAttr)}

    def _check(self, require: Require) -> None:
        b = self.builder
        if require.kind in WORDS and require.kind != "ne":
            text = f"{self.describe(require.lhs)} {WORDS[require.kind]} {self.describe(require.rhs, 1)}"
        else:
            text = f"{self.describe(require.lhs)} and {self.describe(require.rhs, 1)} do not agree"
        b.check(require.condition, f"{text}{_because(require.text)}", [require.lhs, require.rhs])

    def describe(self, expr: Expr, number: int = 0) -> str:
        """An expression as a user knows it, with its value."""
        if expr.is_const:
            return f"{{{number}}}"
        shown = str(expr)
        for symbol in sorted(expr.free, key=len, reverse=True):
            source = self.system.symbols.get(symbol)
            if source is not None:
                shown = shown.replace(symbol, str(source)) if expr.op != "symbol" else str(source)
        return f"{shown} is {{{number}}}"


def _because(reason: str) -> str:
    reason = reason.replace("{", "{{").replace("}", "}}")
    return f" ({reason})" if reason else ""
