"""Kernels that differ in literal sizes, strides and offsets alone are one, with these as parameters.

The layers of a network differ in their numbers of channels; a kernel for each would be compiled for each. What a row's
length is stays literal: the registers that hold a row are counted by it. A literal that is the same wherever the kernel
is used stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace

from dlcb.dialects.graph.types import Dim
from dlcb.dialects.shape.expr import Expr, const
from dlcb.lowering.coordinates.rows import KernelRows, Row


class Sharing:
    """Knows all kernels that there are."""

    def __init__(self, kernels: Iterable[KernelRows]) -> None:
        self._bound: dict[Hashable, list[set[Expr]]] = {}
        """By what kernels have in common: what each parameter is bound to, literals among them."""
        for rows in kernels:
            opened = _opened(rows, _literals(rows))
            bound = self._bound.setdefault(opened.key, [set() for _ in opened.bindings])
            for known, value in zip(bound, opened.bindings, strict=True):
                known.add(value)

    def shared(self, rows: KernelRows) -> KernelRows:
        """The kernel with those literals as parameters in which others differ from it."""
        literals = _literals(rows)
        bound = self._bound[_opened(rows, literals).key][len(rows.bindings) :]
        return _opened(rows, [n for n, known in zip(literals, bound, strict=True) if len(known) > 1])


def _literals(rows: KernelRows) -> list[int]:
    """The literals that may be parameters, each once, in order of first use."""
    found: dict[int, None] = {}

    def note(dim: Dim) -> Dim:
        if isinstance(dim, int) and dim > 1:
            found[dim] = None
        return dim

    _mapped(rows, note)
    return list(found)


def _opened(rows: KernelRows, literals: Iterable[int]) -> KernelRows:
    """The kernel with these literals as parameters after its own."""
    names = {literal: f"p{number}" for number, literal in enumerate(literals, len(rows.bindings))}
    if not names:
        return rows
    opened = _mapped(rows, lambda dim: names.get(dim, dim) if isinstance(dim, int) else dim)
    return replace(opened, bindings=(*rows.bindings, *map(const, names)))


def _mapped(rows: KernelRows, change: Callable[[Dim], Dim]) -> KernelRows:
    """The kernel with its sizes and strides changed, but not the row's lengths."""

    def changed(row: Row) -> Row:
        match row:
            case ("access", buffer, strides, *rest):
                return ("access", buffer, tuple(map(change, strides)), *rest)
            case ("store", value, buffer, strides, *rest):
                return ("store", value, buffer, tuple(map(change, strides)), *rest)
            case ("shift", dim):
                return ("shift", change(dim))
            case ("loop", function, initial, extents, body, *rest):
                return ("loop", function, initial, extents, tuple(map(changed, body)), *rest)
            case _:
                return row

    outer = tuple(map(change, rows.outer))
    return replace(rows, outer=outer, rows=tuple(map(changed, rows.rows)), numbers=tuple(map(change, rows.numbers)))
