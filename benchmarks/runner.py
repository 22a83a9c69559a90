"""Runs a benchmark: its cases in order, each for every contender, within a time budget; a failure is a row."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from dlcb.benchmarks.contenders import COMMON, why_not
from dlcb.benchmarks.report import Report, Row, table


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is asked for. Empty `contenders`, `dtypes` and `programs`: those of the benchmark."""

    json: Path
    quick: bool = False
    contenders: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    seconds: float | None = None
    seed: int = 0
    device: torch.device = field(
        default_factory=lambda: torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    )

    def options(self) -> dict[str, Any]:
        """For the report, which names no path."""
        return {k: v for k, v in asdict(self).items() if k not in ("json", "device")} | {"tf32": False}


@dataclass(frozen=True, slots=True)
class Case:
    """A program that contenders run. `key`: fields of all its rows. `prepare` makes what they share, which is dropped
    after the last of them; `measure(shared, contender)` yields the rows of one, without these fields."""

    key: Mapping[str, Any]
    contenders: Sequence[str]
    prepare: Callable[[], Any]
    measure: Callable[[Any, str], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`programs`, `dtypes` and `contenders` are those of a run that names none; `quick_programs`, where there are any,
    are those of a quick one. The table at the end has a row for each combination of `index`, with the field `value` of
    each contender."""

    name: str
    about: str
    unit: str
    value: str
    index: tuple[str, ...]
    programs: tuple[str, ...]
    dtypes: tuple[str, ...]
    cases: Callable[[Settings], Iterable[Case]]
    contenders: tuple[str, ...] = COMMON
    quick_programs: tuple[str, ...] = ()

    def complete(self, settings: Settings) -> Settings:
        """The settings with what they leave open."""
        programs = self.quick_programs if settings.quick and self.quick_programs else self.programs
        return Settings(
            settings.json,
            settings.quick,
            tuple(c for c in settings.contenders or self.contenders if c in self.contenders),
            settings.dtypes or self.dtypes,
            settings.programs or programs,
            settings.seconds,
            settings.seed,
            settings.device,
        )


def run(benchmark: Benchmark, settings: Settings) -> Report:
    """Measure all; the report is written as rows come."""
    asked, settings = settings.contenders, benchmark.complete(settings)
    torch.manual_seed(settings.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    report = Report(settings.json, benchmark.name, benchmark.unit, settings.device, settings.options())
    for contender in asked:
        if contender not in benchmark.contenders:
            report.skip({"contender": contender}, f"not part of {benchmark.name}")
    cases = list(benchmark.cases(settings))
    total, number = sum(len(case.contenders) for case in cases), 0
    for case in cases:
        shared: list[Any] = []
        for contender in case.contenders:
            number += 1
            key = {**case.key, "contender": contender}
            reason = _why_skipped(contender, settings, report)
            if reason is not None:
                report.skip(key, reason)
                continue
            _progress(f"[{number}/{total}, {report.seconds:.0f} s] {' '.join(map(str, key.values()))}")
            try:
                for row in _rows(case, contender, shared):
                    report.add(key | row)
            except ModuleNotFoundError as error:
                report.skip(key, f"needs {error.name}")
        del shared
        _release(settings.device)
    report.write(finished=True)
    return report


def _why_skipped(contender: str, settings: Settings, report: Report) -> str | None:
    if settings.seconds is not None and report.seconds > settings.seconds:
        return f"the time budget of {settings.seconds:g} s was spent"
    return why_not(contender, settings.device)


def _rows(case: Case, contender: str, shared: list[Any]) -> Iterator[Row]:
    """The rows of one contender. An error ends them, as a row, but for a missing module; `shared` is filled the first
    time."""
    try:
        if not shared:
            shared.append(case.prepare())
        for row in case.measure(shared[0], contender):
            yield {"ok": True, **row}
    except ModuleNotFoundError:
        raise
    except Exception as error:  # one contender's failure must not lose the others' rows
        _progress(traceback.format_exc())
        yield {"ok": False, "failed": f"{type(error).__name__}: {str(error)[:500]}"}


def _release(device: torch.device) -> None:
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def shown(benchmark: Benchmark, report: Report) -> Iterator[str]:
    """The table, then what went wrong."""
    yield f"{benchmark.name}, {benchmark.unit}"
    yield from table(report.rows, benchmark.index, benchmark.value)
    for row in report.rows:
        if not row["ok"]:
            key = " ".join(str(row[name]) for name in (*benchmark.index, "contender") if name in row)
            yield f"{key}: {row.get('failed') or row.get('reason')}"
    yield f"{len(report.rows)} rows, {len(report.skipped)} skipped, {report.seconds:.0f} s"


def exit_status(report: Report) -> int:
    """1 where a result of DLCB's is wrong, or missing for an error."""
    return int(any(not row["ok"] and row["contender"].startswith("dlcb") for row in report.rows))
