"""Sizes of a trace: no two have a factor in common."""

from __future__ import annotations

import math
from collections.abc import Iterator

_LARGEST_FACTOR = 1 << 10


def primes_from(start: int) -> Iterator[int]:
    """Primes, as far as factors that matter can tell: large numbers only have no small ones."""
    n = start
    while True:
        if all(n % d for d in range(2, min(math.isqrt(n), _LARGEST_FACTOR) + 1)):
            yield n
        n += 1
