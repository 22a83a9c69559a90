"""Models of torchvision: throughput of whole calls, and cold compile seconds.

Times are wall clock, calls one after another with inputs in turn. `first_s` is from the call of the compiler to the
first result on the host, nothing known from before; `size_s` is the first call of a batch by what was built for all.
What is built for all sizes is built at a batch of 2. `tc_best` is the better of contiguous and channels-last pictures;
the others get contiguous ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from dlcb.benchmarks.case import DTYPES, Shape
from dlcb.benchmarks.contenders import ONE_SIZE, Built, Request, Weights, build
from dlcb.benchmarks.networks import VISION, Network, case_of, fastest, in_layout, layouts
from dlcb.benchmarks.report import Row, Table
from dlcb.benchmarks.runner import Benchmark, Case, Settings
from dlcb.benchmarks.timing import seconds_to_host, wall_ms

BATCHES, QUICK_BATCHES = {"batch_1": 1, "batch_16": 16}, {"batch_1": 1, "batch_16": 3}
"""By the experiment that measures it."""
SETS = 4


def measure(settings: Settings, network: Network, contender: str) -> Iterator[Row]:
    modes: tuple[Weights, ...] = ("frozen", "live") if contender.startswith("dlcb") else ("live",)
    for weights in modes:
        about = {"weights": weights} if contender.startswith("dlcb") else {}
        if contender in ONE_SIZE:
            for batch in _batches(settings):
                wanted = layouts(contender, network.inputs(shape_of(network, batch)))
                made = partial(built_for, settings, network, contender, batch, weights)
                yield about | fastest({name: made(layout) for name, layout in wanted.items()})
        else:
            with build(contender, Request(network.model, network.inputs(network.case.example), weights)) as built:
                for batch in _batches(settings):
                    yield about | timed(settings, network, built, batch)


def built_for(
    settings: Settings,
    network: Network,
    contender: str,
    batch: int,
    weights: Weights,
    layout: torch.memory_format,
) -> Row:
    """The row of one batch, built for it alone."""
    inputs = in_layout(network.inputs(shape_of(network, batch)), layout)
    with build(contender, Request(in_layout(network.model, layout), inputs, weights)) as built:
        return timed(settings, network, built, batch, layout)


def timed(
    settings: Settings,
    network: Network,
    built: Built,
    batch: int,
    layout: torch.memory_format = torch.contiguous_format,
) -> Row:
    count = 2 if settings.quick else SETS
    sets = [in_layout(network.inputs(shape_of(network, batch)), layout) for _ in range(count)]
    _, size_s = seconds_to_host(built.bind(sets[0]))
    judged = network.judged(built.call, sets[-1])
    rounds, calls = (2, 2) if settings.quick else (15, 10)
    spread = wall_ms([built.bind(inputs) for inputs in sets], settings.device, rounds, calls)
    found = {"throughput": batch / spread.median * 1e3, "first_s": built.first_s, "size_s": size_s, "how": built.how}
    return {"batch": batch, **judged, **spread.fields("ms"), **found}


def shape_of(network: Network, batch: int) -> Shape:
    return (batch, *network.case.example[1:])


def _batches(settings: Settings) -> tuple[int, ...]:
    sizes = QUICK_BATCHES if settings.quick else BATCHES
    return tuple(sizes[name] for name in settings.experiments)


def prepare(settings: Settings, name: str, dtype: str) -> Network:
    return Network(case_of(name, settings.quick), DTYPES[dtype], settings.device)


def cases(settings: Settings) -> Iterator[Case]:
    for name in settings.programs:
        for dtype in settings.dtypes:
            made = partial(prepare, settings, name, dtype)
            yield Case({"program": name, "dtype": dtype}, settings.contenders, made, partial(measure, settings))


BENCHMARK = Benchmark(
    "models",
    "models of torchvision: throughput, cold compile seconds",
    units={"throughput": "pictures a second", "ms": "milliseconds a call", "first_s": "seconds", "size_s": "seconds"},
    tables=tuple(Table(value, ("program", "dtype", "batch")) for value in ("throughput", "first_s")),
    programs=VISION,
    quick_programs=("resnet18",),
    more_programs=("rows",),
    dtypes=("f16", "f32"),
    cases=cases,
    experiments=tuple(BATCHES),
)
