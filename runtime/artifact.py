"""The `.dlcb` file: a zip of plain data. Nothing in it is executed on the host when it is read, and every byte is
checked first.

    manifest.json              format, name, target, mode, architectures, torch range, programs, weights, SHA-256 of
                               every other member
    host/NAME.json             a serialized host program (`runtime/rows.py`)
    kernels.cu                 the kernels' text
    cubin/ARCH.cubin           the kernels' binaries, one for each architecture
    ir/STAGE.mlir              the printed IR, for people and for the CPU target
    weights.safetensors        a snapshot of the bound weights
    branch/NUMBER.dlcb         the same for another way through the program, without the weights of the file around it

For the CPU target no binary is stored: who loads the file compiles the text anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.rows import Program, check_program
from dlcb.runtime.stored import are_strides, unique_tensors, with_strides
from dlcb.runtime.weights import check_weight

FORMAT = 3
MANIFEST = "manifest.json"
KERNELS = "kernels.cu"
WEIGHTS = "weights.safetensors"
KERNEL_STAGE = "host"
"""The stage whose IR holds a module's kernels for good."""
_TARGETS = ("cpu", "cuda")
_NAME = re.compile(r"[A-Za-z0-9_.\-]+")
_MOST_BRANCHES = 64
_OUTER = "../"
"""How the name of a tensor begins that the file around this one stores."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


@dataclass
class Artifact:
    """What a compiled module is made of. `torch_range` is (first version that fits, first that does not), as "2.11";
    `extra` is for the frontend: how arguments are flattened, what dimensions are free; any JSON."""

    name: str
    target: str
    mode: str
    programs: dict[str, Any]
    kernels: str
    cubins: dict[str, bytes]
    ir: dict[str, str]
    weights: dict[str, Tensor]
    torch_range: tuple[str, str]
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    branches: list[Artifact] = field(default_factory=list["Artifact"])
    """The other ways through the program, where it branches on sizes."""


def save_artifact(artifact: Artifact, path: Path) -> None:
    """Write the file, or leave what was there: a reader never sees half of it."""
    members = _members(artifact, {})
    _write_atomically(path, members)


def load_artifact(path: Path) -> Artifact:
    """The file's content, checked; a UserError says what is wrong with a damaged, truncated or foreign file."""
    return _Reader(str(path), _read(path, path)).artifact()


def _members(artifact: Artifact, outer: Mapping[Any, str]) -> dict[str, bytes]:
    """The file's members. `outer`: the tensors that the file around it stores, with their names there."""
    stored = {identity: f"{_OUTER}{name}" for identity, name in outer.items()}
    tensors, weights = unique_tensors(artifact.weights, stored)
    branches = [_zipped(_members(branch, stored)) for branch in artifact.branches]
    members: dict[str, bytes] = {
        KERNELS: artifact.kernels.encode(),
        WEIGHTS: safetensors.torch.save(tensors),
        **{f"host/{_safe(name)}.json": _json(program) for name, program in artifact.programs.items()},
        **{f"cubin/{_safe(arch)}.cubin": binary for arch, binary in artifact.cubins.items()},
        **{f"ir/{_safe(stage)}.mlir": text.encode() for stage, text in artifact.ir.items()},
        **{f"branch/{number}.dlcb": branch for number, branch in enumerate(branches)},
    }
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "name": artifact.name,
        "target": artifact.target,
        "mode": artifact.mode,
        "architectures": sorted(artifact.cubins),
        "torch": list(artifact.torch_range),
        "programs": list(artifact.programs),
        "stages": list(artifact.ir),
        "weights": weights,
        "branches": len(branches),
        "extra": artifact.extra,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    return {MANIFEST: _json(manifest), **members}


