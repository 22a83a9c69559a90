"""Which ops may be left after which stage. Imports the dialects, which `dlcb-opt` does without until it needs them."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from dlcb.dialects._xdsl import op_text
from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.creation import EmptyOp
from dlcb.passes.checks import OpVerifyException
from dlcb.passes.stages import Stage


def family_of(op: Operation) -> str | None:
    """What the op is to a stage; None for an op of another compiler.

    Outside the graph level it is the dialect: `shape`, `coord`, `cuda`, `host`. In it: `kernel`, `launch`,
    `fused` (a tensor op inside a kernel), `library`, `memory` (`empty`), `view` (its class says how it may be one),
    `tensor` (any other tensor op), and `function` (what holds them).
    """
    dialect, _, rest = op.name.partition(".")
    if dialect != "dlcb":
        return None
    level, _, name = rest.partition(".")
    if level != "graph":
        return level
    if name in ("kernel", "launch"):
        return name
    around = op.parent_op()
    if around is not None and around.name == "dlcb.graph.kernel":
        return "fused"
    if not isinstance(op, GraphOp):
        return "function"
    if op.LIBRARY is not None:
        return "library"
    if isinstance(op, EmptyOp):
        return "memory"
    return "tensor" if type(op).view is GraphOp.view else "view"


def check_stage(module: ModuleOp, stage: Stage) -> None:
    """Raises `OpVerifyException` at the first op that must not exist after `stage`."""
    for op in module.walk():
        family = family_of(op)
        if family is not None and family not in stage.families:
            message = f"{op.name} ({family}) must not exist after stage '{stage.name}': `{op_text(op)}`"
            raise OpVerifyException(message, op)
