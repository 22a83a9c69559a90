"""What a stage is, and how a module says where it stands."""

import importlib
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from dlcb.errors import UserError

STAGE_ATTRIBUTE: Final = "dlcb.stage"


@dataclass(frozen=True)
class Stage:
    """One step of the pipeline; its pass is named `dlcb-<name>` and marks the module when it is done."""

    name: str
    text: str
    pass_path: str
    """`module:Class` of the stage's pass, imported when it is needed."""
    families: frozenset[str]
    """What may be left after the stage; see `legality.family_of`."""

    @property
    def pass_name(self) -> str:
        return f"dlcb-{self.name}"

    def load(self) -> type[ModulePass]:
        module, _, name = self.pass_path.partition(":")
        return cast(type[ModulePass], getattr(importlib.import_module(module), name))


def stage_of(module: ModuleOp) -> str | None:
    """The last stage that ran on the module; None where none has."""
    attribute = module.attributes.get(STAGE_ATTRIBUTE)
    if attribute is None or isinstance(attribute, StringAttr):
        return attribute and attribute.data
    raise UserError(f"the module's attribute {STAGE_ATTRIBUTE} must be a string, got {attribute}")


def mark_stage(module: ModuleOp, name: str) -> None:
    """Says that the stage is the last that ran; each stage's pass ends with it."""
    module.attributes[STAGE_ATTRIBUTE] = StringAttr(name)
