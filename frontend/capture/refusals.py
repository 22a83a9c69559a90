"""What an operation that refuses the sizes of a trace teaches: which of them, equal in the example, it wants equal.

All sizes of a trace are different, so an operation that needs two of them to be equal fails. Its operands say which
that may be: two symbols that are equal in the example, or a symbol and a number that is its size there; of sizes that
are computed (the length of a cache and the new tokens), those in which they differ. Of these guesses the fewest are
kept with which the trace gets past the operation; so four heads and a batch of four are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, cast

from dlcb.dialects.shape.expr import Expr, const, constant_term, sub, sym
from dlcb.frontend.capture.sizes import joined
from dlcb.frontend.tracing.records import Operands, Record, Value
from dlcb.frontend.tracing.result_sizes import Sizes
from dlcb.frontend.tracing.trace import Resized
from dlcb.frontend.tracing.tracked import TrackedInt

_MANY = 24
"""Guesses about one operation that are tried beside the likely ones."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Two symbols are equal; or the one has the example's size."""

    symbol: str
    other: str | None


_EXACT = frozenset("bmm cat concat concatenate conv1d conv2d conv3d linear mm stack".split())
"""Operations that want sizes equal and take no size of 1 in place of another."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The operation that a trace ended with, how many came before it, and what torch said."""

    record: Record
    position: int
    text: str = ""
    sizes: Mapping[Value, Sizes] = field(default_factory=dict[Value, Sizes])
    """Of its operands, as the run knows them."""

    @property
    def is_exact(self) -> bool:
        """Would it refuse all other sizes too?"""
        return self.record.op in _EXACT


def first_line(error: Exception) -> str:
    """Of what an error says."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


Probe = Callable[[list[Guess]], Refused | None]
"""Traces with some guesses applied; None where no operation refuses."""


class Lessons:
    """What the refusals of one program teach. What an operation wanted at a line it wants there again: the layers of a
    network are learned from the first."""

    def __init__(self, example: Mapping[str, int], probe: Probe) -> None:
        self._example = example
        self._probe = probe
        self._places: dict[_Site, list[_Place]] = {}
        """Which sizes of which operands an operation wanted equal."""

    def of(self, refused: Refused, symbols: Mapping[int, str]) -> list[Guess]:
        """The fewest sizes to be equal, or at the example's, with which the trace gets past the operation; none where
        none do. `symbols`: what has which traced size."""
        shapes = self._shapes(refused, symbols)
        guesses = self._fewest(refused, shapes)
        self._places[_site(refused.record, shapes)] = list(guesses.values())
        return list(guesses)

    def again(self, refused: Refused, symbols: Mapping[int, str]) -> tuple[list[Guess], Resized]:
        """Where an operation is refused at a line where one was: what it wants equal there, and the sizes with which it
        would go on; both empty elsewhere."""
        shapes, values = self._shapes(refused, symbols), _operands(refused.record)
        places = self._places.get(_site(refused.record, shapes), [])
        guesses = self._guesses(places, shapes)
        sizes: dict[Value, dict[int, int]] = {}
        for group in joined(map(frozenset, places)) if guesses else ():
            dims = [shapes[operand][axis] for operand, axis in group]
            literals = [size for size, dim in dims if dim.is_const]
            size = min(literals or [size for size, _ in dims])
            for operand, axis in group:
                sizes.setdefault(values[operand], {})[axis] = size
        return list(guesses), sizes

    def alone(self, refused: Refused, symbols: Mapping[int, str]) -> list[Guess]:
        """The one size to be the example's with which the trace gets past the operation, whose sizes are no pairs."""
        for dim in (dim for shape in self._shapes(refused, symbols) for _, dim in shape):
            if self._example.get(dim.name, 1) != 1 and self._passes(refused, [guess := Guess(dim.name, None)]):
                return [guess]
        return []

    def _shapes(self, refused: Refused, symbols: Mapping[int, str]) -> _Shapes:
        values = _operands(refused.record)
        return [_dims(value, refused.sizes.get(value), symbols, self._example) for value in values]

    def _passes(self, refused: Refused, guesses: Iterable[Guess]) -> bool:
        then = self._probe(list(guesses))
        return then is None or then.position > refused.position

    def _fewest(self, refused: Refused, shapes: _Shapes) -> dict[Guess, _Place]:
        likely = self._guesses(_aligned(shapes), shapes)
        every = self._guesses(_all_pairs(shapes), shapes)
        others = [(guess, place) for guess, place in every.items() if guess not in likely][:_MANY]
        one = [{guess: place} for guess, place in others]
        more = [{**likely, guess: place} for guess, place in others] if likely else []
        for guesses in ([likely] if likely else []) + one + more:
            if self._passes(refused, guesses):
                kept = guesses
                for guess in reversed(guesses):
                    without = {other: place for other, place in kept.items() if other != guess}
                    kept = without if self._passes(refused, without) else kept
                return kept
        return {}

    def _guesses(self, places: Iterable[_Place], shapes: _Shapes) -> dict[Guess, _Place]:
        """What would make the sizes at these places equal that are not, each with the first place that says so."""
        found: dict[Guess, _Place] = {}
        for place in places:
            (size, one), (other_size, other) = (shapes[operand][axis] for operand, axis in place)
            guess = None if size == other_size else _guess(one, other, self._example)
            if guess is not None:
                found.setdefault(guess, place)
        return found


