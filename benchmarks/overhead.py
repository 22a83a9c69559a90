"""Microseconds that a call costs the host, by the number of generated kernels.

Programs are chains of reductions along rows and columns in turn, so that no compiler can make two of them one kernel.
Modes: `seen`, the sizes of the call came before (DLCB replays a graph); `launch`, the same without graphs of DLCB's
own; `new`, each call has sizes that never came before. Times are those until the call returns, the device idle before
each batch; on the CPU kernels run within the call. `line`: a call's microseconds as a line through those of the
programs, a constant and so much for each kernel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from dlcb.benchmarks.accuracy import judge_all
from dlcb.benchmarks.case import DTYPES, placed
from dlcb.benchmarks.check_overhead import line
from dlcb.benchmarks.contenders import ONE_SIZE, Built, Request, bound, build
from dlcb.benchmarks.report import Row, Table, verdict_fields
from dlcb.benchmarks.runner import Benchmark, Case, Settings
from dlcb.benchmarks.timing import Spread, host_us

KERNELS = (1, 4, 16, 64)
QUICK_KERNELS = (1, 4)
COLUMNS = 64
ROWS = 8
QUEUED = 256
"""How many kernels may wait at once: a full queue makes the host wait."""
MOST_CALLS = 64

Costs = dict[tuple[str, str], dict[int, float]]
"""By contender and mode: microseconds by the number of kernels."""


def chain(kernels: int) -> Callable[[Tensor], Tensor]:
    def program(x: Tensor) -> Tensor:
        for number in range(kernels):
            x = torch.log_softmax(x, number % 2)
        return x

    return program


@dataclass
class Subject:
    """A chain of kernels, and what its calls are timed with."""

    kernels: int
    dtype: torch.dtype
    settings: Settings
    costs: Costs
    run: Callable[[Tensor], Tensor] = field(init=False)

    def __post_init__(self) -> None:
        self.run = chain(self.kernels)
        self.rounds = 3 if self.settings.quick else 25
        self.batch = 2 if self.settings.quick else max(4, min(QUEUED // self.kernels, MOST_CALLS))

    def inputs(self, rows: int) -> tuple[Tensor]:
        return (torch.randn(rows, COLUMNS, device=self.settings.device, dtype=self.dtype),)

    def row(self, mode: str, contender: str, built: Built, spread: Spread, given: list[tuple[Tensor]]) -> Row:
        """The fields of a measurement; results of these inputs are judged."""
        self.costs[contender, mode][self.kernels] = spread.median
        verdicts = [
            verdict
            for inputs in given
            for verdict in judge_all(built.bind(inputs)(), self.run(*inputs), self.run(*self._exact(inputs)))
        ]
        return {
            "mode": mode,
            "kernels": self.kernels,
            **verdict_fields(verdicts),
            **spread.fields("us"),
            "us_per_kernel": spread.median / self.kernels,
            "first_s": built.first_s,
            "how": built.how,
        }

    def _exact(self, inputs: tuple[Tensor]) -> tuple[Tensor]:
        return placed(inputs, self.settings.device, torch.float64)


def measure(subject: Subject, contender: str) -> Iterator[Row]:
    with build(contender, Request(subject.run, subject.inputs(ROWS))) as built:
        yield _seen(subject, contender, "seen", built)
        if contender not in ONE_SIZE:
            yield _new(subject, contender, built)
    if contender.startswith("dlcb"):
        with build(contender, Request(subject.run, subject.inputs(ROWS), graphs=False)) as built:
            yield _seen(subject, contender, "launch", built)


def _seen(subject: Subject, contender: str, mode: str, built: Built) -> Row:
    """Two inputs of the same sizes, elsewhere in memory, in turn."""
    given = [subject.inputs(ROWS) for _ in range(2)]
    calls = [built.bind(inputs) for inputs in given]
    spread = host_us(calls, subject.settings.device, subject.rounds, subject.batch)
    return subject.row(mode, contender, built, spread, given)


def _new(subject: Subject, contender: str, built: Built) -> Row:
    """Sizes that begin after those of the warm-up."""
    first, count = ROWS + 1 + subject.batch, subject.rounds * subject.batch
    for rows in range(ROWS + 1, first):
        bound(built.call, subject.inputs(rows))()
    given = [subject.inputs(rows) for rows in range(first, first + count)]
    calls = [built.bind(inputs) for inputs in given]
    spread = host_us(calls, subject.settings.device, subject.rounds, subject.batch, warm_up=0)
    return subject.row("new", contender, built, spread, given[:: max(1, count // 4)])


def lines(costs: Costs, contender: str) -> Iterator[Row]:
    for (other, mode), found in costs.items():
        if other == contender and len(found) > 1:
            offset, slope = line(found)
            yield {"mode": mode, "us_per_call": offset, "us_per_launch": slope}


def cases(settings: Settings) -> Iterator[Case]:
    for dtype in settings.dtypes:
        costs: Costs = defaultdict(dict)
        for name in settings.programs:
            subject = partial(Subject, int(name.removeprefix("chain-")), DTYPES[dtype], settings, costs)
            yield Case({"program": name, "dtype": dtype}, settings.contenders, subject, measure)
        yield Case({"program": "line", "dtype": dtype}, settings.contenders, partial(dict, costs), lines)


BENCHMARK = Benchmark(
    "overhead",
    "what a call costs the host, by the number of kernels",
    units={
        "us": "microseconds of the host a call",
        "us_per_kernel": "microseconds of the host a kernel",
        "us_per_launch": "microseconds of the host for each further kernel",
        "first_s": "seconds",
    },
    tables=(Table("us", ("program", "dtype", "mode")), Table("us_per_launch", ("program", "dtype", "mode"))),
    programs=tuple(f"chain-{kernels}" for kernels in KERNELS),
    quick_programs=tuple(f"chain-{kernels}" for kernels in QUICK_KERNELS),
    dtypes=("f32",),
    cases=cases,
)
