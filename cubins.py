"""Several cubins as one binary, for kernels that were compiled side by side. A leaf: it imports nothing of dlcb.

One cubin is itself. Before several stand `_SEVERAL`, their number and their lengths, of 8 bytes each, little-endian.
"""

from __future__ import annotations

from collections.abc import Sequence

_SEVERAL = b"DLCB\0\0\0\1"
_WORD = 8


def joined(cubins: Sequence[bytes]) -> bytes:
    if len(cubins) == 1:
        return cubins[0]
    words = [len(cubins), *map(len, cubins)]
    return b"".join([_SEVERAL, *(word.to_bytes(_WORD, "little") for word in words), *cubins])


def parts(binary: bytes) -> list[bytes]:
    """The cubins of a binary."""
    if not binary.startswith(_SEVERAL):
        return [binary]
    count = _word(binary, 1)
    found: list[bytes] = []
    place = (2 + count) * _WORD
    for number in range(count):
        length = _word(binary, 2 + number)
        found.append(binary[place : place + length])
        place += length
    return found


def _word(binary: bytes, number: int) -> int:
    return int.from_bytes(binary[number * _WORD : (number + 1) * _WORD], "little")
