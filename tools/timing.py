"""How long calls take, and which of their steps take how long."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from dlcb.runtime.plan import Launch, Step
from dlcb.tools.runnable import Results, Runnable, placed
from dlcb.tools.signature import Given

_LEAST_CALLS: Final = 5
_MOST_CALLS: Final = 200
_SECONDS: Final = 1.0
_PROFILED_CALLS: Final = 10


def timed_call(program: Runnable, inputs: Mapping[str, Given]) -> tuple[Results, float]:
    """One call, and the milliseconds until the device is done with it."""
    given = placed(inputs, program.device)
    program.synchronize()
    began = time.perf_counter()
    results = program.call(given)
    program.synchronize()
    return results, (time.perf_counter() - began) * 1e3


def warm_ms(program: Runnable, inputs: Mapping[str, Given]) -> tuple[float, int]:
    """The median of calls that follow others, and how many were timed."""
    times = [timed_call(program, inputs)[1] for _ in range(2)]
    until = time.perf_counter() + _SECONDS
    times.clear()
    while len(times) < _LEAST_CALLS or (len(times) < _MOST_CALLS and time.perf_counter() < until):
        times.append(timed_call(program, inputs)[1])
    return statistics.median(times), len(times)


@dataclass(frozen=True, slots=True)
class StepTime:
    """All launches of a kernel, or calls of a library function, in one call of the program."""

    name: str
    ms: float
    launches: int


class _Clock:
    """Times each step as it is told of it: by wall time, or by events on the device."""

    def __init__(self, device: torch.device) -> None:
        self._on_device = device.type == "cuda"
        self._marks: list[tuple[str | None, Any]] = []

    def __call__(self, step: Step | None) -> None:
        self._marks.append((None if step is None else _name(step), self._now()))

    def _now(self) -> Any:
        if not self._on_device:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def times(self) -> dict[str, list[float]]:
        """The milliseconds of every step, by name."""
        found: dict[str, list[float]] = defaultdict(list)
        for (_, before), (name, after) in zip(self._marks, self._marks[1:], strict=False):
            if name is not None:
                found[name].append(before.elapsed_time(after) if self._on_device else (after - before) * 1e3)
        return found


def _name(step: Step) -> str:
    return f"kernel {step.kernel}" if isinstance(step, Launch) else f"library {step.function.run.__name__.strip('_')}"


def profile(program: Runnable, inputs: Mapping[str, Given]) -> list[StepTime]:
    """Where the time of a warm call goes, the longest first."""
    timed_call(program, inputs)
    clock = _Clock(program.device)
    with program.observed(clock):
        for _ in range(_PROFILED_CALLS):
            program.call(placed(inputs, program.device))
        program.synchronize()
    steps = [
        StepTime(name, sum(times) / _PROFILED_CALLS, len(times) // _PROFILED_CALLS)
        for name, times in clock.times().items()
    ]
    return sorted(steps, key=lambda s: -s.ms)
