"""The clocks of all benchmarks: CUDA graph replays by device events, whole calls by wall clock, the host's part of one.

Where there is no GPU, the wall clock serves for all. Benchmarks that run side by side on one machine, to use its cores
while they compile, take turns to measure: `DLCB_BENCHMARK_LOCK` names a file that they lock meanwhile.
"""

from __future__ import annotations

import fcntl
import gc
import os
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dlcb.benchmarks.accuracy import tensors_of

Call = Callable[[], Any]

WARM_UP = 3
"""Calls before those that count: a first launch, a recorded one, a replayed one."""
LOCK_VARIABLE = "DLCB_BENCHMARK_LOCK"
EVENTS = "device events"
WALL = "wall clock"


@dataclass(frozen=True, slots=True)
class Spread:
    """Measurements of the same thing: the median, and what one in ten is below and above."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        ordered = sorted(values)
        last = len(ordered) - 1
        return cls(statistics.median(ordered), ordered[round(last * 0.1)], ordered[round(last * 0.9)])

    def divided(self, count: int) -> Spread:
        return Spread(self.median / count, self.low / count, self.high / count)

    def fields(self, name: str) -> dict[str, float]:
        """As fields of a row: `ms`, `ms_p10`, `ms_p90`."""
        return {name: self.median, f"{name}_p10": self.low, f"{name}_p90": self.high}


@contextmanager
def alone() -> Generator[None]:
    """No other benchmark with the same lock measures meanwhile."""
    path = os.environ.get(LOCK_VARIABLE)
    if path is None:
        yield
        return
    with Path(path).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the file
        yield


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def clock_of(device: torch.device) -> str:
    """What `replayed_ms` reads."""
    return EVENTS if device.type == "cuda" else WALL


def seconds_to_host(make: Callable[[], Any]) -> tuple[Any, float]:
    """What is made, and the seconds until the elements of its first tensor are on the host."""
    began = time.perf_counter()
    made = make()
    for tensor in tensors_of(made)[:1]:
        tensor.cpu()
    return made, time.perf_counter() - began


@alone()
def wall_ms(calls: Sequence[Call], device: torch.device, rounds: int = 15, batch: int = 10) -> Spread:
    """Wall milliseconds of a call, the calls coming in turn; the device idle before and after each batch."""
    for _ in range(WARM_UP):
        for call in calls:
            call()
    synchronize(device)
    times: list[float] = []
    turn = 0
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(batch):
            calls[turn]()
            turn = (turn + 1) % len(calls)
        synchronize(device)
        times.append((time.perf_counter() - began) * 1e3 / batch)
    return Spread.of(times)


def median_ms(call: Call, device: torch.device) -> float:
    """The median of the wall milliseconds of a call."""
    return wall_ms([call], device).median


@alone()
def host_us(calls: Sequence[Call], device: torch.device, rounds: int, batch: int, warm_up: int = WARM_UP) -> Spread:
    """Microseconds until a call returns, the calls coming in turn; the device is waited for between batches."""
    for _ in range(warm_up):
        for call in calls:
            call()
    times: list[float] = []
    turn = 0
    with no_collection():
        for _ in range(rounds):
            synchronize(device)
            began = time.perf_counter()
            for _ in range(batch):
                calls[turn]()
                turn = (turn + 1) % len(calls)
            times.append((time.perf_counter() - began) * 1e6 / batch)
    synchronize(device)
    return Spread.of(times)


@alone()
def device_ms(call: Call, device: torch.device, rounds: int) -> Spread:
    """Milliseconds of the device for a call that only replays a graph."""
    if device.type != "cuda":
        return wall_ms([call], device, rounds, batch=1)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    times: list[float] = []
    for _ in range(rounds):
        torch.cuda.synchronize(device)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize(device)
        times.append(begin.elapsed_time(end))
    return Spread.of(times)


def replayed_ms(calls: Sequence[Call], device: torch.device, rounds: int, repeats: int) -> tuple[Spread, list[Any]]:
    """Milliseconds of a call where all calls, `repeats` times in turn, are one CUDA graph; and what the last turn's
    calls gave in its last replay. Each call of the graph has results of its own, so no call finds its output in the
    cache."""
    if device.type != "cuda":
        spread = wall_ms(calls, device, rounds, batch=repeats * len(calls))
        return spread, [call() for call in calls]
    graph, results = record(calls, device, repeats)
    spread = device_ms(graph.replay, device, rounds).divided(repeats * len(calls))
    kept = [[t.clone() for t in tensors_of(result)] for result in results[-len(calls) :]]
    return spread, kept


def record(calls: Sequence[Call], device: torch.device, repeats: int = 1) -> tuple[torch.cuda.CUDAGraph, list[Any]]:
    """One CUDA graph of the calls, all of them `repeats` times in turn, and their results, in the graph's memory. They
    run before on the stream that is then recorded."""
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            for call in calls:
                call()
        torch.cuda.synchronize(device)
        with no_collection(), torch.cuda.graph(graph, stream=stream):
            results = [call() for _ in range(repeats) for call in calls]
    torch.cuda.current_stream(device).wait_stream(stream)
    return graph, results


@contextmanager
def no_collection() -> Generator[None]:
    """No garbage is collected meanwhile, but before."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
