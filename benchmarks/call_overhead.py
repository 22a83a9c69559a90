"""What a warm call costs in Python, in microseconds, by the number of kernels, without the kernels' own time.

    python -P -m dlcb.benchmarks.call_overhead [--weights N] [--rounds N]

`read` makes the call key of the arguments, `miss` is all the work of a call whose key is new but for its launches,
`launch` a call of a known key by plain launches, `replay` one by a recorded graph (from two kernels on), `live` that
with weights that may move. On the CPU kernels do nothing and the graph driver only counts; on a GPU (a second table)
kernels are empty, and times are those until the call returns, the device being waited for between batches.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.call import Target
from dlcb.runtime.cuda import CudaKernels, arch_of
from dlcb.runtime.graphs import GraphDriver
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.memory import Allocator
from dlcb.runtime.plan import Launch
from dlcb.runtime.program import compile_program
from dlcb.runtime.rows import check_program
from dlcb.runtime.session import Limits, Session
from dlcb.runtime.weights import Weights

COUNTS = (1, 10, 50)
BATCH = 200
TEXT = 'extern "C" __global__ void k() {}'


def program(kernels: int, weights: int) -> dict[str, Any]:
    """A chain of kernels from `x` through the arena to one output; weights are spread over the kernels."""
    names = [f"w{n}" for n in range(weights)]
    arguments = [["input", "x", "f32", 2, False], *(["weight", name, "f32", [4], [1]] for name in names)]
    x, n, m, one, yes, count, size, zero, arena, buffer, out, first = range(12)
    code: list[list[Any]] = [
        ["argument", x, "x"],
        ["size", n, "x", 0],
        ["size", m, "x", 1],
        ["constant", one, 1],
        ["constant", yes, True],
        ["mul", count, n, m],
        ["scaled", size, count, 4, 1],
        ["constant", zero, 0],
        ["arena", arena, size],
        ["buffer", buffer, arena, zero, [n, m], [m, one], "f32"],
        ["output", out, [n, m], [m, one], "f32"],
        *(["weight", first + i, name] for i, name in enumerate(names)),
    ]
    for k in range(kernels):
        ends = [x if k == 0 else buffer, out if k == kernels - 1 else buffer]
        tensors = [*ends, *range(first + k, first + weights, kernels)]
        code.append(["launch", tensors, [["k", 256, yes, one, [[count, "i64"]]]], []])
    return {"name": "chain", "arguments": arguments, "results": [], "code": [*code, ["return", [out]]]}


def nothing(*_: Any) -> None:
    pass


class NoKernels:
    def function(self, name: str) -> str:
        return name

    def activate(self) -> None: ...

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        return nothing


class NoDriver:
    def caller_records(self) -> bool:
        return False

    def record(self, body: Callable[[int], None]) -> None:
        body(1)

    def last_node(self, stream: int) -> None: ...

    def branches(self, stream: int, count: int) -> list[int]:
        return [stream] * count

    def mark(self, stream: int) -> None: ...

    def wait(self, stream: int, mark: None) -> None: ...

    def copy(self, target: int, source: int, count: int, stream: int) -> None: ...

    def kernel_update(self, graph: Any, node: Any, function: Any, step: Launch, pointers: int) -> Callable[[], None]:
        return nothing

    def copy_update(self, graph: Any, node: Any, count: int) -> Callable[[int, int], None]:
        return nothing

    def replay(self, graph: Any) -> None: ...


class Bench:
    """One program on one device. `inputs` come in turn, so that addresses change."""

    def __init__(self, kernels: int, weights: int, target: Target, stream: int, make_driver: Any, rounds: int) -> None:
        self._program = check_program(program(kernels, weights))
        self._plan = compile_program(self._program)
        self._bound = {f"w{n}": torch.zeros(4, device=target.device) for n in range(weights)}
        self._target, self._stream, self._make_driver, self._rounds = target, stream, make_driver, rounds
        self._arguments = CallerArguments(self._program, target.device)
        self._inputs = [[torch.zeros(8, 64, device=target.device)] for _ in range(2)]

    def row(self) -> dict[str, float]:
        row = {"read": self._time(self._arguments.read)}
        row["miss"] = self._time(self._missed)
        row["launch"] = self._time(self._called(self._session("frozen", graphs=False)))
        row["replay"] = self._time(self._called(self._session("frozen", graphs=True)))
        row["live"] = self._time(self._called(self._session("live", graphs=True)))
        return row

    def _session(self, mode: Any, graphs: bool) -> Session:
        weights = Weights(self._bound, self._program, None, self._target, mode)
        options = (self._stream, graphs, Limits(), self._make_driver)
        return Session(self._program, self._plan, self._arguments, weights, self._target, *options)

    def _called(self, session: Session) -> Callable[[list[Tensor]], Any]:
        read = self._arguments.read
        return lambda inputs: session.run(*read(inputs), inputs)

    def _missed(self, inputs: list[Tensor]) -> None:
        if not hasattr(self, "_missing"):
            self._missing = self._session("frozen", graphs=False)
            self._missing._weights.locate()  # pyright: ignore
        self._missing._plan(inputs)  # pyright: ignore

    def _time(self, call: Callable[[list[Tensor]], Any]) -> float:
        """The median over rounds of the mean of a batch."""
        for _ in range(2):
            for inputs in self._inputs:
                call(inputs)
        times: list[float] = []
        for _ in range(self._rounds):
            self._synchronize()
            began = time.perf_counter()
            for n in range(BATCH):
                call(self._inputs[n & 1])
            times.append((time.perf_counter() - began) / BATCH * 1e6)
        return statistics.median(times)

    def _synchronize(self) -> None:
        if self._target.device.type == "cuda":
            torch.cuda.synchronize()


def table(title: str, kernels: Kernels, device: torch.device, driver: Any, options: argparse.Namespace) -> None:
    stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else 0
    target = Target(device, kernels, Allocator())
    print(f"{title}, {options.weights} weights, µs")
    for count in COUNTS:
        row = Bench(count, options.weights, target, stream, driver, options.rounds).row()
        print(f"{count:4} kernels  " + "  ".join(f"{name} {value:6.1f}" for name, value in row.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()

    def no_driver(device: torch.device) -> GraphDriver:
        return NoDriver()

    table("no kernels", NoKernels(), torch.device("cpu"), no_driver, options)
    if torch.cuda.is_available():
        from dlcb.lowering.text_to_cubin import compile_cubin

        device = torch.device("cuda", torch.cuda.current_device())
        loaded = CudaKernels(compile_cubin(TEXT, arch_of(device)).data, device)
        table(torch.cuda.get_device_name(), loaded, device, None, options)


if __name__ == "__main__":
    main()
