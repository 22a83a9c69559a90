"""One program of two runs that took different ways: integers of operations become expressions that choose.

Both runs are walked side by side. Operations that both have may differ in integers, which become a `select` by the
condition under which the other way is taken. An operation that only the first run has must be one that some integers
make an identity: padding by nothing, a slice of everything, a roll by nothing; it gets these where the other way is
taken. So the first run with these edits is the program of both ways, whatever the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

from dlcb.dialects.shape.expr import Expr, ExprLike, as_expr, const, select, substitute, sym
from dlcb.frontend.capture.retrace import weight_name
from dlcb.frontend.capture.run import Run
from dlcb.frontend.tracing.layouts import is_dense, order_of
from dlcb.frontend.tracing.real import Real
from dlcb.frontend.tracing.records import ELEMENT, Operands, Record, Value, element_symbol, result_dim_symbol
from dlcb.frontend.tracing.result_sizes import Unknown
from dlcb.frontend.tracing.steering import Path, Site
from dlcb.frontend.tracing.tracked import expr_of
from dlcb.frontend.tracing.tracker import Comparison

Names = dict[str, ExprLike]


class NoMerge(Exception):
    """The two runs are not one program."""


@dataclass(slots=True)
class Merge:
    """What the first run needs to be the program of the other way too."""

    edits: dict[Site, dict[Path, Expr]] = field(default_factory=dict[Site, dict[Path, Expr]])
    names: Names = field(default_factory=dict[str, ExprLike])
    """Sizes of the other run's results, in the first one's terms."""
    equal: Names = field(default_factory=dict[str, ExprLike])
    """Sizes of the first run's results that are other sizes where the other way is taken."""
    skipped: int = 0
    """Operations that only the first run has."""

    def question(self, comparison: Comparison) -> Comparison:
        """A question of the other run in the first one's terms."""
        kind, lhs, rhs = comparison
        return kind, substitute(lhs, self.names), substitute(rhs, self.names)

    def plain(self, comparison: Comparison) -> Comparison:
        """A question with sizes that are equal on the other way made one."""
        kind, lhs, rhs = comparison
        return kind, substitute(lhs, self.equal), substitute(rhs, self.equal)


def merge(base: Run, other: Run, when: Callable[[Merge], Expr]) -> Merge:
    """`when`: the condition under which the program goes the other way. Raises `NoMerge`."""
    return _Merging(base, other).run(when)


def are_one(base: Run, other: Run) -> bool:
    """Do the runs differ in nothing but integers, and operations of the first that integers make identities?"""
    try:
        merge(base, other, lambda _: const(1))
    except NoMerge:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Choice:
    """An integer of an operation, and what it is on the other way."""

    site: Site
    path: Path
    mine: ExprLike
    other: ExprLike


