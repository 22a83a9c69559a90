"""`dlcb-run`: every kind of program, from every stage, gives what the exported program gives; and its errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.export import Dim, export, save

import dlcb
from dlcb.lowering.pipeline import STAGES
from dlcb.runtime.artifact import load_artifact, save_artifact
from dlcb.tools import dlcb_import, dlcb_opt, dlcb_run
from dlcb.tools.run_ir import IrProgram


class Model(nn.Module):
    """A buffer that is updated, an input that is, a view of an input, an int."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 4)
        self.register_buffer("count", torch.ones(4))

    def forward(self, x: Tensor, state: Tensor) -> dict[str, Any]:
        self.count.add_(1)  # pyright: ignore
        state.mul_(2)
        y = torch.softmax(self.linear(x), -1) * self.count  # pyright: ignore
        return {"y": y, "rest": [x[1:], x.shape[0]]}


@dataclass
class Files:
    folder: Path
    inputs: dict[str, Tensor]
    y: Tensor

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """`model.pt2`, `model.dlcb`, `model.mlir`, inputs, and what the exported program gives for them."""
    folder = tmp_path_factory.mktemp("run")
    inputs = {"x": torch.randn(6, 8), "state": torch.randn(6)}
    n = Dim("batch", min=3)
    with torch.no_grad():
        program = export(Model(), (torch.randn(5, 8), torch.randn(5)), dynamic_shapes={"x": {0: n}, "state": {0: n}})
        y = program.module()(inputs["x"], inputs["state"].clone())["y"]
        program.state_dict["count"].fill_(1)
    save(program, folder / "model.pt2")
    dlcb.compile(program, keep_ir=True).save(folder / "model.dlcb")
    dlcb.compile(program).save(folder / "plain.dlcb")
    assert dlcb_import.main([str(folder / "model.pt2"), "-o", str(folder / "model.mlir")]) == 0
    save_file(inputs, folder / "inputs.safetensors")
    return Files(folder, inputs, y)


def run(*arguments: Any) -> int:
    return dlcb_run.main(list(map(str, arguments)))


