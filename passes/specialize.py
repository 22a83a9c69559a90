"""Require that sizes of the inputs are given numbers: `dlcb-specialize{sizes="x_0=16","k=3"}`.

Before: a function for all sizes. After: its system requires `x_0 == 16`, so that `solve` writes the literal wherever
the symbol stood, and the program checks at launch that the caller's sizes are these. A name may be any symbol that the
inputs give: a size, a stride, an integer argument.

Refused: names that are no such symbol, numbers that the symbol can't have, and modules whose sizes are solved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from dlcb.dialects.shape.expr import sym
from dlcb.dialects.shape.system import System
from dlcb.errors import UserError
from dlcb.passes.collect import add_sources
from dlcb.passes.functions import functions, set_system, system_of
from dlcb.passes.stages import stage_of

SPECIALIZED: Final = "specialized to this size"
"""The text of the requirements."""
_BEFORE_SOLVE: Final = (None, "generalize", "collect")
_SIZE = re.compile(r"\s*(\w+)\s*=\s*(-?\d+)\s*")


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """`("x_0=16", "k=3")` as a map; a `UserError` for what is not of this form, or two numbers for one name."""
    sizes: dict[str, int] = {}
    for text in texts:
        match = _SIZE.fullmatch(text)
        if match is None:
            raise UserError(f"{SpecializePass.name}: expected 'symbol=number', got '{text}'")
        name, number = match[1], int(match[2])
        if sizes.setdefault(name, number) != number:
            raise UserError(f"{SpecializePass.name}: '{name}' is to be {sizes[name]} and {number}")
    return sizes


def why_not_specialize(name: str, number: int, systems: Sequence[System]) -> str | None:
    """The reason why no function can have that size."""
    known = {symbol: source for system in systems for symbol, source in system.symbols.items()}
    if name not in known:
        symbols = ", ".join(f"{symbol} ({source})" for symbol, source in known.items()) or "none"
        return f"no input gives '{name}'; the symbols that inputs give are: {symbols}"
    least = known[name].at_least
    if least is not None and number < least:
        return f"{name} ({known[name]}) can't be {number}"
    return None


def specialize(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """Require the sizes in each function that knows the symbol."""
    if stage_of(module) not in _BEFORE_SOLVE:
        raise UserError(f"{SpecializePass.name}: the sizes are solved; specialize before the stage 'solve'")
    systems = {func: system_of(func) for func in functions(module)}
    for func, system in systems.items():
        add_sources(func, system)
    for name, number in sizes.items():
        refusal = why_not_specialize(name, number, list(systems.values()))
        if refusal is not None:
            raise UserError(f"{SpecializePass.name}: {refusal}")
    for func, system in systems.items():
        for name, number in sizes.items():
            if name in system.symbols:
                system.require("eq", sym(name), number, SPECIALIZED)
        set_system(func, system)


@dataclass(frozen=True)
class SpecializePass(ModulePass):
    name = "dlcb-specialize"

    sizes: tuple[str, ...]
    """What each symbol is to be: `"x_0=16"`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        specialize(op, parse_sizes(self.sizes))
