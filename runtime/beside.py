"""Weights that each call derives, recorded on lanes beside the call's graph: the call waits for each where it needs it.

They are many small kernels, of which few need another: in a chain they alone would keep a device waiting, side by side
they cost little. Lanes are streams. What they write stays or is held until the graph is recorded, so nothing of the
call lies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcb.runtime.graphs import GraphDriver
from dlcb.runtime.plan import CallPlan, Launch, Place, Step
from dlcb.runtime.rows import Program
from dlcb.runtime.weights import Derivation

LANES = 8
STRIDE = 16
"""So many steps of a lane have one mark for the call to wait for."""


def may_branch(derivation: Derivation) -> bool:
    """Only kernels may run beside, that write results where they stay: the library uses the call's own stream."""
    plan = derivation.plan
    outputs = derivation.outputs(plan)
    return all(isinstance(step, Launch) for step in plan.steps) and all(
        isinstance(result, Place) and result.root in outputs for result in plan.results
    )


class Lanes:
    """Where each step of a plan runs, and which steps of other lanes it waits for: those that touched memory before
    that it touches, weights but for reading aside. `marked` are the steps that may be waited for."""

    def __init__(self, plan: CallPlan, count: int) -> None:
        self.of: list[int] = []
        """The lane of each step."""
        self.waits: list[list[int]] = []
        last_of_lane: list[int] = []
        touched: dict[int, int] = {}
        for number, step in enumerate(plan.steps):
            roots = [root for root in _roots_of(step) if plan.roots[root].kind != "weight"]
            before = sorted({touched[root] for root in roots if root in touched}, reverse=True)
            touched |= dict.fromkeys(roots, number)
            if before:
                lane = self.of[before[0]]
            elif len(last_of_lane) < count:
                lane = len(last_of_lane)
                last_of_lane.append(number)
            else:
                lane = min(range(count), key=last_of_lane.__getitem__)
            last_of_lane[lane] = number
            self.of.append(lane)
            self.waits.append([other for other in before if self.of[other] != lane])
        self.last = last_of_lane
        self.marked = {*last_of_lane, *(other for waits in self.waits for other in waits)}
        seen = [0] * len(last_of_lane)
        for number, lane in enumerate(self.of):
            seen[lane] += 1
            if seen[lane] % STRIDE == 0:
                self.marked.add(number)


class Branch:
    """The lanes beside a stream that is recorded."""

    def __init__(self, driver: GraphDriver, derivation: Derivation, main: CallPlan, program: Program, stream: int):
        self._driver = driver
        self._main = stream
        self._lanes = Lanes(derivation.plan, LANES)
        streams = driver.branches(stream, len(self._lanes.last))
        self.streams: Sequence[int] = [streams[lane] for lane in self._lanes.of]
        """Of each step."""
        self._needed = _needed(derivation, main, program)
        """For steps of the call: the steps beside that must have come before."""
        self._marks: list[list[tuple[int, Any]]] = [[] for _ in self._lanes.last]
        """Of each lane: step and mark, in order."""
        self._reached = [-1] * len(self._lanes.last)
        """Up to which step of each lane the call has waited."""

    def before_derived(self, step: int) -> None:
        """A step beside is about to be recorded."""
        for other in self._lanes.waits[step]:
            _, mark = self._first_mark(other)
            self._driver.wait(self.streams[step], mark)

    def derived(self, step: int) -> None:
        """A step beside is recorded."""
        if step in self._lanes.marked:
            self._marks[self._lanes.of[step]].append((step, self._driver.mark(self.streams[step])))

    def before(self, step: int) -> None:
        """A step of the call is about to be recorded."""
        for needed in self._needed.get(step, ()):
            self._wait(needed)

    def join(self) -> None:
        """The call is recorded."""
        for last in self._lanes.last:
            self._wait(last)

    def _wait(self, step: int) -> None:
        lane = self._lanes.of[step]
        if step > self._reached[lane]:
            self._reached[lane], mark = self._first_mark(step)
            self._driver.wait(self._main, mark)

    def _first_mark(self, step: int) -> tuple[int, Any]:
        """The first one at the step or after it on its lane."""
        return next(found for found in self._marks[self._lanes.of[step]] if found[0] >= step)


def _needed(derivation: Derivation, main: CallPlan, program: Program) -> dict[int, list[int]]:
    plan = derivation.plan
    last = {root: number for number, step in enumerate(plan.steps) for root in _roots_of(step)}
    made = {
        name: last[result.root]
        for name, result in zip(derivation.program.results, plan.results, strict=True)
        if isinstance(result, Place) and result.root in last
    }
    made_at = {
        number: made[program.arguments[root.number].name]
        for number, root in enumerate(main.roots)
        if root.kind == "weight" and program.arguments[root.number].name in made
    }
    reads = {number: _roots_of(step) for number, step in enumerate(main.steps)}
    return {n: sorted({made_at[root] for root in roots if root in made_at}) for n, roots in reads.items()}


def _roots_of(step: Step) -> list[int]:
    if isinstance(step, Launch):
        return [root for root, _ in step.tensors]
    return [place.root for place in (*step.tensors, *([] if step.out is None else [step.out]))]
