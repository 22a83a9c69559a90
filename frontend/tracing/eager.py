"""Records run by torch, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch

from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.errors import InternalError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.real import Real
from dlcb.frontend.tracing.records import Operands, Record, Value

_Leaf = TypeVar("_Leaf", Value, Expr, Real)


@dataclass(slots=True)
class Environment:
    """What the operands of records stand for in one call."""

    values: dict[Value, torch.Tensor]
    sizes: dict[str, int]

    def operand(self, operand: Any) -> Any:
        if isinstance(operand, Value):
            return self.values[operand]
        if isinstance(operand, Expr):
            return evaluate(operand, self.sizes)
        if isinstance(operand, Real):
            return operand.value(self.sizes)
        return tuple(map(self.operand, cast(Operands, operand))) if isinstance(operand, tuple) else operand


def call(record: Record, environment: Environment) -> list[torch.Tensor]:
    """The tensors that the record's function returns."""
    operand = environment.operand
    words = {**record.kwargs, **record.only_eager} if record.only_eager else record.kwargs
    result = _function(record)(*map(operand, record.args), **{key: operand(value) for key, value in words.items()})
    several = cast(Operands, result) if isinstance(result, (tuple, list)) else (result,)
    return [r for r in several if isinstance(r, torch.Tensor)]


def values_of(record: Record) -> Iterator[Value]:
    """The tensors that a record reads."""
    yield from _leaves(record, Value)


def expressions_of(record: Record) -> Iterator[Expr]:
    """The sizes that a record reads."""
    yield from _leaves(record, Expr)
    for real in _leaves(record, Real):
        yield from real.expressions()


def _leaves(record: Record, kind: type[_Leaf]) -> Iterator[_Leaf]:
    pending: list[Any] = [*record.args, *record.kwargs.values(), *record.only_eager.values()]
    while pending:
        operand = pending.pop()
        if isinstance(operand, kind):
            yield operand
        elif isinstance(operand, tuple):
            pending += cast(Operands, operand)


def _function(record: Record) -> Any:
    found = record.run or private.function_named(record.op)
    if found is None:
        raise InternalError(f"torch has no function '{record.op}': {record.line}")
    return found
