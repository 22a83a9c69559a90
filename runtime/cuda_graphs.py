"""Recording and replaying CUDA graphs, on the stream of the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dlcb.runtime.cuda import last_captured_node, update_kernel_node
from dlcb.runtime.plan import Launch


class CudaGraphDriver:
    """Graphs of one stream. They share one memory pool, which is right because a stream replays them one after another
    and nothing in the pool is read after the replay that wrote it, but for what the replay's own copies read."""

    def __init__(self, device: torch.device) -> None:
        self._pool = torch.cuda.MemPool()  # holds the pool open while no graph of it is alive
        self._side = torch.cuda.Stream(device)

    def caller_records(self) -> bool:
        return torch.cuda.is_current_stream_capturing()

    def record(self, body: Callable[[int], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        current = torch.cuda.current_stream(self._side.device)
        self._side.wait_stream(current)
        with torch.cuda.stream(self._side):
            graph.capture_begin(pool=self._pool.id, capture_error_mode="thread_local")
            try:
                body(self._side.cuda_stream)
            finally:
                graph.capture_end()
        current.wait_stream(self._side)
        graph.instantiate()
        return graph

    def last_node(self, stream: int) -> Any:
        return last_captured_node(stream)

    def update(self, graph: torch.cuda.CUDAGraph, node: Any, function: Any, step: Launch, pointers: int) -> None:
        update_kernel_node(graph.raw_cuda_graph_exec(), node, function, step.blocks, step.threads, pointers)

    def replay(self, graph: torch.cuda.CUDAGraph) -> None:
        graph.replay()
