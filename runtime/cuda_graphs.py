"""Recording and replaying CUDA graphs, on the stream of the caller.

Recorded through the driver, not through `torch.cuda.CUDAGraph`: that one puts torch's random generator into a recording
state for the whole process, so that a random number drawn by another thread in the meantime is an error.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch

from dlcb.runtime import cuda
from dlcb.runtime.plan import Launch


class CudaGraph:
    """An instantiated graph."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.executable = cuda.instantiate(graph)

    def __del__(self) -> None:
        cuda.destroy_graph(self._graph, getattr(self, "executable", None))


class CudaGraphDriver:
    """Graphs of one stream. They share one memory pool, which is right because a stream replays them one after another,
    and each writes what it reads of the pool."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._pools = [torch.cuda.MemPool()]
        self._side = torch.cuda.Stream(device)
        self._beside: list[Any] = []
        """Streams beside the one that is recorded. What anyone else launched there meanwhile would be recorded too."""
        self._events: list[Any] = []
        """Of the recording."""

    def __del__(self) -> None:
        for stream in getattr(self, "_beside", ()):
            cuda.destroy_stream(stream)

    def caller_records(self) -> bool:
        return torch.cuda.is_current_stream_capturing()

    def record(self, body: Callable[[int], None]) -> CudaGraph:
        current = torch.cuda.current_stream(self._side.device)
        self._side.wait_stream(current)
        collects_garbage = gc.isenabled()
        gc.disable()  # the end of a graph or of an event must not fall into the recording
        try:
            with torch.cuda.stream(self._side), torch.cuda.use_mem_pool(self._pools[-1], self.device):
                graph = cuda.record(self._side.cuda_stream, body)
        except BaseException:
            self._pools.append(torch.cuda.MemPool())  # what the failed recording took of the old one stays there
            raise
        finally:
            for event in self._events:
                cuda.destroy_event(event)
            self._events.clear()
            if collects_garbage:
                gc.enable()
        current.wait_stream(self._side)
        return CudaGraph(graph)

    def last_node(self, stream: int) -> Any:
        return cuda.last_captured_node(stream)

    def branches(self, stream: int, count: int) -> list[int]:
        while len(self._beside) < count:
            self._beside.append(cuda.new_stream())
        streams = list(map(int, self._beside[:count]))
        here = self.mark(stream)
        for beside in streams:
            self.wait(beside, here)
        return streams

    def mark(self, stream: int) -> Any:
        self._events.append(cuda.event_on_stream(stream))
        return self._events[-1]

    def wait(self, stream: int, mark: Any) -> None:
        cuda.wait_for_event(stream, mark)

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        cuda.copy_on_stream(target, source, count, stream)

    def kernel_update(
        self, graph: CudaGraph, node: Any, function: Any, step: Launch, pointers: int
    ) -> Callable[[], None]:
        return cuda.kernel_update(graph.executable, node, function, step, pointers)

    def copy_update(self, graph: CudaGraph, node: Any, count: int) -> Callable[[int, int], None]:
        return cuda.copy_update(graph.executable, node, count)

    def replay(self, graph: CudaGraph) -> None:
        cuda.launch_graph(graph.executable, torch.cuda.current_stream(self.device).cuda_stream)
