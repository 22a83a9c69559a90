"""What compiling costs and brings: the experiments of surveys of compilers, in four parts.

`optimization`: a graph that is all fusion beside one that is all matrix products: how many times faster than eager.
`amortization`: after how many calls a compile is paid back. `transitions`: the first call of each size in a stream of
sizes, what is built for one size being built again. `stages`: the seconds of a compile with empty caches and with those
it left on disk; of DLCB by stage. `hot`: calls go on while DLCB compiles their size in another process.

Seconds are from the call of the compiler to the first result on the host; milliseconds are wall clock of whole calls.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dlcb.benchmarks import zoo
from dlcb.benchmarks.case import DTYPES, Shape, seeded
from dlcb.benchmarks.contenders import COMMON, HOT_AFTER, Built, Request, build, fresh_caches
from dlcb.benchmarks.networks import VISION, Network, case_of, fastest, in_layout, layouts
from dlcb.benchmarks.report import Row, Table
from dlcb.benchmarks.runner import Benchmark, Case, Settings
from dlcb.benchmarks.timing import Call, Spread, seconds_to_host, synchronize, wall_ms

SIZE, QUICK_SIZE = 4096, 32
STEPS = 5
"""Sizes of a stream."""
STRIDE = 7
"""From one shape of a model's list to the next of the stream: sizes that come one after another differ in all dims."""
PATIENCE_S = 120.0
HOT_CALLS = HOT_AFTER - 1
"""Before the call at which the compile is asked for; the first one is made by `build`."""


class Fusible(nn.Module):
    """Pointwise operations, a norm and a softmax: eager goes through memory for each of them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.scale, self.shift = nn.Parameter(torch.rand(width)), nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        y = F.gelu(x * self.scale + self.shift)
        y = self.norm(y + x)
        y = torch.softmax(y, -1) * torch.sigmoid(x)
        return torch.tanh(y) + x


def products(width: int) -> nn.Module:
    """Matrix products, and little else."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers)


GRAPHS: dict[str, Callable[[int], nn.Module]] = {"fusible": Fusible, "products": products}
MODELS = tuple(dict.fromkeys((*VISION, *zoo.REAL)))


