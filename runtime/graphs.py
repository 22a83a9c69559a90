"""CUDA graphs of calls: recorded once for a plan, replayed with the caller's new addresses written into our own nodes.

A graph keeps the addresses it saw. The roots of a plan fall into classes by who touches them:

    patched   only kernels take their address: arguments, weights, and outputs of kernels. Kernel nodes are updated when
              it changes.
    staged    arguments that a library call reads: the graph's first nodes copy them into memory of the graph, which the
              library reads; kernels still take the caller's address, and so do the copies.
    fixed     weights that a library call reads, and arguments that the program updates and a library call touches (a
              cache that attention reads is not copied): the graph is right only while they stay where they are.
    own       the arena, and outputs that a library call touches: memory of the graph. Such outputs, and results that
              library calls allocate, are copied into fresh tensors by the graph's last nodes.

Weights that are derived in every call are derived by the same graph, before the call, or beside it
(`runtime/beside.py`): its part `derive` writes into memory that stays. All memory of a graph's own is free for the next
graph of the pool once it is recorded, since each replay writes what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dlcb.runtime.arguments import Addresses
from dlcb.runtime.call import result_roots
from dlcb.runtime.plan import CallPlan, Launch, LibraryCall
from dlcb.runtime.rows import Program
from dlcb.runtime.weights import Derivation, Weights

Fixed = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """The classes of a plan's roots, by number. `staged` is part of `patched`; `copied` are results to copy out."""

    patched: tuple[int, ...]
    staged: tuple[int, ...]
    fixed: tuple[int, ...]
    own: tuple[int, ...]
    copied: tuple[int, ...]


def graph_layout(plan: CallPlan, outputs: Collection[int] | None = None) -> GraphLayout:
    """The classes; `outputs` are those of a derivation, which are given and stay, and its results are not copied out
    but read where they are."""
    derives = outputs is not None
    read = {p.root for s in plan.steps if isinstance(s, LibraryCall) for p in s.tensors}
    written = {s.out.root for s in plan.steps if isinstance(s, LibraryCall) and s.out is not None}
    touched = read | written | (result_roots(plan) if derives else set[int]())
    patched: list[int] = []
    staged: list[int] = []
    fixed: list[int] = []
    own: list[int] = []
    for number, root in enumerate(plan.roots):
        if root.kind == "result" or (derives and number in outputs):
            continue
        if number not in touched and root.kind in ("weight", "argument", "output"):
            patched.append(number)
        elif root.kind == "weight" or (root.kind == "argument" and (number in written or root.updated)):
            fixed.append(number)
        elif root.kind == "argument":
            patched.append(number)
            staged.append(number)
        else:
            own.append(number)
    results = {n for n, root in enumerate(plan.roots) if root.kind == "result"}
    copied = () if derives else sorted(result_roots(plan) & (set(own) | results))
    return GraphLayout(tuple(patched), tuple(staged), tuple(fixed), tuple(own), tuple(copied))


class GraphDriver(Protocol):
    """What recording needs of CUDA."""

    def caller_records(self) -> bool:
        """Whether the caller is recording a graph of its own: then calls are launched plainly, into that graph."""
        ...

    def record(self, body: Callable[[int], None]) -> Any:
        """Run the body with a capturing stream; the recorded graph."""
        ...

    def last_node(self, stream: int) -> Any: ...

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        """Copy `count` > 0 bytes."""
        ...

    def branches(self, stream: int, count: int) -> list[int]:
        """So many streams that are recorded too, after what this one has so far."""
        ...

    def mark(self, stream: int) -> Any:
        """What the stream has so far."""
        ...

    def wait(self, stream: int, mark: Any) -> None:
        """What comes on the stream waits for what is marked."""
        ...

    def kernel_update(self, graph: Any, node: Any, function: Any, step: Launch, pointers: int) -> Callable[[], None]:
        """Gives the node the arguments that are at `pointers` when it is called."""
        ...

    def copy_update(self, graph: Any, node: Any, count: int) -> Callable[[int, int], None]:
        """Gives the node a target and a source."""
        ...

    def replay(self, graph: Any) -> None: ...


class Recipe:
    """What is known of a plan's graphs before one is recorded: which addresses one depends on. For as long as the
    alignments of the weights are what they are."""

    def __init__(self, plan: CallPlan, program: Program, weights: Weights, caller_numbers: Sequence[int]) -> None:
        self.plan = plan
        self.program = program
        self.layout = graph_layout(plan)
        self.caller_index = {number: index for index, number in enumerate(caller_numbers)}
        """For each argument of the program that the caller passes, its index among those."""
        self.derivation: Derivation | None = None if weights.is_frozen else weights.derivation
        names = _fixed_weights(plan, self.layout, program)
        if self.derivation is not None:
            derived = self.derivation.plan
            self.derive_layout = graph_layout(derived, self.derivation.outputs(derived))
            names += _fixed_weights(derived, self.derive_layout, self.derivation.program)
        self._fixed_weights = [name for name in dict.fromkeys(names) if name in weights.addresses]
        self._fixed_arguments = [
            self.caller_index[plan.roots[r].number] for r in self.layout.fixed if plan.roots[r].kind == "argument"
        ]

    @property
    def is_capturable(self) -> bool:
        return self.plan.is_capturable and (self.derivation is None or self.derivation.plan.is_capturable)

    @property
    def steps(self) -> int:
        return len(self.plan.steps) + (0 if self.derivation is None else len(self.derivation.plan.steps))

    def fixed(self, addresses: Addresses, weights: Weights) -> Fixed:
        """The addresses that a graph of a call depends on."""
        known = weights.addresses
        return (*[addresses[i] for i in self._fixed_arguments], *[known[name] for name in self._fixed_weights])


def _fixed_weights(plan: CallPlan, layout: GraphLayout, program: Program) -> list[str]:
    roots = [plan.roots[r] for r in layout.fixed]
    return [program.arguments[root.number].name for root in roots if root.kind == "weight"]
