"""The tiers side by side: one program for all sizes, one for each size, one for each rank, and sizes that come often.

    python -P -m dlcb.benchmarks.tiers --out results.json [--models bert_base] [--dtype f16] [--small]

For each model, in one process: seconds to compile and median milliseconds a call of the program for all sizes
(`dynamic`), of a static program for each shape (`static`), of `dlcb.compile` without examples (`jit`), and of hot
shapes compiled in another process while calls go on (`hot`): the seconds until the program is there, and the slowest
calls meanwhile against those before. All results are judged against eager and float64.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

import dlcb
from dlcb.benchmarks import zoo
from dlcb.benchmarks.accuracy import as_float64, judge_all
from dlcb.benchmarks.case import DTYPES, placed
from dlcb.benchmarks.report import machine, today
from dlcb.benchmarks.timing import median_ms, synchronize

_PATIENCE_S = 120.0
_CALLS_BEFORE = 300


class Judge:
    """The model in eager and in float64."""

    def __init__(self, case: zoo.Case, device: torch.device, dtype: torch.dtype) -> None:
        self.case, self.device, self.dtype = case, device, dtype
        self.model = case.build().to(device, dtype)
        self._exact = case.build().double().to(device)
        self.wrong: list[str] = []

    def inputs(self, shape: zoo.Shape) -> dict[str, Any]:
        return placed(self.case.inputs(shape, torch.float32), self.device, self.dtype)

    def check(self, name: str, model: Callable[..., Any], shape: zoo.Shape, inputs: dict[str, Any]) -> None:
        exact = self._exact(**{k: v.to(self.device) for k, v in as_float64(inputs).items()})
        for verdict in judge_all(model(**inputs), self.model(**inputs), exact):
            if not verdict.ok:
                self.wrong.append(f"{name} {shape}: {verdict.reason}")


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    made = make()
    return made, time.perf_counter() - began


def call_ms(model: Callable[..., Any], inputs: dict[str, Any], device: torch.device) -> float:
    began = time.perf_counter()
    model(**inputs)
    synchronize(device)
    return (time.perf_counter() - began) * 1e3


def hot(judge: Judge, shape: zoo.Shape) -> dict[str, Any]:
    """Calls of one shape go on while its own program is compiled elsewhere."""
    inputs, device = judge.inputs(shape), judge.device
    model = dlcb.compile(judge.model, inputs, weights="frozen", hot_shapes="on", hot_after=_CALLS_BEFORE)
    before = [call_ms(model, inputs, device) for _ in range(_CALLS_BEFORE)]
    began, meanwhile = time.perf_counter(), list[float]()
    while not model.stats()["specialized"] and time.perf_counter() - began < _PATIENCE_S:
        meanwhile.append(call_ms(model, inputs, device))
    seconds = time.perf_counter() - began
    after = [call_ms(model, inputs, device) for _ in range(_CALLS_BEFORE)]
    judge.check("hot", model, shape, inputs)
    settled = {"before": before[10:], "meanwhile": meanwhile, "after": after[10:]}
    return {
        "shape": shape,
        "seconds_until_swapped": seconds,
        "calls_meanwhile": len(meanwhile),
        "specialized": model.stats()["specialized"],
        **{f"{name}_ms": quantiles(values) for name, values in settled.items()},
    }


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Half, 99 of 100 and all calls take no longer."""
    ordered = sorted(values) or [0.0]
    last = len(ordered) - 1
    return {"p50": ordered[last // 2], "p99": ordered[last * 99 // 100], "max": ordered[last]}


def measure(case: zoo.Case, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    judge = Judge(case, device, dtype)
    example = judge.inputs(case.example)
    dynamic, dynamic_s = timed(lambda: dlcb.compile(judge.model, example, weights="frozen"))
    jit = dlcb.compile(judge.model, weights="frozen")
    _, jit_s = timed(lambda: jit(**example))
    shapes: list[dict[str, Any]] = []
    for shape in case.shapes:
        inputs = judge.inputs(shape)
        static, static_s = timed(partial(dlcb.compile, judge.model, inputs, dynamic=False, weights="frozen"))
        row: dict[str, Any] = {"shape": shape, "static_compile_s": static_s}
        programs = {"eager": judge.model, "dynamic": dynamic, "static": static, "jit": jit}
        for name, program in programs.items():
            if name != "eager":
                judge.check(name, program, shape, inputs)
            row[f"{name}_ms"] = median_ms(lambda program=program, inputs=inputs: program(**inputs), device)
        shapes.append(row)
    return {
        "model": case.name,
        "dynamic_compile_s": dynamic_s,
        "jit_first_call_s": jit_s,
        "shapes": shapes,
        "hot": hot(judge, case.shapes[0]),
        "jit_stats": jit.stats(),
        "wrong": judge.wrong,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default="resnet18,bert_base")
    parser.add_argument("--dtype", default="f16", choices=list(DTYPES))
    parser.add_argument("--shapes", type=int, default=4, help="how many shapes of each model")
    parser.add_argument("--small", action="store_true", help="the sizes of the CPU tests")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    cases = zoo.SMALL if options.small or device.type == "cpu" else zoo.REAL
    report: dict[str, Any] = {"date": today(), "machine": machine(device), "dtype": options.dtype, "results": []}
    failed = 0
    for name in options.models.split(","):
        case = cases[name]()
        case = zoo.Case(case.name, case.build, case.inputs, case.example, case.shapes[: options.shapes])
        try:
            with torch.no_grad():
                result = measure(case, DTYPES[options.dtype], device)
        except Exception as error:  # one model's failure must not lose the others' results
            traceback.print_exc()
            result = {"model": name, "wrong": [f"{type(error).__name__}: {error}"]}
        report["results"].append(result)
        options.out.write_text(json.dumps(report, indent=1))
        failed += len(result["wrong"])
        show(result)
    return 1 if failed else 0


def show(result: dict[str, Any]) -> None:
    print(f"{result['model']}: {len(result['wrong'])} wrong {result['wrong'][:3]}")
    if "hot" not in result:
        return
    print(f"  compile: dynamic {result['dynamic_compile_s']:.2f} s, jit {result['jit_first_call_s']:.2f} s")
    for row in result["shapes"]:
        times = ", ".join(f"{name} {row[f'{name}_ms']:.3f}" for name in ("eager", "dynamic", "static", "jit"))
        print(f"  {row['shape']!s:14} {times} ms; static compile {row['static_compile_s']:.2f} s")
    found = result["hot"]
    print(
        f"  hot {found['shape']}: there after {found['seconds_until_swapped']:.2f} s, {found['calls_meanwhile']} calls"
    )
    for name in ("before", "meanwhile", "after"):
        print(f"    {name:9} " + ", ".join(f"{q} {ms:.3f}" for q, ms in found[f"{name}_ms"].items()) + " ms")


if __name__ == "__main__":
    raise SystemExit(main())
