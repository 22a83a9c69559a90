"""The `reference` target: a program run by the evaluator, op by op from the ops' own rules. Slow; without kernels.

Results have memory of their own, also where the program returns a view of an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType, type_of
from dlcb.dialects.types import TYPE_NAME
from dlcb.errors import ElementError, UserError
from dlcb.evaluator.graph import Argument, run_program
from dlcb.evaluator.scalars import Array
from dlcb.evaluator.sizes import bind_symbols, lookup
from dlcb.frontend.aten.dtypes import element_of
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.call import Value
from dlcb.runtime.dtypes import DTYPES

HALF = (torch.float16, torch.bfloat16)


class ReferenceProgram:
    """`@main` of a module as it is after `simplify`, called with flat tensors and integers. `weights` by name; with
    `frozen` they are taken once, and again at `refresh_weights()`."""

    why_not_saved = "the reference target has no kernels to save; compile for cuda or cpu"

    def __init__(self, module: ModuleOp, name: str, weights: dict[str, Tensor], frozen: bool) -> None:
        self.module = module
        self._name = name
        self._weights = weights
        self._frozen = frozen
        self._func = lookup(module, "main", FuncOp)
        self._types = {
            n: a.type
            for a, n, kind in zip(self._func.body.block.args, self._func.names, self._func.kinds, strict=True)
            if kind != "weight"
        }
        self._taken = self._weight_arrays()

    def run(self, arguments: Sequence[Any]) -> list[Value]:
        if len(arguments) != len(self._types):
            raise UserError(f"{self._name}: takes {len(self._types)} arguments, got {len(arguments)}")
        given = {n: self._array(n, t, v) for (n, t), v in zip(self._types.items(), arguments, strict=True)}
        named: dict[str, Argument] = {**(self._taken if self._frozen else self._weight_arrays()), **given}
        returned = self._func.returned
        try:
            arrays = run_program(self.module, named)
            numbers = self._numbers(named)
        except ElementError as error:
            raise error.as_eager() from None
        except UserError as error:
            raise UserError(f"{self._name}: {error}") from None
        made = [
            _tensor(a, DTYPES[TYPE_NAME[type_of(v).element]]) for a, v in zip(arrays, returned.operands, strict=True)
        ]
        for place, new in zip(returned.updated, made, strict=False):
            target = self._func.names[place]
            old = arguments[list(self._types).index(target)] if target in self._types else self._weights[target]
            with torch.no_grad():
                old.copy_(new)
        return [*made[len(returned.updated) :], *numbers]

    def refresh_weights(self) -> None:
        if not self._frozen:
            raise UserError(f"{self._name}: refresh_weights() is for weights='frozen'; live weights are always fresh")
        self._taken = self._weight_arrays()

    def others(self) -> list[Artifact]:
        return []

    def stats(self) -> dict[str, int]:
        return {}

    def _weight_arrays(self) -> dict[str, Array]:
        return {name: _array(tensor).copy() for name, tensor in self._weights.items()}

    def _numbers(self, arguments: dict[str, Argument]) -> list[int]:
        numbers = self._func.returned.numbers
        if numbers is None:
            return []
        known = {n: arguments.get(n, 0) for n in self._func.names}
        return list(bind_symbols(self._func, known, {}).numbers(numbers.dims))

    def _array(self, name: str, type: Any, value: Any) -> Argument:
        if not isinstance(type, TensorType):
            if isinstance(value, bool) or not isinstance(value, int):
                raise UserError(f"{self._name}: {name} must be an int, got {value!r}")
            return value
        if not isinstance(value, Tensor):
            raise UserError(f"{self._name}: {name} must be a tensor, got {value!r}")
        if element_of(value.dtype) != type.element:
            expected = DTYPES[TYPE_NAME[type.element]]
            raise UserError(f"{self._name}: {name} has dtype {value.dtype}, expected {expected}")
        return _array(value)


def _array(tensor: Tensor) -> Array:
    plain = tensor.detach().cpu()
    return (plain.float() if plain.dtype in HALF else plain).numpy()


def _tensor(array: Array, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(array).to(dtype)  # pyright: ignore[reportUnknownMemberType]: numpy's own type is unknown
