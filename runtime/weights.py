"""The weights of a module: bound by name, and derived by the program `@weights` into addresses that stay.

`live`: each call sees the parameters as they are; addresses are read and `@weights` runs every time. `frozen`: both
happen once; `refresh` derives again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import methodcaller
from typing import Literal

import torch
from torch import Tensor

from dlcb.errors import InternalError, UserError
from dlcb.runtime.call import BoundCall, Target, Value, Values
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.plan import Place, build_plan
from dlcb.runtime.program import Facts, compile_program
from dlcb.runtime.rows import Argument, Program

Mode = Literal["live", "frozen"]
MAX_ALIGNMENT = 16
ALIGNMENTS = (16, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1)
"""The largest power of two, up to 16, that divides an address, by its lowest four bits."""

_data_ptr = methodcaller("data_ptr")


class Weights:
    """The weights that `main` takes. For one thread at a time."""

    def __init__(
        self, bound: Mapping[str, Tensor], main: Program, derive: Program | None, target: Target, mode: Mode
    ) -> None:
        derived = set(derive.results) if derive else set[str]()
        self._wanted = [a for a in main.arguments if a.kind == "weight"]
        sources = [a for a in self._wanted if a.name not in derived]
        sources += [a for a in (derive.arguments if derive else ()) if a.kind == "weight" and a not in sources]
        self._program = main.name
        self._sources = {a.name: self._find(bound, a) for a in sources}
        self._source_list = list(self._sources.values())
        self._declared = sources
        self._device = target.device
        self._derivation = Derivation(derive, target) if derive else None
        self._is_frozen = mode == "frozen"
        self._addresses: list[int] = []
        self._tensors: tuple[Tensor, ...] = ()
        self._tensors_version = 0
        self.alignments: tuple[int, ...] = ()
        self.version = 0

    def locate(self) -> None:
        """Look where the bound tensors are; launches nothing. Afterwards `version` and `alignments` are those of this
        call."""
        if self._is_frozen and self.version:
            return
        addresses = list(map(_data_ptr, self._source_list))
        if addresses != self._addresses or not self.version:
            self._check_sources()
            self._addresses = addresses
            self.alignments = tuple(
                alignment_of(self._sources[a.name]) if a.name in self._sources else MAX_ALIGNMENT for a in self._wanted
            )
            self.version += 1

    def current(self, stream: int) -> tuple[Tensor, ...]:
        """The tensors in the order of main's weight arguments, derived ones up to date."""
        if self._is_frozen and self._tensors:
            return self._tensors
        derived: dict[str, Tensor] = {}
        if self._derivation is not None:
            derived = self._derivation.run(self._sources, self.version, stream)
        if self._tensors_version != self.version:
            self._take({**self._sources, **derived})
        return self._tensors

    def refresh(self, stream: int) -> None:
        """Derive anew from what the bound tensors hold, into the addresses of the last time."""
        if self._derivation is not None:
            self._derivation.run(self._sources, self.version, stream)

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        for argument in self._wanted:
            check_weight(self._program, argument, tensors[argument.name], self._device)
        self._tensors = tuple(tensors[a.name] for a in self._wanted)
        self._tensors_version = self.version

    def _check_sources(self) -> None:
        for argument, tensor in zip(self._declared, self._source_list, strict=True):
            check_weight(self._program, argument, tensor, self._device)

    def _find(self, bound: Mapping[str, Tensor], argument: Argument) -> Tensor:
        tensor = bound.get(argument.name)
        if tensor is None:
            raise UserError(f"{self._program}: no weight is bound to '{argument.name}'")
        return tensor


class Derivation:
    """The program `@weights`, run into tensors that are allocated once."""

    def __init__(self, program: Program, target: Target) -> None:
        self._program = program
        self._target = target
        self._function = compile_program(program)
        self._call: BoundCall | None = None
        self._derived: dict[int, Tensor] = {}
        self._version = 0

    def run(self, sources: Mapping[str, Tensor], version: int, stream: int) -> dict[str, Tensor]:
        """The derived weights by name, at the same addresses every time. A new `version` says that sources have
        moved."""
        arguments = [sources[a.name] for a in self._program.arguments]
        if self._call is None or version != self._version:
            self._call = self._bind(arguments)
            self._version = version
        outputs = self._outputs(self._call)
        with torch.no_grad():
            results = self._call.run(Values(arguments, self._version), stream, outputs)
            for number, result in enumerate(results):
                self._keep(number, result)
        return dict(zip(self._program.results, self._derived.values(), strict=True))

    def _bind(self, arguments: Sequence[Tensor]) -> BoundCall:
        nothing = [()] * len(arguments)
        facts = Facts(nothing, nothing, [0] * len(arguments), [alignment_of(t) for t in arguments])
        separate = self._target.allocator.separate_buffers
        return BoundCall(build_plan(self._program, self._function(facts), facts, separate), self._target)

    def _outputs(self, call: BoundCall) -> dict[int, Tensor]:
        """The kept tensors that the program can write directly: those that are whole outputs."""
        outputs: dict[int, Tensor] = {}
        for number, place in enumerate(call.plan.results):
            if isinstance(place, Place) and place.whole and call.plan.roots[place.root].kind == "output":
                if number in self._derived:
                    outputs.setdefault(place.root, self._derived[number])
        return outputs

    def _keep(self, number: int, result: Value) -> None:
        if not isinstance(result, Tensor):
            raise InternalError(f"{self._program.name}: result {number} is an integer, a derived weight is a tensor")
        kept = self._derived.get(number)
        if kept is None:
            kept = self._derived[number] = torch.empty_strided(
                result.size(), result.stride(), dtype=result.dtype, device=result.device
            )
        if result is not kept:
            kept.copy_(result)


def alignment_of(tensor: Tensor) -> int:
    return ALIGNMENTS[tensor.data_ptr() & (MAX_ALIGNMENT - 1)]


def check_weight(program: str, argument: Argument, tensor: Tensor, device: torch.device) -> None:
    """A UserError unless the tensor is what the program was compiled for. Strides of dimensions of size 1 don't
    matter."""
    for what, found, expected in (
        ("shape", tuple(tensor.shape), argument.shape),
        ("dtype", tensor.dtype, DTYPES[argument.dtype]),
        ("device", tensor.device, device),
    ):
        if found != expected:
            raise UserError(
                f"{program}: weight '{argument.name}' has {what} {found}, the module was compiled for {expected}"
            )
    strides = zip(argument.shape, tensor.stride(), argument.strides, strict=True)
    if tensor.numel() and any(size != 1 and found != expected for size, found, expected in strides):
        raise UserError(
            f"{program}: weight '{argument.name}' has strides {tensor.stride()}, "
            f"the module was compiled for {argument.strides}"
        )
