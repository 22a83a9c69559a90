"""Kernels and a graph driver in one, on the CPU: while it records, launches and copies become nodes that can be
updated, and torch ops are noted; a replay does them again at the addresses that the nodes hold. What is on a branch is
done as late as what waits for it allows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dlcb.runtime.kernels import Kernels
from dlcb.runtime.plan import Launch


@dataclass
class KernelNode:
    function: Any
    step: Launch
    values: list[int]


@dataclass
class CopyNode:
    target: int
    source: int
    count: int


@dataclass
class TorchNode:
    """An op that was run; `function` is None for one that only made memory, which lives as long as the graph."""

    function: Any
    arguments: Any
    keywords: Any
    result: Any


@dataclass
class WaitNode:
    """So many nodes of a branch have to be done by now."""

    branch: int
    count: int


Node = KernelNode | CopyNode | TorchNode | WaitNode
Graph = list[list[Node]]
"""The call's own nodes, then those of its branches. Their numbers are those of streams, less one."""


class ReplayMachine:
    """Runs `kernels`. Counts what it did; told to, it fails to record or to update copies."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._is_recording = False
        self._recorded: Graph = []
        self.graphs: list[Graph] = []
        self.caller_is_recording = self.fail_updates = self.fail_record = False
        self.launches = self.records = self.replays = self.updates = self.branched = 0

    # --- kernels

    def function(self, name: str) -> Any:
        return self._kernels.function(name)

    def activate(self) -> None:
        self._kernels.activate()

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        run = self._kernels.launcher(function, step, pointers, stream)

        def launch() -> None:
            if not self._is_recording:
                self.launches += 1
                run()
            else:
                self._nodes(stream).append(KernelNode(function, step, _values(step, pointers)))

        return launch

    # --- graphs

    def caller_records(self) -> bool:
        return self.caller_is_recording

    def record(self, body: Callable[[int], None]) -> Graph:
        self.records += 1
        graph = self._recorded = [[]]
        self._is_recording = True
        self.graphs.append(graph)
        try:
            with _Noter(graph[0]):
                body(1)
            if self.fail_record:
                raise RuntimeError("no memory")
        finally:
            self._is_recording = False
        return graph

    def _nodes(self, stream: int) -> list[Node]:
        assert self._is_recording
        return self._recorded[stream - 1]

    def last_node(self, stream: int) -> Node:
        return self._nodes(stream)[-1]

    def branches(self, stream: int, count: int) -> list[int]:
        self.branched += count
        self._recorded += [[] for _ in range(count)]
        return list(range(2, 2 + count))

    def mark(self, stream: int) -> WaitNode:
        return WaitNode(stream - 1, len(self._nodes(stream)))

    def wait(self, stream: int, mark: WaitNode) -> None:
        self._nodes(stream).append(mark)

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        self._nodes(stream).append(CopyNode(target, source, count))

    def kernel_update(
        self, graph: Graph, node: KernelNode, function: Any, step: Launch, pointers: int
    ) -> Callable[[], None]:
        def update() -> None:
            self.updates += 1
            node.values = _values(step, pointers)

        return update

    def copy_update(self, graph: Graph, node: CopyNode, count: int) -> Callable[[int, int], None]:
        def update(target: int, source: int) -> None:
            self.updates += 1
            if self.fail_updates:
                raise RuntimeError("invalid node")
            node.target, node.source = target, source

        return update

    def replay(self, graph: Graph) -> None:
        self.replays += 1
        done = [0] * len(graph)
        self._do(graph, done, 0, len(graph[0]))
        assert done == list(map(len, graph)), "nothing waits for the end of a branch"

    def _do(self, graph: Graph, done: list[int], branch: int, until: int) -> None:
        """So many nodes of the branch, of which some may be done."""
        while done[branch] < until:
            node = graph[branch][done[branch]]
            done[branch] += 1
            match node:
                case WaitNode():
                    self._do(graph, done, node.branch, node.count)
                case KernelNode(function, step, values):
                    self._run(function, step, values)
                case CopyNode(target, source, count):
                    ctypes.memmove(target, source, count)
                case TorchNode():
                    _run_again(node)

    def _run(self, function: Any, step: Launch, values: list[int]) -> None:
        held = (ctypes.c_uint64 * len(values))(*values)
        first = ctypes.addressof(held)
        pointers = (ctypes.c_uint64 * len(values))(*[first + 8 * n for n in range(len(values))])
        self._kernels.launcher(function, step, ctypes.addressof(pointers), 0)()


def values_at(pointers: int, count: int) -> list[int]:
    """The values of a launch's arguments, eight bytes each."""
    array = (ctypes.c_uint64 * count).from_address(pointers)
    return [ctypes.c_uint64.from_address(address).value for address in array]


def _values(step: Launch, pointers: int) -> list[int]:
    return values_at(pointers, len(step.tensors) + len(step.integers))


class _Noter(TorchDispatchMode):
    def __init__(self, graph: list[Node]) -> None:
        super().__init__()
        self._graph = graph

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._graph.append(TorchNode(None if "empty" in str(func) else func, args, kwargs or {}, result))
        return result


def _run_again(node: TorchNode) -> None:
    if node.function is None:
        return
    with torch.no_grad():
        again = node.function(*node.arguments, **node.keywords)
        for made, kept in zip(_tensors(again), _tensors(node.result), strict=True):
            if made.data_ptr() != kept.data_ptr():
                kept.copy_(made)


def _tensors(value: Any) -> list[Tensor]:
    return [v for v in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(v, Tensor)]
