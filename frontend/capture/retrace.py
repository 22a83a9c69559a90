"""Are two runs the same program? The cross-check of generalization, and of checks that turn out not to matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.frontend.capture.equivalence import same_numbers
from dlcb.frontend.capture.inputs import read_arguments
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.real import Real
from dlcb.frontend.tracing.records import Captured, Operands, Record, Value, Weight

_IDENTITY_AT_EQUAL_SIZES = frozenset({"expand", "view", "reshape", "slice", "flatten", "clone"})
_IDENTITY_BY_ZEROS = frozenset({"pad", "roll"})


def retrace(
    captured: Captured, program: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str | None:
    """Trace the program again at the sizes of other arguments: where it differs from what was captured, or None."""
    session = Session(program, read_arguments(program, args, kwargs))
    if captured.rewritten:
        session.rewrite()
    pinned = frozenset(pin.symbol for pin in captured.pins)
    plan = Plan(session.arguments.example_sizes, pinned)
    run = session.run(plan)
    if difference(captured, run) is None:
        return None
    general = session.run(plan, captured.steering)
    found = difference(captured, general)
    if found is not None:
        return found
    found = difference_at_traced_sizes(general, run)
    return None if found is None or same_numbers(general, run) else found


def difference(one: Run | Captured, other: Run | Captured) -> str | None:
    """Where two programs differ in anything but traced sizes; None where they don't."""
    return _difference(_Canonical(one, None), _Canonical(other, None))


def difference_at_traced_sizes(one: Run, other: Run) -> str | None:
    """Where two runs at equal sizes differ. Integers count as their values; what changes nothing there is left out."""
    return _difference(_Canonical(one, one.traced), _Canonical(other, other.traced))


def _difference(one: _Canonical, other: _Canonical) -> str | None:
    if len(one.records) != len(other.records):
        return f"{len(one.records)} and {len(other.records)} operations"
    for (a, key_a), (b, key_b) in zip(one.records, other.records, strict=True):
        if key_a != key_b:
            return f"{a} and {b}"
    return None if one.results == other.results else "the results differ"


class _Canonical:
    """Records and results of a run with values as numbers in order."""

    def __init__(self, run: Run | Captured, sizes: Mapping[str, int] | None) -> None:
        self._sizes = sizes
        self._names: dict[Value, Any] = {i.value: ("input", n) for n, i in enumerate(run.inputs) if i.value is not None}
        self._names |= {weight.value: weight_name(weight) for weight in run.weights}
        self.records: list[tuple[Record, Any]] = []
        for record in run.records:
            self._add(record)
        self.results = [
            self._key(tuple(run.outputs)),
            [(self._key(u.target), self._key(u.value)) for u in run.updates],
            [(a.output, self._key(a.of)) for a in run.aliases],
        ]

    def _add(self, record: Record) -> None:
        first = record.args[0] if record.args else None
        result = record.results[0]
        same = isinstance(first, Value) and first.shape == result.shape and first.dtype == result.dtype
        if record.op == "contiguous" or (self._sizes is not None and same and self._is_identity(record)):
            self._names[result] = self._key(first)
            return
        key = (record.op, self._key(record.args), [(k, self._key(v)) for k, v in sorted(record.kwargs.items())])
        for place, value in enumerate(record.results):
            self._names[value] = len(self.records), place, value.dtype, len(value.shape)
        self.records.append((record, (key, self._key(record.results))))

    def _is_identity(self, record: Record) -> bool:
        """Of an operation whose result has its operand's sizes."""
        if record.op not in _IDENTITY_BY_ZEROS:
            return record.op in _IDENTITY_AT_EQUAL_SIZES
        amounts = self._key(record.args[1] if len(record.args) > 1 else record.kwargs.get("shifts"))
        return all(amount == 0 for amount in cast(Operands, amounts)) if isinstance(amounts, tuple) else amounts == 0

    def _key(self, operand: Any) -> Any:
        if isinstance(operand, Value):
            return self._names[operand]
        if isinstance(operand, tuple):
            return tuple(map(self._key, cast(Operands, operand)))
        if self._sizes is not None and isinstance(operand, Expr):
            return evaluate(operand, self._sizes)
        if self._sizes is not None and isinstance(operand, Real):
            return operand.value(self._sizes)
        return operand


def weight_name(weight: Weight) -> Any:
    if weight.kind != "constant":
        return weight.name
    data = weight.tensor.detach().cpu().contiguous()
    return data.dtype, tuple(data.shape), data.reshape(-1).view(torch.uint8).numpy().tobytes()
