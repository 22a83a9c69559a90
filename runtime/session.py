"""The calls of one module on one stream: plans by call key, each run plainly first, then recorded, then replayed."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from dlcb.runtime.arguments import CallerArguments, Key
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.call import BoundCall, Target, Value, Values
from dlcb.runtime.graphs import GraphDriver, RecordedCall, is_worth_a_graph
from dlcb.runtime.plan import build_plan
from dlcb.runtime.program import PlanFunction
from dlcb.runtime.rows import Program
from dlcb.runtime.weights import Weights

MAX_REFUSALS = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """How many plans and graphs a session keeps; the least recently used leave first."""

    plans: int = 256
    graphs: int = 64


class _Entry:
    """A plan and its history: how often it ran plainly since it was last recorded, and how often a graph of it did not
    fit."""

    def __init__(self, call: BoundCall, may_record: bool) -> None:
        self.call = call
        self.may_record = may_record
        self.runs = 0
        self.refusals = 0


class Session:
    """Not synchronized: callers hold `lock`."""

    def __init__(
        self,
        program: Program,
        plan_function: PlanFunction,
        arguments: CallerArguments,
        weights: Weights,
        target: Target,
        stream: int,
        graphs: bool,
        limits: Limits,
        make_driver: Callable[[torch.device], GraphDriver] | None = None,
    ) -> None:
        self.lock = threading.Lock()
        self._program = program
        self._plan_function = plan_function
        self._arguments = arguments
        self._weights = weights
        self._target = target
        self._stream = stream
        self._graphs_on = graphs
        self._make_driver = make_driver or _cuda_driver
        self._driver: GraphDriver | None = None
        self._plans: LeastRecentlyUsed[Key, _Entry] = LeastRecentlyUsed(limits.plans)
        self._graphs: LeastRecentlyUsed[Key, RecordedCall] = LeastRecentlyUsed(limits.graphs)
        self._weight_numbers = [n for n, a in enumerate(program.arguments) if a.kind == "weight"]
        self._caller_numbers = arguments.numbers

    def run(self, key: Key, arguments: Sequence[Value]) -> list[Value]:
        self._arguments.check_updates(arguments)
        self._weights.locate()
        key = (key, self._weights.alignments)
        entry = self._plans.get(key)
        if entry is None:
            entry = self._plan(arguments)
            self._plans.put(key, entry)
        values = self._values(arguments, self._weights.current(self._stream))
        results = self._replayed(key, entry, values)
        if results is None:
            entry.runs += 1
            results = entry.call.run(values, self._stream)
        self._arguments.mark_updated(arguments)
        return results

    def _values(self, arguments: Sequence[Value], weights: Sequence[torch.Tensor]) -> Values:
        ordered: list[Value] = [0] * len(self._program.arguments)
        for number, value in zip(self._caller_numbers, arguments, strict=True):
            ordered[number] = value
        for number, value in zip(self._weight_numbers, weights, strict=True):
            ordered[number] = value
        return Values(ordered, self._weights.version)

    def _plan(self, arguments: Sequence[Value]) -> _Entry:
        self._arguments.check(arguments)
        facts = self._arguments.facts(arguments, self._weights.alignments, self._weight_numbers)
        events = self._plan_function(facts)
        plan = build_plan(self._program, events, facts, self._target.allocator.separate_buffers)
        return _Entry(BoundCall(plan, self._target), self._graphs_on and is_worth_a_graph(plan))

    def _replayed(self, key: Key, entry: _Entry, values: Values) -> list[Value] | None:
        """The results by way of a graph, or None where the call has to be launched plainly."""
        if not entry.may_record or entry.runs == 0:
            return None
        if self._driver is None:
            self._driver = self._make_driver(self._target.device)
        if self._driver.caller_records():
            return None
        recorded = self._graphs.get(key)
        if recorded is None:
            recorded = self._record(entry, self._driver, values)
            if recorded is None:
                return None
            self._graphs.put(key, recorded)
        results = recorded.replay(values)
        if results is None:
            self._graphs.drop(key)
            entry.refusals += 1
            entry.may_record = entry.refusals < MAX_REFUSALS
        return results

    def _record(self, entry: _Entry, driver: GraphDriver, values: Values) -> RecordedCall | None:
        try:
            return RecordedCall(entry.call.plan, self._target, driver, values)
        except RuntimeError as error:
            entry.may_record = False
            warnings.warn(
                f"{self._program.name}: recording a CUDA graph failed, calls are launched plainly: {error}",
                stacklevel=2,
            )
            return None


def _cuda_driver(device: torch.device) -> GraphDriver:
    from dlcb.runtime.cuda_graphs import CudaGraphDriver

    return CudaGraphDriver(device)
