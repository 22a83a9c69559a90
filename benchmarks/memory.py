"""Programs that are bound by memory: useful bytes a second, beside a copy on the device in the same run.

Useful bytes are each input and each output once. Times are those of calls in a CUDA graph, by device events, with
inputs in turn; every contender is captured into such a graph, so launches cost none of them anything. `tc_best` is
`max-autotune-no-cudagraphs` here, since the graph is there. Contenders for all sizes are built at another size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dlcb.benchmarks.accuracy import judge_all, tensors_of
from dlcb.benchmarks.case import DTYPES, placed
from dlcb.benchmarks.contenders import ONE_SIZE, Built, Request, build
from dlcb.benchmarks.report import Row, Table, verdict_fields
from dlcb.benchmarks.runner import Benchmark, Case, Settings
from dlcb.benchmarks.timing import clock_of, replayed_ms

Size = tuple[int, int]
Inputs = tuple[Any, ...]

SIZES: tuple[Size, ...] = ((16384, 4096), (16376, 4095))
QUICK_SIZES: tuple[Size, ...] = ((64, 48), (61, 45))
EXAMPLE, QUICK_EXAMPLE = (8184, 2040), (40, 36)
"""What contenders for all sizes are built at."""
ALIGNED = 4096
"""Elements whose multiples are copied."""
SETS = 3
"""Sets of inputs that take turns: each is several times what the cache holds."""


@dataclass(frozen=True)
class Bound:
    """A program bound by memory. `inputs(n, m)` are random, in float32 where they are floating. `bytes` counts what
    is useful where that is not all of the inputs and outputs."""

    run: Callable[..., Any]
    inputs: Callable[[int, int], Inputs]
    bytes: Callable[[Inputs, Sequence[Tensor]], int] = lambda inputs, outputs: size_bytes(inputs) + size_bytes(outputs)


def size_bytes(value: Any) -> int:
    return sum(t.numel() * t.itemsize for t in tensors_of(value))


def pointwise(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return F.silu(x * row + column) + x


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The norm is computed in float32, as models in half precision do."""
    total = x + residual
    wide = total.float() if total.dtype in (torch.float16, torch.bfloat16) else total
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return (wide * scale).to(x.dtype) * weight, total


def permute_add(x: Tensor, y: Tensor) -> Tensor:
    return x.t() + y


def column_sum(x: Tensor) -> Tensor:
    return x.sum(0)


