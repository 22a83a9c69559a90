"""Every field of what a `.dlcb` file says of itself, damaged in many ways: the file is refused by an error that names
it and the entry, or it is a model that runs."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from itertools import cycle, islice
from pathlib import Path as FilePath
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

import dlcb
from dlcb.errors import UserError
from dlcb.lowering.ir_to_cpu import compile_ir
from dlcb.runtime.artifact import MANIFEST
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.interface import Interface
from dlcb.runtime.loading import load

Path = tuple[str | int, ...]
"""Where in the JSON: keys and places."""
ASKED = bool(os.environ.get("DLCB_DAMAGES"))
"""Put every foreign value in every place."""
BRANCH = "branch/0.dlcb"
FOREIGN: tuple[Any, ...] = (None, True, -1, 7, 2**70, 0.5, "", "other", [], [[]], ["other"], {}, {"other": 1})


class Program(nn.Module):
    """With results and arguments of all kinds, and two ways through."""

    row: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.norm = nn.BatchNorm2d(2, affine=False)
        self.register_buffer("row", torch.ones(1, 3).expand(4, 3))

    def forward(self, x: Tensor, images: list[Tensor], by: int, mode: str, dtype: torch.dtype) -> dict[str, Any]:
        y = self.linear(x).to(dtype)
        y = y.cumsum(0) if x.shape[0] > 8 else y.relu() + self.row[: x.shape[0]]
        normed = self.norm(images[0])
        return {"y": y, "all": (normed, [x.shape[0] * by, by / 2, mode, None, dtype])}


def arguments(rows: int = 2) -> tuple[Any, ...]:
    torch.manual_seed(rows)
    return torch.randn(rows, 4), [torch.randn(1, 2, 3, 3)], 3, "mode", torch.float64


@dataclass(frozen=True)
class Damage:
    what: str
    path: Path
    value: Any = None

    def apply(self, data: Any) -> None:
        *outer, last = self.path
        for step in outer:
            data = data[step]
        if self.what == "delete":
            del data[last]
        elif self.what == "double":
            data.insert(last, data[last])
        else:
            data[last] = self.value


def places(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value within, by its place."""
    items: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in cast("Any", items):
        yield (*path, step), value
        yield from places(value, (*path, step))


def damages(manifest: dict[str, Any]) -> Iterator[Damage]:
    """Each value is deleted, doubled, changed a little, and gives way to some of the foreign ones in turn."""
    foreign = cycle(FOREIGN)
    for path, value in places(manifest):
        yield Damage("delete", path)
        if isinstance(path[-1], int):
            yield Damage("double", path)
        near = (value + 1, -value) if type(value) is int else (f"{value}x",) if type(value) is str else ()
        some = FOREIGN if ASKED or (len(path) < 4 and "extra" in path) else islice(foreign, 2)
        for other in (*near, *some):
            if type(other) is not type(value) or other != value:
                yield Damage("put", path, other)
    for path in (("other",), ("extra", "other"), ("weights", "other"), ("sha256", "other")):
        yield Damage("put", path, 1)


Members = dict[str, bytes]


def members_of(file: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Members) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def damaged(file: bytes, damage: Damage) -> bytes:
    members = members_of(file)
    manifest = json.loads(members[MANIFEST])
    damage.apply(manifest)
    return zipped({**members, MANIFEST: json.dumps(manifest).encode()})


def damaged_within(file: bytes, damage: Damage) -> bytes:
    """The same in the branch, of which the file around it has the right hash."""
    members = members_of(file)
    members[BRANCH] = damaged(members[BRANCH], damage)
    manifest = json.loads(members[MANIFEST])
    manifest["sha256"][BRANCH] = hashlib.sha256(members[BRANCH]).hexdigest()
    return zipped({**members, MANIFEST: json.dumps(manifest).encode()})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    model = dlcb.compile(Program().eval(), arguments(), weights="frozen", name="program")
    model(*arguments(9))
    file = tmp_path_factory.mktemp("saved") / "program.dlcb"
    model.save(file)
    assert BRANCH in members_of(file.read_bytes())
    return file.read_bytes()


@cache
def kernels(ir: str) -> FilePath:
    return compile_ir(ir, "kernels")


def use(model: CompiledModel) -> None:
    """All that a user may ask of a loaded model."""
    for rows in (2, 9):
        model(*arguments(rows))
    model.refresh_weights()
    assert isinstance(model.explain(), str)
    model.dimensions(), model.stats(), model.seconds, model.size_names, model.parameters, model.name  # pyright: ignore


Damaging = Callable[[bytes, Damage], bytes]


@pytest.mark.parametrize("damaging", [damaged, damaged_within])
def test_damage_is_an_error_that_names_file_and_entry_or_does_no_harm(
    saved: bytes, damaging: Damaging, tmp_path: FilePath
) -> None:
    within = damaging is damaged_within
    manifest = json.loads((members_of(members_of(saved)[BRANCH]) if within else members_of(saved))[MANIFEST])
    path = tmp_path / "damaged.dlcb"
    refused = harmless = 0
    for damage in damages(manifest):
        path.write_bytes(damaging(saved, damage))
        try:
            model = load(path, lambda ir, _: kernels(ir))
        except UserError as error:
            refused += 1
            assert_names(str(error), damage.path, [path.name, BRANCH] if within else [path.name])
            continue
        harmless += 1
        try:
            use(model)
        except UserError:
            pass
    assert refused > harmless > 0


def assert_names(text: str, path: Path, files: list[str]) -> None:
    """The file, and the entry in it; of an interface, this one or one that does not fit it."""
    assert all(file in text for file in files), text
    assert all(str(step) in text for step in path[: 2 if path[0] == "extra" else 1]), (path, text)
    if path[:2] == ("extra", "report"):
        assert all(str(step) in text for step in path[2:3]), (path, text)
    elif path[:2] == ("extra", "interface"):
        assert any(field.name in text for field in fields(Interface)), (path, text)


def test_a_saved_file_is_whole(saved: bytes, tmp_path: FilePath) -> None:
    path = tmp_path / "whole.dlcb"
    path.write_bytes(zipped(members_of(saved)))
    model = load(path, lambda ir, _: kernels(ir))
    network_result = model(*arguments())
    assert network_result["all"][1][2:] == ["mode", None, torch.float64]
    use(model)
