"""Compile a transformer encoder and a ResNet once each, run them at many shapes, compare with eager, save and reload.

    python -P examples/demo.py [FOLDER]

Writes to FOLDER (`demo_out`): the IR after every stage, the CUDA text, and a `.dlcb` file of each model. On a GPU the
models have their real sizes, on the CPU target small ones.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

import dlcb
from dlcb.benchmarks import zoo
from dlcb.benchmarks.accuracy import as_float64, in_float64, judge_all

RELOAD = """
import sys, torch, dlcb
from dlcb.benchmarks.accuracy import row_error
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
model = dlcb.load(sys.argv[1])
data = torch.load(sys.argv[2], weights_only=True)
with torch.no_grad():
    out = model(**data["inputs"])
leaves = [v for v in (out.values() if isinstance(out, dict) else [out]) if isinstance(v, torch.Tensor)]
same = all(row_error(a, b) <= 1e-6 for a, b in zip(leaves, data["outputs"], strict=True))
print("equal" if same else "different")
"""


def to_device(inputs: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {k: v.to(device) for k, v in inputs.items()}


def leaves(value: Any) -> list[torch.Tensor]:
    values = value.values() if isinstance(value, dict) else [value]
    return [v for v in values if isinstance(v, torch.Tensor)]


def write_stages(model: dlcb.CompiledModel, folder: Path) -> int:
    """The IR of every stage and the CUDA text as files; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (stage, text) in enumerate(model.ir.items()):
        (folder / f"{number:02}_{stage}.mlir").write_text(text)
    (folder / "kernels.cu").write_text(dlcb.cuda_text(model))
    return len(model.ir) + 1


def reload_elsewhere(model: dlcb.CompiledModel, inputs: dict[str, Any], folder: Path) -> bool:
    """Save, load in a second process, and compare there with the results of this one."""
    path, data = folder / f"{model.name}.dlcb", folder / "expected.pt"
    model.save(path)
    torch.save({"inputs": inputs, "outputs": leaves(model(**inputs))}, data)
    done = subprocess.run([sys.executable, "-P", "-c", RELOAD, path, data], capture_output=True, text=True, check=False)
    if done.stdout.strip() != "equal":
        print(done.stdout, done.stderr)
    return done.stdout.strip() == "equal"


def run(case: zoo.Case, device: torch.device, folder: Path) -> tuple[int, int]:
    """One model; (shapes checked, wrong ones)."""
    print(f"\n{case.name}: compiling once on {device.type} …", flush=True)
    model = case.build().to(device)
    example = to_device(case.inputs(case.example, torch.float32), device)
    began = time.perf_counter()
    compiled = dlcb.compile(model, example, name=case.name, keep_ir=True)
    seconds = time.perf_counter() - began
    files = write_stages(compiled, folder / case.name)
    print(f"  {seconds:.2f} s; {files} files with the IR of every stage and the CUDA text in {folder / case.name}")
    for dim, state in compiled.dimensions().items():
        print(f"  {dim}: {state}")
    reference = in_float64(model)
    wrong = 0
    for shape in case.shapes:
        inputs = to_device(case.inputs(shape, torch.float32), device)
        with torch.no_grad():
            out, eager = compiled(**inputs), model(**inputs)
            verdicts = judge_all(out, eager, reference(**as_float64(inputs)))
        bad = [v.reason for v in verdicts if not v.ok]
        wrong += bool(bad)
        error, own = max(v.error for v in verdicts), max(v.eager_error for v in verdicts)
        verdict = f"WRONG {bad}" if bad else "right"
        print(f"  {shape!s:16} {verdict}  error {error:.1e} (eager {own:.1e})", flush=True)
    same = reload_elsewhere(compiled, to_device(case.inputs(case.shapes[1], torch.float32), device), folder / case.name)
    print(f"  saved, reloaded in a second process: {'same results' if same else 'OTHER RESULTS'}")
    return len(case.shapes), wrong + (not same)


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo_out")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    real = [zoo.REAL["bert_base"], zoo.REAL["resnet50"]]
    small = [zoo.SMALL["bert"], zoo.SMALL["resnet18"]]
    cases = [make() for make in (real if device.type == "cuda" else small)]
    rows: list[tuple[str, int, int]] = []
    for case in cases:
        rows.append((case.name, *run(case, device, folder)))
    print(f"\n{'model':12} {'shapes':>6} {'wrong':>6}")
    for name, shapes, wrong in rows:
        print(f"{name:12} {shapes:6} {wrong:6}")
    shapes, wrong = sum(r[1] for r in rows), sum(r[2] for r in rows)
    print(f"{shapes} shapes checked, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
