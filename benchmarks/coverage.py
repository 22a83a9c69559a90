"""How much of each model DLCB compiles, how long that takes, and which sizes of its inputs are free: docs/models.md.

    python -P -m dlcb.benchmarks.coverage [--models resnet18,bert] [--out docs/models.md]

Models of torchvision have their real sizes; transformers are tiny but with every kind of layer, as in the tests. The
kernels are compiled for the CPU target but not run.
"""

from __future__ import annotations

import argparse
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from dlcb.benchmarks import transformer_models, vision_models
from dlcb.benchmarks.case import Case
from dlcb.errors import UnsupportedError
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import Imported, import_or_survey
from dlcb.frontend.options import Options
from dlcb.frontend.partition.build import build_captured
from dlcb.frontend.tracing.records import Captured
from dlcb.lowering.lower import lower
from dlcb.runtime.report import Report

TRANSFORMERS = (
    "bert", "roberta", "gpt2", "llama", "qwen2", "t5", "distilbert", "albert", "electra", "gpt_neox", "mistral",
    "gemma", "mamba",
)  # fmt: skip
ABOUT = """# Models

Made by `python -m dlcb.benchmarks.coverage` with torch {torch}. Models of torchvision have their real sizes;
transformers are tiny but with every kind of layer, as in the tests.

*Native*: ops that run in kernels of DLCB or in calls of its closed list of libraries, of all ops; the rest runs in
eager, and is named. *Seconds*: of one core's time, for capture, import and all stages down to the text of the kernels;
the C++ compiler or NVRTC comes after. *Free*: dims of the inputs that vary from one compile, as far as the model itself
lets them. *Fixed*: the others, and who says so. *Branches*: lines at which the model's Python goes another way at some
sizes; sizes that go another way than the example's are refused.
"""
HEADING = "| model | ops | native | seconds | free | fixed | branches |\n|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Row:
    """What is known of one model; `reason` is why it does not compile at all."""

    name: str
    report: Report | None = None
    seconds: float = 0.0
    branches: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        report = self.report
        if report is None:
            return f"| {self.name} | | not yet: {self.reason} | | | | |"
        free = ", ".join(dim for dim, state in report.dimensions.items() if _is_free(state))
        fixed = "; ".join(f"{d} {_short(s)}" for d, s in report.dimensions.items() if not _is_free(s))
        cells = (self.name, report.nodes, _native(report), f"{self.seconds:.1f}", free, fixed, ", ".join(self.branches))
        return f"| {' | '.join(map(str, cells))} |"


def _is_free(state: str) -> bool:
    return state.startswith(("free", "equal"))


def _native(report: Report) -> str:
    if not report.eager:
        return "100 %"
    left = Counter(line.partition(":")[0] for line in report.eager)
    names = ", ".join(f"{n} {op}" if n > 1 else op for op, n in left.items())
    return f"{100 * report.native / report.nodes:.0f} % in {report.regions} parts; eager: {names}"


def _short(state: str) -> str:
    """`pinned to 3 by convolution: resnet.py:271: …` → `= 3 (convolution, resnet.py:271)`."""
    found = re.match(r"pinned to (\d+)(?: by|:) (?:\w+: )?(.*)", state)
    if found is None:
        return state
    size, why = found.groups()
    line = re.search(r"\w+\.py:\d+", why)
    op = re.match(r"(\w+): ", state.partition(" by ")[2])
    return f"= {size} ({f'{op[1]}, ' if op else ''}{line[0] if line else why})"


def _branches(captured: Captured) -> tuple[str, ...]:
    lines = (re.search(r"\w+\.py:\d+", check.text) for check in captured.checks if check.comparison is not None)
    return tuple(dict.fromkeys(line[0] for line in lines if line is not None))


def measure(case: Case) -> Row:
    torch.manual_seed(1)
    model = case.build()
    began = time.process_time()
    try:
        captured = capture(model, (), case.inputs(case.example, torch.float32))
        report, seconds = _lowered(captured, time.process_time() - began)
    except UnsupportedError as error:
        return Row(case.name, reason=str(error))
    except Exception as error:  # one model's failure must not lose the others' rows
        traceback.print_exc()
        return Row(case.name, reason=f"{type(error).__name__}: {str(error)[:200]}")
    return Row(case.name, report, seconds, _branches(captured))


def _lowered(captured: Captured, seconds: float) -> tuple[Report, float]:
    """What the compiler tells, and the seconds to the text of the kernels. A program that is all native is lowered for
    that without building its kernels, which takes longest."""
    began = time.process_time()
    imported = import_or_survey(captured)
    native = isinstance(imported, Imported)
    if native:
        lower(imported.module)
    target = "reference" if native else "cpu"
    seconds += time.process_time() - began
    began = time.process_time()
    built, _ = build_captured(captured, captured.name, Options(torch.device("cpu"), target), fullgraph=False)
    return built.report, seconds if native else seconds + time.process_time() - began


def cases() -> dict[str, tuple[str, Callable[[], Case]]]:
    """Every model of the table, with its part of the table."""
    vision = {n: ("torchvision", lambda n=n: vision_models.case(n)) for n in vision_models.NAMES}
    return vision | {n: ("transformers", transformer_models.SMALL[n]) for n in TRANSFORMERS}


def table(names: list[str]) -> Iterator[str]:
    known = cases()
    for part in dict.fromkeys(known[name][0] for name in names):
        yield f"\n## {part}\n\n{HEADING}"
        yield from (str(measure(known[name][1]())) for name in names if known[name][0] == part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(cases()))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names: list[str] = options.models.split(",")
    lines = [ABOUT.format(torch=torch.__version__).rstrip()]
    for line in table(names):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
