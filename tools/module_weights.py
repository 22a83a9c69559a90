"""The weights that a module takes: from the file that it names, from another one, or random."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import TensorType
from dlcb.dialects.host.ops import ProgramOp
from dlcb.dialects.stored import stored_weights
from dlcb.dialects.types import TYPE_NAME
from dlcb.errors import UserError
from dlcb.evaluator.sizes import lookup
from dlcb.evaluator.validate import parameters
from dlcb.frontend.weight_store import load_weights, read_tensors
from dlcb.lowering.host_to_json import program_to_json
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.rows import Program, check_program

Taken: TypeAlias = Mapping[str, tuple[torch.dtype, list[int]]]
"""Dtype and sizes of weights by name."""


def weights_for(module: ModuleOp, home: Path, given: Path | None, seed: int | None) -> dict[str, Tensor]:
    """The weights that the module takes. From the file `given` (by key, else by name); else random ones where there is
    a seed; else from the file that the module names, looked for from the module's own folder `home`, beside the module,
    and from here."""
    taken = _weights_taken(module)
    stored = stored_weights(module)
    if not taken:
        return {}
    if given is not None and (stored is None or not stored.keys.keys() >= taken.keys()):
        return _checked(_by_name(given, taken), taken, given)
    if seed is not None and given is None:
        return _random(taken, seed)
    if stored is None:
        raise UserError(
            f"the module takes {len(taken)} weights ({', '.join(list(taken)[:3])}, …) and does not say where they are:"
            " give --weights FILE.safetensors or --random-weights"
        )
    file = given if given is not None else _found(stored.file, home)
    keys = {name: stored.keys[name] for name in taken if name in stored.keys}
    return _checked(load_weights(file, keys), taken, file)


def _found(file: str, home: Path) -> Path:
    places = [home / file, home / Path(file).name, Path(file)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UserError(
            f"the weights file {file} is neither there nor beside the module (in {home}); give --weights FILE or"
            " --random-weights"
        )
    return found


def _by_name(file: Path, taken: Taken) -> dict[str, Tensor]:
    tensors = read_tensors(file)
    return {name: tensors[name] for name in taken if name in tensors}


def _checked(weights: dict[str, Tensor], taken: Taken, file: Path) -> dict[str, Tensor]:
    for name, (dtype, sizes) in taken.items():
        found = weights.get(name)
        if found is None:
            raise UserError(f"{file}: no tensor for the weight '{name}'")
        if found.dtype != dtype or list(found.shape) != sizes:
            raise UserError(
                f"{file}: weight '{name}' is {found.dtype} {list(found.shape)}, the module expects {dtype} {sizes}"
            )
    return weights


def _random(taken: Taken, seed: int) -> dict[str, Tensor]:
    """Above 0, since a variance is one."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (
            torch.rand(sizes, generator=generator).mul(0.9).add(0.1)
            if dtype.is_floating_point
            else torch.randint(0, 2, sizes, generator=generator)
        ).to(dtype)
        for name, (dtype, sizes) in taken.items()
    }


def _weights_taken(module: ModuleOp) -> dict[str, tuple[torch.dtype, list[int]]]:
    """Dtype and sizes of each weight that somebody has to give."""
    programs = [op for op in module.body.block.ops if isinstance(op, ProgramOp)]
    if programs:
        checked = [check_program(program_to_json(op)) for op in programs]
        derived = {name for program in checked for name in program.results}
        return {n: t for program in checked for n, t in _program_weights(program).items() if n not in derived}
    found: dict[str, tuple[torch.dtype, list[int]]] = {}
    for p in parameters(module, lookup(module, "main", FuncOp)):
        if p.kind == "weight" and isinstance(p.type, TensorType):
            found[p.name] = (DTYPES[TYPE_NAME[p.type.element]], [d for d in p.type.dims if isinstance(d, int)])
    return found


def _program_weights(program: Program) -> dict[str, tuple[torch.dtype, list[int]]]:
    return {a.name: (DTYPES[a.dtype], list(a.shape)) for a in program.arguments if a.kind == "weight"}
