"""What one trace knows of the sizes of its tensors: which follow from others, and symbols for those that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch

from dlcb.errors import InternalError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.names import FIRST_ARGUMENT, KEYWORDS, SIZELESS
from dlcb.frontend.tracing.records import ELEMENT, Operands, Value, element_symbol, result_dim_symbol
from dlcb.frontend.tracing.result_sizes import (
    FIXED,
    Fixed,
    Found,
    Sizes,
    Unknown,
    in_trace,
    is_literal,
    sizes_of_result,
)
from dlcb.frontend.tracing.tracked import symbol
from dlcb.frontend.tracing.tracker import Tracker


class KnownSizes:
    """`of`: the sizes of inputs, weights and results."""

    def __init__(self, tracker: Tracker, sizes_of: Callable[[torch.Tensor], Sizes]) -> None:
        """`sizes_of`: those of a fake of the trace."""
        self.of: dict[Value, Sizes] = {}
        self.symbols: dict[str, tuple[Value, int]] = {}
        """Which size of which value a symbol is."""
        self._tracker = tracker
        self._sizes_of = sizes_of

    def add(self, value: Value, found: Found | Fixed) -> Sizes:
        """The sizes of a value, with unknown ones where they were not found."""
        axes = range(len(value.shape))
        given = [found] * len(axes) if found is None or found is FIXED else found
        dims = [
            Unknown(value, axis) if dim is None else value.shape[axis] if dim is FIXED else dim
            for axis, dim in zip(axes, given, strict=True)
        ]
        if tuple(map(in_trace, dims)) != value.shape:
            raise InternalError(f"sizes {list(map(in_trace, dims))} were expected of {value}, which has {value.shape}")
        sizes = self.of[value] = Sizes(dims)
        return sizes

    def asked(self, sizes: Sizes) -> tuple[int, ...]:
        """As tracked ints; what is not known gets a symbol."""
        return tuple([dim if isinstance(dim, int) else self._known(dim) for dim in sizes])

    def _known(self, dim: Unknown) -> int:
        if dim.known is None:
            name = result_dim_symbol(dim.value, dim.axis)
            self.symbols[name] = dim.value, dim.axis
            dim.known = symbol(self._tracker, name, in_trace(dim))
        return dim.known

    def element(self, value: Value, traced: int) -> int:
        """The one element of an integer tensor as a tracked int."""
        name = element_symbol(value)
        self.symbols[name] = value, ELEMENT
        self._tracker.elements.add(name)
        return symbol(self._tracker, name, traced, is_size=False)

    def found(self, op: str, args: Operands, kwargs: Mapping[str, Any]) -> Found | Fixed:
        """The sizes of the one result of a call, as far as they follow from its operands. `FIXED` is true of several
        results too."""
        first = None if args else next((key for key in FIRST_ARGUMENT if key in kwargs), None)
        given = args if first is None else (kwargs[first],)
        words = {KEYWORDS.get(key, key): value for key, value in kwargs.items() if key != first}
        words = {key: self._operand(value) for key, value in words.items() if key not in SIZELESS}
        operands = [*map(self._operand, given)]
        found = sizes_of_result(op, operands, words)
        is_open = found is None or any(dim is None for dim in found)
        return FIXED if is_open and is_literal((*operands, *words.values())) else found

    def _operand(self, operand: Any) -> Any:
        """An operand with the sizes of tensors in place of them."""
        if type(operand) is private.FakeTensor:
            dims = self._sizes_of(operand)
            return Sizes([dim if isinstance(dim, int) or dim.known is None else dim.known for dim in dims])
        if type(operand) is tuple or type(operand) is list:
            return [self._operand(item) for item in cast(Operands, operand)]
        return operand
