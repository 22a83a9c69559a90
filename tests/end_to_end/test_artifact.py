"""A saved model is loaded by another process, which answers the same; damaged and foreign files are errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.benchmarks.zoo import SMALL
from dlcb.errors import UserError
from dlcb.tests.end_to_end.agreement import compiled, rand

LOADS = """
import json, sys, torch
import dlcb, dlcb.runtime.compiled
folder, before = sys.argv[1], sorted(sys.modules)
model = dlcb.load(folder + "/model.dlcb")
for case in torch.load(folder + "/cases.pt"):
    torch.save(model(*case["args"], **case["kwargs"]), folder + f"/{case['name']}.out")
    if case["args"]:
        torch.save(case["args"], folder + f"/{case['name']}.args")
modules = {"before loading": before, "modules": sorted(sys.modules)}
print(json.dumps({**modules, "dimensions": model.dimensions(), "name": model.name}))
"""


def loaded_elsewhere(folder: Path, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What a second process says of the saved model; its answers lie in the folder."""
    torch.save(cases, folder / "cases.pt")
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADS, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    root = Path(dlcb.__file__).parent / ".typecheck"
    return {**os.environ, "PYTHONPATH": str(root)}


class Program(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: Tensor, cache: Tensor, position: int, mode: str) -> dict[str, Any]:
        y = self.linear(x)
        cache[position] = y[0]
        return {
            "y": y,
            "pair": (cache[: position + 1].sum(0), None),
            "n": x.shape[0] * 2,
            "half": position / 2,
            "m": mode,
        }


def test_a_program_with_updates_and_numbers(tmp_path: Path) -> None:
    network = Program().eval()
    example = (rand(2, 4), rand(5, 3), 1, "mode")
    model = compiled(network, example, "saved program")
    model.save(tmp_path / "model.dlcb")
    cases = [
        {"name": str(n), "args": (rand(n, 4), rand(m, 3), p, "mode"), "kwargs": {}}
        for n, m, p in ((2, 5, 1), (1, 3, 2), (7, 1, 0), (3, 9, 8))
    ]
    told = loaded_elsewhere(tmp_path, cases)
    assert "torch" in told["modules"]
    assert not [m for m in told["modules"] if m.startswith(("dlcb.frontend", "dlcb.evaluator"))]
    assert "xdsl" not in told["before loading"]  # for the CPU target, kernels are printed anew from the file's IR
    assert told["dimensions"] == model.dimensions()
    assert told["name"] == model.name
    for case in cases:
        with torch.no_grad():
            expected = model(*case["args"])
        actual = torch.load(tmp_path / f"{case['name']}.out", weights_only=False)
        args = torch.load(tmp_path / f"{case['name']}.args")
        torch.testing.assert_close(actual["y"], expected["y"], rtol=0, atol=0)
        torch.testing.assert_close(actual["pair"][0], expected["pair"][0], rtol=0, atol=0)
        assert [actual[k] for k in ("n", "half", "m")] == [expected[k] for k in ("n", "half", "m")]
        assert actual["pair"][1] is None
        torch.testing.assert_close(args[1], case["args"][1], rtol=0, atol=0)


@pytest.mark.parametrize("weights", ["live", "frozen"])
def test_a_model(tmp_path: Path, weights: Any) -> None:
    case = SMALL["resnet18"]()
    network = case.build()
    model = compiled(network, case.inputs(case.example, torch.float32), "saved resnet", weights=weights)
    model.save(tmp_path / "model.dlcb")
    cases = [
        {"name": str(n), "args": (), "kwargs": case.inputs(shape, torch.float32)}
        for n, shape in enumerate(case.shapes[:3])
    ]
    expected = [model(**c["kwargs"]) for c in cases]
    with torch.no_grad():
        network.get_parameter("classifier.bias").add_(1)
    loaded_elsewhere(tmp_path, cases)
    for number, want in enumerate(expected):
        torch.testing.assert_close(torch.load(tmp_path / f"{number}.out"), want, rtol=0, atol=0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.dlcb"
    compiled(nn.Linear(4, 3).eval(), (rand(2, 4),), "saved linear").save(path)
    return path


def test_damaged_files(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    path = tmp_path / "damaged.dlcb"
    for damaged in (b"", b"no zip at all", whole[: len(whole) // 2], whole[:-1], flipped(whole)):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"damaged\.dlcb"):
            dlcb.load(path)
    with pytest.raises(UserError, match=r"missing\.dlcb"):
        dlcb.load(tmp_path / "missing.dlcb")


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :]


def test_a_file_from_another_target(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "foreign.dlcb"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b'"target":"cpu"', b'"target":"cuda"') if name == "manifest.json" else data)
    with pytest.raises(UserError):
        dlcb.load(path)
    with pytest.raises(UserError, match="was compiled for cuda, not for cpu"):
        dlcb.load(path, device="cpu")
    with pytest.raises(UserError, match="was compiled for cpu, not for cuda"):
        dlcb.load(saved, device="cuda")


def test_saving_replaces_a_file_whole(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.dlcb"
    path.write_bytes(b"what was there")
    model = dlcb.load(saved)
    model.save(path)
    x = rand(3, 4)
    torch.testing.assert_close(dlcb.load(path)(x), model(x), rtol=0, atol=0)
    assert [p.name for p in tmp_path.iterdir()] == ["model.dlcb"]
