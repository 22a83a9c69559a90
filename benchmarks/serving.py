"""A stream of random shapes, as a server gets them: an encoder's (batch, length), a decoder's (batch, length so far).

`first_stream_s`: all calls from the call of the compiler on; `worst_call_s`: the longest of them but the first;
`second_s`: another pass over the same shapes with other inputs, in which CUDA graphs are recorded; `early_s`: the pass
after it; `steady_s`: the last of many passes, the mean of two; `passes_s`: all of these. Each call is waited for.
`eager_graph` is eager in a CUDA graph for each shape, replays alone: what its library kernels take.
`decoder_transformers` is the GPT-2 of the library of that name, with its cache.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from dlcb.benchmarks import shape_models, transformer_models
from dlcb.benchmarks.case import DTYPES, Shape
from dlcb.benchmarks.case import Case as Model
from dlcb.benchmarks.contenders import Inputs, Recorded, Request, bound, build
from dlcb.benchmarks.networks import Network
from dlcb.benchmarks.report import Row, Table, verdict_fields
from dlcb.benchmarks.runner import Benchmark, Case, Settings
from dlcb.benchmarks.timing import device_ms, synchronize

COUNT, QUICK_COUNT = 48, 5
JUDGED = 12
"""Shapes whose results are judged."""
ORDER = 7
"""The seed of the shapes, which are the same in every run."""
PASSES, QUICK_PASSES = 21, 3
"""After the first stream. DLCB chooses the library's routines anew for shapes that come 16 times."""
BATCHES, LENGTHS = (1, 32), (16, 384)
QUICK_BATCHES, QUICK_LENGTHS = (1, 4), (2, 32)

PROGRAMS: dict[str, Callable[[bool], Model]] = {
    "encoder": lambda real: transformer_models.bert_base() if real else transformer_models.bert(),
    "decoder": shape_models.gpt2_step,
    "decoder_transformers": transformer_models.gpt2_cached,
}


def stream(quick: bool) -> list[Shape]:
    """Different shapes, in random order."""
    chosen = random.Random(ORDER)
    batches, lengths = (QUICK_BATCHES, QUICK_LENGTHS) if quick else (BATCHES, LENGTHS)
    shapes: dict[Shape, None] = {}
    while len(shapes) < (QUICK_COUNT if quick else COUNT):
        shapes[chosen.randint(*batches), chosen.randint(*lengths)] = None
    return list(shapes)


def measure(settings: Settings, model: Network, contender: str) -> Iterator[Row]:
    shapes = stream(settings.quick)
    if contender == "eager_graph":
        yield graphs_alone(settings, model, shapes)
        return
    first = [model.inputs(shape) for shape in shapes]
    with build(contender, Request(model.model, first[0], "frozen")) as built:
        later = seconds(built.call, first[1:], settings.device)
        del first
        passes = [
            sum(seconds(built.call, [model.inputs(shape) for shape in shapes], settings.device))
            for _ in range(QUICK_PASSES if settings.quick else PASSES)
        ]
        judged = judged_at(model, built.call, shapes)
        yield {
            **judged,
            "shapes": len(shapes),
            "first_stream_s": built.first_s + sum(later),
            "first_s": built.first_s,
            "worst_call_s": max(later),
            "second_s": passes[0],
            "early_s": passes[1],
            "steady_s": statistics.mean(passes[-2:]),
            "passes_s": passes,
            "how": built.how,
        }


def seconds(call: Callable[..., Any], requests: list[Any], device: torch.device) -> list[float]:
    """Of each call, until the device is done with it."""
    found: list[float] = []
    synchronize(device)
    for inputs in requests:
        began = time.perf_counter()
        bound(call, inputs)()
        synchronize(device)
        found.append(time.perf_counter() - began)
    return found


def judged_at(model: Network, call: Callable[..., Any], shapes: list[Shape]) -> Row:
    every = max(1, len(shapes) // JUDGED)
    return verdict_fields([v for shape in shapes[::every] for v in model.verdicts(call, model.inputs(shape), 1)])


def graphs_alone(settings: Settings, model: Network, shapes: list[Shape]) -> Row:
    with torch.no_grad():
        times = [_replay_ms(settings, model, model.inputs(shape)) for shape in shapes]
    return {"shapes": len(shapes), "steady_s": sum(times) / 1e3, "how": "one graph a shape, replays alone"}


def _replay_ms(settings: Settings, model: Network, inputs: Inputs) -> float:
    return device_ms(Recorded(model.model, inputs).replay, settings.device, rounds=5 if settings.quick else 20).median


def prepare(settings: Settings, name: str, dtype: str) -> Network:
    return Network(PROGRAMS[name](not settings.quick), DTYPES[dtype], settings.device)


def cases(settings: Settings) -> Iterator[Case]:
    for name in settings.programs:
        for dtype in settings.dtypes:
            made = partial(prepare, settings, name, dtype)
            yield Case({"program": name, "dtype": dtype}, settings.contenders, made, partial(measure, settings))


BENCHMARK = Benchmark(
    "serving",
    "a stream of random shapes: an encoder, and a decoder with its cache",
    units={
        "first_stream_s": "seconds of the first stream, compile and all",
        "worst_call_s": "seconds of the worst call after the first",
        "second_s": "seconds of the second pass over the stream",
        "early_s": "seconds of the third pass over the stream",
        "steady_s": "seconds of a late pass over the stream",
        "first_s": "seconds of the first call",
    },
    tables=tuple(Table(value, ("program", "dtype")) for value in ("first_stream_s", "worst_call_s", "steady_s")),
    programs=("encoder", "decoder"),
    more_programs=("decoder_transformers",),
    dtypes=("f16",),
    contenders=("eager", "eager_graph", "tc_dynamic", "dlcb_dynamic", "dlcb_jit"),
    cases=cases,
)
