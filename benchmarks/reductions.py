"""Reductions of all kinds against eager: columns, rows, whole tensors, images, norms, softmax; JSON.

    python -P -m dlcb.benchmarks.reductions --out FOLDER [--dtypes f32,f16] [--only column] [--dry]

Each operation is compiled once, for all its shapes, and checked against float64. Times are medians of whole calls;
GB/s counts what must be read and written once. `--dry` runs small sizes, on the CPU if there is nothing else.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import dlcb
from dlcb.benchmarks.accuracy import judge, tensors_of
from dlcb.benchmarks.case import DTYPES
from dlcb.benchmarks.report import machine, today
from dlcb.benchmarks.timing import median_ms

Sizes = tuple[int, ...]
DRY_ELEMENTS = 100_000


@dataclass(frozen=True)
class Operation:
    """`channels_last`: how inputs of four dims lie in memory."""

    name: str
    run: Callable[[Tensor], Any]
    shapes: Sequence[Sizes]
    channels_last: bool = False

    def input(self, sizes: Sizes, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Values around 1, so that long sums lose digits."""
        x = torch.rand(sizes, device=device, dtype=torch.float32) + 0.5
        return x.to(dtype, memory_format=torch.channels_last if self.channels_last else torch.preserve_format)


MATRICES = ((65536, 1024), (1_000_000, 64), (10_000_000, 3), (4096, 16384), (100_003, 257), (512, 512))
ROWS = ((16384, 4096), (64, 1_000_000), (1_000_000, 64), (1_000_000, 100), (4097, 1023))
IMAGES = ((64, 256, 56, 56), (16, 2048, 7, 7), (1, 1280, 7, 7), (2, 64, 512, 512))

OPERATIONS = (
    Operation("column sum", lambda x: x.sum(0), MATRICES),
    Operation("column mean of relu", lambda x: x.relu().mean(0), MATRICES),
    Operation("column amax", lambda x: x.amax(0), MATRICES),
    Operation("column var", lambda x: x.var(0), MATRICES),
    Operation("full sum", lambda x: x.sum(), ((100_000_000,), (100_000_001,), (1_000_000,), (10_000,))),
    Operation("full amax", lambda x: x.amax(), ((100_000_000,), (10_000,))),
    Operation("full var", lambda x: x.var(), ((100_000_000,), (10_000,))),
    Operation("row sum", lambda x: x.sum(1), ROWS),
    Operation("row var", lambda x: x.var(1), ROWS),
    Operation("layer norm", lambda x: F.layer_norm(x, x.shape[1:]), ((16384, 4096), (65536, 768), (32, 4096))),
    Operation("softmax", lambda x: x.softmax(-1), ((16384, 4096), (65536, 128), (128, 128256), (4096, 1001))),
    Operation("column softmax", lambda x: x.softmax(0), ((1024, 16384), (4096, 4096))),
    Operation("image mean", lambda x: x.mean((2, 3)), IMAGES),
    Operation("image mean, channels last", lambda x: x.mean((2, 3)), IMAGES, channels_last=True),
    Operation("channel sum", lambda x: x.sum((0, 2, 3)), IMAGES),
    Operation("sum of dims 0 and 2", lambda x: x.sum((0, 2)), IMAGES),
)


def small(sizes: Sizes) -> Sizes:
    """Sizes for a dry run: the largest again and again by four smaller, until there are at most 100 000 elements."""
    while prod(sizes) > DRY_ELEMENTS:
        most = sizes.index(max(sizes))
        sizes = (*sizes[:most], sizes[most] // 4, *sizes[most + 1 :])
    return sizes


def run_operation(operation: Operation, dtype: str, device: torch.device, dry: bool) -> dict[str, Any]:
    shapes = [small(s) if dry else s for s in operation.shapes]
    compiled = dlcb.compile(operation.run, (operation.input(small(shapes[0]), device, DTYPES[dtype]),))
    rows = [measure(operation, compiled, operation.input(s, device, DTYPES[dtype])) for s in shapes]
    return {"operation": operation.name, "dtype": dtype, "dimensions": compiled.dimensions(), "shapes": rows}


def measure(operation: Operation, compiled: Callable[[Tensor], Any], x: Tensor) -> dict[str, Any]:
    eager, exact = operation.run(x), operation.run(x.double())
    verdict = judge(compiled(x), eager, exact)
    moved = sum(t.numel() * t.itemsize for t in tensors_of([x, eager]))
    row: dict[str, Any] = {"shape": list(x.shape), "ok": verdict.ok, "reason": verdict.reason}
    row |= {"error": verdict.error, "eager_error": verdict.eager_error, "bytes": moved}
    for name, call in (("eager", operation.run), ("dlcb", compiled)):
        row[f"{name}_ms"] = median_ms(lambda call=call: call(x), x.device)
        row[f"{name}_gb_s"] = moved / row[f"{name}_ms"] / 1e6
    return row


def shown(result: dict[str, Any]) -> Iterator[str]:
    yield f"{result['operation']} {result['dtype']}" + (f" FAILED {result['failed']}" if "failed" in result else "")
    for row in result.get("shapes", ()):
        times = "  ".join(f"{n} {row[f'{n}_ms']:.4f} ms {row[f'{n}_gb_s']:.0f} GB/s" for n in ("eager", "dlcb"))
        yield f"  {row['shape']!s:22} {'ok' if row['ok'] else 'WRONG: ' + row['reason']}  {times}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a folder; reductions.json is written there")
    parser.add_argument("--dtypes", default="f32,f16")
    parser.add_argument("--only", default="", help="operations whose name has this in it")
    parser.add_argument("--dry", action="store_true", help="small sizes")
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    options.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"date": today(), "machine": machine(device), "dry": options.dry, "results": []}
    wrong = 0
    for operation in [o for o in OPERATIONS if options.only in o.name]:
        for dtype in options.dtypes.split(","):
            try:
                result = run_operation(operation, dtype, device, options.dry)
            except Exception as error:  # one operation's failure must not lose the others' results
                result = {"operation": operation.name, "dtype": dtype, "failed": f"{type(error).__name__}: {error}"}
            report["results"].append(result)
            wrong += "failed" in result or not all(row["ok"] for row in result["shapes"])
            print("\n".join(shown(result)), flush=True)
            (options.out / "reductions.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
