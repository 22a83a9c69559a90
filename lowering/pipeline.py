"""The table of contents of the compiler: its stages, in order, and how they are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from dlcb.errors import UserError
from dlcb.passes.checks import check_module
from dlcb.passes.stages import Stage, stage_of

_GRAPH: Final = frozenset({"function", "tensor", "view", "library", "memory", "shape"})
_FUSED: Final = frozenset({"function", "kernel", "fused", "view", "library", "memory", "shape"})
_CALLS: Final = frozenset({"function", "launch", "view", "library", "memory", "shape"})

STAGES: Final[tuple[Stage, ...]] = (
    Stage(
        "generalize", "free every size that the program does not fix", "dlcb.passes.generalize:GeneralizePass", _GRAPH
    ),
    Stage("collect", "state what every op demands of its sizes", "dlcb.passes.collect:CollectPass", _GRAPH),
    Stage("solve", "solve these demands; what stays open is checked at launch", "dlcb.passes.solve:SolvePass", _GRAPH),
    Stage("simplify", "rewrite by rules: decompose, fold, drop", "dlcb.passes.simplify:SimplifyPass", _GRAPH),
    Stage("strides", "give every value its layout", "dlcb.passes.strides:StridesPass", _GRAPH),
    Stage("fuse", "group tensor ops into kernels", "dlcb.passes.fuse:FusePass", _FUSED),
    Stage(
        "coordinates",
        "say which input coordinates each output coordinate needs",
        "dlcb.lowering.graph_to_coord:CoordinatesPass",
        _CALLS | {"coord"},
    ),
    Stage("schedule", "decide how each kernel runs", "dlcb.passes.schedule:SchedulePass", _CALLS | {"coord"}),
    Stage("cuda", "write each kernel as CUDA", "dlcb.lowering.coord_to_cuda:CudaPass", _CALLS | {"cuda"}),
    Stage(
        "host",
        "write the program that checks, plans and launches",
        "dlcb.lowering.graph_to_host:HostPass",
        frozenset({"cuda", "host"}),
    ),
)

_POSITION: Final = {stage.name: index for index, stage in enumerate(STAGES)}

Observer = Callable[[Stage, ModuleOp], None]


def position(name: str) -> int:
    """The stage's place in `STAGES`; a `UserError` that lists the stages where there is none of that name."""
    if name not in _POSITION:
        raise UserError(f"unknown stage '{name}'; the stages are {', '.join(_POSITION)}")
    return _POSITION[name]


def remaining(module: ModuleOp, until: str | None = None) -> Sequence[Stage]:
    """The stages from where the module stands up to `until`, both ends as the module and the caller name them."""
    done = stage_of(module)
    first = 0 if done is None else position(done) + 1
    last = len(STAGES) if until is None else position(until) + 1
    return STAGES[first:last]


def run(
    module: ModuleOp,
    ctx: Context,
    *,
    until: str | None = None,
    check: bool = False,
    observer: Observer | None = None,
) -> dict[str, float]:
    """Runs what remains of the pipeline, in place, and returns the seconds of each stage.

    With `check`, the module is verified after each stage, and the first op that must not be there is an error.
    The observer sees the module after each stage.
    """
    seconds: dict[str, float] = {}
    for stage in remaining(module, until):
        began = time.perf_counter()
        stage.load()().apply(ctx, module)
        seconds[stage.name] = time.perf_counter() - began
        if check:
            check_after(stage, module)
        if observer is not None:
            observer(stage, module)
    return seconds


def check_after(stage: Stage, module: ModuleOp) -> None:
    """Raises `OpVerifyException` at the first op that is wrong, or that must not be there after the stage."""
    from dlcb.passes.legality import check_stage  # the dialects come with it, and a tool must start without them

    check_module(module)
    check_stage(module, stage)
