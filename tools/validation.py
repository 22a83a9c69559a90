"""`--validate`: does a pass change what the functions compute? Each program is run on small random inputs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.derived import NAME as WEIGHTS
from dlcb.dialects.graph.structure import FuncOp
from dlcb.errors import DlcbError, InternalError
from dlcb.evaluator.validate import compare
from dlcb.passes.rule import decompositions

_NOT_EVALUATED = ("dlcb.cuda.", "dlcb.host.")


class Validator:
    """Compares the module after each pass with what it was before."""

    def __init__(self, seeds: Sequence[int] = (0, 1, 2)) -> None:
        self._seeds = seeds
        self._before: ModuleOp | None = None
        self._compared: list[str] = []
        self._left_out: list[str] = []

    def begin(self, module: ModuleOp) -> None:
        self._before = evaluable(module)

    def check(self, name: str, module: ModuleOp) -> None:
        """`InternalError` that names the pass, the function, the result and the inputs, where an answer is another."""
        before, self._before = self._before, evaluable(module)
        after = self._before
        if before is None or after is None:
            self._left_out.append(name)
            return
        for function in sorted(functions_of(before) & functions_of(after)):
            self._compare(name, function, before, after)
        self._compared.append(name)

    def _compare(self, name: str, function: str, before: ModuleOp, after: ModuleOp) -> None:
        try:
            difference = compare(before, after, function, self._seeds)
        except DlcbError as error:
            raise type(error)(f"--validate {name}, @{function}: {error}") from error
        if difference is not None:
            raise InternalError(f"{name} changes what @{function} computes: {difference}")

    def summary(self) -> str:
        text = f"same answers after {', '.join(self._compared) or 'no pass'}"
        return f"{text}; not evaluated: {', '.join(self._left_out)}" if self._left_out else text


def evaluable(module: ModuleOp) -> ModuleOp | None:
    """A copy in which composite ops are decomposed; None below the level of coordinates, which is not evaluated."""
    if any(op.name.startswith(_NOT_EVALUATED) for op in module.body.block.ops):
        return None
    copy = module.clone()
    for op in [op for op in copy.walk() if isinstance(op, GraphOp) and op.FAMILY == "composite"]:
        for rule in decompositions():
            if isinstance(op, rule.roots):
                rule.rewrite(op, PatternRewriter(op))  # whatever better the pipeline has for the op
    return copy


def functions_of(module: ModuleOp) -> set[str]:
    """`@weights` runs as a part of the function that takes its results."""
    return {op.symbol for op in module.body.block.ops if isinstance(op, FuncOp)} - {WEIGHTS}
