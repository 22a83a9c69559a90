"""Do two runs of a program compute the same numbers, though they are made of other operations?

Both are run by torch on the same random arguments, in float64 throughout: what differs only by rounding agrees to a
thousand millionth part. Whole numbers are drawn from the example's own, for they may be places in a table; where the
example has one or two, they may be a mask, and 0 and 1 are drawn too.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import torch

from dlcb.frontend.capture.run import Run
from dlcb.frontend.tracing.eager import Environment, call
from dlcb.frontend.tracing.records import Input, Operands, Value

_TOLERANCE = 1e-9
_MOST_ELEMENTS = 1 << 20
"""Of the arguments of a run that is tried."""


def same_numbers(one: Run, other: Run) -> bool:
    """Whether both give the same results and updates for random arguments of their traced sizes, which are equal."""
    if one.out_spec != other.out_spec or _shared(one) != _shared(other) or _is_large(one):
        return False
    if any(record.ordered for run in (one, other) for record in run.records):
        return False
    arguments = [_drawn(given, one) for given in one.inputs]
    try:
        found, expected = _results(one, arguments), _results(other, arguments)
    except (RuntimeError, TypeError, ValueError, IndexError):  # torch does not run them in float64
        return False
    return len(found) == len(expected) and all(map(_agree, found, expected))


def _is_large(run: Run) -> bool:
    sizes = (math.prod(given.value.shape) for given in run.inputs if given.value is not None)
    return sum(sizes) > _MOST_ELEMENTS


def _shared(run: Run) -> list[Any]:
    """Which results share memory, with inputs by their place."""
    place = {given.value: n for n, given in enumerate(run.inputs) if given.value is not None}
    return [(a.output, ("input", place.get(a.of)) if isinstance(a.of, Value) else a.of) for a in run.aliases]


def _drawn(given: Input, run: Run) -> Any:
    if given.value is None:
        return None
    example, shape = given.example, given.value.shape
    generator = torch.Generator().manual_seed(math.prod(shape))
    if example.is_floating_point():
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(example.device)
    known = example.unique()
    if known.numel() <= 2:
        known = torch.cat([known, torch.tensor([0, 1], dtype=known.dtype, device=known.device)])
    return known[torch.randint(known.numel(), shape, generator=generator).to(known.device)]


class _Exact(Environment):
    """Floating tensors and the dtypes that operations name are float64."""

    def operand(self, operand: Any) -> Any:
        found = super().operand(operand)
        if isinstance(operand, torch.dtype):
            return torch.float64 if operand.is_floating_point else operand
        if isinstance(operand, Value) and found.is_floating_point():
            return found.double()
        return found


def _results(run: Run, arguments: list[Any]) -> list[Any]:
    values = {given.value: a for given, a in zip(run.inputs, arguments, strict=True) if given.value is not None}
    values |= {weight.value: weight.tensor.detach() for weight in run.weights}
    environment = _Exact(values, run.traced)
    with torch.no_grad():
        for record in run.records:
            made = call(record, environment)
            values.update(zip(record.results, made, strict=True))
        outputs = [environment.operand(output) for output in run.outputs]
        updates = {
            n: update.value for update in run.updates for n, i in enumerate(run.inputs) if i.value is update.target
        }
        return outputs + [(n, values[value]) for n, value in sorted(updates.items())]


def _is_tuple(result: Any) -> TypeGuard[Operands]:
    return isinstance(result, tuple)


def _agree(one: Any, other: Any) -> bool:
    if _is_tuple(one) and _is_tuple(other):
        return len(one) == len(other) and all(map(_agree, one, other))
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(type(one) is type(other) and one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    finite = one[one.isfinite()].abs()
    largest = float(finite.max()) if finite.numel() else 1.0
    return torch.allclose(one, other, rtol=0.0, atol=_TOLERANCE * max(largest, 1e-30), equal_nan=True)
