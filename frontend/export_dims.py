"""What torch.export makes of a program's sizes where all of them may vary: what `dlcb.compile` is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from dlcb.frontend import torch_private as private
from dlcb.frontend.capture.inputs import read_arguments
from dlcb.frontend.exported_program import FREE_BELOW, input_values, size_ranges
from dlcb.frontend.static_sizes import size_expr

Dims = Mapping[str, tuple[int | str, ...]]
"""The dims of each tensor: numbers, or expressions of symbols."""


def export_all_free(model: torch.nn.Module, inputs: Mapping[str, Any]) -> ExportedProgram:
    """The program exported with `Dim.AUTO` for every dim of every input."""
    sizes = private.map_leaves(_automatic, dict(inputs))
    with torch.no_grad():
        return torch.export.export(model, (), dict(inputs), dynamic_shapes=sizes, strict=False)


def _automatic(leaf: Any) -> Any:
    return dict.fromkeys(range(leaf.dim()), Dim.AUTO) if isinstance(leaf, torch.Tensor) else None


def exported_dims(program: ExportedProgram, model: torch.nn.Module, inputs: Mapping[str, Any]) -> Dims:
    """What became of each dim of each tensor of the inputs."""
    leaves = read_arguments(model, (), inputs).leaves
    pairs = zip(leaves, input_values(program), strict=True)
    return {leaf.name: tuple(map(_dim, value.shape)) for leaf, value in pairs if leaf.kind == "tensor"}


def _dim(size: Any) -> int | str:
    """A size that was symbolic in the trace may have become a number."""
    known = not isinstance(size, torch.SymInt) or size_expr(size).is_number
    return int(size) if known else str(size_expr(size))


def exported_limits(program: ExportedProgram) -> Iterator[tuple[str, int, int | None]]:
    """The symbols that may not have every size, each with its least and its largest."""
    for symbol, low, high in size_ranges(program):
        if low > FREE_BELOW or high is not None:
            yield symbol, low, high


def taker(program: ExportedProgram) -> Callable[[Mapping[str, Any]], bool]:
    """Whether the exported program, with the guards that torch gives it, runs with some inputs."""
    module = program.module()

    def takes(inputs: Mapping[str, Any]) -> bool:
        try:
            with torch.no_grad():
                module(**inputs)
        except Exception:  # guards refuse by several kinds of error
            return False
        return True

    return takes
