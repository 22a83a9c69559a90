"""What a run found: JSON that is whole after every row, and a short table."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dlcb.benchmarks.accuracy import Verdict

Row = dict[str, Any]

FORMAT = 1
SCHEMA = {
    "format": int,
    "benchmark": str,
    "date": str,
    "machine": dict,
    "options": dict,
    "units": dict,
    "seconds": float,
    "finished": bool,
    "skipped": list,
    "rows": list,
}
"""The fields of a file of results. `units` are those of fields of rows; `ms_p10` and `ms_p90` have that of `ms`. A row
has `contender` and `ok`; one that is not ok has `failed`, the error, or `reason`, what is wrong with its results. An
entry of `skipped` says in `reason` why it was not measured."""


def today() -> str:
    return datetime.date.today().isoformat()


def machine(device: torch.device) -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Of the packages that times depend on, those that are installed."""
    found: dict[str, str] = {}
    for name in ("dlcb", "triton", "xdsl", "cuda-python", "torchvision", "transformers"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class Report:
    """A file of results. It is written anew, in one step, with every row."""

    def __init__(
        self, path: Path, benchmark: str, units: Mapping[str, str], device: torch.device, options: Mapping[str, Any]
    ) -> None:
        self.path = path
        self.rows: list[Row] = []
        self.skipped: list[Row] = []
        self._began = time.perf_counter()
        self._head = {
            "format": FORMAT,
            "benchmark": benchmark,
            "date": datetime.datetime.now().isoformat(timespec="seconds"),
            "machine": machine(device) | versions(),
            "options": dict(options),
            "units": dict(units),
        }
        self.write()

    @property
    def seconds(self) -> float:
        """Since the beginning of the run."""
        return time.perf_counter() - self._began

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.write()

    def skip(self, what: Mapping[str, Any], reason: str) -> None:
        self.skipped.append({**what, "reason": reason})
        self.write()

    def write(self, finished: bool = False) -> None:
        tail = {"seconds": self.seconds, "finished": finished, "skipped": self.skipped, "rows": self.rows}
        write_whole(self.path, json.dumps(self._head | tail, indent=1) + "\n")


def write_whole(path: Path, text: str) -> None:
    """The file has the old text or the new one, whenever the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def read_report(path: Path) -> dict[str, Any]:
    """A file of results; a ValueError for one that is none."""
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: no results of a benchmark: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ValueError(f"{path}: no results of a benchmark of format {FORMAT}")
    wrong = [name for name, kind in SCHEMA.items() if not isinstance(found.get(name), kind)]
    if wrong:
        raise ValueError(f"{path}: no results of a benchmark: missing or of another kind: {', '.join(wrong)}")
    return found


def verdict_fields(verdicts: Sequence[Verdict]) -> Row:
    """Whether all results are right, the worst errors, and what is wrong with the first that is not right."""
    wrong = [verdict.reason for verdict in verdicts if not verdict.ok]
    errors = {
        "error": max((v.error for v in verdicts), default=0.0),
        "eager_error": max((v.eager_error for v in verdicts), default=0.0),
    }
    return {"ok": not wrong, **errors} | ({"reason": wrong[0]} if wrong else {})


def column(row: Row) -> str:
    """What a row's contender is called: `dlcb frozen` where kinds of weights are told apart."""
    return " ".join(row[name] for name in ("contender", "weights") if name in row)


@dataclass(frozen=True, slots=True)
class Table:
    """A line for each combination of the fields of `index`, a column for each contender, the field `value` in it; of
    the rows of one experiment, where a benchmark has several."""

    value: str
    index: tuple[str, ...]
    experiment: str | None = None


def table(rows: Sequence[Row], wanted: Table) -> Iterator[str]:
    """Lines of text; none where there are no such rows."""
    index, value = wanted.index, wanted.value
    shown = [row for row in rows if row.get("experiment") == wanted.experiment and (value in row or not row["ok"])]
    if not shown:
        return
    columns = list(dict.fromkeys(map(column, shown)))
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in shown:
        key = tuple(str(row[name]) for name in index if name in row)
        cells.setdefault(key, {}).setdefault(column(row), _cell(row, value))
    lines = [["", *columns], *([" ".join(key), *(by.get(c, "") for c in columns)] for key, by in cells.items())]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns) + 1)]
    for first, *others in lines:
        yield "  ".join([first.ljust(widths[0]), *(o.rjust(w) for o, w in zip(others, widths[1:], strict=True))])


def _cell(row: Row, value: str) -> str:
    if value not in row:
        return "failed" if "failed" in row else "WRONG"
    found = row[value]
    return ("never" if found is None else f"{found:.4g}") + ("" if row["ok"] else " WRONG")
