"""The cache of compiled binaries, and what is said where a compiler is missing."""

import hashlib
import os
from pathlib import Path

import pytest

from dlcb.errors import InternalError, UserError
from dlcb.lowering import text_to_cpu, text_to_cubin
from dlcb.lowering.disk_cache import DiskCache, cache_key

KERNEL = "DLCB_KERNEL(k, 1, float* x) {\n  DLCB_WARPS {\n    DLCB_THREADS {\n      x[0] = 1.0f;\n    }\n  }\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DLCB_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_what_is_put_is_got() -> None:
    cache = DiskCache("kind", ".bin")
    assert cache.get("a") is None
    cache.put("a", b"one")
    assert DiskCache("kind", ".bin").get("a") == b"one"


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_a_damaged_entry_counts_as_absent_and_leaves(damage: bytes) -> None:
    cache = DiskCache("kind", ".bin")
    cache.put("a", b"one")
    cache.path("a").write_bytes(damage)
    assert cache.get("a") is None
    assert not cache.path("a").exists()


def test_the_entries_used_longest_ago_leave() -> None:
    cache = DiskCache("kind", ".bin", limit_bytes=2 * (100 + hashlib.sha256().digest_size))
    for age, key in ((30, "a"), (20, "b")):
        cache.put(key, bytes(100))
        os.utime(cache.path(key), (1e9 - age, 1e9 - age))
    assert cache.get("a") is not None
    cache.put("c", bytes(100))
    assert [cache.get(key) is not None for key in "abc"] == [True, False, True]


def test_no_half_written_file_stays(folder: Path) -> None:
    DiskCache("kind", ".bin").put("a", b"one")
    assert [path.name for path in (folder / "kind").iterdir()] == ["a.bin"]


def test_keys_tell_their_parts_apart() -> None:
    assert cache_key("ab", "c") != cache_key("a", "bc")


def test_a_folder_that_is_a_file_is_a_users_error(folder: Path) -> None:
    (folder / "kind").write_text("")
    with pytest.raises(UserError, match="set DLCB_CACHE_DIR"):
        DiskCache("kind", ".bin").put("a", b"one")


def test_a_damaged_cubin_is_compiled_anew() -> None:
    first = text_to_cubin.compile_cubin(KERNEL)
    (entry,) = DiskCache("cubin", ".cubin").folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:100])
    assert text_to_cubin.compile_cubin(KERNEL).data == first.data
    assert text_to_cubin.compile_cubin(KERNEL, "sm_80").data != first.data


def test_nvrtcs_refusal_shows_the_line() -> None:
    with pytest.raises(InternalError, match=r'identifier "y" is undefined[\s\S]*\d+ \|       x\[0\] = y;'):
        text_to_cubin.compile_cubin(KERNEL.replace("1.0f", "y"))


def test_a_machine_without_nvrtc_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_to_cubin, "_places", lambda: iter(["/nowhere/libnvrtc.so.12"]))
    text_to_cubin.load_nvrtc.cache_clear()
    try:
        with pytest.raises(UserError, match="pip install nvidia-cuda-nvrtc-cu12"):
            text_to_cubin.compile_cubin(KERNEL)
    finally:
        text_to_cubin.load_nvrtc.cache_clear()


def test_a_machine_without_a_compiler_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="needs a C\\+\\+17 compiler, but none of c\\+\\+, g\\+\\+, clang"):
        text_to_cpu.compile_cpu(KERNEL)


def test_a_compiler_asked_for_by_name_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="CXX is no-such-compiler, which is not there"):
        text_to_cpu.compile_cpu(KERNEL)


def test_the_compilers_refusal_shows_its_words() -> None:
    with pytest.raises(InternalError, match=r"y. was not declared|undeclared identifier .y"):
        text_to_cpu.compile_cpu(KERNEL.replace("1.0f", "y"))
