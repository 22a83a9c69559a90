"""A graph module → what the runtime is given: host programs and kernel text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp

from dlcb.dialects.host.ops import ProgramOp
from dlcb.dialects.umbrella import DLCB
from dlcb.lowering.cuda_to_text import module_to_text
from dlcb.lowering.host_to_json import program_to_json
from dlcb.lowering.pipeline import Observer, run
from dlcb.passes.collection import without_collection


@dataclass
class Lowered:
    """`programs` by function name (`main`, `weights`), serialized; `kernels`, the text of all kernels without the
    prelude; `seconds` by stage."""

    programs: dict[str, Any]
    kernels: str
    seconds: dict[str, float] = field(default_factory=dict[str, float])


def context() -> Context:
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(DLCB)
    return ctx


@without_collection()
def lower(
    module: ModuleOp,
    *,
    check: bool = False,
    observer: Observer | None = None,
    on_kernels: Callable[[str], None] = lambda _: None,
) -> Lowered:
    """Run what remains of the pipeline, in place. With `check`, each stage's result is verified. `on_kernels` gets the
    text of the kernels when the host program is yet to be written: another thread may compile it meanwhile."""
    ctx = context()
    seconds = run(module, ctx, until="cuda", check=check, observer=observer)
    kernels = module_to_text(module)
    on_kernels(kernels)
    seconds |= run(module, ctx, check=check, observer=observer)
    programs = {op.sym_name.data: program_to_json(op) for op in module.body.block.ops if isinstance(op, ProgramOp)}
    return Lowered(programs, kernels, seconds)
