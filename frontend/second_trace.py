"""Python that branches on sizes: a call that goes another way than those before is traced at its own sizes.

The checks of a trace say which calls go its way. Only where a call breaks one that answers a comparison of the program
is there another way; all else that a compiled program refuses, it refuses for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dlcb.errors import UserError
from dlcb.frontend.capture.inputs import may_vary
from dlcb.frontend.request import Request
from dlcb.frontend.tracing.records import Captured, Input
from dlcb.frontend.tracing.tracker import Check
from dlcb.runtime.branches import Arguments, BranchingModel
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.compiled import CompiledModel, sizes_of

MOST_BRANCHES = 8
_MOST_REFUSED = 256


def with_second_traces(request: Request, captured: Captured, first: CompiledModel, most: int) -> CompiledModel:
    """The model, which compiles other ways as calls need them, until there are `most`; itself where there are none."""
    asked = [check for check in captured.checks if check.comparison is not None]
    if not asked:
        return first
    return BranchingModel(first, grow=_Ways(request, asked, captured.inputs, most).grow)


class _Ways:
    """Makes the programs of the other ways. Called under the model's lock."""

    def __init__(self, request: Request, asked: list[Check], inputs: Sequence[Input], most: int) -> None:
        self._request = request
        self._asked = asked
        self._inputs = [given for given in inputs if given.kind != "constant"]
        self._left = most - 1
        self._most = most
        self._refused: LeastRecentlyUsed[Any, str] = LeastRecentlyUsed(_MOST_REFUSED)
        """By sizes and strides, what the program says of them."""

    def grow(self, arguments: Arguments, flat: Sequence[Any], refusal: UserError) -> CompiledModel:
        if not self._goes_another_way(flat, str(refusal)):
            raise refusal
        if not self._left:
            raise UserError(f"{refusal}; {self._most} ways through the program are compiled, and no more are kept")
        kind = sizes_of(flat), tuple([value.stride() for value in flat if isinstance(value, torch.Tensor)])
        known = self._refused.get(kind)
        if known is not None:
            raise UserError(known)
        try:
            _, model = self._request.compile(*arguments)
        except UserError as error:
            text = f"{refusal}; traced at these sizes, {error}"
            self._refused.put(kind, text)
            raise UserError(text) from error
        self._left -= 1
        return model

    def _goes_another_way(self, flat: Sequence[Any], refusal: str) -> bool:
        """Whether the arguments are of the right kinds, and a comparison of the program has another answer for them."""
        values: dict[str, int] = {}
        for given, value in zip(self._inputs, flat, strict=True):
            if not _fits(given, value):
                return False
            sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
            values |= {symbol: n for symbol, n in zip(given.symbols, sizes, strict=True) if isinstance(symbol, str)}
        return any(not c.holds(values) if c.free <= values.keys() else c.text in refusal for c in self._asked)


def _fits(given: Input, value: Any) -> bool:
    if given.value is None or not isinstance(value, torch.Tensor):
        return given.value is None and may_vary(value)
    wanted = given.value
    return value.dtype == wanted.dtype and value.device == wanted.device and value.dim() == len(wanted.shape)
