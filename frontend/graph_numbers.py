"""What torch's graphs say of numbers: Python's operators on them, and sizes that are functions of others.

Python has no hook for a float on the left of an int: `0.5 * n` reads the number of a tracked `n` unseen. In a graph
every operator is a node, so there the float is made one that notices.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import torch

from dlcb.dialects.shape.expr import Expr, add, const, mul, sym
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.tracked import noticing


def notice_numbers(graph: torch.fx.GraphModule) -> None:
    """Let the graph's operators on floats see where an int comes from."""
    nodes = [n for n in graph.graph.nodes if n.target in _OPERATORS and any(map(_may_be_float, n.args))]
    for node in nodes:
        node.target = _OPERATORS[node.target]
    if nodes:
        graph.recompile()


def _may_be_float(operand: Any) -> bool:
    value = private.example_of(operand) if isinstance(operand, torch.fx.Node) else operand
    return value is None or isinstance(value, (float, torch.SymFloat))


def _noticing(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        return function(noticing(a, b), b)

    call.__name__ = call.__qualname__ = f"noticing_{function.__name__}"
    return call


_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    getattr(operator, name): _noticing(getattr(operator, name))
    for name in "add sub mul truediv floordiv mod pow eq ne lt le gt ge".split()
}


def expression(size: Any, symbols: Mapping[str, str]) -> Expr | None:
    """A sum or product in torch's symbols, each of which is one of ours; None where it is anything else."""
    if size.is_Integer:
        return const(int(size))
    if size.is_Symbol:
        return sym(symbols[str(size)]) if str(size) in symbols else None
    parts = [expression(part, symbols) for part in size.args] if size.is_Add or size.is_Mul else [None]
    known = [part for part in parts if part is not None]
    return reduce(add if size.is_Add else mul, known) if len(known) == len(parts) else None
