"""Recording and replaying CUDA graphs, on the stream of the caller."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, cast

import torch

from dlcb.runtime import cuda
from dlcb.runtime.plan import Launch


class CudaGraphDriver:
    """Graphs of one stream. They share one memory pool, which is right because a stream replays them one after another,
    and each writes what it reads of the pool."""

    def __init__(self, device: torch.device) -> None:
        self._pools = [torch.cuda.MemPool()]  # holds the pool open while no graph of it is alive
        self._side = torch.cuda.Stream(device)

    def caller_records(self) -> bool:
        return torch.cuda.is_current_stream_capturing()

    def record(self, body: Callable[[int], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        current = torch.cuda.current_stream(self._side.device)
        self._side.wait_stream(current)
        collects_garbage = gc.isenabled()
        gc.disable()  # the end of a graph or of an event must not fall into the recording
        try:
            with torch.cuda.stream(self._side):
                self._capture(graph, body)
        except BaseException:
            self._pools.append(torch.cuda.MemPool())  # the allocator may think that the old one is still recorded into
            raise
        finally:
            if collects_garbage:
                gc.enable()
        current.wait_stream(self._side)
        graph.instantiate()
        return graph

    def _capture(self, graph: torch.cuda.CUDAGraph, body: Callable[[int], None]) -> None:
        graph.capture_begin(pool=cast(Any, self._pools[-1].id), capture_error_mode="thread_local")
        try:
            body(self._side.cuda_stream)
        finally:
            graph.capture_end()

    def last_node(self, stream: int) -> Any:
        return cuda.last_captured_node(stream)

    def copy(self, target: int, source: int, count: int, stream: int) -> None:
        cuda.copy_on_stream(target, source, count, stream)

    def kernel_update(
        self, graph: torch.cuda.CUDAGraph, node: Any, function: Any, step: Launch, pointers: int
    ) -> Callable[[], None]:
        return cuda.kernel_update(graph.raw_cuda_graph_exec(), node, function, step, pointers)

    def copy_update(self, graph: torch.cuda.CUDAGraph, node: Any, count: int) -> Callable[[int, int], None]:
        return cuda.copy_update(graph.raw_cuda_graph_exec(), node, count)

    def replay(self, graph: torch.cuda.CUDAGraph) -> None:
        graph.replay()