def results(path: Path) -> dict[str, Tensor]:
    return load_file(path)


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("name", ["model.pt2", "model.dlcb", "model.mlir"])
def test_a_program_gives_what_the_exported_one_gives(name: str, target: str, files: Files, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    given = ("--input", files["inputs.safetensors"], "--output", out)
    assert run(files[name], "--target", target, *given, "--compare", "eager") == 0
    found = results(out)
    y, rows = ("result[0]", "result[1]") if name == "model.mlir" else ("result.y", "result.rest[0]")
    assert torch.allclose(found[y], files.y, atol=1e-6)
    assert torch.equal(found[rows], files.inputs["x"][1:])
    assert torch.equal(found["state (updated)"], files.inputs["state"] * 2)


@pytest.mark.parametrize("stage", [stage.name for stage in STAGES])
def test_the_ir_of_every_stage_runs(stage: str, files: Files, tmp_path: Path) -> None:
    path, out = tmp_path / f"{stage}.mlir", tmp_path / "out.safetensors"
    assert dlcb_opt.main([files["model.mlir"], "--stop-after", stage, "-o", str(path)]) == 0
    given = ("--input", files["inputs.safetensors"], "--output", out)
    assert run(path, *given, "--target", "cpu") == 0
    assert torch.allclose(results(out)["result[0]"], files.y, atol=1e-6)
    if stage not in ("cuda", "host"):
        out.unlink()
        assert run(path, *given, "--target", "reference") == 0
        assert torch.allclose(results(out)["result[0]"], files.y, atol=1e-6)


def output(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    capsys.readouterr()
    assert run(*arguments) == 0
    return capsys.readouterr().out


def test_sizes_go_by_symbol_by_place_and_by_the_users_name(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    for size in ("x_0=9", "x.shape[0]=9", "state.shape[0]=9,x.shape[1]=8"):
        assert "x: float32[9, 8] strides [8, 1]" in output(capsys, files["model.mlir"], "--size", size)
    text = output(capsys, files["model.dlcb"], "--size", "batch=7")
    assert "random inputs, seed 0; sizes x_0=7:" in text
    assert "state: float32[7]" in text
    assert "result.rest[1]: 7" in text
    text = output(capsys, files["model.pt2"])
    assert "sizes x_0=5 (x_0 by default):" in text, "the sizes of the example inputs"


def test_random_inputs_are_the_same_for_a_seed(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = (output(capsys, files["model.mlir"], "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_times_and_profiles_are_told(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("model.mlir", "model.dlcb", "model.pt2"):
        text = output(capsys, files[name], "--target", "cpu", "--time", "--profile")
        assert re.search(r"time: first call \d+\.\d+ ms, warm \d+\.\d+ ms \(median of \d+\)", text)
        assert re.search(r"profile of a warm call, \d+\.\d+ ms in \d+ launches:", text)
        assert re.search(r"\d+\.\d+ ms +\d+\.\d% +1 × library matmul", text)
        assert re.search(r"1 × kernel k\d+_\w+", text)
    shares = [float(share) for share in re.findall(r" ms +(\d+\.\d)% ", text)]
    assert abs(sum(shares) - 100) < 1


def test_a_result_that_differs_from_eager_is_told_and_fails(
    files: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = IrProgram.call
    wrong = {"result[0]": 1e-3}
    monkeypatch.setattr(
        IrProgram, "call", lambda self, inputs: [(n, v + wrong.get(n, 0)) for n, v in right(self, inputs)]
    )
    assert run(files["model.mlir"], "--compare", "eager") == 1
    text = capsys.readouterr().out
    assert re.search(r"result\[0\]: error .* WRONG: error", text)
    assert re.search(r"result\[1\]: error .* ok", text)


def test_weights_are_found_given_or_random(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = tmp_path / "moved.mlir"
    moved.write_bytes((files.folder / "model.mlir").read_bytes())
    assert "the weights file model.safetensors is neither there nor beside the module" in error(capsys, moved)
    assert "warning" not in output(capsys, moved, "--random-weights", "--compare", "eager")
    expected = output(capsys, files["model.mlir"])
    assert output(capsys, moved, "--weights", files["model.safetensors"]) == expected
    (tmp_path / "model.safetensors").write_bytes((files.folder / "model.safetensors").read_bytes())
    assert output(capsys, moved) == expected


TAKES_A_WEIGHT = """
builtin.module {
  dlcb.graph.func @main(%x: tensor<[n, 2], f32> input "x", %k: index int "k", %w: tensor<[2], f32> weight "w") {
    %y = dlcb.graph.add %x, %w : (tensor<[n, 2], f32>, tensor<[2], f32>) -> tensor<[n, 2], f32>
    dlcb.graph.return %y : !dlcb.graph.tensor<[n, 2], f32>
  }
}
"""


def test_ir_that_was_written_by_hand_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, weights = tmp_path / "hand.mlir", tmp_path / "w.safetensors"
    path.write_text(TAKES_A_WEIGHT)
    assert "the module takes 1 weights (w, …) and does not say where they are" in error(capsys, path)
    save_file({"w": torch.tensor([1.0, 2.0])}, weights)
    save_file({"x": torch.zeros(3, 2), "k": torch.tensor(5)}, tmp_path / "in.safetensors")
    out = tmp_path / "out.safetensors"
    assert run(path, "--weights", weights, "--input", tmp_path / "in.safetensors", "--output", out) == 0
    assert torch.equal(results(out)["result[0]"], torch.tensor([1.0, 2.0]).expand(3, 2))
    assert "k: 6" in output(capsys, path, "--random-weights", "--size", "k=6,n=2", "--target", "reference")
    save_file({"w": torch.ones(3)}, weights)
    text = error(capsys, path, "--weights", weights)
    assert "weight 'w' is torch.float32 [3], the module expects torch.float32 [2]" in text


OF_ANY_RANK = """
dlcb.graph.func @main(%x: tensor<*, f32> input "x", %y: tensor<*, f32> input "y") {
  %a = dlcb.graph.add %x, %y : (tensor<*, f32>, tensor<*, f32>) -> tensor<*, f32>
  %s = dlcb.graph.softmax %a {axis = -1} : (tensor<*, f32>) -> tensor<*, f32>
  dlcb.graph.return %s : !dlcb.graph.tensor<*, f32>
}
"""


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((2, 1, 5), (4, 1)), ((6,), (1,)), ((0, 2, 3, 4), (4,))])
def test_ir_of_any_rank_runs_at_the_ranks_of_its_inputs(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], target: str, tmp_path: Path
) -> None:
    path, out = tmp_path / "any.mlir", tmp_path / "out.safetensors"
    path.write_text(OF_ANY_RANK)
    x, y = map(torch.randn, shapes)
    save_file({"x": x, "y": y}, tmp_path / "in.safetensors")
    assert run(path, "--target", target, "--input", tmp_path / "in.safetensors", "--output", out) == 0
    torch.testing.assert_close(results(out)["result[0]"], torch.softmax(x + y, -1))


def test_ranks_are_given_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "any.mlir"
    path.write_text(OF_ANY_RANK)
    ranks = ("--rank", "x=3", "--rank", "y=1")
    assert "float32[2, 4, 5]" in output(capsys, path, *ranks, "--size", "x_0=2,x_2=5,y_0=5", "--compare", "eager")
    assert "give --rank x=N, or --input" in error(capsys, path)
    assert "give --rank y=N, or --input" in error(capsys, path, "--rank", "x=3")
    assert "'z' is no argument of any rank" in error(capsys, path, *ranks, "--rank", "z=1")
    assert "expected 'argument=rank'" in error(capsys, path, "--rank", "x")


# Errors


def error(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    capsys.readouterr()
    assert run(*arguments) == 1
    text = capsys.readouterr().err
    assert "Traceback" not in text
    assert "internal error" not in text
    return text


SIZES = {
    "x_1=3": "--size: unknown size 'x_1'",
    "bach=3": "unknown size 'bach'; did you mean 'batch'?; the sizes are batch, x_0, or x.shape[0] for one of input x",
    "y.shape[0]=3": "--size y.shape[0]: unknown input 'y'; the inputs are x, state",
    "x.shape[2]=3": "--size x.shape[2]: x has 2 dims: x: float32[x_0, 8]",
    "x.shape[1]=3": "--size x.shape[1]=3: which is 8 in this program",
    "x_0=3,state.shape[0]=4": "--size state.shape[0]=4: and --size x_0 says 3, though both are one size",
    "x_0=-1": "--size x_0=-1: expected NAME=N with N ≥ 0",
    "x_0": "--size x_0: expected NAME=N",
    "x_0=3,x_0=4": "--size gives x_0 twice: 3 and 4",
    "x_0=2": "x.shape[0] is 2 but must be at least 3: the export lets 'batch' be 3 to any size",
}


@pytest.mark.parametrize("size", SIZES)
def test_a_wrong_size_is_named(size: str, files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert SIZES[size] in error(capsys, files["model.dlcb"], "--size", size)


INPUTS: dict[str, tuple[dict[str, Tensor], str]] = {
    "dtype": (
        {"x": torch.zeros(6, 8, dtype=torch.float64), "state": torch.zeros(6)},
        "x is float64[6, 8], expected float32[x_0, 8]",
    ),
    "size": ({"x": torch.zeros(6, 7), "state": torch.zeros(6)}, "x is float32[6, 7], expected float32[x_0, 8]"),
    "rank": ({"x": torch.zeros(6), "state": torch.zeros(6)}, "x is float32[6], expected float32[x_0, 8]"),
    "names": ({"y": torch.zeros(6)}, "no x, state; unknown y; the program takes x: float32[x_0, 8]"),
    "equal": ({"x": torch.zeros(6, 8), "state": torch.zeros(5)}, "state.shape[0] is 5 but x.shape[0] is 6"),
}


@pytest.mark.parametrize("what", INPUTS)
def test_wrong_inputs_are_named(what: str, files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, text = INPUTS[what]
    save_file(inputs, tmp_path / "in.safetensors")
    assert text in error(capsys, files["model.dlcb"], "--input", tmp_path / "in.safetensors")


def test_wrong_files_are_named(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("mlir", "dlcb", "pt2"):
        text = error(capsys, tmp_path / f"none.{suffix}")
        assert f"none.{suffix}: " in text
        assert text.strip().endswith(("no such file", "No such file or directory"))
    assert "'.onnx' is no kind of program; known are .mlir, .dlcb, .pt2" in error(capsys, "model.onnx")
    for name in ("model.dlcb", "model.pt2"):
        path = tmp_path / name
        path.write_bytes(Path(files[name]).read_bytes()[:-300])
        assert f"{name}: not a" in error(capsys, path)
    broken = tmp_path / "broken.mlir"
    broken.write_text("builtin.module {\n  dlcb.graph.nothing\n}\n")
    assert f"{broken}:2:3: error: " in error(capsys, broken)
    broken.write_text("builtin.module {}")
    assert "the module has no function @main to run" in error(capsys, broken)
    text = error(capsys, files["model.mlir"], "--input", tmp_path / "none.safetensors")
    assert "none.safetensors: No such file or directory" in text


def test_what_an_artifact_can_not_do_is_said(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "was compiled for cpu, not for --target cuda" in error(capsys, files["model.dlcb"], "--target", "cuda")
    text = error(capsys, files["plain.dlcb"], "--compare", "eager")
    assert "was saved without the IR of its graph; compile it with keep_ir=True" in text
    assert "has its own weights; --weights" in error(capsys, files["model.pt2"], "--random-weights")
    text = error(capsys, files["model.dlcb"], "--target", "reference", "--profile")
    assert "--profile: the target reference has no kernels" in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU says something else")
def test_an_artifact_for_a_gpu_says_what_it_needs(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = load_artifact(Path(files["plain.dlcb"]))
    artifact.target, artifact.cubins = "cuda", {"sm_70": b"binary"}
    save_artifact(artifact, tmp_path / "gpu.dlcb")
    assert "target cuda: torch sees no GPU here" in error(capsys, tmp_path / "gpu.dlcb")


def test_the_evaluator_stops_where_kernels_are_cuda(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cuda.mlir"
    assert dlcb_opt.main([files["model.mlir"], "--stop-after", "cuda", "-o", str(path)]) == 0
    for option in (("--target", "reference"), ("--compare", "eager")):
        assert "the evaluator runs IR up to the stage 'schedule'" in error(capsys, path, *option)


def test_a_wrong_command_line_ends_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("model.mlir", "--target", "tpu")
    assert ended.value.code == 2
    assert "invalid choice: 'tpu'" in capsys.readouterr().err
