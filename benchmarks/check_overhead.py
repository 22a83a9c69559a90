"""What it costs to recognize a call and check its arguments, in microseconds, where its shapes were seen before.

    python -P -m dlcb.benchmarks.check_overhead [--rounds N] [--json FILE]

By the number of tensors; calls come with several shapes in turn, contiguous or transposed. `slope` and `offset` are the
line through the row of times, fitted by relative error. Nothing is launched.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dlcb.benchmarks.call_overhead import NoDriver, NoKernels
from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.call import Target
from dlcb.runtime.memory import Allocator
from dlcb.runtime.program import compile_program
from dlcb.runtime.rows import check_program
from dlcb.runtime.session import Limits, Session
from dlcb.runtime.weights import Weights

COUNTS = (1, 2, 4, 8, 16, 32)
SHAPES = ((8, 64), (3, 64), (1, 64), (8, 5))
BATCH = 64
BAR_OFFSET_US = 0.5
BAR_SLOPE_US = 0.7
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {"contiguous": lambda t: t, "transposed": lambda t: t.t()}


def program(count: int) -> dict[str, Any]:
    """Takes so many tensors and returns the first."""
    names = [f"x{n}" for n in range(count)]
    code = [["argument", n, name] for n, name in enumerate(names)]
    arguments = [["input", name, "f32", 2, False] for name in names]
    return {"name": "takes", "arguments": arguments, "results": [], "code": [*code, ["return", [0]]]}


def recognizer(count: int, device: torch.device) -> Callable[[Sequence[Tensor]], Any]:
    """All that a call does before its plan runs."""
    checked = check_program(program(count))
    arguments = CallerArguments(checked, device)
    target = Target(device, NoKernels(), Allocator())
    weights = Weights({}, checked, None, target, "live")
    options = (0, False, Limits(), lambda _: NoDriver())
    session = Session(checked, compile_program(checked), arguments, weights, target, *options)
    read, find = arguments.read, session.checked
    return lambda given: find(*read(given), given)


def cost_us(count: int, layout: str, rounds: int) -> float:
    """The median over rounds of the mean of a batch, in time of this thread: other processes do not count."""
    recognize = recognizer(count, torch.device("cpu"))
    calls = [[LAYOUTS[layout](torch.zeros(shape)) for _ in range(count)] for shape in SHAPES]
    for given in calls:
        recognize(given)
    times: list[float] = []
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(BATCH // len(SHAPES)):
            for given in calls:
                recognize(given)
        times.append((time.thread_time() - began) / BATCH * 1e6)
    return statistics.median(times)


def line(costs: dict[int, float]) -> tuple[float, float]:
    """Offset and slope of the line through costs by count, each weighed by its own size."""
    weights = {n: 1 / cost**2 for n, cost in costs.items()}
    total = sum(weights.values())
    mean_n = sum(w * n for n, w in weights.items()) / total
    mean_cost = sum(w * costs[n] for n, w in weights.items()) / total
    slope = sum(w * (n - mean_n) * (costs[n] - mean_cost) for n, w in weights.items())
    slope /= sum(w * (n - mean_n) ** 2 for n, w in weights.items())
    return mean_cost - slope * mean_n, slope


def measure(rounds: int, counts: Sequence[int] = COUNTS) -> dict[str, dict[int, float]]:
    return {layout: {n: cost_us(n, layout, rounds) for n in counts} for layout in LAYOUTS}


def report(costs: dict[str, dict[int, float]]) -> dict[str, Any]:
    """What is written as JSON."""
    lines = {layout: line(row) for layout, row in costs.items()}
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "unit": "microseconds",
        "bar": {"offset": BAR_OFFSET_US, "slope": BAR_SLOPE_US},
        "costs": {layout: {str(n): round(cost, 3) for n, cost in row.items()} for layout, row in costs.items()},
        "fit": {k: {"offset": round(offset, 3), "slope": round(slope, 3)} for k, (offset, slope) in lines.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=401)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = report(measure(options.rounds))
    print("tensors     " + "".join(f"{n:8}" for n in COUNTS) + "   offset   slope")
    for layout, row in found["costs"].items():
        fit = found["fit"][layout]
        print(f"{layout:12}" + "".join(f"{v:8.2f}" for v in row.values()) + f"{fit['offset']:9.2f}{fit['slope']:8.2f}")
    print("bar         " + "".join(f"{BAR_OFFSET_US + BAR_SLOPE_US * n:8.2f}" for n in COUNTS))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
