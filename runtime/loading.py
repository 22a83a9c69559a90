"""A `.dlcb` file as a model that runs."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.artifact import KERNEL_STAGE, MANIFEST, Artifact, load_artifact
from dlcb.runtime.branches import BranchingModel
from dlcb.runtime.compiled import CompileCpu, CompiledModel, kernels_for, module_of
from dlcb.runtime.interface import Interface
from dlcb.runtime.report import Report
from dlcb.runtime.session import Limits


def load(
    path: str | Path,
    compile_cpu: CompileCpu,
    *,
    device: str | torch.device | None = None,
    graphs: bool = True,
    limits: Limits | None = None,
) -> CompiledModel:
    """Read a `.dlcb` file. For the CPU target its IR is compiled by `compile_cpu`. A `UserError` names the file, and
    the entry in it that is damaged."""
    artifact = load_artifact(Path(path))
    place = torch.device(device or artifact.target)
    moved: dict[int, Tensor] = {}

    def model_of(artifact: Artifact, file: str) -> CompiledModel:
        where = f"{file}: not a usable .dlcb file"
        entry = f"{where}: {MANIFEST}: extra"
        interface = Interface.from_json(artifact.extra.get("interface"), f"{entry}: interface")
        report = Report.from_json(artifact.extra.get("report"), f"{entry}: report")
        kernels = kernels_for(artifact, place, lambda ir, _: compile_cpu(ir, f"{where}: ir/{KERNEL_STAGE}.mlir"))
        artifact.weights = {n: moved.setdefault(id(w), w.to(place)) for n, w in artifact.weights.items()}
        try:
            module = module_of(artifact, kernels, place, graphs=graphs, limits=limits)
        except UserError as error:
            raise UserError(f"{where}: {error}") from error
        interface.check_program(module.program, f"{entry}: interface")
        return CompiledModel(artifact, module, interface, report)

    first = model_of(artifact, str(path))
    others = [model_of(way, f"{path}: branch/{number}.dlcb") for number, way in enumerate(artifact.branches)]
    return BranchingModel(first, others) if others else first
