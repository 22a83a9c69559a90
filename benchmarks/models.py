"""Models of torchvision: throughput of whole calls, and cold compile seconds.

Times are wall clock, calls one after another with inputs in turn. `first_s` is from the call of the compiler to the
first result on the host, nothing known from before; `size_s` is the first call of a batch by what was built for all.
What is built for all sizes is built at a batch of 2. `tc_best` is the better of contiguous and channels-last pictures;
the others get contiguous ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from dlcb.benchmarks.case import DTYPES, Shape
from dlcb.benchmarks.contenders import ONE_SIZE, Built, Weights, build
from dlcb.benchmarks.networks import VISION, Network, case_of, in_layout
from dlcb.benchmarks.report import Row
from dlcb.benchmarks.runner import Benchmark, Case, Settings
from dlcb.benchmarks.timing import seconds_to_host, wall_ms

BATCHES, QUICK_BATCHES = (1, 16), (1, 3)
SETS = 4
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def measure(settings: Settings, network: Network, contender: str) -> Iterator[Row]:
    if contender == "tc_best":
        for batch in _batches(settings):
            yield best_layout(settings, network, batch)
        return
    modes: tuple[Weights, ...] = ("frozen", "live") if contender.startswith("dlcb") else ("live",)
    for weights in modes:
        about = {"weights": weights} if contender.startswith("dlcb") else {}
        for batches in [(b,) for b in _batches(settings)] if contender in ONE_SIZE else [_batches(settings)]:
            example = network.inputs(shape_of(network, batches[0]) if contender in ONE_SIZE else network.case.example)
            with build(contender, network.model, example, weights=weights) as built:
                for batch in batches:
                    yield about | timed(settings, network, built, batch)


def best_layout(settings: Settings, network: Network, batch: int) -> Row:
    rows: dict[str, Row] = {}
    for name, layout in LAYOUTS.items():
        inputs = in_layout(network.inputs(shape_of(network, batch)), layout)
        with build("tc_best", in_layout(network.model, layout), inputs) as built:
            rows[name] = timed(settings, network, built, batch, layout)
    best = min(rows, key=lambda name: rows[name]["ms"])
    others = {f"{name}_ms": row["ms"] for name, row in rows.items() if name != best}
    return {"layout": best, **rows[best], **others}


def timed(
    settings: Settings,
    network: Network,
    built: Built,
    batch: int,
    layout: torch.memory_format = torch.contiguous_format,
) -> Row:
    sets: list[dict[str, Any]] = [
        in_layout(network.inputs(shape_of(network, batch)), layout) for _ in range(2 if settings.quick else SETS)
    ]
    _, size_s = seconds_to_host(built.bind(sets[0]))
    judged = network.judged(built.call, sets[-1])
    rounds, calls = (2, 2) if settings.quick else (15, 10)
    spread = wall_ms([built.bind(inputs) for inputs in sets], settings.device, rounds, calls)
    found = {"throughput": batch / spread.median * 1e3, "first_s": built.first_s, "size_s": size_s, "how": built.how}
    return {"batch": batch, **judged, **spread.fields("ms"), **found}


def shape_of(network: Network, batch: int) -> Shape:
    return (batch, *network.case.example[1:])


def _batches(settings: Settings) -> tuple[int, ...]:
    return QUICK_BATCHES if settings.quick else BATCHES


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
    unit="pictures a second",
    value="throughput",
    index=("program", "dtype", "batch"),
    programs=VISION,
    quick_programs=("resnet18",),
    dtypes=("f16", "f32"),
    cases=cases,
)
