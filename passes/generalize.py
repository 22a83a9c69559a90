"""Free every size of the inputs that the program does not fix: automatic generalization of a trace with numbers.

Before: all sizes are the literals of one trace. After: each size of an input is a symbol (`x_0`), sizes of results are
inferred again, and a literal that an op was given is an expression wherever passes/derivations.py has a reason; the
reasons stand in the function's attribute `dlcb.derivations`. A literal without one stays. If it has the value that a
size had in the trace, it may have been that size, so the size is required to stay what it was, with the op's line.

Refused: functions captured with tracked sizes (`dlcb.symbolic`) or that name a size of an input already; sizes that
`dlcb.static` lists (all, where it is a unit; else `"x"` or `"x.shape[1]"`); sizes 0 and 1, which can't be told from
broadcasting. Numbers that are no sizes by their place (factors, fill values) are taken as constants of the program.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from dlcb.dialects._xdsl import set_type
from dlcb.dialects.graph.base import GraphOp, SizesOnly
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, Dims, DimsAttr, TensorType, dims_attr, dims_of, tensor, type_of
from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.dialects.shape.system import Source, System
from dlcb.passes.derivations import Derivation, Operand, derivations
from dlcb.passes.functions import KEPT, check_ranked, functions, set_system, system_of
from dlcb.passes.stages import mark_stage

SYMBOLIC: Final = "dlcb.symbolic"
STATIC: Final = "dlcb.static"
DERIVATIONS: Final = "dlcb.derivations"


def why_not_generalize(func: FuncOp) -> str | None:
    """The reason why the function is left as it is."""
    if SYMBOLIC in func.attributes:
        return "it was captured with tracked sizes"
    if isinstance(func.attributes.get(STATIC), UnitAttr):
        return "it is to be static"
    named = any(isinstance(size, str) for _, _, size in _input_sizes(func))
    return "it names a size of an input" if named else None


def why_not_free(func: FuncOp, source: Source, size: int) -> str | None:
    """The reason why a size of an input stays what it was in the trace."""
    static = func.attributes.get(STATIC)
    if isinstance(static, ArrayAttr):
        entries = cast("ArrayAttr[Attribute]", static).data
        listed = {entry.data for entry in entries if isinstance(entry, StringAttr)}
        if source.argument in listed or str(source) in listed:
            return "it is to be static"
    return f"a size of {size} in the trace can't be told from broadcasting" if size in (0, 1) else None


def _input_sizes(func: FuncOp) -> Iterator[tuple[SSAValue, Source, Dim]]:
    for argument, name, kind in zip(func.body.block.args, func.names, func.kinds, strict=True):
        if kind == "input" and isinstance(argument.type, TensorType) and argument.type.ranked:
            for dim, size in enumerate(argument.type.dims):
                yield argument, Source.size(name, dim), size


class _Generalizer:
    def __init__(self, func: FuncOp, system: System) -> None:
        self.func = func
        self.system = system
        self.reasons: list[str] = []
        self.kept: dict[str, str] = {}
        self._traced_dims: dict[SSAValue, tuple[int, ...]] = {}
        self._sizes_by_number: dict[int, dict[Expr, None]] = defaultdict(dict)
        """The sizes that had a value in the trace, other than literals."""
        self._inference = SizesOnly()

    def run(self) -> None:
        self._free_inputs()
        for op in self.func.body.block.ops:
            if isinstance(op, GraphOp):
                self._properties(op)
                for result, sizes in zip(op.results, op.infer(self._inference), strict=True):
                    self._retype(result, tuple(map(self._dim, sizes)))

    def _free_inputs(self) -> None:
        new: dict[SSAValue, list[Dim]] = defaultdict(list)
        for argument, source, size in _input_sizes(self.func):
            assert isinstance(size, int)
            reason = why_not_free(self.func, source, size)
            if reason is not None:
                self.kept[str(source)] = reason
            new[argument].append(size if reason is not None else self._symbol(source, size))
        for argument, dims in new.items():
            self._retype(argument, tuple(dims))

    def _symbol(self, source: Source, size: int) -> str:
        base = name = f"{re.sub(r'^(?=[0-9])|[^A-Za-z0-9_]', '_', source.argument)}_{source.dim}"
        number = 2
        while name in self.system.symbols or name in self.system.defines:
            name, number = f"{base}_{number}", number + 1
        self.system.symbols[name] = source
        self.system.traced[name] = size
        return name

    def _retype(self, value: SSAValue, dims: Dims) -> None:
        old = type_of(value)
        self._traced_dims[value] = tuple([d for d in old.dims if isinstance(d, int)])
        if dims != old.dims:
            set_type(value, tensor(dims, old.element, old.layout))
        for number, dim in zip(self._traced_dims[value], dims, strict=True):
            if isinstance(dim, str) and number > 1:
                self._sizes_by_number[number][self._inference.dim(dim)] = None

    def _dim(self, size: Expr) -> Dim:
        return self.system.define_fresh(size)

    def _traced(self, size: Expr) -> int:
        return evaluate(self.system.value(size), self.system.traced)

    def _numbers(self, value: SSAValue) -> tuple[int, ...]:
        """The sizes of a value in the trace; weights keep theirs."""
        known = self._traced_dims.get(value)
        return tuple([d for d in dims_of(value) if isinstance(d, int)]) if known is None else known

    def _properties(self, op: GraphOp) -> None:
        lists = {name: list(a.dims) for name, a in op.properties.items() if isinstance(a, DimsAttr)}
        if not lists:
            return
        explained = {(d.name, d.index): d for d in self._derivations(op)}
        for name, dims in lists.items():
            for index, number in enumerate(dims):
                derivation = explained.get((name, index))
                if derivation is None:
                    self._pin_coincidences(op, name, number)
                elif not derivation.value.is_const:
                    dims[index] = self._dim(derivation.value)
                    self.reasons.append(f"{op.title}: {number} is {derivation.value}: {derivation.why}")
            op.properties[name] = dims_attr(tuple(dims))

    def _derivations(self, op: GraphOp) -> list[Derivation]:
        if not op.operands:
            return []
        first = op.operands[0]
        sizes = tuple(map(self.system.value, self._inference.of(first)))
        return derivations(op, Operand(self._numbers(first), sizes), self._traced)

    def _pin_coincidences(self, op: GraphOp, name: str, number: Dim) -> None:
        """A number without a derivation that a size had in the trace may be that size."""
        assert isinstance(number, int)
        for size in self._sizes_by_number.get(number, ()):
            self.system.require("eq", size, number, f"{op.title}: the {number} in its {name} may be this size")


def generalize(func: FuncOp) -> None:
    check_ranked(func)
    if why_not_generalize(func) is not None:
        return
    system = system_of(func)
    generalizer = _Generalizer(func, system)
    generalizer.run()
    if generalizer.reasons:
        func.attributes[DERIVATIONS] = ArrayAttr(map(StringAttr, generalizer.reasons))
    if generalizer.kept:
        func.attributes[KEPT] = DictionaryAttr({k: StringAttr(v) for k, v in generalizer.kept.items()})
    set_system(func, system)


@dataclass(frozen=True)
class GeneralizePass(ModulePass):
    name = "dlcb-generalize"

    static: bool = False
    """Leave all sizes as they are."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.static:
            for func in functions(op):
                generalize(func)
        mark_stage(op, "generalize")
