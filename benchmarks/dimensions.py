"""Which sizes of its inputs each model may vary, by DLCB and by torch.export: docs/dimensions.md.

    python -P -m dlcb.benchmarks.dimensions [--models unet,bert] [--limit 300] [--out docs/dimensions.md]

DLCB captures the program and solves its sizes; no kernel is made. torch.export has `Dim.AUTO` for every dim.
"""

from __future__ import annotations

import argparse
import logging
import re
import signal
import statistics
import string
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from dlcb.benchmarks import shape_models, transformer_models, vision_models
from dlcb.benchmarks.case import Case, Shape
from dlcb.dialects.shape.expr import evaluate
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import UnsupportedError
from dlcb.frontend import export_dims
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.inputs import read_arguments
from dlcb.frontend.importer import Imported, import_or_survey
from dlcb.frontend.tracing.records import Captured
from dlcb.lowering.lower import context
from dlcb.lowering.pipeline import run
from dlcb.passes.functions import functions, system_of
from dlcb.passes.solve import dimensions_of

QUICK_S = 2.0
"""What takes less is measured several times."""
RUNS = 3

ABOUT = """# Sizes that may vary, by DLCB and by torch.export

Made by `python -m dlcb.benchmarks.dimensions` with torch {torch}. Both get the model and one example, and nobody
says which sizes may vary; torch.export has `Dim.AUTO` for every dim of every input. The first models are those of
`benchmarks/shape_models.py`, whose examples have equal sizes that mean different things: square pictures, four heads
and a batch of four. Models of torchvision have their real sizes; transformers are tiny but with every kind of layer.

The columns *DLCB* and *torch.export* have the dims of each input: a number is fixed, a letter may vary, equal letters
are tied, `a≥9` has a least size; a size that may be 1 to be broadcast, or another one, has a letter of its own.
*Seconds* are of one core's time: capture, import and solving by DLCB, the export by torch. *Taken*: of other sizes that
eager takes, those that the result takes without an error, its checks and guards asked.
Of the windowed transformers, other sizes that go another way of the program are traced when they come: *taken* counts
the first trace alone.

| model | DLCB | seconds | taken | torch.export | seconds | taken |
|---|---|---|---|---|---|---|"""

Inputs = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Found:
    """What one of both makes of a model. `limits`: texts for symbols, such as `≥9`; `reason`: why there is nothing."""

    dims: export_dims.Dims = field(default_factory=dict[str, tuple[int | str, ...]])
    limits: Mapping[str, str] = field(default_factory=dict[str, str])
    takes: Callable[[Inputs], bool] = lambda _: False
    seconds: float = 0.0
    reason: str = ""

    def kept(self) -> set[tuple[str, int]]:
        """Argument and dim of all that may vary."""
        return {(name, at) for name, dims in self.dims.items() for at, dim in enumerate(dims) if isinstance(dim, str)}

    def __str__(self) -> str:
        """`x[a, 3, b≥9, b]`, with a letter for each symbol."""
        if self.reason:
            return self.reason
        symbols = _symbols(dim for dims in self.dims.values() for dim in dims)
        letters = dict(zip(symbols, _letters(), strict=False))
        limited: set[str] = set()

        def letter(symbol: str) -> str:
            limit = "" if symbol in limited else self.limits.get(symbol, "")
            limited.add(symbol)
            return letters[symbol] + limit

        def text(dim: int | str) -> str:
            return _SYMBOL.sub(lambda found: letter(found[0]), str(dim))

        return " ".join(f"{name}[{', '.join(map(text, dims))}]" for name, dims in self.dims.items())


_SYMBOL = re.compile(r"[A-Za-z_]\w*")


def _symbols(dims: Iterable[int | str]) -> list[str]:
    return list(dict.fromkeys(name for dim in dims if isinstance(dim, str) for name in _SYMBOL.findall(dim)))


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase
    yield from (one + other for one in string.ascii_lowercase for other in string.ascii_lowercase)


# DLCB


def by_dlcb(model: torch.nn.Module, inputs: Inputs, runs: int = 1) -> Found:
    """What `dlcb.compile` would keep."""
    (dims, system), seconds = _timed(lambda: _solved(capture(model, (), dict(inputs))), runs)
    return Found(dims, takes=lambda other: _holds(system, model, other), seconds=seconds)


def _solved(captured: Captured) -> tuple[export_dims.Dims, System]:
    """The dims of the inputs, and what remains to be checked. Of a program that is not wholly native: what its capture
    says."""
    imported = import_or_survey(captured)
    if not isinstance(imported, Imported):
        return _captured_dims(captured), imported.system
    run(imported.module, context(), until="solve")
    main = next(func for func in functions(imported.module) if func.symbol == "main")
    states = {(d.argument, d.dim): _dim(d.state) for d in dimensions_of(main)}
    tensors = {given.name: len(given.symbols) for given in captured.inputs if given.kind == "tensor"}
    dims = {name: tuple(states[name, at] for at in range(rank)) for name, rank in tensors.items()}
    return dims, system_of(main)


