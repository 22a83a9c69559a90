"""What DLCB gives to xDSL's tools, through the entry point `xdsl.universe`; imported when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from typing import Final, cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.target import Target

from dlcb.lowering.pipeline import STAGES

_OTHER_PASSES: Final = {
    "dlcb-apply-rules": "dlcb.passes.apply_rules:ApplyRulesPass",
    "dlcb-instantiate": "dlcb.passes.instantiate:InstantiatePass",
    "dlcb-shape-solve": "dlcb.passes.shape_solve:ShapeSolve",
    "dlcb-assume-broadcasts": "dlcb.passes.assume_broadcasts:AssumeBroadcastsPass",
    "dlcb-specialize": "dlcb.passes.specialize:SpecializePass",
}
"""Passes that are no stage: name → `module:Class`."""


def _load(path: str) -> object:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _dialect() -> Dialect:
    return cast(Dialect, _load("dlcb.dialects.umbrella:DLCB"))


def _target() -> type[Target]:
    return cast(type[Target], _load("dlcb.tools.cuda_target:CudaC"))


def _pass(path: str) -> type[ModulePass]:
    return cast(type[ModulePass], _load(path))


def _passes() -> dict[str, Callable[[], type[ModulePass]]]:
    stages: dict[str, Callable[[], type[ModulePass]]] = {stage.pass_name: stage.load for stage in STAGES}
    return stages | {name: partial(_pass, path) for name, path in _OTHER_PASSES.items()}


DLCB_UNIVERSE: Final = Universe(all_dialects={"dlcb": _dialect}, all_passes=_passes(), all_targets={"cuda-c": _target})


@cache
def full_universe() -> Universe:
    """All dialects, passes and targets of xDSL and its plugins, and DLCB's also where the package is not installed."""
    found = Universe.get_multiverse()
    if "dlcb" in found.all_dialects:
        return found
    return Universe(
        all_dialects=found.all_dialects | DLCB_UNIVERSE.all_dialects,
        all_passes=found.all_passes | DLCB_UNIVERSE.all_passes,
        all_targets=found.all_targets | DLCB_UNIVERSE.all_targets,
    )
