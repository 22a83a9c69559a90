"""What a stage is, which families of ops may be left after it, and how a module says where it stands."""

import importlib
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from dlcb.dialects.graph.base import GraphOp
from dlcb.errors import UserError

STAGE_ATTRIBUTE: Final = "dlcb.stage"


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline; its pass is named `dlcb-<name>`."""

    name: str
    text: str
    pass_path: str
    """`module:Class` of the stage's pass, imported when it is needed."""
    families: frozenset[str]
    """What may be left after the stage; see `family_of`."""

    @property
    def pass_name(self) -> str:
        return f"dlcb-{self.name}"

    def load(self) -> type[ModulePass]:
        module, _, name = self.pass_path.partition(":")
        return cast(type[ModulePass], getattr(importlib.import_module(module), name))


def family_of(op: Operation) -> str | None:
    """What the op is to a stage; None for an op of another compiler.

    Outside the graph level it is the dialect: `shape`, `coord`, `cuda`, `host`. In it: `kernel`, `launch`,
    `fused` (a tensor op inside a kernel), `library`, `view` (its class says how it may be one), `tensor` (any other
    tensor op), and `function` (what holds them).
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
    return "tensor" if type(op).view is GraphOp.view else "view"


def stage_of(module: ModuleOp) -> str | None:
    """The last stage that ran on the module; None where none has."""
    attribute = module.attributes.get(STAGE_ATTRIBUTE)
    if attribute is None or isinstance(attribute, StringAttr):
        return attribute and attribute.data
    raise UserError(f"the module's attribute {STAGE_ATTRIBUTE} must be a string, got {attribute}")


def mark_stage(module: ModuleOp, name: str) -> None:
    module.attributes[STAGE_ATTRIBUTE] = StringAttr(name)
