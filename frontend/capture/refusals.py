"""What an operation that refuses the sizes of a trace teaches: which of them, equal in the example, it wants equal.

All sizes of a trace are different, so an operation that needs two of them to be equal fails. Its operands say which
that may be: two symbols that are equal in the example, or a symbol and a number that is its size there. Of these
guesses the fewest are kept with which the trace gets past the operation; so four heads and a batch of four are told
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, cast

from dlcb.frontend.tracing.records import Operands, Record, Value
from dlcb.frontend.tracing.result_sizes import Sizes

_MANY = 24
"""Guesses about one operation that are tried beside the likely ones."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Two symbols are equal; or the one has the example's size."""

    symbol: str
    other: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """The operation that a trace ended with, how many came before it, and what torch said."""

    record: Record
    position: int
    text: str = ""
    sizes: Mapping[Value, Sizes] = field(default_factory=dict[Value, Sizes])
    """Of its operands, as the run knows them."""


def first_line(error: Exception) -> str:
    """Of what an error says."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


Probe = Callable[[list[Guess]], Refused | None]
"""Traces with some guesses applied; None where no operation refuses."""


def lesson(refused: Refused, symbols: Mapping[int, str], example: Mapping[str, int], probe: Probe) -> list[Guess]:
    """The fewest guesses with which the trace gets past the operation; none where no guesses do. `symbols`: what has
    which traced size."""

    def passes(guesses: list[Guess]) -> bool:
        then = probe(guesses)
        return then is None or then.position > refused.position

    shapes = [value.shape for value in _values((*refused.record.args, *refused.record.kwargs.values()))]
    likely = list(dict.fromkeys(_guesses(_aligned(shapes), symbols, example)))
    every = combinations(dict.fromkeys(size for shape in shapes for size in shape), 2)
    others = [guess for guess in dict.fromkeys(_guesses(every, symbols, example)) if guess not in likely][:_MANY]
    for guesses in ([likely] if likely else []) + [[*likely, other] for other in others]:
        if passes(guesses):
            return _fewest(guesses, passes)
    return []


def _fewest(guesses: list[Guess], passes: Callable[[list[Guess]], bool]) -> list[Guess]:
    kept = guesses
    for guess in reversed(guesses):
        without = [other for other in kept if other != guess]
        if passes(without):
            kept = without
    return kept


def _values(operands: Iterable[Any]) -> Iterator[Value]:
    for operand in operands:
        if isinstance(operand, Value):
            yield operand
        elif isinstance(operand, tuple):
            yield from _values(cast(Operands, operand))


def _aligned(shapes: list[tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """Sizes at the same place of two operands, counted from the right."""
    for one, other in combinations(shapes, 2):
        yield from zip(reversed(one), reversed(other), strict=False)


def _guesses(
    pairs: Iterable[tuple[int, int]], symbols: Mapping[int, str], example: Mapping[str, int]
) -> Iterator[Guess]:
    """Dims of size 1 are left out: they may be broadcast."""
    for one, other in pairs:
        first, second = symbols.get(one), symbols.get(other)
        if one == other or (first is None and second is None):
            continue
        left, right = (n if s is None else example[s] for n, s in ((one, first), (other, second)))
        if left == right != 1:
            yield Guess(first, second) if first is not None else Guess(cast(str, second), None)
