"""Regions as programs of their own, which the importer takes like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dlcb.dialects.graph.types import Dim
from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.frontend import torch_private as private
from dlcb.frontend.importer import Survey
from dlcb.frontend.partition.regions import Region, Sizes
from dlcb.frontend.tracing.eager import expressions_of, values_of
from dlcb.frontend.tracing.records import ELEMENT, Alias, Captured, Input, Record, Value, value_name
from dlcb.frontend.tracing.tracker import Check


@dataclass(frozen=True, slots=True)
class RegionProgram:
    """A region as a program. It takes the region's tensors, then integers; it returns the tensors that it gives."""

    captured: Captured
    known: dict[str, Expr]
    """Sizes of tensors that are not of the region."""
    numbers: list[str]
    """The symbols whose values it takes as integers."""


class RegionPrograms:
    def __init__(self, captured: Captured, survey: Survey) -> None:
        self._captured = captured
        self._survey = survey
        self._sizes = Sizes(captured, survey)
        self._names = {given.value: given.name for given in captured.inputs if given.value is not None}
        self._known = {name: self._sizes.expanded(expr) for name, expr in survey.sizes.items()}
        updated = {update.target for update in captured.updates}
        self._shared = {v: root for v, root in captured.memory.items() if root not in updated}

    def make(self, region: Region, number: int) -> RegionProgram:
        inputs = [self._input(value) for value in region.takes]
        symbols = {s for given in inputs for s in given.symbols if isinstance(s, str)}
        made = {value for record in region.records for value in record.results}
        known = {n: e for n, e in self._known.items() if self._captured.result_dims[n][0] not in made}
        needed = {s for r in region.records for e in expressions_of(r) for s in self._free(e, known, made)}
        numbers = sorted(needed - symbols)
        inputs += [Input(name, "int", self._traced(name), None, (name,)) for name in numbers]
        symbols.update(numbers)
        read = {value for record in region.records for value in values_of(record)} | {u.target for u in region.updates}
        own = replace(
            self._captured,
            name=f"{self._captured.name}_{number}",
            inputs=inputs,
            weights=[w for w in self._captured.weights if w.value in read],
            records=region.records,
            outputs=list(region.gives),
            checks=[check for check in self._captured.checks if self._free_of(check) <= symbols],
            pins=[pin for pin in self._captured.pins if pin.symbol in symbols],
            updates=region.updates,
            aliases=list(self._aliases(region)),
            traced={s: self._traced(s) for s in symbols},
            out_spec=private.flatten(list(region.gives))[1],
        )
        return RegionProgram(own, known, numbers)

    def checks_after(self, record: Record) -> list[Check]:
        """The checks of what an eager operation made, none of which can be made earlier."""
        order = {value: place for place, r in enumerate(self._captured.records) for value in r.results}
        found: list[Check] = []
        for check in self._captured.checks:
            sources = self._sizes.sources_of(check)
            if sources and max(sources, key=lambda v: order[v]) in record.results:
                found.append(check)
        return found

    def early_checks(self) -> list[Check]:
        """The checks of sizes of inputs."""
        return [check for check in self._captured.checks if not self._sizes.sources_of(check)]

    def expanded(self, expr: Expr) -> Expr:
        return self._sizes.expanded(expr)

    def _input(self, value: Value) -> Input:
        dims: tuple[Dim, ...] = self._survey.dims[value]
        return Input(self._names.get(value, value_name(value)), "tensor", None, value, dims)

    def _free(self, expr: Expr, known: dict[str, Expr], made: set[Value]) -> Iterator[str]:
        """The symbols of the whole program that an expression in the region depends on."""
        for name in expr.free:
            if name in known:
                yield from known[name].free
            elif self._captured.result_dims.get(name, (None, ELEMENT))[1] == ELEMENT:
                yield name

    def _free_of(self, check: Check) -> frozenset[str]:
        return self._sizes.expanded(check.lhs).free | self._sizes.expanded(check.rhs).free

    def _traced(self, symbol: str) -> int:
        system = self._survey.system
        return evaluate(system.value(symbol), system.traced)

    def _aliases(self, region: Region) -> Iterator[Alias]:
        """What a region gives that shares memory with what it takes, or gives before."""
        owners: dict[Value, Value | int] = {self._shared.get(v, v): v for v in reversed(region.takes)}
        for place, value in enumerate(region.gives):
            of = owners.setdefault(self._shared.get(value, value), place)
            if of is not place:
                yield Alias(place, of)
