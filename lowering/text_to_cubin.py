"""Text of kernels to a cubin, by NVRTC alone: no include path, no toolkit, no GPU.

NVRTC 12 is preferred, for its cubins load on every supported driver; 13 serves where only that is there.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dlcb.errors import InternalError, MachineError
from dlcb.lowering.cuda_to_text import cuda_unit
from dlcb.lowering.disk_cache import DiskCache, cache_key

_MAJORS = (12, 13)
_MANY_KERNELS = 8
_MANY_CORES = 4
_ERROR_LINE = re.compile(r"^kernels\.cu\((\d+)\): (?:catastrophic )?error", re.MULTILINE)


@dataclass(frozen=True)
class Cubin:
    """A GPU binary, the NVRTC version that made it, and the compiler's log (empty if it came from the cache)."""

    data: bytes
    nvrtc: tuple[int, int]
    log: str


def compile_cubin(text: str, arch: str = "sm_90") -> Cubin:
    """Compile the text of kernels (`cuda_to_text.kernels_to_text`) for an architecture; compiled once a machine."""
    unit = cuda_unit(text)
    nvrtc = load_nvrtc()
    options = _options(text, arch)
    disk = DiskCache("cubin", ".cubin")
    key = cache_key(unit, str(nvrtc.version), *options)
    data = disk.get(key)
    if data is not None:
        return Cubin(data, nvrtc.version, "")
    cubin = nvrtc.compile(unit, options)
    disk.put(key, cubin.data)
    return cubin


def _options(text: str, arch: str) -> tuple[str, ...]:
    """A product is rounded before it is added, as in eager: x·x - x·x is 0."""
    options = (f"--gpu-architecture={arch}", "--std=c++17", "--fmad=false")
    many = text.count("DLCB_KERNEL(") >= _MANY_KERNELS and (os.cpu_count() or 1) >= _MANY_CORES
    return (*options, "--split-compile=0") if many else options


class Nvrtc:
    """The functions of one NVRTC library."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = major.value, minor.value

    def compile(self, unit: str, options: tuple[str, ...]) -> Cubin:
        """Compile a whole unit; an InternalError holds the log and the lines around the errors."""
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), unit.encode(), b"kernels.cu", 0, None, None)
        try:
            arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = self._library.nvrtcCompileProgram(program, len(options), arguments)
            log = self._bytes("ProgramLog", program).rstrip(b"\0").decode(errors="replace").strip()
            if status != 0:
                raise InternalError(_failure(unit, options, log or self._error(status)))
            return Cubin(self._bytes("CUBIN", program), self.version, log)
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw[: size.value]

    def _error(self, status: int) -> str:
        return self._library.nvrtcGetErrorString(status).decode()

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            raise InternalError(f"NVRTC: {name} failed: {self._error(status)}")


def _failure(unit: str, options: tuple[str, ...], log: str) -> str:
    lines = unit.splitlines()
    near: set[int] = set()
    for match in _ERROR_LINE.finditer(log):
        number = int(match[1])
        near.update(range(max(number - 3, 1), min(number + 3, len(lines)) + 1))
    shown = "\n".join(f"{number:5} | {lines[number - 1]}" for number in sorted(near))
    return f"NVRTC refuses the kernels ({' '.join(options)}):\n{log}\n{shown}"


@cache
def load_nvrtc() -> Nvrtc:
    """The NVRTC library of this machine; a MachineError says how to get one."""
    for place in _places():
        try:
            return Nvrtc(ctypes.CDLL(str(place)))
        except OSError:
            continue
    raise MachineError(
        "no NVRTC was found, the compiler for GPU kernels; install it with `pip install nvidia-cuda-nvrtc-cu12`"
    )


def _places() -> Iterator[Path | str]:
    """Where NVRTC may be: in the wheels (`nvidia/cuda_nvrtc`, `nvidia/cu13`), on the loader's path, in the toolkit."""
    wheels = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in (wheels.submodule_search_locations or ())] if wheels is not None else []
    toolkits = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for major in _MAJORS:
        name = f"libnvrtc.so.{major}"
        for folder in folders:
            yield from sorted(folder.glob(f"*/lib/{name}"))
        yield name
        for toolkit in (*toolkits, Path("/usr/local/cuda")):
            yield toolkit / "lib64" / name
