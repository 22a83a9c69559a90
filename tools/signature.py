"""What a program takes: its inputs with the names of their sizes, the sizes that a user gives, and random inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.frontend.weight_store import read_tensors
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.rows import Program
from dlcb.tools.messages import unknown

Dim: TypeAlias = int | str
Given: TypeAlias = Tensor | int
_DEFAULT: Final = 4
"""A size that nobody gave, where there was no trace or example that had one."""
_PLACE: Final = re.compile(r"(.+)\.shape\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor of the dtype and dims, or, without a dtype, an integer."""

    name: str
    dtype: torch.dtype | None
    dims: tuple[Dim, ...]
    updated: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {describe(self.dtype, self.dims)}" if self.dtype else f"{self.name}: int"


def describe(dtype: torch.dtype, dims: Sequence[Dim]) -> str:
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, dims))}]"


@dataclass(frozen=True, slots=True)
class Signature:
    """`defaults`: sizes at which the program is known to run, by symbol; `names`: what
    users call a size → where it is, as `x.shape[0]`."""

    parameters: Sequence[Parameter]
    defaults: Mapping[str, int] = field(default_factory=dict[str, int])
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def symbols(self) -> list[str]:
        """Sizes and integers that may vary, in order."""
        free = [d for p in self.parameters for d in (p.dims if p.dtype else (p.name,)) if isinstance(d, str)]
        return list(dict.fromkeys(free))

    def sizes(self, given: Mapping[str, int]) -> dict[str, int]:
        """A value for every symbol. Keys of `given`: a symbol, a user's name of one, or `x.shape[0]`."""
        chosen: dict[str, tuple[int, str]] = {}
        for key, value in given.items():
            dim = self._dim(key)
            known = dim if isinstance(dim, int) else chosen.get(dim, (value, key))[0]
            if known != value:
                other = "which is" if isinstance(dim, int) else f"and --size {chosen[dim][1]} says"
                raise UserError(f"--size {key}={value}: {other} {known}" + self._fixed(dim))
            if isinstance(dim, str):
                chosen[dim] = (value, key)
        return {s: chosen[s][0] if s in chosen else self.defaults.get(s, _DEFAULT) for s in self.symbols}

    def unset(self, given: Mapping[str, int]) -> list[str]:
        """The symbols that `given` leaves open."""
        chosen = {self._dim(key) for key in given}
        return [symbol for symbol in self.symbols if symbol not in chosen]

    def _fixed(self, dim: Dim) -> str:
        return " in this program" if isinstance(dim, int) else ", though both are one size"

    def _dim(self, key: str) -> Dim:
        key = self.names.get(key, key)
        place = _PLACE.fullmatch(key)
        if place is not None:
            return self._dim_at(key, place[1], int(place[2]))
        if key in self.symbols:
            return key
        known = [*self.names, *self.symbols]
        have = f"the sizes are {', '.join(known)}" if known else "no size of this program may vary"
        raise UserError(f"--size: {unknown('size', key, known)}; {have}, or x.shape[0] for one of input x")

    def _dim_at(self, key: str, name: str, axis: int) -> Dim:
        found = next((p for p in self.parameters if p.name == name and p.dtype), None)
        if found is None:
            tensors = [p.name for p in self.parameters if p.dtype]
            raise UserError(f"--size {key}: {unknown('input', name, tensors)}; the inputs are {', '.join(tensors)}")
        if axis >= len(found.dims):
            raise UserError(f"--size {key}: {name} has {len(found.dims)} dims: {found}")
        return found.dims[axis]


def random_inputs(signature: Signature, sizes: Mapping[str, int], seed: int) -> dict[str, Given]:
    """Normal floats; integers and truth values are 0 or 1, so that they index whatever there is."""
    generator = torch.Generator().manual_seed(seed)
    return {p.name: _random(p, sizes, generator) for p in signature.parameters}


