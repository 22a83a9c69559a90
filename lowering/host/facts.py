"""What a host program knows of its inputs, and what it checks before anything is launched."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import SSAValue

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.shape.expr import Expr, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import LAYOUT
from dlcb.passes.solve import DIMENSIONS, PINNED, STRIDES


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
                    b.check(b.eq(have, dim), f"{source} is {{0}} but {_needed(dim, reason)}", [have])
                else:
                    wanted = b.symbols[dim]
                    text = f"{source} is {{0}} but {self.describe(sym(dim), 1)}{_because(reason)}"
                    b.check(b.eq(have, wanted), text, [have, wanted])

    def _reasons(self) -> dict[str, str]:
        known = self.func.attributes.get(DIMENSIONS)
        if not isinstance(known, DictionaryAttr):
            return {}
        return {k: v.data.partition(" by ")[2] for k, v in known.data.items() if isinstance(v, StringAttr)}

    def _check(self, require: Require) -> None:
        if require.text.startswith((LAYOUT, STRIDES)):
            self.builder.check(require.condition, _plain(require.text.removeprefix(STRIDES)), [])
            return
        if require.kind == "any_of":
            self._check_any(require)
            return
        lhs, rhs = self.describe(require.lhs), self.describe(require.rhs, 1)
        if require.lhs.is_const:
            text = _TEXTS_FROM_LITERALS.get(require.kind, "{lhs} but {rhs}")
        else:
            text = (_TEXTS_TO_LITERALS if require.rhs.is_const else _TEXTS).get(require.kind, "{lhs} but {rhs}")
        text = text.format(lhs=lhs, rhs=rhs)
        self.builder.check(require.condition, f"{text}{_because(require.text)}", [require.lhs, require.rhs])

    def _check_any(self, require: Require) -> None:
        """All that would do, and what the sizes are."""
        values = [self.system.value(alternative) for alternative in require.alternatives]
        symbols = list(dict.fromkeys(name for value in values for name in sorted(value.free)))
        given = ", ".join(self.describe(sym(name), number) for number, name in enumerate(symbols))
        text = f"{given} but needed is {' or '.join(map(self._shown, values))}{_because(require.text)}"
        self.builder.check(require.condition, text, list(map(sym, symbols)))

    def describe(self, expr: Expr, number: int = 0) -> str:
        """An expression as a user knows it, with its value as the text's value of that number."""
        return f"{{{number}}}" if expr.is_const else f"{self._shown(self.system.value(expr))} is {{{number}}}"

    def _shown(self, value: Expr) -> str:
        return _NAME.sub(lambda m: str(self.system.symbols.get(m[0], m[0])), str(value))


_NAME = re.compile(r"[A-Za-z_]\w*")
_REASON = re.compile(r"(?P<op>[^:]+): (?P<line>\S+:\d+|\?)(: (?P<what>.*?))?(; weight '(?P<weight>[^']*)')?")
"""What `collect` writes: `matmul: model.py:12: inner sizes differ; weight 'proj.weight'`."""
_TEXTS = {
    "ne": "{lhs} and so is {rhs}",
    "lt": "{lhs} but must be less than {rhs}",
    "le": "{lhs} but must be at most {rhs}",
    "divides": "{rhs} but must be divisible by {lhs}",
}
_TEXTS_TO_LITERALS = {**_TEXTS, "eq": "{lhs} but must be {rhs}", "ne": "{lhs} but must not be {rhs}"}
_TEXTS_FROM_LITERALS = {
    "eq": "{rhs} but must be {lhs}",
    "ne": "{rhs} but must not be {lhs}",
    "lt": "{rhs} but must be more than {lhs}",
    "le": "{rhs} but must be at least {lhs}",
    "divides": "{rhs} but must be divisible by {lhs}",
}


def _needed(size: int, reason: str) -> str:
    """Who needs an argument's size to be this."""
    match = _REASON.fullmatch(reason)
    if match is None or match["weight"] is None:
        return f"must be {size}{_because(reason)}"
    return f"weight '{_plain(match['weight'])}' needs {size} ({match['op']}, {match['line']})"


def _because(reason: str) -> str:
    """The reason in brackets, `(concat, model.py:12: sizes of dim 0 differ)`; nothing where there is none."""
    if not reason:
        return ""
    match = _REASON.fullmatch(reason)
    if match is None:
        return f": {_plain(reason.removeprefix(PINNED))}"
    what = f": {match['what']}" if match["what"] else ""
    weight = f", weight '{match['weight']}'" if match["weight"] is not None else ""
    return f" ({_plain(match['op'])}, {_plain(match['line'] + what + weight)})"


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
