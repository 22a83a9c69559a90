"""Writes the module after each stage to a folder: `00-input.mlir`, `01-generalize.mlir`, …, and the CUDA text."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects._xdsl import to_text
from dlcb.dialects.stored import moved
from dlcb.lowering.cuda_to_text import cuda_unit, module_to_text
from dlcb.passes.stages import Stage


class DumpFolder:
    """An observer of the pipeline; the files sort in the order of the stages, and each is valid input of `dlcb-opt`.

    `home` is the folder that the module's own paths start from."""

    def __init__(self, folder: str | Path, home: Path | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._home = home or Path.cwd()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._count = 0

    def __call__(self, stage: Stage, module: ModuleOp) -> None:
        self.write(stage.name, module)

    def write(self, name: str, module: ModuleOp) -> None:
        stem = f"{self._count:02}-{name}"
        self._count += 1
        with moved(module, self._home, self.folder):
            (self.folder / f"{stem}.mlir").write_text(to_text(module), encoding="utf-8")
        if name == "cuda":
            (self.folder / f"{stem}.cu").write_text(cuda_unit(module_to_text(module)), encoding="utf-8")
