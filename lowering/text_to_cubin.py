"""Text of kernels to a cubin, by NVRTC alone: no include path, no toolkit, no GPU.

Most of NVRTC's time is spent where it uses one core, and threads may compile at once: so a large text is compiled as
several units. NVRTC 12 is preferred, for its cubins load on every supported driver; 13 serves where only that is there.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from dlcb.cubins import joined
from dlcb.errors import InternalError, MachineError
from dlcb.lowering.cuda_to_text import cuda_unit, kernel_texts
from dlcb.lowering.disk_cache import DiskCache, cache_key

_MAJORS = (12, 13)
_MANY_KERNELS = 8
_MANY_CORES = 4
_UNIT_BYTES = 48 << 10
"""Of the text of kernels: a unit takes 40 ms before its first kernel, and 0.4 s for as much."""
_MOST_UNITS = 8
"""The GPU's driver loads each by itself."""
_ERROR_LINE = re.compile(r"^kernels\.cu\((\d+)\): (?:catastrophic )?error", re.MULTILINE)


@dataclass(frozen=True)
class Cubin:
    """A GPU binary (`cubins.joined`), the NVRTC version that made it, and the compiler's log (empty if it came from the
    cache)."""

    data: bytes
    nvrtc: tuple[int, int]
    log: str


def compile_cubin(text: str, arch: str = "sm_90") -> Cubin:
    """Compile the text of kernels (`cuda_to_text.kernels_to_text`) for an architecture; compiled once a machine."""
    nvrtc = load_nvrtc()
    options = (f"--gpu-architecture={arch}", "--std=c++17", "--fmad=false")
    disk = DiskCache("cubin", ".cubin")
    key = cache_key(cuda_unit(text), str(nvrtc.version), *options)
    data = disk.get(key)
    if data is not None:
        return Cubin(data, nvrtc.version, "")
    cubin = _compiled(nvrtc, text, options, os.cpu_count() or 1)
    disk.put(key, cubin.data)
    return cubin


def _compiled(nvrtc: Nvrtc, text: str, options: Sequence[str], cores: int) -> Cubin:
    """A product is rounded before it is added, as in eager (`--fmad=false`): x·x - x·x is 0."""
    units = units_of(text, min(cores // 2, _MOST_UNITS))
    if len(units) == 1:
        many = text.count("DLCB_KERNEL(") >= _MANY_KERNELS and cores >= _MANY_CORES
        return nvrtc.compile(cuda_unit(text), (*options, "--split-compile=0") if many else (*options,))
    options = (*options, f"--split-compile={cores // len(units)}")
    with ThreadPoolExecutor(len(units)) as threads:
        made = list(threads.map(partial(nvrtc.compile, options=options), map(cuda_unit, units)))
    log = "\n".join(cubin.log for cubin in made if cubin.log)
    return Cubin(joined([cubin.data for cubin in made]), nvrtc.version, log)


def units_of(text: str, most: int) -> list[str]:
    """The text in so many parts at most, of about equal lengths; short texts are one."""
    count = min(most, len(text) // _UNIT_BYTES)
    if count < 2:
        return [text]
    units: list[list[str]] = [[] for _ in range(count)]
    lengths = [0] * count
    for kernel in sorted(kernel_texts(text).values(), key=len, reverse=True):
        shortest = lengths.index(min(lengths))
        units[shortest].append(kernel)
        lengths[shortest] += len(kernel)
    return ["\n\n".join(unit) for unit in units if unit]


class Nvrtc:
    """The functions of one NVRTC library."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = major.value, minor.value

    def compile(self, unit: str, options: Sequence[str]) -> Cubin:
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


def _failure(unit: str, options: Sequence[str], log: str) -> str:
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
