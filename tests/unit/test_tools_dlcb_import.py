"""`dlcb-import`: the IR, the weights beside it by content, and how the module finds them wherever it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.export import Dim, export, save

from dlcb.dialects.stored import StoredWeights, stored_weights
from dlcb.errors import UserError
from dlcb.frontend.weight_store import key_of, load_weights, save_weights
from dlcb.tools import dlcb_import, dlcb_opt
from dlcb.tools.run_ir import parse


class Model(nn.Module):
    """Two weights are equal, one is a constant of the code."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.load_state_dict(self.first.state_dict())

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x)) + torch.tensor([1.0, 2.0, 3.0, 4.0])


@pytest.fixture(scope="module")
def model_pt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "model.pt2"
    with torch.no_grad():
        save(export(Model(), (torch.randn(3, 4),), dynamic_shapes=({0: Dim("n")},)), path)
    return path


def run(*arguments: Any) -> int:
    return dlcb_import.main(list(map(str, arguments)))


def stored(path: Path) -> StoredWeights:
    found = stored_weights(parse(path.read_bytes(), str(path)))
    assert found is not None
    return found


def test_equal_tensors_are_stored_once_by_their_content(model_pt2: Path, tmp_path: Path) -> None:
    assert run(model_pt2, "-o", tmp_path / "m.mlir") == 0
    found = stored(tmp_path / "m.mlir")
    tensors = load_file(tmp_path / "m.safetensors")
    assert found.file == "m.safetensors"
    assert found.keys["first.weight"] == found.keys["second.weight"]
    assert set(found.keys.values()) == set(tensors)
    assert len(tensors) == 3
    assert torch.equal(tensors[found.keys["first.weight"]], Model().first.weight)
    assert "-> tensor<[x_0, 4], f32>" in (tmp_path / "m.mlir").read_text()


def test_the_path_of_the_weights_starts_where_the_module_is(
    model_pt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ir").mkdir()
    (tmp_path / "w").mkdir()
    assert run(model_pt2, "-o", "ir/m.mlir", "--weights", "w/m.safetensors") == 0
    assert stored(tmp_path / "ir" / "m.mlir").file == "../w/m.safetensors"
    assert run(model_pt2, "--weights", "w/m.safetensors") == 0
    assert 'file = "w/m.safetensors"' in capsys.readouterr().out
    assert run(model_pt2) == 0
    assert (tmp_path / "model.safetensors").is_file()


def test_dlcb_opt_keeps_the_path_right(
    model_pt2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    assert run(model_pt2, "-o", "m.mlir") == 0
    assert dlcb_opt.main(["m.mlir", "--stop-after", "fuse", "-o", "deep/er/f.mlir", "--dump-dir", "deep/dump"]) == 0
    assert stored(tmp_path / "deep" / "er" / "f.mlir").file == "../../m.safetensors"
    dumps = sorted((tmp_path / "deep" / "dump").glob("*.mlir"))
    assert len(dumps) > 5
    assert {stored(dump).file for dump in dumps} == {"../../m.safetensors"}
    capsys.readouterr()
    assert dlcb_opt.main(["deep/er/f.mlir"]) == 0
    assert 'file = "m.safetensors"' in capsys.readouterr().out


def test_all_sizes_stay_if_that_is_asked(model_pt2: Path, tmp_path: Path) -> None:
    assert run(model_pt2, "--static", "-o", tmp_path / "s.mlir") == 0
    assert dlcb_opt.main([str(tmp_path / "s.mlir"), "--stop-after", "solve", "-o", str(tmp_path / "solved.mlir")]) == 0
    assert "tensor<[3, 4], f32> input" in (tmp_path / "solved.mlir").read_text()


class Fft(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.fft.rfft(x).abs()


def error_of(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert run(*arguments) == 1
    text = capsys.readouterr().err
    assert "Traceback" not in text
    assert text.startswith("dlcb-import: error: ")
    return text


def test_errors_name_what_was_given(model_pt2: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none.pt2: no such file" in error_of(capsys, tmp_path / "none.pt2")
    (tmp_path / "bad.pt2").write_bytes(model_pt2.read_bytes()[:300])
    assert "bad.pt2: not an exported program" in error_of(capsys, tmp_path / "bad.pt2")
    assert "there is no folder" in error_of(capsys, model_pt2, "-o", tmp_path / "no" / "m.mlir")
    wanted = (model_pt2, "-o", tmp_path / "m.mlir", "--weights", tmp_path / "no" / "w.safetensors")
    assert "--weights" in error_of(capsys, *wanted)
    with torch.no_grad():
        save(export(Fft(), (torch.randn(3, 4),)), tmp_path / "fft.pt2")
    text = error_of(capsys, tmp_path / "fft.pt2", "-o", tmp_path / "fft.mlir")
    assert "fft" in text
    assert "test_tools_dlcb_import.py:" in text
    assert not (tmp_path / "fft.mlir").exists()


# The store

TENSORS: dict[str, Tensor] = {
    "plain": torch.arange(6.0).reshape(2, 3),
    "turned": torch.arange(6.0).reshape(3, 2).t(),
    "half": torch.tensor([1.5, float("nan")], dtype=torch.float16),
    "brain": torch.tensor([1.5], dtype=torch.bfloat16),
    "truth": torch.tensor([True, False]),
    "scalar": torch.tensor(3),
    "empty": torch.empty(0, 4),
    "other empty": torch.empty(4, 0),
    "expanded": torch.ones(1, 3).expand(2, 3),
}


def test_a_store_gives_back_what_it_got(tmp_path: Path) -> None:
    keys = save_weights(TENSORS, tmp_path / "w.safetensors")
    assert len(set(keys.values())) == len(TENSORS)
    for name, tensor in load_weights(tmp_path / "w.safetensors", keys).items():
        expected = TENSORS[name]
        assert tensor.dtype == expected.dtype
        assert torch.equal(torch.nan_to_num(tensor.double()), torch.nan_to_num(expected.double()))
        assert tensor.shape == expected.shape
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]


def test_a_key_depends_on_values_sizes_and_dtype_alone() -> None:
    x = torch.arange(6.0)
    assert key_of(x) == key_of(torch.arange(12.0).reshape(6, 2).t()[0] / 2)
    different = [x, x.reshape(2, 3), x.double(), x + 1, x.view(torch.int32)]
    assert len(set(map(key_of, different))) == len(different)


def test_a_wrong_file_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    keys = save_weights({"w": torch.ones(3)}, path)
    with pytest.raises(UserError, match="which is weight 'v': the file belongs to another module"):
        load_weights(path, {"v": "0" * 32})
    save_file({keys["w"]: torch.zeros(3)}, path)
    with pytest.raises(UserError, match="is damaged: its content has another hash"):
        load_weights(path, keys)
    path.write_bytes(b"nonsense")
    with pytest.raises(UserError, match="not a safetensors file, or damaged"):
        load_weights(path, keys)
