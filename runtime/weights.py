"""The weights of a module: bound by name, and derived by the program `@weights` into addresses that stay.

`live`: each call sees the parameters as they are; addresses are read and `@weights` runs every time. `frozen`: both
happen once; `refresh` derives again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from dlcb.errors import InternalError, UserError
from dlcb.runtime.call import BoundCall, StepObserver, Target, Value, Values
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.plan import CallPlan, Place
from dlcb.runtime.program import Facts, PlanFunction, compile_derivation
from dlcb.runtime.rows import Argument, Program

Mode = Literal["live", "frozen"]
MAX_ALIGNMENT = 16
ALIGNMENTS = (16, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1)
"""The largest power of two, up to 16, that divides an address, by its lowest four bits."""

_data_ptr = Tensor.data_ptr


class Weights:
    """The weights that `main` takes. For one thread at a time.

    `version` counts moves of the bound tensors, `alignment_version` those that changed an alignment.
    """

    def __init__(
        self,
        bound: Mapping[str, Tensor],
        main: Program,
        derive: Program | None,
        target: Target,
        mode: Mode,
        derive_plan: PlanFunction | None = None,
    ) -> None:
        """`derive_plan`: the function that plans `derive`, where it was made already."""
        derived = set(derive.results) if derive else set[str]()
        self._wanted = [a for a in main.arguments if a.kind == "weight"]
        sources = [a for a in self._wanted if a.name not in derived]
        sources += [a for a in (derive.arguments if derive else ()) if a.kind == "weight" and a not in sources]
        self._program = main.name
        self._bound = bound
        self._sources = {a.name: self._find(bound, a) for a in sources}
        """The bound tensors; frozen ones by another name, which holds their memory until the next refresh."""
        self._source_list = list(self._sources.values())
        self._declared = sources
        self._device = target.device
        self.derivation = Derivation(derive, self._sources, target, derive_plan) if derive else None
        self.is_frozen = mode == "frozen"
        self._is_settled = False
        """Were all bound tensors found, and does no call look again?"""
        self.addresses: dict[str, int] = {}
        """Where the bound tensors are, by name; derived weights are not among them: they stay where they are."""
        self._address_list: list[int] = []
        self._source_alignments: tuple[int, ...] = ()
        self.tensors: tuple[Tensor, ...] = ()
        """In the order of main's weight arguments, as `current` made them."""
        self.held: Mapping[str, Tensor] = {}
        """By name: those, and all that they are derived from."""
        self._tensors_version = 0
        self.alignments: tuple[int, ...] = ()
        self.version = 0
        self.alignment_version = 0

    def locate(self) -> None:
        """Look where the bound tensors are; launches nothing. Afterwards versions, addresses and `alignments` are those
        of this call."""
        if self._is_settled:
            return
        if self.is_frozen:
            self._hold()
        else:
            self._look()
        self._is_settled = self.is_frozen or not self._source_list

    def current(self, stream: int, observer: StepObserver | None = None) -> tuple[Tensor, ...]:
        """The tensors in the order of main's weight arguments, derived ones up to date."""
        if self.is_frozen and self.tensors:
            return self.tensors
        return self._derive(stream, observer)

    def refresh(self, stream: int) -> None:
        """With frozen weights: derive anew from what the bound tensors hold, into the addresses of the last time."""
        self._hold()
        self._derive(stream)

    def _hold(self) -> None:
        self._sources.update((a.name, self._find(self._bound, a).detach()) for a in self._declared)
        self._source_list = list(self._sources.values())
        self._look()

    def _look(self) -> None:
        addresses = list(map(_data_ptr, self._source_list))
        if addresses != self._address_list or not self.version:
            self._check_sources()
            self._address_list = addresses
            self.addresses = dict(zip(self._sources, addresses, strict=True))
            self.version += 1
            self._align()

    def _derive(self, stream: int, observer: StepObserver | None = None) -> tuple[Tensor, ...]:
        derived: dict[str, Tensor] = {}
        if self.derivation is not None:
            derived = self.derivation.run(self.version, self.alignment_version, stream, observer)
        if self._tensors_version != self.version:
            self._take({**self._sources, **derived})
        return self.tensors

    def _align(self) -> None:
        alignments = tuple(map(alignment_of, self._source_list))
        if alignments != self._source_alignments or not self.alignment_version:
            self._source_alignments = alignments
            self.alignment_version += 1
            known = dict(zip(self._sources, alignments, strict=True))
            self.alignments = tuple(known.get(a.name, MAX_ALIGNMENT) for a in self._wanted)

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        for argument in self._wanted:
            check_weight(self._program, argument, tensors[argument.name], self._device)
        self.tensors = tuple(tensors[a.name] for a in self._wanted)
        self.held = tensors
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

    def __init__(
        self, program: Program, sources: Mapping[str, Tensor], target: Target, plan: PlanFunction | None = None
    ) -> None:
        self.program = program
        self._sources = sources
        self._target = target
        self._plan = plan or compile_derivation(program)
        self._call: BoundCall | None = None
        self._derived: dict[int, Tensor] = {}
        self._version = 0
        self._bound: tuple[int, int] = (0, 0)

    def run(
        self, version: int, alignment_version: int, stream: int, observer: StepObserver | None = None
    ) -> dict[str, Tensor]:
        """The derived weights by name, at the same addresses every time. Versions as those of `Weights`."""
        if self._call is None or self._bound != (alignment_version, stream):
            self._call = BoundCall(self._plan(self._facts()), self._target, stream)
            self._bound = (alignment_version, stream)
        self._version = version
        self.keep(self._call.run(self.values, self.outputs(self._call.plan), observer))
        return dict(zip(self.program.results, self._derived.values(), strict=True))

    @property
    def plan(self) -> CallPlan:
        """What the last run did."""
        assert self._call is not None
        return self._call.plan

    @property
    def values(self) -> Values:
        return Values(self._arguments, self._version)

    @property
    def _arguments(self) -> list[Tensor]:
        return [self._sources[a.name] for a in self.program.arguments]

    def outputs(self, plan: CallPlan) -> dict[int, Tensor]:
        """The kept tensors that the program can write directly, by root: those that are whole outputs."""
        outputs: dict[int, Tensor] = {}
        for number, place in enumerate(plan.results):
            if isinstance(place, Place) and place.whole and plan.roots[place.root].kind == "output":
                if number in self._derived:
                    outputs.setdefault(place.root, self._derived[number])
        return outputs

    def keep(self, results: Sequence[Value]) -> None:
        """Put the results of a run to the addresses where derived weights are; most were written there."""
        with torch.no_grad():
            for number, result in enumerate(results):
                self._keep(number, result)

    def _facts(self) -> Facts:
        alignments = [alignment_of(t) for t in self._arguments]
        nothing = [()] * len(alignments)
        return Facts(nothing, nothing, [0] * len(alignments), alignments)

    def _keep(self, number: int, result: Value) -> None:
        if not isinstance(result, Tensor):
            raise InternalError(f"{self.program.name}: result {number} is an integer, a derived weight is a tensor")
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
