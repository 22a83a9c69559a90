"""Weights that each call derives, recorded on a branch of the call's graph: the call waits for each where it needs it.

They are many small kernels in a chain, which alone would keep a device waiting; beside the call's own kernels they cost
little. What the branch writes stays or is held until the graph is recorded, so nothing of the call lies there.
"""

from __future__ import annotations

from typing import Any

from dlcb.runtime.graphs import GraphDriver
from dlcb.runtime.plan import CallPlan, Launch, Place
from dlcb.runtime.rows import Program
from dlcb.runtime.weights import Derivation

STRIDE = 8
"""So many steps of the branch have one mark."""


def may_branch(derivation: Derivation) -> bool:
    """Only kernels may run beside, that write results where they stay: the library uses the call's own stream."""
    plan = derivation.plan
    outputs = derivation.outputs(plan)
    return all(isinstance(step, Launch) for step in plan.steps) and all(
        isinstance(result, Place) and result.root in outputs for result in plan.results
    )


class Branch:
    """A stream beside another one that is recorded."""

    def __init__(self, driver: GraphDriver, derivation: Derivation, main: CallPlan, program: Program, stream: int):
        self._driver = driver
        self._main = stream
        self._last = len(derivation.plan.steps) - 1
        self._needed = _needed(derivation, main, program)
        """For steps of the call: the step of the branch that must have come before."""
        self._marks: dict[int, Any] = {}
        self._reached = -1
        self.stream = driver.branch(stream)

    def done(self, step: int) -> None:
        """A step of the branch is recorded."""
        if step % STRIDE == STRIDE - 1 or step == self._last:
            self._marks[step] = self._driver.mark(self.stream)

    def before(self, step: int) -> None:
        """A step of the call is about to be recorded."""
        needed = self._needed.get(step, -1)
        if needed > self._reached:
            self._wait(next(mark for mark in self._marks if mark >= needed))

    def join(self) -> None:
        """The call is recorded."""
        if self._reached < self._last:
            self._wait(self._last)

    def _wait(self, mark: int) -> None:
        self._driver.wait(self._main, self._marks[mark])
        self._reached = mark


def _needed(derivation: Derivation, main: CallPlan, program: Program) -> dict[int, int]:
    plan = derivation.plan
    last: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        if isinstance(step, Launch):
            last |= dict.fromkeys((root for root, _ in step.tensors), number)
    made = {
        name: last.get(result.root, -1)
        for name, result in zip(derivation.program.results, plan.results, strict=True)
        if isinstance(result, Place)
    }
    made_at = {
        number: made[program.arguments[root.number].name]
        for number, root in enumerate(main.roots)
        if root.kind == "weight" and program.arguments[root.number].name in made
    }
    reads = {number: _roots_of(step) for number, step in enumerate(main.steps)}
    return {n: max((made_at.get(root, -1) for root in roots), default=-1) for n, roots in reads.items()}


def _roots_of(step: Any) -> list[int]:
    if isinstance(step, Launch):
        return [root for root, _ in step.tensors]
    return [place.root for place in (*step.tensors, *([] if step.out is None else [step.out]))]
