"""A `.dlcb` file as a model that runs."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from dlcb.runtime.artifact import Artifact, load_artifact
from dlcb.runtime.branches import BranchingModel
from dlcb.runtime.compiled import CompileCpu, CompiledModel, Interface, Report, kernels_for, module_of
from dlcb.runtime.session import Limits


def load(
    path: str | Path,
    compile_cpu: CompileCpu,
    *,
    device: str | torch.device | None = None,
    graphs: bool = True,
    limits: Limits | None = None,
) -> CompiledModel:
    """Read a `.dlcb` file. For the CPU target its IR is compiled by `compile_cpu`."""
    artifact = load_artifact(Path(path))
    where = torch.device(device or artifact.target)
    moved: dict[int, Tensor] = {}

    def model_of(artifact: Artifact) -> CompiledModel:
        interface = Interface.from_json(artifact.extra.get("interface"), str(path))
        kernels = kernels_for(artifact, where, compile_cpu)
        artifact.weights = {n: moved.setdefault(id(w), w.to(where)) for n, w in artifact.weights.items()}
        module = module_of(artifact, kernels, where, graphs=graphs, limits=limits)
        return CompiledModel(artifact, module, interface, Report.from_json(artifact.extra.get("report")))

    first, *others = map(model_of, (artifact, *artifact.branches))
    return BranchingModel(first, others) if others else first
