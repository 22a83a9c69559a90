"""`.dlcb` files: what is saved comes back, and whatever else a file may hold is a clear error."""

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

from dlcb.errors import UserError
from dlcb.lowering.ir_to_cpu import compile_ir
from dlcb.runtime import artifact as artifact_file
from dlcb.runtime.artifact import Artifact, load_artifact, save_artifact
from dlcb.runtime.cuda import choose_cubin
from dlcb.runtime.interface import Interface
from dlcb.runtime.loading import load

_PROGRAM = {
    "name": "net",
    "arguments": [["weight", "w", "f32", [2, 3], [1, 2]], ["input", "x", "f32", 2, False]],
    "results": [],
    "code": [
        ["argument", 0, "x"],
        ["weight", 1, "w"],
        ["library", 2, "matmul", [0, 1], None, {}, "f32"],
        ["return", [2]],
    ],
}


def _artifact() -> Artifact:
    w = torch.arange(6.0).reshape(3, 2).T
    return Artifact(
        name="net",
        target="cuda",
        mode="live",
        programs={"main": _PROGRAM},
        kernels="// ünïcode text",
        cubins={"sm_80": b"\x7fELF80", "sm_90": b"\x7fELF90"},
        ir={"fuse": "builtin.module {}"},
        weights={"w": w, "tied": w, "empty": torch.ones(0, 3), "half": torch.ones(2).half()},
        torch_range=("2.11", "2.16"),
        extra={"pytree": [1, {"a": None}]},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "net.dlcb"
    save_artifact(_artifact(), path)
    return path


def test_what_is_saved_comes_back(path: Path) -> None:
    before, after = _artifact(), load_artifact(path)
    for name, tensor in before.weights.items():
        assert torch.equal(after.weights[name], tensor)
        assert after.weights[name].stride() == tensor.stride()
    before.weights = after.weights = {}
    assert after == before


def test_a_tensor_under_two_names_is_stored_once(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(artifact_file.WEIGHTS).file_size
    assert size < 400


def test_saving_leaves_no_other_file_and_a_failed_save_leaves_the_old_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [p.name for p in path.parent.iterdir()] == ["net.dlcb"]
    old = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(artifact_file.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save_artifact(_artifact(), path)
    assert path.read_bytes() == old
    assert [p.name for p in path.parent.iterdir()] == ["net.dlcb"]


def _interface() -> dict[str, Any]:
    interface = Interface(["x"], ["list", "*"], [["argument"]], ["tuple", "*"], [["result", 0]])
    return {"interface": interface.to_json(), "report": {"nodes": 1}}


def test_a_loaded_model_runs(tmp_path: Path) -> None:
    artifact = _artifact()
    artifact.target, artifact.extra, artifact.ir = "cpu", _interface(), {"host": "builtin.module {}"}
    save_artifact(artifact, tmp_path / "net.dlcb")
    model = load(tmp_path / "net.dlcb", lambda ir, name: _empty_library(tmp_path))
    x = torch.randn(4, 2)
    (result,) = model(x)
    torch.testing.assert_close(result, x @ artifact.weights["w"])
    assert "1 ops" in model.explain()


def test_for_the_cpu_target_the_ir_is_what_is_compiled(tmp_path: Path) -> None:
    artifact = _artifact()
    artifact.target, artifact.extra, artifact.ir = "cpu", _interface(), {}
    save_artifact(artifact, tmp_path / "net.dlcb")
    with pytest.raises(UserError, match="no IR of stage 'host'"):
        load(tmp_path / "net.dlcb", lambda ir, name: _empty_library(tmp_path))
    artifact.ir = {"host": "no module"}
    save_artifact(artifact, tmp_path / "net.dlcb")
    with pytest.raises(UserError, match=r"net\.dlcb: .*ir/host\.mlir: the kernels are no valid IR"):
        load(tmp_path / "net.dlcb", compile_ir)


def test_a_model_is_loaded_where_it_was_compiled_for(path: Path, tmp_path: Path) -> None:
    artifact = _artifact()
    artifact.extra = _interface()
    save_artifact(artifact, path)
    with pytest.raises(UserError, match="net was compiled for cuda, not for cpu"):
        load(path, lambda ir, name: _empty_library(tmp_path), device="cpu")


_LOAD = """
import json, sys, time, types, unittest.mock, torch, dlcb
from dlcb.runtime import compiled
from dlcb.runtime.rows import check_program
from dlcb.runtime.module import CompiledModule
module = lambda main, *_, **__: types.SimpleNamespace(program=check_program(main))
with unittest.mock.patch.multiple(compiled, CudaKernels=lambda *_: None, arch_of=lambda _: "sm_90",
                                  CompiledModule=module), \
        unittest.mock.patch.object(torch.Tensor, "to", lambda self, where: self):
    began = time.perf_counter()
    dlcb.load(sys.argv[1])
    seconds = time.perf_counter() - began
print(json.dumps([seconds, [m for m in sys.modules if m.split(".")[0] in ("xdsl", "dlcb")]]))
"""


def test_loading_imports_no_compiler_and_takes_milliseconds(path: Path) -> None:
    artifact = _artifact()
    artifact.extra = _interface()
    save_artifact(artifact, path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-P", "-c", _LOAD, str(path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, modules = json.loads(run.stdout)
    assert [
        m
        for m in modules
        if not m.startswith(("dlcb.runtime", "dlcb.cubins", "dlcb.errors", "dlcb.magic")) and m != "dlcb"
    ] == []
    assert seconds < 0.2


def _empty_library(folder: Path) -> Path:
    source = folder / "empty.cpp"
    source.write_text("")
    subprocess.run(["g++", "-shared", "-o", folder / "empty.so", source], check=True)
    return folder / "empty.so"


def _rewrite(path: Path, change: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _manifest(members: dict[str, bytes], **changes: Any) -> None:
    manifest = json.loads(members[artifact_file.MANIFEST])
    members[artifact_file.MANIFEST] = json.dumps({**manifest, **changes}).encode()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m.update({"kernels.cu": b"other"}), "kernels.cu is damaged"),
        (lambda m: m.pop("kernels.cu"), "members missing or foreign: kernels.cu"),
        (lambda m: m.update({"evil.py": b""}), "members missing or foreign: evil.py"),
        (lambda m: m.pop("manifest.json"), "manifest.json is missing"),
        (lambda m: m.update({"manifest.json": b"{"}), "manifest.json: "),
        (lambda m: m.update({"manifest.json": b"[]"}), "manifest.json: expected an object, got list"),
        (lambda m: _manifest(m, format=99), "format 99, this DLCB reads format 3"),
        (lambda m: _manifest(m, torch=["1.0", "1.5"]), "made for torch from 1.0 to before 1.5"),
        (lambda m: _manifest(m, programs=["../main"]), "programs must be a list of names"),
        (lambda m: _manifest(m, weights={"w": 3}), "weight 'w': expected a stored tensor"),
        (lambda m: _manifest(m, name=None), "name must be a text"),
        (lambda m: _manifest(m, mode="warm"), "weights mode must be live or frozen, got 'warm'"),
        (lambda m: _manifest(m, programs=[]), "no program 'main'"),
        (lambda m: _manifest(m, branches=-1), "branches must be a number up to 64, got -1"),
        (lambda m: _manifest(m, branches=65), "branches must be a number up to 64, got 65"),
        (lambda m: _manifest(m, branches=1), r"branch/0\.dlcb is missing"),
        (lambda m: m.update({"manifest.json": b"[" * 100_000}), "manifest.json: "),
        (lambda m: m.update({"manifest.json": b"\xff"}), "manifest.json: "),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(path: Path, change: Any, text: str) -> None:
    _rewrite(path, change)
    with pytest.raises(UserError, match=text):
        load_artifact(path)


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_a_truncated_file_is_refused(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"not a usable \.dlcb file"):
        load_artifact(path)


def test_a_file_that_ends_within_a_branch_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ways.dlcb"
    artifact, branch = _artifact(), _artifact()
    artifact.branches = [branch]
    save_artifact(artifact, path)
    assert len(load_artifact(path).branches) == 1
    whole = path.read_bytes()
    for cut in (whole[:-500], whole[: whole.rindex(b"PK\x01\x02")], b"x" + whole, whole + b"x"):
        path.write_bytes(cut)
        with pytest.raises(UserError, match=r"not a usable \.dlcb file"):
            load_artifact(path)


def test_a_branch_has_no_branches_and_is_for_the_same_target(tmp_path: Path) -> None:
    path = tmp_path / "ways.dlcb"
    artifact, branch = _artifact(), _artifact()
    artifact.branches, branch.branches = [branch], [_artifact()]
    save_artifact(artifact, path)
    with pytest.raises(UserError, match="a branch has no branches"):
        load_artifact(path)
    branch.branches, branch.mode = [], "frozen" if branch.mode == "live" else "live"
    save_artifact(artifact, path)
    with pytest.raises(UserError, match=r"branch/0\.dlcb is for target"):
        load_artifact(path)


def test_compressed_members_are_refused(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(UserError, match="members are compressed"):
        load_artifact(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.dlcb: no such file"):
        load_artifact(tmp_path / "nothing.dlcb")


def test_the_binary_of_the_same_generation_is_chosen() -> None:
    cubins = {"sm_80": b"a", "sm_86": b"b", "sm_90": b"c"}
    assert choose_cubin(cubins, "sm_89") == b"b"
    assert choose_cubin(cubins, "sm_80") == b"a"
    with pytest.raises(
        UserError, match=r"no kernels for this GPU \(sm_75\); the module was compiled for: sm_80, sm_86, sm_90"
    ):
        choose_cubin(cubins, "sm_75")