def _dim(state: str) -> int | str:
    """`equal to x_0 by concat: …` and `free as x_0; checked …` → x_0."""
    words = re.match(r"(?:free as|equal to|tied to|pinned to|stays|given as) (.+?)(?: by .*|[:;].*)?$", state)
    assert words is not None, state
    return int(words[1]) if words[1].isdigit() else words[1]


def _captured_dims(captured: Captured) -> export_dims.Dims:
    pins = {pin.symbol: pin.value for pin in captured.pins}
    return {
        given.name: tuple(pins.get(str(symbol), str(symbol)) for symbol in given.symbols)
        for given in captured.inputs
        if given.kind == "tensor"
    }


def _holds(system: System, model: torch.nn.Module, inputs: Inputs) -> bool:
    """Whether inputs of these sizes pass the checks."""
    leaves = {leaf.name: leaf for leaf in read_arguments(model, (), inputs).leaves}

    def value(source: Source) -> int:
        given = leaves[source.argument].example
        if source.dim is None:
            return given
        return given.shape[source.dim] if source.kind == "size" else given.stride(source.dim)

    known = {s: value(source) for s, source in system.symbols.items() if source.argument in leaves}
    checks = [system.value(require.condition) for require in system.requires]
    return all(evaluate(check, known) for check in checks if check.free <= known.keys())


# torch.export


def by_export(model: torch.nn.Module, inputs: Inputs, runs: int = 1) -> Found:
    """What `torch.export` keeps."""
    program, seconds = _timed(lambda: export_dims.export_all_free(model, inputs), runs)
    dims = export_dims.exported_dims(program, model, inputs)
    limits = {symbol: _limit(low, high) for symbol, low, high in export_dims.exported_limits(program)}
    return Found(dims, limits, export_dims.taker(program), seconds)


def _limit(low: int, high: int | None) -> str:
    return f"≥{low}" if high is None else f" in {low}…{high}"


# Both


def _timed(work: Callable[[], T], runs: int) -> tuple[T, float]:
    """The median of the runs; of one where that is not quick."""
    result, seconds = _once(work)
    more = range(1, runs if seconds <= QUICK_S else 1)
    return result, statistics.median([seconds, *(_once(work)[1] for _ in more)])


def _once(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


class _TooLong(BaseException):
    """No `Exception`, which torch would take for an answer of the program."""


@contextmanager
def _at_most(seconds: int) -> Generator[None]:
    """Of the process's own time."""

    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


Way = Callable[[torch.nn.Module, Inputs, int], Found]


def found(way: Way, case: Case, limit_s: int) -> Found:
    """What one of both makes of the model, or why there is nothing."""
    model = case.build()
    torch.manual_seed(1)
    try:
        with _at_most(limit_s):
            return way(model, case.inputs(case.example, torch.float32), RUNS)
    except _TooLong:
        return Found(reason=f"none in {limit_s} s")
    except UnsupportedError as error:
        return Found(reason=f"not yet: {error}")
    except Exception as error:  # one model's failure must not lose the others' rows
        first = str(error).strip().partition("\n")[0].replace("|", "\\|")
        return Found(reason=f"{type(error).__name__}: {first[:160]}")


def row(name: str, case: Case, limit_s: int) -> str:
    cells = [name]
    shapes = list(_in_eager(case))
    for way in (by_dlcb, by_export):
        one = found(way, case, limit_s)
        taken = sum(one.takes(case.inputs(shape, torch.float32)) for shape in shapes)
        figures = ("", "") if one.reason else (f"{one.seconds:.2f}", f"{taken} of {len(shapes)}")
        cells += [str(one), *figures]
    return f"| {' | '.join(cells)} |"


def _in_eager(case: Case) -> Iterator[Shape]:
    """The case's shapes that the model itself takes."""
    model = case.build()
    for shape in case.shapes:
        try:
            with torch.no_grad():
                model(**case.inputs(shape, torch.float32))
        except (RuntimeError, ValueError, IndexError, AssertionError):
            continue
        yield shape


SQUARE: tuple[Shape, ...] = ((1, 64, 64), (3, 65, 97), (2, 224, 160), (1, 224, 224))
"""What pictures of torchvision's models are tried at."""


def _vision(name: str) -> Case:
    case = vision_models.case(name)
    other = {"r3d_18": ((1, 4, 40, 56), (3, 9, 64, 48)), "raft_small": ((1, 128, 128), (3, 136, 160))}
    return Case(name, case.build, case.inputs, case.example, other.get(name, SQUARE))


def cases() -> dict[str, Callable[[], Case]]:
    vision = {name: (lambda name=name: _vision(name)) for name in vision_models.NAMES}
    tiny = {name if name not in vision else f"{name}_tiny": case for name, case in transformer_models.SMALL.items()}
    return {**shape_models.SMALL, **tiny, **vision}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(cases()))
    parser.add_argument("--limit", type=int, default=300, help="seconds for each model, by each of both")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    lines = [ABOUT.format(torch=torch.__version__)]
    for name in options.models.split(","):
        lines.append(row(name, cases()[name](), options.limit))
        print(lines[-1], flush=True)
        if options.out:
            options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