def _random(parameter: Parameter, sizes: Mapping[str, int], generator: torch.Generator) -> Given:
    if parameter.dtype is None:
        return sizes[parameter.name]
    shape = [d if isinstance(d, int) else sizes[d] for d in parameter.dims]
    if parameter.dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(parameter.dtype)
    return torch.randint(0, 2, shape, generator=generator).to(parameter.dtype)


def inputs_from(path: Path, signature: Signature) -> dict[str, Given]:
    """The inputs in a safetensors file by their names; an integer is a tensor of no dims."""
    tensors = read_tensors(path)
    names = [p.name for p in signature.parameters]
    missing, extra = [n for n in names if n not in tensors], [n for n in tensors if n not in names]
    if missing or extra:
        wrong = [f"no {', '.join(missing)}" if missing else "", f"unknown {', '.join(extra)}" if extra else ""]
        takes = "; ".join(map(str, signature.parameters))
        raise UserError(f"--input {path}: {'; '.join(filter(None, wrong))}; the program takes {takes}")
    return {p.name: _checked(path, p, tensors[p.name]) for p in signature.parameters}


def _checked(path: Path, parameter: Parameter, tensor: Tensor) -> Given:
    found = describe(tensor.dtype, tensor.shape)
    if parameter.dtype is None:
        if tensor.dim() or tensor.dtype.is_floating_point:
            raise UserError(f"--input {path}: {parameter.name} is {found}, expected one integer: int64[]")
        return int(tensor.item())
    fits = len(parameter.dims) == tensor.dim() and all(
        isinstance(d, str) or d == size for d, size in zip(parameter.dims, tensor.shape, strict=True)
    )
    if tensor.dtype != parameter.dtype or not fits:
        expected = describe(parameter.dtype, parameter.dims)
        raise UserError(f"--input {path}: {parameter.name} is {found}, expected {expected}")
    return tensor


def program_signature(program: Program) -> Signature:
    """The signature of a host program, whose header says only ranks: sizes that it checks to be a number, or to be
    equal, are so."""
    equal = dict(_checked_sizes(program))
    parameters: list[Parameter] = []
    for argument in program.arguments:
        if argument.kind == "weight":
            continue
        sizes = [(argument.name, dim) for dim in range(argument.rank)]
        dims = tuple([_resolved(equal, size) for size in sizes])
        dtype = DTYPES[argument.dtype] if argument.kind == "input" else None
        parameters.append(Parameter(argument.name, dtype, dims, argument.updated))
    return Signature(parameters)


_Size: TypeAlias = tuple[str, int]


def _resolved(equal: Mapping[_Size, int | _Size], size: _Size) -> Dim:
    seen: int | _Size = size
    while not isinstance(seen, int) and seen in equal:
        seen = equal[seen]
    return seen if isinstance(seen, int) else f"{seen[0]}_{seen[1]}"


def _checked_sizes(program: Program) -> Iterator[tuple[_Size, int | _Size]]:
    """Sizes that must be a number, or an earlier size."""
    known: dict[int, int | _Size] = {}
    equations: dict[int, tuple[int, int]] = {}
    order = {argument.name: number for number, argument in enumerate(program.arguments)}
    for row in program.code:
        match row:
            case ["constant", int(slot), int(value)] if not isinstance(value, bool):
                known[slot] = value
            case ["size", int(slot), str(name), int(dim)]:
                known[slot] = (name, dim)
            case ["eq", int(slot), int(a), int(b)]:
                equations[slot] = (a, b)
            case ["check", int(condition), *_] if condition in equations:
                sides = [known[s] for s in equations[condition] if s in known]
                sizes = [s for s in sides if not isinstance(s, int)]
                if len(sides) == 2 and len(sizes) == 2:
                    first, later = sorted(sizes, key=lambda s: (order[s[0]], s[1]))
                    yield later, first
                elif len(sides) == 2 and sizes:
                    yield sizes[0], next(s for s in sides if isinstance(s, int))
            case _:
                pass
