"""What it costs to get from Dynamo's graph to `dlcb.graph`, captured as it is and through AOTAutograd; JSON.

    python -P -m dlcb.benchmarks.front_end [--models resnet18,bert] [--runs 3] [--out results.json]

Wall seconds, the best of some runs after a first one that is not counted: `dynamo` is torch's own trace of the Python,
`aot` the trace of AOTAutograd from the backend's call to the graph that it hands on, `capture` and `import` are DLCB's.
Both ways see the same graph with free sizes, without gradients, and the results of both are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from dlcb.benchmarks import zoo
from dlcb.benchmarks.accuracy import tensors_of
from dlcb.benchmarks.report import machine, today
from dlcb.frontend import torch_private as private
from dlcb.frontend.graph_program import GraphOptions, GraphProgram
from dlcb.frontend.importer import TABLE

MODELS = ("resnet18", "resnet50", "bert", "gpt2", "llama", "t5_encoder", "vit", "convnext")
WAYS = ("direct", "aot")
Times = dict[str, float]


class Backend:
    """A backend of `torch.compile` that takes the given way and keeps the clock."""

    def __init__(self, way: str) -> None:
        self.through_aot = way == "aot"
        self.program: GraphProgram | None = None
        self.called_at = self.handed_on_at = 0.0

    def __call__(self, graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.called_at = time.perf_counter()
        if self.through_aot:
            return private.through_aot_autograd(graph, inputs, lambda traced, _: self._keep(traced), TABLE)
        return self._keep(graph)

    def _keep(self, graph: Any) -> GraphProgram:
        assert self.program is None, "a model with graph breaks can't be measured so"
        self.handed_on_at = time.perf_counter()
        self.program = GraphProgram(graph, "graph", GraphOptions(), self.through_aot)
        return self.program

    def times(self, began: float) -> Times:
        assert self.program is not None
        assert self.program.reports, self.program.explain()
        (report,) = self.program.reports
        times = {"dynamo": self.called_at - began, "aot": self.handed_on_at - self.called_at}
        times |= {step: report.seconds[step] for step in ("capture", "import")}
        return times | {"front_end": times["aot"] + times["capture"] + times["import"]}


def run(case: zoo.Case, way: str) -> tuple[Times, list[torch.Tensor]]:
    torch.compiler.reset()
    network = case.build()
    torch.manual_seed(0)
    inputs = case.inputs(case.example, torch.float32)
    backend = Backend(way)
    compiled: Any = torch.compile(network, backend=backend, dynamic=True)
    began = time.perf_counter()
    with torch.no_grad():
        results = tensors_of(compiled(**inputs))
    return backend.times(began), results


def measure(case: zoo.Case, runs: int) -> dict[str, Any]:
    row: dict[str, Any] = {"model": case.name}
    results: dict[str, list[torch.Tensor]] = {}
    for way in WAYS:
        tried = [run(case, way) for _ in range(runs + 1)][1:]
        row[way] = min((times for times, _ in tried), key=lambda times: times["front_end"])
        results[way] = tried[0][1]
    for direct, aot in zip(results["direct"], results["aot"], strict=True):
        torch.testing.assert_close(direct, aot)
    return row | {"ratio": row["aot"]["front_end"] / row["direct"]["front_end"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {"date": today(), "machine": machine(torch.device("cpu")), "results": []}
    for name in options.models.split(","):
        row = measure(zoo.SMALL[name](), options.runs)
        report["results"].append(row)
        direct, aot = row["direct"], row["aot"]
        print(
            f"{name:12} dynamo {direct['dynamo']:.2f} s; front end: direct {direct['front_end']:.3f} s,"
            f" through AOTAutograd {aot['front_end']:.3f} s, {row['ratio']:.1f} x",
            flush=True,
        )
    if options.out:
        options.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
