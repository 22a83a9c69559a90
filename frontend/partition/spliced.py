"""A program of compiled regions and eager operations, run in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.errors import UserError
from dlcb.frontend.partition.regions import Region
from dlcb.frontend.tracing.eager import Environment, call
from dlcb.frontend.tracing.real import Real, as_ratio
from dlcb.frontend.tracing.records import Captured, Record, Update, Value, element_symbol, value_name
from dlcb.frontend.tracing.tracker import Check
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.compiled import Program, summed
from dlcb.runtime.overlap import first_overlap
from dlcb.runtime.plan import extent


class Sizes(dict[str, int]):
    """The values of symbols in one call. Sizes of tensors inside regions are computed when they are asked for."""

    def __init__(self, expanded: Mapping[str, Expr]) -> None:
        self._expanded = expanded

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._expanded

    def __missing__(self, name: str) -> int:
        value = self[name] = evaluate(self._expanded[name], self)
        return value


@dataclass(frozen=True, slots=True)
class RegionStep:
    region: Region
    program: Program
    numbers: list[str]

    def run(self, environment: Environment) -> None:
        values, sizes = environment.values, environment.sizes
        arguments = [*[values[v] for v in self.region.takes], *[sizes[n] for n in self.numbers]]
        try:
            results = self.program.run(arguments)
        except UserError:
            # Nothing was launched: what a check of the region refuses, torch accepts or refuses in its own words.
            self.run_in_eager(environment)
            return
        for value, result in zip(self.region.gives, results, strict=True):
            assert isinstance(result, Tensor)
            values[value] = result

    def run_in_eager(self, environment: Environment) -> None:
        for record in self.region.records:
            _bind(record, environment)
        for update in self.region.updates:
            environment.values[update.target].copy_(environment.values[update.value])


@dataclass(frozen=True, slots=True)
class EagerStep:
    record: Record
    checks: Sequence[Check]
    """What the trace took for granted of the sizes and elements that it makes."""

    def run(self, environment: Environment) -> None:
        _bind(self.record, environment)
        for value in self.record.results:
            for dim, size in enumerate(environment.values[value].shape):
                environment.sizes[f"{value_name(value)}_{dim}"] = size
        if self.record.op == "item":
            (element,) = self.record.results
            environment.sizes[element_symbol(element)] = int(environment.values[element])
        for check in self.checks:
            if not check.holds(environment.sizes):
                # Parts of the program have run: no caller may start it anew, so this is no UserError.
                raise RuntimeError(f"{self.record.op}: {self.record.line}: {_broken(check, environment.sizes)}")


def _broken(check: Check, sizes: Mapping[str, int]) -> str:
    values = ", ".join(f"{name} = {sizes[name]}" for name in sorted(check.free))
    return f"{check.condition} does not hold of {values}; {check.text}"


def _bind(record: Record, environment: Environment) -> None:
    for value, tensor in zip(record.results, call(record, environment), strict=True):
        environment.values[value] = tensor


class SplicedProgram:
    """Called with flat arguments; gives the tensors among the outputs, then the numbers."""

    why_not_saved = "it runs operations in eager, which a file can't hold; explain() lists them"

    def __init__(
        self,
        captured: Captured,
        expanded: Mapping[str, Expr],
        checks: Sequence[Check],
        steps: Sequence[RegionStep | EagerStep],
        updates: Sequence[Update],
        views: Sequence[Record],
    ) -> None:
        self._captured = captured
        self._expanded = expanded
        self._checks = checks
        self._steps = steps
        self._updates = updates
        self._views = views
        self._weights = {weight.value: weight.tensor for weight in captured.weights}
        tensors = [o for o in captured.outputs if isinstance(o, Value)]
        numbers = [as_ratio(o)[0] for o in captured.outputs if isinstance(o, Expr | Real)]
        self._outputs: list[Any] = [*tensors, *numbers]

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        environment = self._environment(arguments)
        self._check(environment.sizes)
        if self._captured.updates:
            self._check_overlaps(environment.values)
        with torch.no_grad():
            for step in self._steps:
                step.run(environment)
            for update in self._updates:
                target = environment.values[update.target]
                target.copy_(environment.values[update.value])
                environment.values[update.value] = target
            for view in self._views:
                _bind(view, environment)
        return [environment.operand(output) for output in self._outputs]

    def refresh_weights(self) -> None:
        for step in self._steps:
            if isinstance(step, RegionStep):
                step.program.refresh_weights()

    def others(self) -> list[Artifact]:
        return []

    def stats(self) -> dict[str, int]:
        return summed(step.program.stats() for step in self._steps if isinstance(step, RegionStep))

    def _environment(self, arguments: Sequence[Any]) -> Environment:
        values, sizes = dict(self._weights), Sizes(self._expanded)
        taken = [given for given in self._captured.inputs if given.kind != "constant"]
        if len(arguments) != len(taken):
            raise UserError(f"{self._captured.name}: takes {len(taken)} arguments, got {len(arguments)}")
        for given, argument in zip(taken, arguments, strict=True):
            if given.value is None:
                if type(argument) is not int:
                    raise UserError(f"{self._captured.name}: {given.name} must be an int, got {argument!r}")
                sizes[given.name] = argument
                continue
            if not isinstance(argument, Tensor):
                raise UserError(f"{self._captured.name}: {given.name} must be a tensor, got {argument!r}")
            if argument.dtype != given.value.dtype or argument.dim() != len(given.symbols):
                raise UserError(
                    f"{self._captured.name}: {given.name} must have dtype {given.value.dtype} and rank"
                    f" {len(given.symbols)}, got {argument.dtype} and {list(argument.shape)}"
                )
            values[given.value] = argument
            sizes.update(zip(map(str, given.symbols), argument.shape, strict=True))
        return Environment(values, sizes)

    def _check_overlaps(self, values: Mapping[Value, Tensor]) -> None:
        """Records have value semantics: what is written must not be seen through another argument."""
        names = {given.value: given.name for given in self._captured.inputs}
        tensors = [value for value in values if value in names or value in self._weights]
        spans = [
            (t.data_ptr(), extent(t.shape, t.stride()) * t.element_size()) for t in map(values.__getitem__, tensors)
        ]
        updated = {update.target for update in self._captured.updates}
        found = first_overlap([values[v] for v in tensors], spans, [v in updated for v in tensors])
        if found is not None:
            mine, other = (names.get(tensors[place], "a weight") for place in found)
            raise UserError(
                f"{self._captured.name}: {mine} is updated in place, but shares memory with {other}; pass a copy of one"
                " of them, or parts that do not overlap"
            )

    def _check(self, sizes: Mapping[str, int]) -> None:
        captured = self._captured
        for pin in captured.pins:
            if sizes[pin.symbol] != pin.value:
                raise UserError(
                    f"{captured.name}: {pin.symbol} is {sizes[pin.symbol]}, compiled for {pin.value}: {pin.reason}"
                )
        for check in self._checks:
            if not check.holds(sizes):
                raise UserError(f"{captured.name}: {_broken(check, sizes)}")
