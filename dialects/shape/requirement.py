"""What must hold between sizes: each kind of requirement as a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dlcb.dialects.shape.expr import ZERO, Expr, broadcastable, divides, eq, expandable, le, logical_or, lt, ne
from dlcb.errors import InternalError

REQUIREMENTS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "eq": eq,
    "ne": ne,
    "lt": lt,
    "le": le,
    "divides": divides,
    "broadcastable": broadcastable,
    "expandable": expandable,
    "any_of": logical_or,
}
"""Each kind of requirement as a condition on its two sides. The sides of `any_of` are conditions themselves."""


@dataclass(frozen=True, slots=True)
class Require:
    """What must hold, and who says so: `text` names the op and its source line, `linear: model.py:12`."""

    kind: str
    lhs: Expr
    rhs: Expr
    text: str = ""

    def __post_init__(self) -> None:
        if self.kind not in REQUIREMENTS:
            raise InternalError(f"requirement of kind '{self.kind}', expected one of {', '.join(REQUIREMENTS)}")

    @classmethod
    def any_of(cls, alternatives: Iterable[Expr], text: str = "") -> Require:
        first, *rest = alternatives
        return cls("any_of", first, logical_or(*rest), text)

    @property
    def condition(self) -> Expr:
        """The expression that is 1 where it holds and 0 where it does not."""
        return REQUIREMENTS[self.kind](self.lhs, self.rhs)

    @property
    def alternatives(self) -> tuple[Expr, ...]:
        """Of an `any_of`: the conditions of which one must hold."""
        sides = [side.args if side.op == "logical_or" else (side,) for side in (self.lhs, self.rhs) if side is not ZERO]
        return tuple([alternative for side in sides for alternative in side])

    @property
    def free(self) -> frozenset[str]:
        return self.lhs.free | self.rhs.free

    def __str__(self) -> str:
        match self.kind:
            case "eq":
                return f"{self.lhs} == {self.rhs}"
            case "ne":
                return f"{self.lhs} != {self.rhs}"
            case "lt":
                return f"{self.lhs} < {self.rhs}"
            case "le":
                return f"{self.lhs} <= {self.rhs}"
            case "any_of":
                return f"any_of({', '.join(map(str, self.alternatives))})"
            case _:
                return f"{self.kind}({self.lhs}, {self.rhs})"
