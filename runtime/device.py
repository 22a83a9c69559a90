"""From an artifact's parts to kernels on a device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from dlcb.errors import UserError
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.cuda import CudaKernels, arch_of, choose_cubin
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.module import CompiledModule

CompileCpu = Callable[[str], Path]
"""Compiles the kernels' text into a shared library."""


def load_kernels(artifact: Artifact, device: torch.device, compile_cpu: CompileCpu | None) -> Kernels:
    """The artifact's kernels on the device. `compile_cpu` is needed for the CPU only."""
    if device.type == "cuda":
        return CudaKernels(choose_cubin(artifact.cubins, arch_of(device)), device)
    if device.type != "cpu":
        raise UserError(f"{artifact.name}: device {device} is not supported; use cuda or cpu")
    if compile_cpu is None:
        raise UserError(
            f"{artifact.name}: the CPU target compiles its kernels when it is loaded, but no compiler was given"
        )
    return CpuKernels(compile_cpu(artifact.kernels))


def load_module(
    artifact: Artifact, device: torch.device, compile_cpu: CompileCpu | None = None, graphs: bool = True
) -> CompiledModule:
    """The artifact as a callable module, its weights on the device."""
    if artifact.mode not in ("live", "frozen"):
        raise UserError(f"{artifact.name}: weights mode must be live or frozen, got {artifact.mode!r}")
    if "main" not in artifact.programs:
        raise UserError(f"{artifact.name}: no program 'main'; there are: {', '.join(artifact.programs) or 'none'}")
    return CompiledModule(
        artifact.programs["main"],
        load_kernels(artifact, device, compile_cpu),
        device,
        {name: tensor.to(device) for name, tensor in artifact.weights.items()},
        weights_program=artifact.programs.get("weights"),
        mode="frozen" if artifact.mode == "frozen" else "live",
        graphs=graphs,
    )