class _Merging:
    def __init__(self, base: Run, other: Run) -> None:
        self._base, self._other = base, other
        self._known = set(base.traced)
        self._sites = {number: site for site, number in base.sites.items()}
        self._other_sites = {number: site for site, number in other.sites.items()}
        self._mine: dict[Value, Value] = {}
        """The first run's value for each of the other's."""
        self._operand_of: dict[Value, Value] = {}
        """The operand of each operation that is skipped, by its result."""
        self._choices: list[_Choice] = []
        self._merge = Merge()

    def run(self, when: Callable[[Merge], Expr]) -> Merge:
        self._bind_arguments()
        self._walk()
        self._compare_results()
        condition = when(self._merge)
        for choice in self._choices:
            edit = select(condition, choice.other, choice.mine)
            if not edit.free <= self._known:
                raise NoMerge
            self._merge.edits.setdefault(choice.site, {})[choice.path] = edit
        return self._merge

    def _bind_arguments(self) -> None:
        for mine, theirs in zip(self._base.inputs, self._other.inputs, strict=True):
            if mine.value is not None and theirs.value is not None:
                self._mine[theirs.value] = mine.value
        weights = {weight_name(weight): weight.value for weight in self._base.weights}
        for weight in self._other.weights:
            found = weights.get(weight_name(weight))
            if found is None:
                raise NoMerge
            self._mine[weight.value] = found

    # Records

    def _walk(self) -> None:
        theirs = iter(self._other.records)
        waiting = next(theirs, None)
        for record in self._base.records:
            found = None if waiting is None else self._match(record, waiting)
            if waiting is None or found is None:
                self._skip(record)
                continue
            self._choices += found
            self._bind(record.results, waiting.results)
            waiting = next(theirs, None)
        if waiting is not None:
            raise NoMerge

    def _match(self, mine: Record, theirs: Record) -> list[_Choice] | None:
        if mine.op != theirs.op or mine.ordered != theirs.ordered or mine.kwargs.keys() != theirs.kwargs.keys():
            return None
        if len(mine.results) != len(theirs.results) or len(mine.args) != len(theirs.args):
            return None
        if not all(map(_alike, mine.results, theirs.results)):
            return None
        site, other_site = self._site(mine), self._other_sites[theirs.results[0].id]
        if not self._same_replaced(self._base.replaced.get(site, {}), self._other.replaced.get(other_site, {})):
            return None
        words = [(key, value, theirs.kwargs[key]) for key, value in mine.kwargs.items()]
        try:
            return [
                _Choice(site, path, a, b)
                for head, x, y in (*zip(range(len(mine.args)), mine.args, theirs.args, strict=True), *words)
                for path, a, b in self._leaves((head,), x, y)
            ]
        except NoMerge:
            return None

    def _same_replaced(self, mine: dict[Path, Any], theirs: dict[Path, Any]) -> bool:
        """Integers that edits hide must be the program's on both ways."""
        try:
            return mine.keys() == theirs.keys() and not any(
                True for path, operand in mine.items() for _ in self._leaves(path, operand, theirs[path])
            )
        except NoMerge:
            return False

    def _site(self, record: Record) -> Site:
        return self._sites[record.results[0].id]

    def _leaves(self, path: Path, mine: Any, theirs: Any) -> Iterator[tuple[Path, ExprLike, ExprLike]]:
        """Integers that differ. Raises `NoMerge` where something else does."""
        if _is_tuple(mine) and _is_tuple(theirs):
            if len(mine) != len(theirs):
                raise NoMerge
            for place, (x, y) in enumerate(zip(mine, theirs, strict=True)):
                yield from self._leaves((*path, place), x, y)
        elif isinstance(mine, Value) and isinstance(theirs, Value):
            if self._root(mine) is not self._root(self._mine[theirs]):
                raise NoMerge
        elif _is_integer(mine) and _is_integer(theirs):
            translated = self._translated(as_expr(theirs))
            if self._plain(as_expr(mine)) is not self._plain(translated):
                yield path, as_expr(mine), translated
        elif isinstance(mine, Real) and isinstance(theirs, Real):
            if mine.replaced(self._plain) != theirs.replaced(lambda e: self._plain(self._translated(e))):
                raise NoMerge
        elif type(mine) is not type(theirs) or mine != theirs:
            raise NoMerge

    def _bind(self, mine: Sequence[Value], theirs: Sequence[Value]) -> None:
        self._mine.update(zip(theirs, mine, strict=True))
        for value, other in zip(mine, theirs, strict=True):
            for dim in (ELEMENT, *range(len(value.shape))):
                name = _symbol(other, dim)
                if name in self._other.result_dims:
                    self._merge.names[name] = self._dim(value, dim)

    # What only the first run has

    def _skip(self, record: Record) -> None:
        source = record.args[0] if record.args else None
        (result, *rest) = record.results
        if not isinstance(source, Value) or rest or not _alike(source, result):
            raise NoMerge
        match record.op:
            case "pad" if len(record.args) > 1 and isinstance(record.args[1], tuple):
                self._neutral(record, 1, cast(Operands, record.args[1]))
            case "roll" if isinstance(shifts := record.args[1] if len(record.args) > 1 else None, tuple):
                self._neutral(record, 1, cast(Operands, shifts))
            case "roll" if isinstance(shifts := record.kwargs.get("shifts"), tuple):
                self._neutral(record, "shifts", cast(Operands, shifts))
            case "slice" if len(record.args) == 5 and record.args[4] == 1:
                self._whole(record, source)
            case "clone" | "contiguous":
                pass
            case _:
                raise NoMerge
        self._merge.skipped += 1
        self._operand_of[result] = source
        for dim in range(len(result.shape)):
            self._merge.equal[_symbol(result, dim)] = self._plain(as_expr(self._dim(source, dim)))

    def _neutral(self, record: Record, head: int | str, amounts: Operands) -> None:
        for place, amount in enumerate(amounts):
            if not _is_integer(amount):
                raise NoMerge
            if amount != 0:
                self._choices.append(_Choice(self._site(record), (head, place), amount, 0))

    def _whole(self, record: Record, source: Value) -> None:
        _, dim, start, end, _ = record.args
        if start != 0:
            self._choices.append(_Choice(self._site(record), (2,), start, 0))
        if end is not None:
            whole = as_expr(self._dim(source, dim % len(source.shape)))
            self._known |= whole.free
            self._choices.append(_Choice(self._site(record), (3,), end, whole))

    # Values and sizes

    def _root(self, value: Value) -> Value:
        while value in self._operand_of:
            value = self._operand_of[value]
        return value

    def _dim(self, value: Value, dim: int) -> ExprLike:
        """A size of a value of the first run, or its element."""
        sizes = self._base.sizes.get(value)
        if sizes is None or dim == ELEMENT:
            return sym(_symbol(value, dim))
        found = sizes[dim]
        return sym(_symbol(found.value, found.axis)) if isinstance(found, Unknown) else expr_of(found)

    def _translated(self, expr: Expr) -> Expr:
        return substitute(expr, self._merge.names)

    def _plain(self, expr: Expr) -> Expr:
        return substitute(expr, self._merge.equal)

    # Results

    def _compare_results(self) -> None:
        one, other = self._base, self._other
        if one.out_spec != other.out_spec or any(
            True for _ in self._leaves((), tuple(one.outputs), tuple(other.outputs))
        ):
            raise NoMerge
        mine = [(a.output, self._root(a.of) if isinstance(a.of, Value) else a.of) for a in one.aliases]
        theirs = [(a.output, self._of_other(a.of) if isinstance(a.of, Value) else a.of) for a in other.aliases]
        updates = {self._root(u.target): self._root(u.value) for u in one.updates}
        if mine != theirs or updates != {self._of_other(u.target): self._of_other(u.value) for u in other.updates}:
            raise NoMerge
        for a, b in zip(one.outputs, other.outputs, strict=True):
            if isinstance(a, Value) and _lies(a) != _lies(b):
                raise NoMerge

    def _of_other(self, value: Value) -> Value:
        return self._root(self._mine[value])


def _alike(mine: Value, theirs: Value) -> bool:
    return mine.dtype == theirs.dtype and len(mine.shape) == len(theirs.shape) and mine.device == theirs.device


def _is_tuple(operand: Any) -> TypeGuard[Operands]:
    return isinstance(operand, tuple)


def _is_integer(operand: Any) -> TypeGuard[Expr | int]:
    return isinstance(operand, Expr) or (isinstance(operand, int) and not isinstance(operand, bool))


def _symbol(value: Value, dim: int) -> str:
    return element_symbol(value) if dim == ELEMENT else result_dim_symbol(value, dim)


def _lies(value: Value) -> tuple[tuple[int, ...], bool]:
    return order_of(value.shape, value.strides), is_dense(value.shape, value.strides)