def cat(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.cat((a, b, c), 1)


def embedding_add(ids: Tensor, table: Tensor, x: Tensor) -> Tensor:
    return F.embedding(ids, table) + x


def _parts(n: int, m: int) -> Inputs:
    first, second = m // 3, m // 4
    return tuple(torch.randn(n, part) for part in (first, second, m - first - second))


def _embedded(n: int, m: int) -> Inputs:
    """Each row of the table at most once."""
    return torch.randperm(2 * n)[:n], torch.randn(2 * n, m), torch.randn(n, m)


def _embedded_bytes(inputs: Inputs, outputs: Sequence[Tensor]) -> int:
    ids, table, x = inputs
    return size_bytes((ids, x, *outputs)) + ids.numel() * table.shape[1] * table.itemsize


PROGRAMS: dict[str, Bound] = {
    "pointwise": Bound(pointwise, lambda n, m: (torch.randn(n, m), torch.randn(m), torch.randn(n, 1))),
    "softmax": Bound(softmax, lambda n, m: (torch.randn(n, m),)),
    "layer_norm": Bound(layer_norm, lambda n, m: (torch.randn(n, m), torch.randn(m), torch.randn(m))),
    "rms_norm_residual": Bound(rms_norm_residual, lambda n, m: (torch.randn(n, m), torch.randn(n, m), torch.randn(m))),
    "permute_add": Bound(permute_add, lambda n, m: (torch.randn(m, n), torch.randn(n, m))),
    "column_sum": Bound(column_sum, lambda n, m: (torch.rand(n, m) + 0.5,)),
    "cat": Bound(cat, _parts),
    "embedding_add": Bound(embedding_add, _embedded, _embedded_bytes),
}


class Subject:
    """A program in one dtype: sets of inputs for each size, and what its results should be."""

    def __init__(self, program: Bound, dtype: torch.dtype, settings: Settings) -> None:
        self.run, self._program, self._dtype, self._device = program.run, program, dtype, settings.device
        self._sets: dict[Size, list[Inputs]] = {}

    def sets(self, size: Size) -> list[Inputs]:
        if size not in self._sets:
            self._sets[size] = [self.inputs(size) for _ in range(SETS)]
        return self._sets[size]

    def inputs(self, size: Size) -> Inputs:
        with torch.device(self._device):
            return placed(self._program.inputs(*size), self._device, self._dtype)

    def judged(self, results: Sequence[Any], size: Size) -> Row:
        """Results of all sets, as fields of a row."""
        verdicts = [
            verdict
            for result, given in zip(results, self.sets(size), strict=True)
            for verdict in judge_all(result, self.run(*given), self.run(*placed(given, self._device, torch.float64)))
        ]
        return verdict_fields(verdicts)

    def bytes(self, size: Size) -> int:
        given = self.sets(size)[0]
        return self._program.bytes(given, tensors_of(self.run(*given)))


class Copies:
    """Copies on the device of the bytes that a matrix of a size and dtype has, and a few more: a driver copies what is
    no multiple of its vectors a third more slowly, which is no measure of the memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[tuple[Size, torch.dtype], Row] = {}

    def row(self, size: Size, dtype: torch.dtype) -> Row:
        """Measured once a run."""
        if (size, dtype) not in self._known:
            self._known[size, dtype] = self._measure(size, dtype)
        return self._known[size, dtype]

    def _measure(self, size: Size, dtype: torch.dtype) -> Row:
        device = self._settings.device
        elements = -(-size[0] * size[1] // ALIGNED) * ALIGNED
        sources = [torch.randn(elements, device=device).to(dtype) for _ in range(SETS)]
        spread, results = replayed_ms([s.clone for s in sources], device, *_effort(self._settings))
        ok = all(torch.equal(*tensors_of((result, s))) for result, s in zip(results, sources, strict=True))
        moved = 2 * size_bytes(sources[0])
        found = {"bytes": moved, "gb_s": moved / spread.median / 1e6, "fraction": 1.0}
        return {"size": _named(size), "ok": ok, **spread.fields("ms"), **found, "clock": clock_of(device)}


def _named(size: Size) -> str:
    return f"{size[0]}x{size[1]}"


def _sizes(settings: Settings) -> tuple[Size, ...]:
    return QUICK_SIZES if settings.quick else SIZES


def _effort(settings: Settings) -> tuple[int, int]:
    """Rounds, and repeats of all sets in a graph."""
    return (3, 1) if settings.quick else (25, 4)


def measure(settings: Settings, dtype: str, copies: Copies, subject: Subject, contender: str) -> Iterator[Row]:
    if contender in ONE_SIZE:
        for size in _sizes(settings):
            with build(contender, Request(subject.run, subject.sets(size)[0], graphs=False)) as built:
                yield timed(settings, built, DTYPES[dtype], copies, subject, size)
    else:
        example = subject.inputs(QUICK_EXAMPLE if settings.quick else EXAMPLE)
        with build(contender, Request(subject.run, example, graphs=False)) as built:
            for size in _sizes(settings):
                yield timed(settings, built, DTYPES[dtype], copies, subject, size)


def timed(settings: Settings, built: Built, dtype: torch.dtype, copies: Copies, subject: Subject, size: Size) -> Row:
    """The row of one size."""
    spread, results = replayed_ms(
        [built.bind(given) for given in subject.sets(size)], settings.device, *_effort(settings)
    )
    moved, reached = subject.bytes(size), copies.row(size, dtype)["gb_s"]
    found = {"bytes": moved, "gb_s": moved / spread.median / 1e6, "copy_gb_s": reached}
    return {
        "size": _named(size),
        **subject.judged(results, size),
        **spread.fields("ms"),
        **found,
        "fraction": found["gb_s"] / reached,
        "first_s": built.first_s,
        "how": built.how,
        "clock": clock_of(settings.device),
    }


def _copied(settings: Settings, dtype: str, copies: Copies, contender: str) -> Iterator[Row]:
    for size in _sizes(settings):
        yield copies.row(size, DTYPES[dtype])


def cases(settings: Settings) -> Iterator[Case]:
    copies = Copies(settings)
    for dtype in settings.dtypes:
        yield Case({"program": "copy", "dtype": dtype}, ("copy",), lambda: copies, partial(_copied, settings, dtype))
        for name in settings.programs:
            yield Case(
                {"program": name, "dtype": dtype},
                settings.contenders,
                partial(Subject, PROGRAMS[name], DTYPES[dtype], settings),
                partial(measure, settings, dtype, copies),
            )


BENCHMARK = Benchmark(
    "memory",
    "programs bound by memory: bytes a second beside a device copy",
    units={
        "fraction": "fraction of a device copy's bytes a second",
        "gb_s": "GB/s of useful bytes",
        "ms": "milliseconds of the device",
        "first_s": "seconds",
    },
    tables=(Table("fraction", ("program", "dtype", "size")),),
    programs=tuple(PROGRAMS),
    dtypes=("f16", "bf16", "f32"),
    contenders=("eager", "tc", "tc_dynamic", "tc_best", "dlcb", "dlcb_dynamic"),
    cases=cases,
)