class _Reader:
    def __init__(self, path: str, members: Mapping[str, bytes], outer: Mapping[str, Tensor] | None = None) -> None:
        """`outer`: the tensors of the file around this one; None where there is none."""
        self.path = path
        self.members = members
        self.outer = outer
        self.manifest = self.json(MANIFEST)

    def artifact(self) -> Artifact:
        found = self.manifest.get("format")
        if found != FORMAT:
            self.fail(f"format {found!r}, this DLCB reads format {FORMAT}")
        self.check_hashes()
        torch_range = self.check_torch()
        mode, target = self.text("mode"), self.text("target")
        if mode not in ("live", "frozen"):
            self.fail(f"{MANIFEST}: mode: weights mode must be live or frozen, got {mode!r}")
        if target not in _TARGETS:
            self.fail(f"{MANIFEST}: target must be {' or '.join(_TARGETS)}, got {target!r}")
        if "main" not in self.names("programs"):
            self.fail(f"{MANIFEST}: programs: no program 'main'")
        if target == "cpu" and KERNEL_STAGE not in self.names("stages"):
            self.fail(f"{MANIFEST}: stages: no IR of stage '{KERNEL_STAGE}', which the CPU target is made of")
        self.check_members()
        programs = {name: self.json(f"host/{name}.json") for name in self.names("programs")}
        checked = {name: self.program(name, program) for name, program in programs.items()}
        tensors = self.tensors()
        weights = self.weights(tensors)
        self.check_weights(weights, checked["main"], checked.get("weights"))
        return Artifact(
            self.text("name"),
            target,
            mode,
            programs,
            self.decoded(KERNELS),
            {arch: self.member(f"cubin/{arch}.cubin") for arch in self.names("architectures")},
            {stage: self.decoded(f"ir/{stage}.mlir") for stage in self.names("stages")},
            weights,
            torch_range,
            self.object("extra"),
            self.branches(tensors),
        )

    def fail(self, what: str) -> NoReturn:
        raise UserError(f"{self.path}: not a usable .dlcb file: {what}")

    def check_hashes(self) -> None:
        hashes = self.object("sha256")
        expected, found = set(hashes), set(self.members) - {MANIFEST}
        if expected != found:
            self.fail(f"{MANIFEST}: sha256: members missing or foreign: {', '.join(sorted(expected ^ found))}")
        for name, digest in hashes.items():
            if hashlib.sha256(self.members[name]).hexdigest() != digest:
                self.fail(f"{name} is damaged: its hash is not the one in {MANIFEST}: sha256")

    def check_members(self) -> None:
        """What the manifest names is there, and nothing else."""
        named = {MANIFEST: "", KERNELS: "", WEIGHTS: ""}
        named |= {f"branch/{number}.dlcb": "branches" for number in range(self.branch_count())}
        for key, form in (("programs", "host/{}.json"), ("architectures", "cubin/{}.cubin"), ("stages", "ir/{}.mlir")):
            named |= {form.format(name): key for name in self.names(key)}
        for name, key in named.items():
            if name not in self.members:
                self.fail(f"{MANIFEST}: {key}: {name} is missing")
        foreign = self.members.keys() - named.keys()
        if foreign:
            self.fail(f"{MANIFEST}: no programs, architectures, stages or branches are {', '.join(sorted(foreign))}")

    def check_torch(self) -> tuple[str, str]:
        match self.manifest.get("torch"):
            case [str(first), str(end)] if _VERSION.fullmatch(first) and _VERSION.fullmatch(end):
                if not _version(first) <= _version(torch.__version__) < _version(end):
                    self.fail(f"made for torch from {first} to before {end}, here is torch {torch.__version__}")
                return first, end
            case other:
                self.fail(f"{MANIFEST}: torch: expected a range of torch versions, got {other!r}")

    def program(self, name: str, data: Any) -> Program:
        try:
            return check_program(data)
        except UserError as error:
            self.fail(f"host/{name}.json: {error}")

    def check_weights(self, weights: Mapping[str, Tensor], main: Program, derive: Program | None) -> None:
        """All that the programs read, and do not derive, is there as they need it."""
        derived = () if derive is None else derive.results
        wanted = [a for a in main.arguments if a.name not in derived]
        for argument in (*wanted, *(() if derive is None else derive.arguments)):
            if argument.kind != "weight":
                continue
            if argument.name not in weights:
                self.fail(f"{MANIFEST}: weights: no weight {argument.name!r}, which the program reads")
            try:
                check_weight("weights", argument, weights[argument.name], torch.device("cpu"))
            except UserError as error:
                self.fail(f"{MANIFEST}: {error}")

    def tensors(self) -> dict[str, Tensor]:
        """What is stored in this file, and in those around it."""
        try:
            stored = safetensors.torch.load(self.member(WEIGHTS))
        except (safetensors.SafetensorError, ValueError) as error:
            self.fail(f"{WEIGHTS}: {error}")
        return stored | {f"{_OUTER}{name}": tensor for name, tensor in (self.outer or {}).items()}

    def branch_count(self) -> int:
        count = self.manifest.get("branches")
        if type(count) is not int or not 0 <= count <= _MOST_BRANCHES:
            self.fail(f"{MANIFEST}: branches must be a number up to {_MOST_BRANCHES}, got {count!r}")
        return count

    def branches(self, tensors: Mapping[str, Tensor]) -> list[Artifact]:
        count = self.branch_count()
        if count and self.outer is not None:
            self.fail(f"{MANIFEST}: a branch has no branches")
        found: list[Artifact] = []
        for number in range(count):
            name = f"branch/{number}.dlcb"
            where = f"{self.path}: {name}"
            branch = _Reader(where, _read(io.BytesIO(self.member(name)), where), tensors).artifact()
            if (branch.target, branch.mode) != (self.text("target"), self.text("mode")):
                self.fail(f"{name} is for target {branch.target!r} and weights {branch.mode!r}")
            found.append(branch)
        return found

    def weights(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = {}
        for name, entry in self.object("weights").items():
            match entry:
                case [str(stored), [*strides]] if stored in tensors and are_strides(strides, tensors[stored]):
                    weights[name] = self.laid(name, tensors[stored], strides)
                case _:
                    self.fail(
                        f"{MANIFEST}: weights: weight {name!r}: expected a stored tensor and its strides, got {entry!r}"
                    )
        return weights

    def laid(self, name: str, tensor: Tensor, strides: list[int]) -> Tensor:
        try:
            return with_strides(tensor, strides)
        except RuntimeError as error:
            self.fail(f"{MANIFEST}: weights: weight {name!r}: strides {strides} for {list(tensor.shape)}: {error}")

    # --- parts

    def member(self, name: str) -> bytes:
        if name not in self.members:
            self.fail(f"{name} is missing")
        return self.members[name]

    def decoded(self, name: str) -> str:
        try:
            return self.member(name).decode()
        except UnicodeDecodeError as error:
            self.fail(f"{name}: {error}")

    def json(self, name: str) -> dict[str, Any]:
        try:
            data = json.loads(self.member(name))
        except (ValueError, RecursionError) as error:
            self.fail(f"{name}: {error}")
        if not isinstance(data, dict):
            self.fail(f"{name}: expected an object, got {type(data).__name__}")
        return data  # pyright: ignore

    def text(self, key: str) -> str:
        value = self.manifest.get(key)
        if not isinstance(value, str):
            self.fail(f"{MANIFEST}: {key} must be a text, got {value!r}")
        return value

    def object(self, key: str) -> dict[str, Any]:
        value = self.manifest.get(key)
        if not isinstance(value, dict):
            self.fail(f"{MANIFEST}: {key} must be an object, got {value!r}")
        return value  # pyright: ignore

    def names(self, key: str) -> list[str]:
        value = self.manifest.get(key)
        if not isinstance(value, list) or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in value):  # pyright: ignore
            self.fail(f"{MANIFEST}: {key} must be a list of names, got {value!r}")
        return value  # pyright: ignore