def _operands(record: Record) -> list[Value]:
    return list(_values((*record.args, *record.kwargs.values())))


def _values(operands: Iterable[Any]) -> Iterator[Value]:
    for operand in operands:
        if isinstance(operand, Value):
            yield operand
        elif isinstance(operand, tuple):
            yield from _values(cast(Operands, operand))


_Dim = tuple[int, Expr]
"""A size in the trace, and what it is."""


def _dims(value: Value, known: Sizes | None, symbols: Mapping[int, str], example: Mapping[str, int]) -> list[_Dim]:
    """The sizes of a value; what is not known of inputs alone is told by its number."""
    found: list[_Dim] = []
    for size, dim in zip(value.shape, known or value.shape, strict=True):
        if type(dim) is TrackedInt and dim.expr.free <= example.keys():
            found.append((size, dim.expr))
        else:
            found.append((size, sym(symbols[size]) if size in symbols else const(size)))
    return found


_Shapes = list[list[_Dim]]
_Place = tuple[tuple[int, int], tuple[int, int]]
"""Two sizes: operand and axis of each, the axes counted from the right."""


_Site = tuple[Any, ...]


def _site(record: Record, shapes: _Shapes) -> _Site:
    """What two calls have in common that want the same: operation, line, numbers, which sizes are literals."""
    others = str([_without_values(operand) for operand in (*record.args, *record.kwargs.items())])
    return record.op, record.line, others, tuple(tuple(dim.is_const for _, dim in dims) for dims in shapes)


def _without_values(operand: Any) -> Any:
    if isinstance(operand, Value):
        return None
    return tuple(map(_without_values, cast(Operands, operand))) if isinstance(operand, tuple) else operand


def _aligned(shapes: _Shapes) -> Iterator[_Place]:
    """Sizes at the same place of two operands."""
    for one, other in combinations(range(len(shapes)), 2):
        for axis in range(1, min(len(shapes[one]), len(shapes[other])) + 1):
            yield (one, -axis), (other, -axis)


def _all_pairs(shapes: _Shapes) -> Iterator[_Place]:
    """Those of a product, then different sizes, each where it comes first."""
    if len(shapes) > 1 and shapes[0] and len(shapes[1]) > 1:
        yield (0, -1), (1, -2)
    first: dict[int, tuple[int, int]] = {}
    for operand, dims in enumerate(shapes):
        for axis, (size, _) in enumerate(dims):
            first.setdefault(size, (operand, axis - len(dims)))
    yield from combinations(first.values(), 2)


def _guess(one: Expr, other: Expr, example: Mapping[str, int]) -> Guess | None:
    """What would make them equal: where they differ in two symbols, or in one and a number, that are so in the example.
    Dims of size 1 are left out: they may be broadcast."""
    difference = sub(one, other)
    constant, terms = constant_term(difference), [term for term in difference.terms if term[1]]
    names = [atoms[0].name for _, atoms in terms if len(atoms) == 1 and atoms[0].name in example]
    factors = sorted(factor for factor, _ in terms)
    sizes = [example[name] for name in names]
    if len(names) < len(terms) or 1 in sizes:
        return None
    if factors in ([1], [-1]) and sizes[0] == -factors[0] * constant:
        return Guess(names[0], None)
    if factors == [-1, 1] and constant == 0 and sizes[0] == sizes[1]:
        return Guess(*names) if names[0] in one.free else Guess(names[1], names[0])
    return None
