"""The calls of one module on one stream: plans by call key, each run plainly first, then recorded, then replayed.

A key determines everything that the checks of a program look at, so they run when a key is new, before anything is
launched, and hold for all later calls with it. What a key does not determine is looked at in every call: whether
updated arguments share memory with others, and where the weights are.

When to record: a plan's second call does. From then on each recording has to earn the next one: it makes the plan wait
four times as long (in plain launches), each replay halves the wait. So keys that come in turn, more of them than graphs
are kept, or caches that are new in every call, do not record over and over.

Routines of the library that take long for sizes that are new have `quick` forms. Calls begin with these; a plan that
came often enough runs once by the others, and is recorded with them.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from dlcb.errors import InternalError
from dlcb.runtime.arguments import Addresses, CallerArguments, Key
from dlcb.runtime.cache import LeastRecentlyUsed
from dlcb.runtime.call import BoundCall, StepObserver, Target, Value, Values
from dlcb.runtime.graphs import Fixed, GraphDriver, Recipe
from dlcb.runtime.program import PlanFunction
from dlcb.runtime.recorded import RecordedCall, record_call
from dlcb.runtime.rows import Program
from dlcb.runtime.weights import Weights

MIN_STEPS = 2
PATIENCE_FACTOR = 4
QUICK_CALLS = 16
"""So many calls of a plan use quick routines."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many keys and graphs are kept for a stream, and how many streams; the least recently used leave first (of
    streams, the oldest)."""

    plans: int = 256
    graphs: int = 64
    streams: int = 64


class _Entry:
    """A plan, its graphs by the addresses that they depend on, and how it fares with them: plain runs since the last
    recording, and how many of them it takes until the next."""

    def __init__(self, call: BoundCall, lengths: tuple[int, ...]) -> None:
        self.call = call
        self.lengths = lengths
        self.checked: Addresses | None = None
        self.recipe: Recipe | None = None
        self.may_record = True
        self.recorded: RecordedCall | None = None
        self.graphs: dict[Fixed, RecordedCall] = {}
        self.runs = 0
        self.patience = 1
        self.quick_calls = QUICK_CALLS
        """So many are left, if the call is quick."""


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
        self._limits = limits
        self._make_driver = make_driver or _cuda_driver
        self._driver: GraphDriver | None = None
        self._weight_numbers = [n for n, a in enumerate(program.arguments) if a.kind == "weight"]
        self._caller_numbers = arguments.numbers
        self._ordered: list[Value] = [0] * len(program.arguments)
        """The program's arguments with the weights of that version in their places."""
        self._ordered_version = 0
        self._forget()

    def run(
        self, key: Key, addresses: Addresses, arguments: Sequence[Value], observer: StepObserver | None = None
    ) -> list[Value]:
        """One call; key and addresses as the arguments' reader gives them. One with an observer uses no graph."""
        entry = self.checked(key, addresses, arguments)
        if entry.call.quick:
            self._count_quick(entry)
        may_replay = entry.may_record and entry.runs and observer is None
        results = self._replayed(entry, addresses, arguments) if may_replay else None
        if results is None:
            entry.runs += 1
            values = self._values(arguments, self._weights.current(self._stream, observer))
            results = entry.call.run(values, observer=observer)
        if self._arguments.has_updates:
            self._arguments.mark_updated(arguments)
        return results

    @property
    def known(self) -> int:
        """How many plans are kept."""
        return len(set(map(id, self._plans.values())))

    @property
    def recorded(self) -> int:
        """How many graphs are kept."""
        return len(self._graphs)

    def checked(self, key: Key, addresses: Addresses, arguments: Sequence[Value]) -> _Entry:
        """What is known of calls with this key. All that is checked in a call is checked here; nothing is launched."""
        weights = self._weights
        weights.locate()
        if weights.alignment_version != self._alignment_version:
            self._forget()
        entry = self._plans.get(key)
        if entry is None:
            entry = self._enter(key, arguments)
        if self._arguments.has_updates and addresses != entry.checked:
            self._arguments.check_updates(arguments, addresses, entry.lengths)
            entry.checked = addresses
        return entry

    def _forget(self) -> None:
        """Start anew: plans depend on the alignments of the weights."""
        self._alignment_version = self._weights.alignment_version
        self._plans: LeastRecentlyUsed[Key, _Entry] = LeastRecentlyUsed(self._limits.plans)
        self._graphs: LeastRecentlyUsed[RecordedCall, _Entry] = LeastRecentlyUsed(self._limits.graphs, _drop_graph)

    def _values(self, arguments: Sequence[Value], weights: Sequence[torch.Tensor]) -> Values:
        version = self._weights.version
        if self._ordered_version != version:
            for number, value in zip(self._weight_numbers, weights, strict=True):
                self._ordered[number] = value
            self._ordered_version = version
        ordered = self._ordered.copy()
        for number, value in zip(self._caller_numbers, arguments, strict=True):
            ordered[number] = value
        return Values(ordered, version)

    def _enter(self, key: Key, arguments: Sequence[Value]) -> _Entry:
        """The entry of a new key. Keys that differ in strides without meaning share one."""
        self._arguments.check(arguments)
        normal = self._arguments.normal_key(arguments)
        entry = self._plans.get(normal)
        if entry is None:
            entry = self._plan(arguments)
            self._plans.put(normal, entry)
        self._plans.put(key, entry)
        return entry

    def _plan(self, arguments: Sequence[Value]) -> _Entry:
        facts = self._arguments.facts(arguments, self._weights.alignments, self._weight_numbers)
        plan = self._plan_function(facts)
        may_record = self._graphs_on and plan.is_capturable
        call = BoundCall(plan, self._target, self._stream, quick=may_record and plan.has_quick_routines)
        entry = _Entry(call, self._arguments.lengths(arguments))
        entry.may_record = may_record
        return entry

    def _replayed(self, entry: _Entry, addresses: Addresses, arguments: Sequence[Value]) -> list[Value] | None:
        """The results by way of a graph, or None where the call has to be launched plainly."""
        driver = self._graph_driver()
        if driver.caller_records():
            return None
        recorded = entry.recorded
        if recorded is None or not recorded.fits(addresses, self._weights):
            recorded = entry.recorded = self._graph_for(entry, driver, addresses, arguments)
            if recorded is None:
                return None
        elif entry.patience > 1:
            entry.patience >>= 1
        self._graphs.get(recorded)
        try:
            fresh = recorded.prepare(addresses, self._weights)
        except (RuntimeError, InternalError) as error:
            self._give_up(entry, error)
            return None
        return recorded.launch(fresh, arguments, self._weights.tensors)

    def _graph_for(
        self, entry: _Entry, driver: GraphDriver, addresses: Addresses, arguments: Sequence[Value]
    ) -> RecordedCall | None:
        """The entry's graph that fits, recorded if it is time; or None."""
        recipe = entry.recipe
        if recipe is None:
            recipe = entry.recipe = Recipe(entry.call.plan, self._program, self._weights, self._caller_numbers)
            entry.may_record = recipe.is_capturable and recipe.steps >= MIN_STEPS
            if not entry.may_record:
                return None
        recorded = entry.graphs.get(recipe.fixed(addresses, self._weights))
        if recorded is not None or entry.runs < entry.patience:
            return recorded
        values = self._values(arguments, self._weights.tensors)
        try:
            recorded = record_call(recipe, self._target, driver, values, addresses, self._weights, entry.call.quick)
        except (RuntimeError, InternalError) as error:
            self._give_up(entry, error)
            return None
        entry.runs = 1
        entry.patience *= PATIENCE_FACTOR
        entry.graphs[recorded.fixed] = recorded
        self._graphs.put(recorded, entry)
        return recorded

    def _give_up(self, entry: _Entry, error: Exception) -> None:
        """Launch plainly from now on."""
        entry.may_record = False
        self._drop_graphs(entry)
        warnings.warn(
            f"{self._program.name}: a CUDA graph failed, calls with these sizes are launched plainly: {error}",
            stacklevel=2,
        )

    def _graph_driver(self) -> GraphDriver:
        if self._driver is None:
            self._driver = self._make_driver(self._target.device)
        return self._driver

    def _count_quick(self, entry: _Entry) -> None:
        """After the last quick call, one is launched plainly by the other routines, and the next one recorded. Not
        while the caller records: what routines do at their first call may not be part of a graph."""
        entry.quick_calls -= 1
        if entry.quick_calls < 0 and not self._graph_driver().caller_records():
            entry.call.quick = False
            entry.patience, entry.runs = 1, 0
            self._drop_graphs(entry)

    def _drop_graphs(self, entry: _Entry) -> None:
        entry.recorded = None
        for recorded in entry.graphs.values():
            self._graphs.drop(recorded)
        entry.graphs.clear()


def _drop_graph(recorded: RecordedCall, entry: _Entry) -> None:
    entry.graphs.pop(recorded.fixed, None)
    if entry.recorded is recorded:
        entry.recorded = None


def _cuda_driver(device: torch.device) -> GraphDriver:
    from dlcb.runtime.cuda_graphs import CudaGraphDriver

    return CudaGraphDriver(device)
