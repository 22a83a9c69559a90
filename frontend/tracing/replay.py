"""Runs a captured program with torch itself, record by record: the witness that the records are the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dlcb.errors import InternalError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.eager import Environment, call
from dlcb.frontend.tracing.records import Captured, Record, Value


def replay(captured: Captured, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> Any:
    """The program's result for real inputs. Inputs and weights that it updates are updated."""
    leaves, spec = private.flatten((tuple(args), dict(kwargs or {})))
    if spec != captured.in_spec:
        raise InternalError(f"replay: the arguments have structure {spec}, captured was {captured.in_spec}")
    values: dict[Value, torch.Tensor] = {weight.value: weight.tensor for weight in captured.weights}
    sizes: dict[str, int] = {}
    for given, leaf in zip(captured.inputs, leaves, strict=True):
        if given.value is not None:
            values[given.value] = leaf
        sizes |= zip(map(str, given.symbols), leaf.shape if given.kind == "tensor" else (leaf,), strict=False)
    replayer = _Replayer(captured, values, sizes)
    with torch.no_grad():
        for record in captured.records:
            replayer.run(record)
        broken = [check for check in captured.checks if not check.holds(sizes)]
        if broken:
            raise InternalError(f"replay: {broken[0]} does not hold ({broken[0].text})")
        outputs = [replayer.operand(output) for output in captured.outputs]
        for update in captured.updates:
            values[update.target].copy_(values[update.value])
    return private.unflatten(outputs, captured.out_spec)


class _Replayer:
    def __init__(self, captured: Captured, values: dict[Value, torch.Tensor], sizes: dict[str, int]) -> None:
        self._env = Environment(values, sizes)
        self._names: dict[Value, list[tuple[str, int]]] = {}
        for name, (value, dim) in captured.result_dims.items():
            self._names.setdefault(value, []).append((name, dim))
        self.operand = self._env.operand

    def run(self, record: Record) -> None:
        # Memory is not shared here: every value is its own, as the records say.
        for value, made in zip(record.results, call(record, self._env), strict=True):
            tensor = made.clone()
            if tensor.dtype != value.dtype or tensor.dim() != len(value.shape):
                raise InternalError(f"replay: {record} gives {tensor.dtype}, {list(tensor.shape)}")
            self._env.values[value] = tensor
            for name, dim in self._names.get(value, ()):
                self._env.sizes[name] = tensor.shape[dim]