def _read(file: Path | IO[bytes], path: object) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            _check_whole(archive)
            return {name: archive.read(name) for name in archive.namelist()}
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise UserError(f"{path}: not a usable .dlcb file: {error}") from None


_END = b"PK\x05\x06"
_END_BYTES = 22


def _check_whole(archive: zipfile.ZipFile) -> None:
    """A `ValueError` unless the file is one archive from its first byte to its last, as DLCB writes them: what is cut
    off within a branch would else be read as that branch."""
    stream = cast("IO[bytes]", archive.fp)
    stream.seek(-_END_BYTES, os.SEEK_END)
    offsets = [member.header_offset for member in archive.infolist()]
    if stream.read(len(_END)) != _END or min(offsets, default=0) != 0:
        raise ValueError("it is cut off, or there is something before or after it")
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("members are compressed, which DLCB does not do")


def _write_atomically(path: Path, members: Mapping[str, bytes]) -> None:
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise UserError(f"{path}: can't be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write_zip(file, members)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _zipped(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    _write_zip(buffer, members)
    return buffer.getvalue()


def _write_zip(file: IO[bytes], members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)


def _safe(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UserError(f"{name!r} can't be a name in a .dlcb file: letters, digits, '.', '-' and '_' only")
    return name


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def _version(text: str) -> tuple[int, int]:
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else (0, 0)
