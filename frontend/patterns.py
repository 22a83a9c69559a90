"""The pattern of broadcasting that a program is made for first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.frontend.specialize import GivenSize, given_sizes
from dlcb.passes.assume_broadcasts import assume_broadcasts, assumptions
from dlcb.passes.functions import functions, system_of


@dataclass(frozen=True, slots=True)
class Pattern:
    general: str
    """The solved module as text, as it is for all patterns."""
    conditions: tuple[Expr, ...]
    sizes: tuple[GivenSize, ...]

    @classmethod
    def assumed_in(cls, module: ModuleOp) -> list[Self]:
        """The trace's pattern, required in the module from now on; none where nothing is open."""
        (main,) = functions(module)
        if not assumptions(system_of(main)):
            return []
        general, sizes = to_text(module), given_sizes(main)
        return [cls(general, tuple(assume_broadcasts(main)), sizes)]

    def fits(self, arguments: Sequence[Any]) -> bool:
        """Whether arguments have the pattern."""
        values = {size.symbol: size.read(arguments) for size in self.sizes}
        return all(evaluate(condition, values) for condition in self.conditions)