def network(settings: Settings, name: str, dtype: str) -> Network:
    if name not in GRAPHS:
        return Network(case_of(name, settings.quick), DTYPES[dtype], settings.device)
    width = QUICK_SIZE if settings.quick else SIZE
    shape = (width + width // 2, width)
    argument = "x" if name == "fusible" else "input"
    case = zoo.Case(
        name,
        seeded(lambda: GRAPHS[name](width)),
        lambda shape, dtype: {argument: torch.randn(shape, dtype=dtype)},
        shape,
        (shape,),
    )
    return Network(case, DTYPES[dtype], settings.device)


# Speed-up, and after how many calls it pays


@dataclass
class Eager:
    """A model, and eager's first call and later ones, which others are compared with."""

    settings: Settings
    network: Network

    def __post_init__(self) -> None:
        inputs = self.inputs()
        with build("eager", Request(self.network.model, inputs[0])) as built:
            self.built = built
            self.spread = self.timed([built.bind(given) for given in inputs])

    def inputs(self) -> list[dict[str, Any]]:
        return [self.network.inputs(self.network.case.example) for _ in range(2)]

    def timed(self, calls: list[Call]) -> Spread:
        rounds, batch = (2, 2) if self.settings.quick else (15, 10)
        return wall_ms(calls, self.settings.device, rounds, batch)

    def row(self, built: Built, spread: Spread) -> Row:
        """A contender beside eager, as fields of a row."""
        first_s, ms = self.built.first_s, self.spread.median
        return {
            **spread.fields("ms"),
            "eager_ms": ms,
            "speedup": ms / spread.median,
            "first_s": built.first_s,
            "eager_first_s": first_s,
            "pays_after": pays_after(built.first_s - first_s, (ms - spread.median) / 1e3),
            "how": built.how,
        }


def compared(eager: Eager, contender: str) -> Iterator[Row]:
    if contender == "eager":
        yield eager.row(eager.built, eager.spread)
        return
    rows: dict[str, Row] = {}
    for name, layout in layouts(contender, eager.inputs()[0]).items():
        inputs = [in_layout(given, layout) for given in eager.inputs()]
        with build(contender, Request(in_layout(eager.network.model, layout), inputs[0], "frozen")) as built:
            judged = eager.network.judged(built.call, inputs[1])
            spread = eager.timed([built.bind(given) for given in inputs])
        rows[name] = judged | eager.row(built, spread)
    yield fastest(rows)


def pays_after(more_s: float, saved_s: float) -> int | None:
    """The number of calls from which on a compiler has cost less time than eager: its first call took `more_s` longer,
    each later one `saved_s` less. None: never."""
    if more_s <= 0:
        return 1
    return 1 + math.ceil(more_s / saved_s) if saved_s > 0 else None


# Sizes one after another


def stream(shapes: tuple[Shape, ...]) -> list[Shape]:
    """Some shapes of a model, none with a 0."""
    usable = [shape for shape in shapes if all(shape)]
    order = dict.fromkeys((1 + STRIDE * at) % len(usable) for at in range(len(usable)))
    return [usable[at] for at in order][:STEPS]


def transitions(settings: Settings, model: Network, contender: str) -> Iterator[Row]:
    shapes = stream(model.case.shapes)
    with ExitStack() as kept:
        built: Built | None = None
        for step, shape in enumerate(shapes):
            inputs = model.inputs(shape)
            if built is None or contender == "dlcb":
                built = kept.enter_context(build(contender, Request(model.model, inputs, "frozen")))
                first_s = built.first_s
            else:
                _, first_s = seconds_to_host(built.bind(inputs))
            judged = model.judged(built.call, inputs)
            rounds, batch = (1, 2) if settings.quick else (5, 10)
            later = wall_ms([built.bind(inputs)], settings.device, rounds, batch)
            about = {"step": step, "shape": named(shape), "first_ms": first_s * 1e3}
            yield {**about, **judged, **later.fields("ms"), "how": built.how}


def named(shape: Shape) -> str:
    return "x".join(map(str, shape))


# Seconds by stage


def stages(settings: Settings, model: Network, contender: str) -> Iterator[Row]:
    inputs = model.inputs(model.case.example)
    with fresh_caches():
        for cache in ("cold", "warm"):
            with build(contender, Request(model.model, inputs, "frozen", fresh=False)) as built:
                judged = model.judged(built.call, inputs, 1)
            for stage, seconds in built.stages_s.items():
                yield {"cache": cache, "stage": stage, "seconds": seconds}
            yield {"cache": cache, "stage": "total", "seconds": built.first_s, **judged}


# Sizes that come often


def hot(settings: Settings, model: Network, contender: str) -> Iterator[Row]:
    shape = stream(model.case.shapes)[0]
    inputs = model.inputs(shape)
    with build(contender, Request(model.model, inputs, "frozen")) as built:
        call: Any = built.call

        def call_ms() -> float:
            began = time.perf_counter()
            call(**inputs)
            synchronize(settings.device)
            return (time.perf_counter() - began) * 1e3

        before = [call_ms() for _ in range(HOT_CALLS)]
        began, meanwhile = time.perf_counter(), list[float]()
        while not call.stats()["specialized"] and time.perf_counter() - began < PATIENCE_S:
            meanwhile.append(call_ms())
        seconds = time.perf_counter() - began
        after = [call_ms() for _ in range(HOT_CALLS)]
        judged = model.judged(call, inputs)
    found = {"before": before[10:], "meanwhile": meanwhile, "after": after[10:]}
    times = {f"{when}_{key}": ms for when, values in found.items() for key, ms in quantiles(values).items()}
    counts = {"calls_meanwhile": len(meanwhile), "specialized": call.stats()["specialized"]}
    yield {"shape": named(shape), "swapped_after_s": seconds, **counts, **judged, **times, "how": built.how}


def quantiles(values: list[float]) -> dict[str, float]:
    """Half, 99 of 100 and all calls take no longer, in milliseconds."""
    ordered = sorted(values) or [0.0]
    last = len(ordered) - 1
    return {"ms_p50": ordered[last // 2], "ms_p99": ordered[last * 99 // 100], "ms_max": ordered[last]}


# All of them

Measure = Callable[[Any, str], Iterator[Row]]
COMPARED = (*COMMON, "dlcb_jit")
ANY_SIZE = ("eager", "tc", "tc_auto", "tc_dynamic", "dlcb", "dlcb_dynamic", "dlcb_jit")
COMPILERS = ("tc", "tc_dynamic", "tc_best", "dlcb", "dlcb_dynamic")


def cases(settings: Settings) -> Iterator[Case]:
    for experiment in settings.experiments:
        for name in settings.programs:
            for dtype in settings.dtypes:
                yield from _cases(settings, experiment, name, dtype)


def _cases(settings: Settings, experiment: str, name: str, dtype: str) -> Iterator[Case]:
    """The case of a program in an experiment, if it is part of it: graphs are of the first, models of the others."""
    if (name in GRAPHS) != (experiment == "optimization"):
        return

    def with_eager() -> Eager:
        return Eager(settings, network(settings, name, dtype))

    of_model = partial(network, settings, name, dtype)
    table: dict[str, tuple[tuple[str, ...], Callable[[], Any], Measure]] = {
        "optimization": (COMPARED, with_eager, compared),
        "amortization": (COMPARED, with_eager, compared),
        "transitions": (ANY_SIZE, of_model, partial(transitions, settings)),
        "stages": (COMPILERS, of_model, partial(stages, settings)),
        "hot": (("dlcb_hot",), of_model, partial(hot, settings)),
    }
    possible, prepare, measure = table[experiment]
    contenders = tuple(c for c in settings.contenders if c in possible)
    yield Case({"experiment": experiment, "program": name, "dtype": dtype}, contenders, prepare, measure)


BENCHMARK = Benchmark(
    "compile",
    "what compiling costs and brings: speed-up, amortization, changes of sizes, stages",
    units={
        "speedup": "times as fast as eager",
        "pays_after": "calls after which the compile is paid back",
        "first_s": "seconds",
        "first_ms": "milliseconds of the first call of a size",
        "ms": "milliseconds a call",
        "seconds": "seconds to the first result on the host",
        "swapped_after_s": "seconds until a size that came often has its own program",
    },
    tables=(
        Table("speedup", ("program", "dtype"), "optimization"),
        Table("speedup", ("program", "dtype"), "amortization"),
        Table("pays_after", ("program", "dtype"), "amortization"),
        Table("first_ms", ("program", "dtype", "step", "shape"), "transitions"),
        Table("seconds", ("program", "dtype", "stage", "cache"), "stages"),
        Table("swapped_after_s", ("program", "dtype", "shape"), "hot"),
    ),
    programs=("fusible", "products", "resnet18", "bert_base"),
    quick_programs=("fusible", "products", "rows"),
    more_programs=MODELS,
    dtypes=("f16",),
    contenders=(*COMMON, "tc_auto", "dlcb_jit", "dlcb_hot"),
    experiments=("optimization", "amortization", "transitions", "stages", "hot"),
    cases=cases,
)
