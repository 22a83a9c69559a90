"""Runs a benchmark: its cases in order, each for every contender, within a time budget; a failure is a row."""

from __future__ import annotations

import gc
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from dlcb.benchmarks.contenders import COMMON, why_not
from dlcb.benchmarks.report import Report, Row, Table, table

QUICK_DTYPES = ("f32",)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is asked for. What is empty of `contenders`, `dtypes`, `programs` and `experiments` is the
    benchmark's."""

    json: Path
    quick: bool = False
    contenders: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
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
    are those of a quick one; `more_programs` are measured where they are named. `units` are those of fields of rows."""

    name: str
    about: str
    units: Mapping[str, str]
    tables: tuple[Table, ...]
    programs: tuple[str, ...]
    dtypes: tuple[str, ...]
    cases: Callable[[Settings], Iterable[Case]]
    contenders: tuple[str, ...] = COMMON
    quick_programs: tuple[str, ...] = ()
    more_programs: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()

    @property
    def all_programs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.programs, *self.quick_programs, *self.more_programs)))

    def complete(self, settings: Settings) -> Settings:
        """The settings with what they leave open."""
        programs = self.quick_programs if settings.quick and self.quick_programs else self.programs
        return replace(
            settings,
            contenders=tuple(c for c in settings.contenders or self.contenders if c in self.contenders),
            dtypes=settings.dtypes or (QUICK_DTYPES if settings.quick else self.dtypes),
            programs=settings.programs or programs,
            experiments=settings.experiments or self.experiments,
        )


def run(benchmark: Benchmark, settings: Settings) -> Report:
    """Measure all, in single precision as it is and not TF32; the report is written as rows come."""
    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
        return _run(benchmark, settings)


def _run(benchmark: Benchmark, settings: Settings) -> Report:
    asked, settings = settings.contenders, benchmark.complete(settings)
    torch.manual_seed(settings.seed)
    report = Report(settings.json, benchmark.name, benchmark.units, settings.device, settings.options())
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
    """Memory of the device that nothing uses goes back."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def shown(benchmark: Benchmark, report: Report) -> Iterator[str]:
    """The tables, then what went wrong and what was left out."""
    for wanted in benchmark.tables:
        lines = list(table(report.rows, wanted))
        if lines:
            title = " ".join(filter(None, (benchmark.name, wanted.experiment)))
            yield from (f"{title}: {benchmark.units[wanted.value]}", *lines, "")
    for row in report.rows:
        if not row["ok"]:
            yield f"{_named(row)}: {row.get('failed') or row.get('reason')}"
    for reason, count in Counter(entry["reason"] for entry in report.skipped).items():
        yield f"{count} skipped: {reason}"
    yield f"{len(report.rows)} rows, {len(report.skipped)} skipped, {report.seconds:.0f} s"


def _named(row: Row) -> str:
    """What was measured: the texts of the row."""
    return " ".join(str(v) for k, v in row.items() if isinstance(v, str) and k not in ("failed", "reason", "how"))


def exit_status(report: Report) -> int:
    """1 where a result of DLCB's is wrong, or missing for an error."""
    return int(any(not row["ok"] and row["contender"].startswith("dlcb") for row in report.rows))
