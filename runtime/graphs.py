"""CUDA graphs of calls: recorded once for a plan, replayed with the caller's new addresses written into our own nodes.

A graph keeps the addresses it saw. The roots of a plan fall into classes by who touches them:

    patched   only kernels take their address: arguments, and outputs of kernels. Kernel nodes are updated when it
              changes.
    staged    arguments that a library call reads: copied before each replay into memory of the graph, which the library
              reads. Kernels still take the caller's address.
    fixed     weights, and arguments that the program updates and a library call touches (a cache that attention reads
              is not copied): the graph is right only while they stay where they are.
    own       the arena, and outputs that a library call touches: memory of the graph. Such outputs, and results that
              library calls allocate, are copied into fresh tensors after each replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from dlcb.runtime.call import BoundCall, Target, Value, Values, library_mode, result_roots
from dlcb.runtime.memory import Tensors
from dlcb.runtime.plan import CallPlan, Launch, LibraryCall, extent

MIN_STEPS = 2


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The classes of a plan's roots, by number. `staged` is part of `patched`; `copied` are results to copy out."""

    patched: tuple[int, ...]
    staged: tuple[int, ...]
    fixed: tuple[int, ...]
    own: tuple[int, ...]
    copied: tuple[int, ...]


def graph_layout(plan: CallPlan) -> GraphLayout:
    read = {p.root for s in plan.steps if isinstance(s, LibraryCall) for p in s.tensors}
    written = {s.out.root for s in plan.steps if isinstance(s, LibraryCall) and s.out is not None}
    patched: list[int] = []
    staged: list[int] = []
    fixed: list[int] = []
    own: list[int] = []
    for number, root in enumerate(plan.roots):
        touched = number in read or number in written
        if root.kind == "weight" or (root.kind == "argument" and (number in written or (root.updated and touched))):
            fixed.append(number)
        elif root.kind == "argument":
            patched.append(number)
            if touched:
                staged.append(number)
        elif root.kind == "output" and not touched:
            patched.append(number)
        elif root.kind != "result":
            own.append(number)
    results = {n for n, root in enumerate(plan.roots) if root.kind == "result"}
    copied = sorted(result_roots(plan) & (set(own) | results))
    return GraphLayout(tuple(patched), tuple(staged), tuple(fixed), tuple(own), tuple(copied))


def is_worth_a_graph(plan: CallPlan) -> bool:
    return plan.is_capturable and len(plan.steps) >= MIN_STEPS


def steps_to_update(call: BoundCall, patched: Sequence[int], tensors: Tensors) -> list[int]:
    """Write the addresses of patched roots into the argument arrays; the launches that thereby changed, in order."""
    changed: set[int] = set()
    for root in patched:
        if call.pack.point(root, tensors.root(root).data_ptr()):
            changed.update(call.pack.steps_of(root))
    return sorted(changed)


class GraphDriver(Protocol):
    """What recording needs of CUDA."""

    def caller_records(self) -> bool:
        """Whether the caller is recording a graph of its own: then calls are launched plainly, into that graph."""
        ...

    def record(self, body: Callable[[int], None]) -> Any:
        """Run the body with a capturing stream; the recorded graph."""
        ...

    def last_node(self, stream: int) -> Any: ...

    def update(self, graph: Any, node: Any, function: Any, step: Launch, pointers: int) -> None: ...

    def replay(self, graph: Any) -> None: ...


class RecordedCall:
    """One plan as a graph. Made from the values of a call, which it does not run: call `replay` with them."""

    def __init__(self, plan: CallPlan, target: Target, driver: GraphDriver, values: Values) -> None:
        self.call = BoundCall(plan, target)
        self.layout = graph_layout(plan)
        self._driver = driver
        self._nodes: dict[int, Any] = {}
        tensors = self.call.tensors(values, skip=self.layout.own)
        self._stages = {r: stage(tensors.root(r)) for r in self.layout.staged}
        self._weights_version = values.weights_version
        self._fixed = self._fixed_addresses(values)
        self._kept: dict[int, Tensor] = {}
        self._graph = driver.record(lambda stream: self._record(tensors, values.weights_version, stream))

    def _record(self, tensors: Tensors, weights_version: int, stream: int) -> None:
        plan, target = self.call.plan, self.call.target
        for root in self.layout.own:
            tensors.roots[root] = target.allocator.root(plan.roots[root], target.device)
        library = Tensors(plan, list(tensors.roots))
        for root, (_, staged) in self._stages.items():
            library.roots[root] = staged

        def launched(step: int) -> None:
            self._nodes[step] = self._driver.last_node(stream)

        self.call.point(tensors, weights_version)
        self.call.execute(tensors, library, stream, launched)
        self._kept = {root: tensors.root(root) for root in self.layout.copied}

    def replay(self, values: Values) -> list[Value] | None:
        """The results of a call with these values; None where a fixed root has moved, so that the graph is wrong."""
        if values.weights_version != self._weights_version or self._fixed_addresses(values) != self._fixed:
            return None
        plan = self.call.plan
        tensors = self.call.tensors(values, skip=self.layout.own)
        for number in steps_to_update(self.call, self.layout.patched, tensors):
            step = plan.steps[number]
            assert isinstance(step, Launch)
            pointers = self.call.pack.pointers[number]
            self._driver.update(self._graph, self._nodes[number], self.call.functions[number], step, pointers)
        with library_mode(self.call.target.device):
            for root, (flat, _) in self._stages.items():
                flat.copy_(flattened(tensors.root(root)))
            self._driver.replay(self._graph)
            for root, kept in self._kept.items():
                tensors.roots[root] = torch.empty_strided(
                    kept.size(), kept.stride(), dtype=kept.dtype, device=kept.device
                ).copy_(kept)
        return self.call.results(tensors)

    def _fixed_addresses(self, values: Values) -> tuple[int, ...]:
        roots = [self.call.plan.roots[r] for r in self.layout.fixed]
        fixed = [values.arguments[root.number] for root in roots if root.kind == "argument"]
        return tuple([t.data_ptr() for t in fixed if isinstance(t, Tensor)])


def flattened(tensor: Tensor) -> Tensor:
    """All elements from the tensor's first to its last, gaps between them included, as one row."""
    count = extent(tensor.size(), tensor.stride())
    return torch.as_strided(tensor, (count,), (1,), tensor.storage_offset())


def stage(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """Memory for a copy of the tensor: as one row, and as a tensor of the same strides."""
    flat = torch.empty(extent(tensor.size(), tensor.stride()), dtype=tensor.dtype, device=tensor.device)
    return flat, torch.as_strided(flat, tensor.size(), tensor.stride())
