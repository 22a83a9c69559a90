"""A checked host program as one Python function: from the facts about a call's arguments to the call's plan."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from dlcb.errors import LAYOUT, InternalError, LayoutError, UserError
from dlcb.magic import magic_constants
from dlcb.runtime.plan import CallPlan, RootKind, extent
from dlcb.runtime.plan_source import MAX_BLOCKS, PlanSource
from dlcb.runtime.rows import Program


@dataclass(frozen=True, slots=True)
class Facts:
    """What a program may ask about its arguments, each by the argument's number: sizes and strides of inputs, values of
    integers and the largest power of two, up to 16, that divides a tensor's address. What does not apply to an argument
    is not read."""

    sizes: Sequence[tuple[int, ...]]
    strides: Sequence[tuple[int, ...]]
    integers: Sequence[int]
    alignment: Sequence[int]


PlanFunction = Callable[[Facts], CallPlan]
_Chosen = tuple[str, int, int, tuple[int, ...]]
"""Kernel, threads, blocks and integers of a launch."""


def compile_program(program: Program, separate_buffers: bool = False) -> PlanFunction:
    """The function that plans a call. With `separate_buffers` every buffer is a root of its own, so that writing past
    one is seen.

    A launch takes the first variant whose condition holds and whose 32-bit integers fit; one of 0 blocks is no step. A
    check that fails is a UserError with the check's text, a LayoutError where that begins so. Integers of programs are
    exact: they never wrap. A tensor that does not lie inside its root is an InternalError.
    """
    source = PlanSource(program, separate_buffers)
    refusals = _Refusals(program, source.kinds)
    make: Any = cast("Any", tuple).__new__
    namespace: dict[str, Any] = {
        "__builtins__": {},
        **source.given,
        "make": make,
        "tuple": tuple,
        "min": min,
        "max": max,
        "extent": extent,
        "magic": magic,
        "floor": math.floor,
        "isqrt": math.isqrt,
        "check_failed": refusals.check_failed,
        "no_variant": refusals.no_variant,
        "launchable": refusals.launchable,
        "bad_arena": refusals.bad_arena,
        "bad_output": refusals.bad_output,
        "outside": refusals.outside,
    }
    exec(compile(source.text, f"<host program {program.name}>", "exec"), namespace)
    return namespace["plan"]


def compile_derivation(program: Program) -> PlanFunction:
    """That of `@weights`: with buffers apart, steps that do not need one another share no memory, and can run side by
    side."""
    return compile_program(program, separate_buffers=True)


class _Refusals:
    """What is wrong with a call, or with the program."""

    def __init__(self, program: Program, kinds: Sequence[RootKind]) -> None:
        self._name = program.name
        self._rows = program.code
        self._kinds = kinds

    def check_failed(self, row: int, values: tuple[int, ...]) -> NoReturn:
        text = fill(self._rows[row][2], values)
        kind = LayoutError if text.startswith(LAYOUT) else UserError
        raise kind(f"{self._name}: {text.removeprefix(LAYOUT)}")

    def no_variant(self, row: int) -> NoReturn:
        kernels = ", ".join(variant[0] for variant in self._rows[row][2])
        raise self._wrong(f"none of the kernels {kernels} fits this call")

    def launchable(self, kernel: str, threads: int, blocks: int, values: tuple[int, ...]) -> _Chosen | None:
        """The same, but None for no blocks; an error for blocks or numbers that no launch can have."""
        if not blocks:
            return None
        if blocks < 0:
            raise self._wrong(f"{kernel}: {blocks} blocks")
        if blocks > MAX_BLOCKS:
            raise self._too_large(f"{kernel} would take {blocks} blocks of {threads} threads, {MAX_BLOCKS} at most")
        if values and not (-(1 << 63) <= min(values) and max(values) < 1 << 63):
            value = next(value for value in values if not -(1 << 63) <= value < 1 << 63)
            raise self._too_large(f"{kernel} would take the number {value}, which does not fit 64 bits")
        return kernel, threads, blocks, values

    def bad_arena(self, count: int) -> NoReturn:
        if count < 0:
            raise self._wrong(f"the arena's bytes: {count} is negative")
        raise self._unaddressable(count)

    def bad_output(self, sizes: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> NoReturn:
        least = min((*sizes, *strides))
        if least < 0:
            raise self._wrong(f"a size or stride of an output: {least} is negative")
        raise self._unaddressable(math.prod([max(size, 1) for size in sizes]) * itemsize)

    def outside(
        self,
        row: int,
        root: int,
        start: int,
        sizes: tuple[int, ...],
        strides: tuple[int, ...],
        itemsize: int,
        room: int,
    ) -> NoReturn:
        """Of a tensor from that byte on in a root of so many."""
        offset, rest = divmod(start, itemsize)
        if rest:
            raise self._wrong(f"a buffer of {self._rows[row][6]} starts at byte {start}")
        least = min((offset, *sizes, *strides))
        if least < 0:
            raise self._wrong(f"an offset, size or stride of a tensor: {least} is negative")
        raise self._wrong(
            f"a tensor of sizes {sizes}, strides {strides} at {offset} ends at element "
            f"{offset + extent(sizes, strides)}, outside its {self._kinds[root]} of {room} bytes"
        )

    def _wrong(self, what: str) -> InternalError:
        return InternalError(f"{self._name}: {what}")

    def _too_large(self, what: str) -> UserError:
        return UserError(f"{self._name}: too large for one call: {what}")

    def _unaddressable(self, count: int) -> UserError:
        return self._too_large(f"a result or the workspace would take {count} bytes, 2^63 - 1 at most")


def fill(text: str, values: Sequence[int]) -> str:
    """The text with `{0}`, `{1}` … replaced by the values; a number without a value stays as it is."""

    def value(match: re.Match[str]) -> str:
        number = int(match[1])
        return str(values[number]) if number < len(values) else match[0]

    return re.sub(r"\{(\d{1,4})\}", value, text)


def magic(divisor: int, bits: int) -> tuple[int, int]:
    """Multiplier and shift of the form with so many bits, or zeros where it has no room for the divisor."""
    return magic_constants(divisor, 32 if bits == 32 else 64) if 0 <= divisor < 1 << (bits - 1) else (0, 0)
