"""Solve the function's constraint system, and write the solution into all types.

Before: every size has a name of its own, the system says what must hold. After: a size that must be 64 is the literal
64, sizes that must be equal share one name, the system keeps the names in use and the requirements to check at launch.
The function's attribute `dlcb.dimensions` says of each input dim whether it is free, pinned or tied, and by which line.

Refused: requirements that no sizes meet (`ContradictionError`, with both source lines).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from dlcb.dialects._xdsl import entries, set_type
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import (
    Dims,
    DimsAttr,
    Layout,
    StridedLayout,
    TensorType,
    dims_attr,
    strided,
    tensor,
)
from dlcb.dialects.shape.expr import Expr, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import LAYOUT
from dlcb.passes.functions import KEPT, functions, set_system, system_of
from dlcb.passes.solver import Solution, solve
from dlcb.passes.stages import mark_stage

DIMENSIONS: Final = "dlcb.dimensions"
PINNED: Final = "pinned: "
"""How the text of a requirement begins that capture made, for a size at which alone the program could be traced."""
_MOST_CHECKS_SHOWN: Final = 4
STRIDES: Final = "strides: "
"""How the text of a requirement on strides begins; the rest says all that a user needs."""


class Dimension(NamedTuple):
    """What the program makes of one dim of an input: `free as x_0`, `pinned to 64 by linear: model.py:12`."""

    argument: str
    dim: int
    state: str


class Renaming:
    """Puts solved dims in the place of symbols, in types and properties; notes which symbols are left."""

    def __init__(self, values: Mapping[str, int | str]) -> None:
        self._values = values
        self._known: dict[int, tuple[Attribute, Attribute]] = {}
        self.used: set[str] = set()

    def apply(self, func: FuncOp) -> None:
        for op in func.walk():
            self._properties(op)
            for result in op.results:
                self._value(result)
            for region in op.regions:
                for block in region.blocks:
                    for argument in block.args:
                        self._value(argument)

    def _value(self, value: SSAValue) -> None:
        type = value.type
        if isinstance(type, TensorType):
            new = self._attribute(type)
            if new is not type:
                set_type(value, new)

    def _properties(self, op: Operation) -> None:
        for name, attribute in op.properties.items():
            if isinstance(attribute, DimsAttr):
                op.properties[name] = self._attribute(attribute)
            elif isinstance(op, ReturnOp) and isinstance(attribute, ArrayAttr):
                listed = cast("ArrayAttr[Attribute]", attribute)
                op.properties[name] = ArrayAttr(map(self._lies, entries(listed)))

    def _lies(self, attribute: Attribute) -> Attribute:
        """What a return says of where a result lies."""
        if isinstance(attribute, TensorType):
            return self._attribute(attribute)
        return self._strided(attribute) if isinstance(attribute, StridedLayout) else attribute

    def _attribute(self, attribute: TensorType | DimsAttr) -> Attribute:
        """Each attribute once; it is kept with its answer, so that its id stays its own."""
        known = self._known.get(id(attribute))
        if known is None:
            new = self._type(attribute) if isinstance(attribute, TensorType) else dims_attr(self._dims(attribute.dims))
            known = self._known[id(attribute)] = (attribute, new)
        return known[1]

    def _type(self, type: TensorType) -> TensorType:
        return tensor(self._dims(type.dims), type.element, self._layout(type.layout)) if type.ranked else type

    def _layout(self, layout: Layout | None) -> Layout | None:
        return self._strided(layout) if isinstance(layout, StridedLayout) else layout

    def _strided(self, layout: StridedLayout) -> StridedLayout:
        *strides, offset = self._dims((*layout.strides, layout.offset))
        return strided(tuple(strides), offset)

    def _dims(self, dims: Dims) -> Dims:
        new = tuple([self._values.get(d, d) if isinstance(d, str) else d for d in dims])
        self.used.update([d for d in new if isinstance(d, str)])
        return new


def without_unused(system: System, used: set[str]) -> System:
    """Drop the definitions that neither `used`, nor a requirement, nor another kept definition needs."""
    needed = used.union(*[r.free for r in system.requires])
    kept: dict[str, Expr] = {}
    for name, expr in reversed(system.defines.items()):
        if name in needed:
            kept[name] = expr
            needed |= expr.free
    return System(system.symbols, system.traced, dict(reversed(kept.items())), system.requires)


def dimension_report(func: FuncOp, system_before: System, solution: Solution) -> list[Dimension]:
    """What became of each dim of each input; `func` has the types from before the solution was written into them."""
    kept = func.attributes.get(KEPT)
    why_kept: Mapping[str, Attribute] = kept.data if isinstance(kept, DictionaryAttr) else {}
    checked = _checks_by_symbol(solution.system)
    return [
        Dimension(
            name, dim, _state(Source.size(name, dim), size, system_before, solution, why_kept) + _checks(size, checked)
        )
        for argument, name, kind in zip(func.body.block.args, func.names, func.kinds, strict=True)
        if kind == "input" and isinstance(argument.type, TensorType) and argument.type.ranked
        for dim, size in enumerate(argument.type.dims)
    ]


def _state(
    source: Source, size: int | str, before: System, solution: Solution, why_kept: Mapping[str, Attribute]
) -> str:
    if isinstance(size, int):
        why = why_kept.get(str(source))
        return f"stays {size}: {why.data}" if isinstance(why, StringAttr) else f"given as {size}"
    value, reason = solution.values[size], _binding(size, solution.system.requires)
    because = f" by {reason.text}" if reason is not None and reason.text else ""
    if isinstance(value, int):
        return f"pinned to {value}{because}"
    if value != size or before.symbols.get(size) != source:
        return f"equal to {value}{because}"
    return f"free as {size}" if reason is None else f"tied to {reason.rhs}{because}"


def _checks_by_symbol(system: System) -> dict[str, list[str]]:
    """For each symbol of an input, what a call is checked for that is not its value alone."""
    found: dict[str, list[str]] = defaultdict(list)
    for require in system.requires:
        if (require.kind == "eq" and require.lhs.op == "symbol") or require.text.startswith((LAYOUT, STRIDES)):
            continue
        stated = Require(require.kind, system.value(require.lhs), system.value(require.rhs), require.text)
        text = f"{stated} ({require.text})" if require.text else str(stated)
        for symbol in stated.free:
            found[symbol].append(text)
    return found


def _checks(size: int | str, checked: Mapping[str, list[str]]) -> str:
    texts = list(dict.fromkeys(checked.get(size, ()))) if isinstance(size, str) else []
    shown = [
        *texts[:_MOST_CHECKS_SHOWN],
        *([f"{len(texts) - _MOST_CHECKS_SHOWN} more"] * (len(texts) > _MOST_CHECKS_SHOWN)),
    ]
    return f"; checked at launch: {', '.join(shown)}" if shown else ""


def _binding(symbol: str, requires: list[Require]) -> Require | None:
    """The requirement that gives the symbol its value."""
    return next((r for r in requires if r.kind == "eq" and r.lhs is sym(symbol)), None)


def dimensions_of(func: FuncOp) -> list[Dimension]:
    """The report that `solve` left on the function; empty before."""
    report = func.attributes.get(DIMENSIONS)
    if not isinstance(report, DictionaryAttr):
        return []
    found: list[Dimension] = []
    for key, state in report.data.items():
        argument, _, dim = key.rpartition(".shape[")
        assert isinstance(state, StringAttr)
        found.append(Dimension(argument, int(dim.rstrip("]")), state.data))
    return found


def solve_function(func: FuncOp) -> None:
    system = system_of(func)
    solution = solve(system)
    report = dimension_report(func, system, solution)
    func.attributes[DIMENSIONS] = DictionaryAttr(
        {str(Source.size(name, dim)): StringAttr(state) for name, dim, state in report}
    )
    renaming = Renaming(solution.values)
    renaming.apply(func)
    set_system(func, without_unused(solution.system, renaming.used))


@dataclass(frozen=True)
class SolvePass(ModulePass):
    name = "dlcb-solve"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions(op):
            solve_function(func)
        mark_stage(op, "solve")
