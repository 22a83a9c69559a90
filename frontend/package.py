"""An exported program as a `.dlcb` file, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from torch.export import ExportedProgram

from dlcb.frontend.api import Settings, compile
from dlcb.lowering.ir_to_cpu import compile_ir
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.loading import load


def package(program: ExportedProgram, path: str | Path, **options: Unpack[Settings]) -> CompiledModel:
    """Compile the program, save it, and give what was loaded from the file, which is what any process that loads it
    gets. Into a folder it goes under the program's name. `options` are those of `dlcb.compile`."""
    compiled = compile(program, **options)
    target = Path(path)
    file = target / f"{compiled.name}.dlcb" if target.is_dir() else target
    compiled.save(file)
    return load(file, compile_ir)
