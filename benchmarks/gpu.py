"""Compile models once, check them at many shapes, time them against eager, on whatever device there is; write JSON.

    python -P -m dlcb.benchmarks.gpu --out results.json
        [--models resnet18,bert_base] [--dtypes f32,f16] [--small] [--torch-compile]

Times are medians of whole calls with inputs rotating, in milliseconds: `eager`, `dlcb`, and with `--torch-compile`
torch.compile(dynamic=True). Ratios within one run count.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
import traceback
from pathlib import Path
from typing import Any

import torch

import dlcb
from dlcb.benchmarks import zoo
from dlcb.benchmarks.accuracy import as_float64, judge_all
from dlcb.benchmarks.case import DTYPES, placed
from dlcb.benchmarks.report import machine, today
from dlcb.benchmarks.timing import median_ms


def run_case(case: zoo.Case, dtype_name: str, device: torch.device, options: argparse.Namespace) -> dict[str, Any]:
    dtype = DTYPES[dtype_name]
    torch.manual_seed(1)
    original = case.build()
    model = copy.deepcopy(original).to(device, dtype)
    judges = torch.device("cpu") if options.eager_on_cpu else device
    eager = copy.deepcopy(original).to(judges, dtype)
    reference = copy.deepcopy(original).double().to(judges)
    example = placed(case.inputs(case.example, torch.float32), device, dtype)
    began = time.perf_counter()
    compiled = dlcb.compile(model, example, weights=options.weights, graphs=options.graphs)
    result: dict[str, Any] = {
        "model": case.name,
        "dtype": dtype_name,
        "compile_s": time.perf_counter() - began,
        "stages_s": compiled.seconds,
        "dimensions": compiled.dimensions(),
        "shapes": [],
    }
    inductor = torch.compile(model, dynamic=True) if options.torch_compile else None
    with torch.no_grad():
        for shape in case.shapes:
            row = run_shape(case, shape, dtype, device, eager, reference, compiled, inductor, options)
            result["shapes"].append(row)
    return result


def run_shape(
    case: zoo.Case,
    shape: zoo.Shape,
    dtype: torch.dtype,
    device: torch.device,
    model: Any,
    reference: Any,
    compiled: Any,
    inductor: Any,
    options: argparse.Namespace,
) -> dict[str, Any]:
    plain = case.inputs(shape, torch.float32)
    inputs = placed(plain, device, dtype)
    judges = next(reference.parameters()).device
    ref = reference(**{k: v.to(judges) for k, v in as_float64(inputs).items()})
    eager = model(**{k: v.to(judges) for k, v in inputs.items()})
    row: dict[str, Any] = {"shape": shape, "ok": True}
    for _ in range(3):  # plain launches, capture, replay
        verdicts = judge_all(compiled(**inputs), eager, ref)
        bad = [v.reason for v in verdicts if not v.ok]
        row["error"] = max(v.error for v in verdicts)
        row["eager_error"] = max(v.eager_error for v in verdicts)
        if bad:
            row["ok"], row["reasons"] = False, bad
    if options.time:
        row["eager_ms"] = median_ms(lambda: model(**inputs), device)
        row["dlcb_ms"] = median_ms(lambda: compiled(**inputs), device)
        if inductor is not None:
            row["torch_compile_ms"] = median_ms(lambda: inductor(**inputs), device)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--models", default="")
    parser.add_argument("--dtypes", default="f32,f16")
    parser.add_argument("--small", action="store_true", help="the sizes of the CPU tests")
    parser.add_argument("--weights", default="frozen", choices=("live", "frozen"))
    parser.add_argument("--no-time", dest="time", action="store_false")
    parser.add_argument("--torch-compile", action="store_true")
    parser.add_argument("--no-graphs", dest="graphs", action="store_false", help="launch plainly, without CUDA graphs")
    parser.add_argument("--math-attention", action="store_true", help="no vendor attention kernels")
    parser.add_argument("--eager-on-cpu", action="store_true", help="nothing but DLCB on the GPU")
    options = parser.parse_args()
    if options.math_attention:
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_cudnn_sdp(False)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    cases = zoo.SMALL if options.small or device.type == "cpu" else zoo.REAL
    names = options.models.split(",") if options.models else list(cases)
    report: dict[str, Any] = {"date": today(), "machine": machine(device), "weights": options.weights, "results": []}
    failed = 0
    for name in names:
        for dtype in options.dtypes.split(","):
            try:
                result = run_case(cases[name](), dtype, device, options)
            except Exception as error:  # one model's failure must not lose the others' results
                traceback.print_exc()
                result = {"model": name, "dtype": dtype, "failed": f"{type(error).__name__}: {error}"}
            report["results"].append(result)
            options.out.write_text(json.dumps(report, indent=1))
            failed += show(result)
    print(f"{failed} failed")
    return 1 if failed else 0


def show(result: dict[str, Any]) -> int:
    """Print a model's rows; the number of wrong ones."""
    if "failed" in result:
        print(f"{result['model']:10} {result['dtype']:4} FAILED {result['failed'][:300]}")
        return 1
    wrong = 0
    print(f"{result['model']:10} {result['dtype']:4} compile {result['compile_s']:.2f} s")
    for row in result["shapes"]:
        wrong += not row["ok"]
        times = " ".join(f"{k[:-3]} {row[k]:.3f}" for k in ("eager_ms", "dlcb_ms", "torch_compile_ms") if k in row)
        state = "ok   " if row["ok"] else f"WRONG {row.get('reasons')}"
        print(f"  {row['shape']!s:16} {state} error {row['error']:.2e} (eager {row['eager_error']:.2e})  {times}")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
