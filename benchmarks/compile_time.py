"""How long compilation takes, stage by stage; JSON.

    python -P -m dlcb.benchmarks.compile_time
        [--models resnet50,bert] [--dtypes f32,f16] [--runs 3] [--no-nvrtc] [--out results.json]

Milliseconds of processor time of one core, the best of some runs in one process after a first one that is not counted
(it imports the stages and fills caches of values). The budget is for `lowering`, all from import to CUDA text; capture
and NVRTC stand beside it.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from dlcb.benchmarks import zoo
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.frontend.tracing.records import Captured
from dlcb.lowering.cuda_to_text import cuda_unit, module_to_text
from dlcb.lowering.lower import context
from dlcb.lowering.pipeline import remaining
from dlcb.lowering.text_to_cubin import load_nvrtc
from dlcb.passes.collection import without_collection

BUDGET_MS_A_NODE = 0.3
MODELS = ("resnet18", "resnet50", "bert", "gpt2", "bert_base")
DTYPES = {"f32": torch.float32, "f16": torch.float16}
OPTIONS = ("--gpu-architecture=sm_90", "--std=c++17")
Times = dict[str, float]


class Stopwatch:
    """Milliseconds of processor time between one lap and the next."""

    def __init__(self) -> None:
        gc.collect()
        self.times: Times = {}
        self._last = time.process_time()

    def lap(self, name: str) -> None:
        self.times[name] = (time.process_time() - self._last) * 1000
        self._last = time.process_time()


@without_collection()
def lower_once(captured: Captured) -> tuple[Times, str]:
    """The time of each step from import to text, and the kernels' text."""
    ctx = context()
    watch = Stopwatch()
    module = import_captured(captured).module
    watch.lap("import")
    for stage in remaining(module):
        stage.load()().apply(ctx, module)
        watch.lap(stage.name)
    text = module_to_text(module)
    watch.lap("text")
    return watch.times, text


def capture_runs(case: zoo.Case, dtype: torch.dtype, runs: int) -> tuple[float, Captured]:
    model = case.build().to(dtype)
    example = {k: v.to(dtype) if v.is_floating_point() else v for k, v in case.inputs(case.example, dtype).items()}
    captured = capture(model, (), example)
    best = float("inf")
    for _ in range(runs):
        watch = Stopwatch()
        captured = capture(model, (), example)
        watch.lap("capture")
        best = min(best, watch.times["capture"])
    return best, captured


def nvrtc_time(text: str) -> float:
    unit, nvrtc = cuda_unit(text), load_nvrtc()
    watch = Stopwatch()
    nvrtc.compile(unit, OPTIONS)
    watch.lap("nvrtc")
    return watch.times["nvrtc"]


def measure(case: zoo.Case, dtype: str, runs: int, with_nvrtc: bool) -> dict[str, Any]:
    capture_ms, captured = capture_runs(case, DTYPES[dtype], runs)
    lower_once(captured)
    times, text = min((lower_once(captured) for _ in range(runs)), key=lambda found: sum(found[0].values()))
    lowering, nodes = sum(times.values()), len(captured.records)
    return {
        "model": case.name,
        "dtype": dtype,
        "nodes": nodes,
        "kernels": text.count("DLCB_KERNEL("),
        "text_bytes": len(text),
        "capture_ms": capture_ms,
        "stages_ms": times,
        "lowering_ms": lowering,
        "lowering_ms_a_node": lowering / nodes,
        "nvrtc_ms": nvrtc_time(text) if with_nvrtc else None,
    }


def shown(row: dict[str, Any]) -> Iterator[str]:
    over = "" if row["lowering_ms_a_node"] <= BUDGET_MS_A_NODE else f"  (over {BUDGET_MS_A_NODE})"
    counts = f"{row['nodes']} nodes, {row['kernels']} kernels, {row['text_bytes']} bytes of text"
    yield f"{row['model']:10} {row['dtype']}  {counts}"
    yield f"  capture {row['capture_ms']:.0f}"
    yield "  " + "  ".join(f"{name} {ms:.1f}" for name, ms in row["stages_ms"].items())
    yield f"  lowering {row['lowering_ms']:.0f} ms, {row['lowering_ms_a_node']:.3f} a node{over}"
    if row["nvrtc_ms"] is not None:
        yield f"  nvrtc {row['nvrtc_ms']:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default="f32")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-nvrtc", dest="nvrtc", action="store_false")
    parser.add_argument("--machine", default="", help="what to call the machine in the report")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = zoo.REAL | zoo.SMALL  # sizes of weights do not matter here, depth does
    rows: list[dict[str, Any]] = []
    for name in options.models.split(","):
        for dtype in options.dtypes.split(","):
            rows.append(measure(cases[name](), dtype, options.runs, options.nvrtc))
            print("\n".join(shown(rows[-1])), flush=True)
    if options.out:
        about = {
            "date": datetime.date.today().isoformat(),
            "machine": options.machine,
            "load_average": round(os.getloadavg()[0]),
            "torch": torch.__version__,
            "python": sys.version.split()[0],
            "budget_ms_a_node": BUDGET_MS_A_NODE,
        }
        options.out.write_text(json.dumps({**about, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
