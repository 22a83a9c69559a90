"""Compiled binaries on disk, shared by processes, bounded, checked when they are read.

An entry is a file: the binary, then the SHA-256 of it (a loader of shared objects does not mind bytes at the end). It
appears whole, by renaming; a damaged one is removed and counts as absent. Beyond the limit the entries that were used
longest ago leave.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from dlcb.errors import MachineError

LIMIT_BYTES = 1 << 30
_DIGEST_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """`$DLCB_CACHE_DIR`, else `~/.cache/dlcb`."""
    given = os.environ.get("DLCB_CACHE_DIR")
    return Path(given) if given else Path.home() / ".cache" / "dlcb"


def cache_key(*parts: str) -> str:
    """One key for all the parts together."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


class DiskCache:
    """Entries of one kind, in the folder `kind` of the cache; their files end in `suffix`."""

    def __init__(self, kind: str, suffix: str, limit_bytes: int = LIMIT_BYTES):
        self.folder = cache_folder() / kind
        self.suffix = suffix
        self.limit_bytes = limit_bytes

    def path(self, key: str) -> Path:
        return self.folder / f"{key}{self.suffix}"

    def get(self, key: str) -> bytes | None:
        """The binary, or None if it is absent or damaged."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        binary, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        with contextlib.suppress(OSError):
            if hashlib.sha256(binary).digest() == digest:
                os.utime(path)
                return binary
            path.unlink()
        return None

    def put(self, key: str, binary: bytes) -> None:
        """Store the binary; nobody sees it half written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(binary + hashlib.sha256(binary).digest())
                os.replace(name, self.path(key))
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise MachineError(
                f"cache folder {self.folder} can't be written: {error}; set DLCB_CACHE_DIR to a folder that can"
            ) from error
        self._shrink()

    def _shrink(self) -> None:
        entries: list[tuple[float, int, Path]] = []
        for path in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                entries.append((status.st_mtime, status.st_size, path))
        excess = sum(size for _, size, _ in entries) - self.limit_bytes
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size
