"""Runs a captured program with torch itself, record by record: the witness that the records are the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.errors import InternalError
from dlcb.frontend import torch_private as private
from dlcb.frontend.records import Captured, Operands, Record, Value
from dlcb.frontend.tracker import Ratio


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
        sizes |= zip(given.symbols, leaf.shape if given.kind == "tensor" else (leaf,), strict=False)
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
        self._values = values
        self._sizes = sizes
        self._names: dict[Value, list[tuple[str, int]]] = {}
        for name, (value, dim) in captured.result_dims.items():
            self._names.setdefault(value, []).append((name, dim))

    def run(self, record: Record) -> None:
        args = [self.operand(a) for a in record.args]
        kwargs = {key: self.operand(value) for key, value in record.kwargs.items()}
        result = _function(record.op)(*args, **kwargs)
        # Memory is not shared here: every value is its own, as the records say.
        results = [result.clone()] if isinstance(result, torch.Tensor) else [r.clone() for r in result]
        for value, tensor in zip(record.results, results, strict=True):
            if tensor.dtype != value.dtype or tensor.dim() != len(value.shape):
                raise InternalError(f"replay: {record} gives {tensor.dtype}, {list(tensor.shape)}")
            self._values[value] = tensor
            for name, dim in self._names.get(value, ()):
                self._sizes[name] = tensor.shape[dim]

    def operand(self, operand: Any) -> Any:
        if isinstance(operand, Value):
            return self._values[operand]
        if isinstance(operand, Expr):
            return evaluate(operand, self._sizes)
        if isinstance(operand, Ratio):
            return evaluate(operand.numerator, self._sizes) / operand.denominator
        return tuple(map(self.operand, cast(Operands, operand))) if isinstance(operand, tuple) else operand


def _slice(x: torch.Tensor, dim: int, start: int, end: int | None, step: int = 1) -> torch.Tensor:
    return x[(slice(None),) * dim + (slice(start, end, step),)]


def _index(indices: tuple[torch.Tensor | None, ...]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def _indexed(x: torch.Tensor, indices: tuple[torch.Tensor | None, ...]) -> torch.Tensor:
    return x[_index(indices)]


def _index_put(x: torch.Tensor, indices: tuple[torch.Tensor | None, ...], values: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[_index(indices)] = values
    return x


def _to(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x.to(dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "slice": _slice,
    "index": _indexed,
    "index_put": _index_put,
    "to": _to,
}


def _function(op: str) -> Callable[..., Any]:
    found = _FUNCTIONS.get(op) or private.function_named(op)
    if found is None:
        raise InternalError(f"replay: torch has no function '{op}'")
    return found
