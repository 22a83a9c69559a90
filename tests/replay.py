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
class BranchNodes:
    """What has to be done by now of a branch."""

    nodes: list[Node]


Node = KernelNode | CopyNode | TorchNode | BranchNodes
BRANCH = 2


class ReplayMachine:
    """Runs `kernels`. Counts what it did; told to, it fails to record or to update copies."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._recording: list[Node] | None = None
        self._branch: list[Node] = []
        self.graphs: list[list[Node]] = []
        self.caller_is_recording = self.fail_updates = self.fail_record = False
        self.launches = self.records = self.replays = self.updates = self.branches = 0

    # --- kernels

    def function(self, name: str) -> Any:
        return self._kernels.function(name)

    def activate(self) -> None:
        self._kernels.activate()

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        run = self._kernels.launcher(function, step, pointers, stream)

        def launch() -> None:
            if self._recording is None:
                self.launches += 1
                run()
            else:
                self._nodes(stream).append(KernelNode(function, step, _values(step, pointers)))

        return launch

    # --- graphs

    def caller_records(self) -> bool:
        return self.caller_is_recording

    def record(self, body: Callable[[int], None]) -> list[Node]:
        self.records += 1
        graph, self._branch = list[Node](), list[Node]()
        self._recording = graph
        self.graphs.append(graph)
        try:
            with _Noter(graph):
                body(1)
            if self.fail_record:
                raise RuntimeError("no memory")
        finally:
            self._recording = None
        return graph

    def _nodes(self, stream: int) -> list[Node]:
        assert self._recording is not None
        return self._branch if stream == BRANCH else self._recording

    def last_node(self, stream: int) -> Node:
        return self._nodes(stream)[-1]

    def branch(self, stream: int) -> int:
        self.branches += 1
        return BRANCH

    def mark(self, stream: int) -> int:
        assert stream == BRANCH
        return len(self._branch)

    def wait(self, stream: int, mark: int) -> None:
        """The nodes up to the mark that nothing waited for before."""
        known = sum(len(node.nodes) for node in self._nodes(stream) if isinstance(node, BranchNodes))
        self._nodes(stream).append(BranchNodes(self._branch[known:mark]))

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        assert self._recording is not None
        self._recording.append(CopyNode(target, source, count))

    def kernel_update(
        self, graph: list[Node], node: KernelNode, function: Any, step: Launch, pointers: int
    ) -> Callable[[], None]:
        def update() -> None:
            self.updates += 1
            node.values = _values(step, pointers)

        return update

    def copy_update(self, graph: list[Node], node: CopyNode, count: int) -> Callable[[int, int], None]:
        def update(target: int, source: int) -> None:
            self.updates += 1
            if self.fail_updates:
                raise RuntimeError("invalid node")
            node.target, node.source = target, source

        return update

    def replay(self, graph: list[Node]) -> None:
        self.replays += 1
        self._do(graph)

    def _do(self, nodes: list[Node]) -> None:
        for node in nodes:
            match node:
                case BranchNodes():
                    self._do(node.nodes)
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
