"""Large texts of kernels are compiled side by side, and what comes of them is one binary."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from xdsl.dialects.builtin import f32

from dlcb.cubins import joined, parts
from dlcb.dialects.cuda.builder import CudaBuilder
from dlcb.dialects.cuda.types import ptr
from dlcb.errors import UserError
from dlcb.lowering import text_to_cubin
from dlcb.lowering.cuda_to_text import kernel_texts, kernels_to_text
from dlcb.lowering.text_to_cubin import compile_cubin, units_of
from dlcb.runtime import cuda


def text_of(count: int) -> str:
    kernels: list[Any] = []
    for number in range(count):
        b = CudaBuilder(f"copy{number}", 32, [("x", ptr(f32)), ("y", ptr(f32))])
        x, y = b.parameters
        for _ in range(number):
            b.store(b.load(x, b.thread_idx()), y, b.thread_idx())
        kernels.append(b.finish())
    return kernels_to_text(kernels)


@pytest.mark.parametrize("cubins", [[b"\x7fELF one"], [b"\x7fELF one", b"", b"\x7fELF another"], [b""]])
def test_a_binary_has_the_cubins_it_was_made_of(cubins: list[bytes]) -> None:
    assert parts(joined(cubins)) == cubins


def test_one_cubin_is_itself() -> None:
    assert joined([b"\x7fELF one"]) == b"\x7fELF one"


def test_every_kernel_is_in_one_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(20)
    assert units_of(text, 8) == [text]
    monkeypatch.setattr(text_to_cubin, "_UNIT_BYTES", len(text) // 4)
    units = units_of(text, 8)
    assert len(units) == 4
    assert sorted(name for unit in units for name in kernel_texts(unit)) == sorted(kernel_texts(text))
    assert max(map(len, units)) < 2 * min(map(len, units))
    assert len(units_of(text, 3)) == 3
    assert units_of(text, 1) == [text]


def test_a_large_text_is_compiled_side_by_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = text_of(9)
    monkeypatch.setenv("DLCB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(text_to_cubin, "_UNIT_BYTES", len(text) // 3)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    cubins = parts(compile_cubin(text).data)
    assert len(cubins) == 3
    assert all(cubin.startswith(b"\x7fELF") for cubin in cubins)
    for number in range(9):
        assert sum(b".text.copy%d\0" % number in cubin for cubin in cubins) == 1
    assert parts(compile_cubin(text).data) == cubins


class _Driver:
    """Modules that are the names of their kernels."""

    CUresult = SimpleNamespace(
        CUDA_SUCCESS=cuda.driver.CUresult.CUDA_SUCCESS,
        CUDA_ERROR_NOT_FOUND=cuda.driver.CUresult.CUDA_ERROR_NOT_FOUND,
        CUDA_ERROR_NO_BINARY_FOR_GPU=cuda.driver.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
    )

    def __getattr__(self, name: str) -> Any:
        return lambda *_: (
            (self.CUresult.CUDA_SUCCESS,) if name == "cuCtxSetCurrent" else (self.CUresult.CUDA_SUCCESS, 0)
        )

    def cuModuleLoadData(self, data: bytes) -> tuple[Any, ...]:
        return self.CUresult.CUDA_SUCCESS, data.split()

    def cuModuleGetFunction(self, module: list[bytes], name: bytes) -> tuple[Any, ...]:
        found = name in module
        return (self.CUresult.CUDA_SUCCESS, name) if found else (self.CUresult.CUDA_ERROR_NOT_FOUND, None)


def test_kernels_are_found_in_each_of_the_cubins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "driver", _Driver())
    monkeypatch.setattr(cuda, "require_driver", lambda: None)
    monkeypatch.setattr("torch.cuda.init", lambda: None)
    kernels = cuda.CudaKernels(joined([b"a b", b"c"]), torch.device("cuda:0"))
    assert [kernels.function(name) for name in "abc"] == [b"a", b"b", b"c"]
    with pytest.raises(UserError, match="no kernel 'd'"):
        kernels.function("d")
