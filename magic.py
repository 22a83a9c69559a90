"""Division by a number that is known at launch only, as multiplication and shift. A leaf: it imports nothing of dlcb.

T. Granlund, P. L. Montgomery, "Division by invariant integers using multiplication", PLDI 1994, theorem 4.2. With
N = bits - 1, l = ceil(log2 d) and m = floor(2^(N + l) / d) + 1 the quotient of n in [0, 2^N) is
floor(n * m / 2^(N + l)), for m * d - 2^(N + l) is in (0, 2^l]. m < 2^bits, so the quotient is the high word of
(2 * n) * m, shifted right by l. d = 0 has m = 0: all quotients are 0.
"""

from __future__ import annotations

from typing import Literal

Bits = Literal[32, 64]


def magic_constants(divisor: int, bits: Bits) -> tuple[int, int]:
    """(mul, shift) for a divisor in [0, 2^(bits - 1)); both fit signed integers of that width (mul by its bits)."""
    if not 0 <= divisor < 1 << (bits - 1):
        raise ValueError(f"magic division: divisor {divisor} is not in [0, 2^{bits - 1})")
    if divisor == 0:
        return 0, 0
    shift = (divisor - 1).bit_length()
    mul = (1 << (bits - 1 + shift)) // divisor + 1
    return (mul - (1 << bits) if mul >> (bits - 1) else mul), shift


def magic_divide(dividend: int, mul: int, shift: int, bits: Bits) -> int:
    """dividend // divisor, as kernels compute it, for a dividend in [0, 2^(bits - 1)) and the divisor's constants."""
    return ((2 * dividend) * (mul % (1 << bits)) >> bits) >> shift
