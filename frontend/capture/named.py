"""Dims that the user named: what their names say, and what is wrong with them: the operation that refuses them, and
the sizes that it gets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, NoReturn, cast

from dlcb.dialects.shape.expr import Expr, add, const, evaluate, floordiv, mul, sub, sym
from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.frontend.capture.branches import attempt
from dlcb.frontend.capture.inputs import Arguments, different_sizes
from dlcb.frontend.capture.refusals import Refused, first_line
from dlcb.frontend.capture.run import Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.primes import primes_from
from dlcb.frontend.tracing.records import Operands, Value
from dlcb.frontend.tracing.source import line_of
from dlcb.frontend.tracing.tracked import TrackedInt
from dlcb.frontend.tracing.tracker import Check

Groups = tuple[frozenset[str], ...]
_NAME = re.compile(r"[A-Za-z_]\w*")
_STEP = 2520
"""By multiples of this other sizes are larger that are tried to see which sizes follow how: many numbers divide it."""


class NamedDims:
    """Dims of one name are equal, and each is to vary."""

    def __init__(
        self, session: Session, groups: Mapping[str, Sequence[str]], plans: Callable[[Groups], Iterable[Plan]]
    ) -> None:
        """`groups`: by name, the symbols of the dims; `plans`: sizes that are equal in these groups and free else."""
        self._session = session
        self._symbols = groups
        self._plans = plans

    @property
    def groups(self) -> Groups:
        return tuple(map(frozenset, self._symbols.values()))

    def check_example(self) -> None:
        """Dims of one name must be equal in the example."""
        wrong = different_sizes(self._session.arguments, self._symbols)
        if wrong:
            why = self._why_refused()
            raise UserError(f"{wrong}; {why or 'give an example where they are equal, which the program takes'}")

    def check_free(self, reasons: Mapping[str, str]) -> None:
        """What the user lets vary must be free; `reasons`: why symbols are pinned."""
        for name, symbol in ((name, symbol) for name, group in self._symbols.items() for symbol in group):
            if symbol in reasons:
                self._refuse(symbol, name, reasons[symbol])

    def pinned_with(self, symbols: frozenset[str], reason: str, must_vary: bool) -> frozenset[str]:
        """The symbols, and those that have a name in common with one; a UserError where these must vary."""
        for name, group in self._symbols.items():
            varying = symbols.intersection(group)
            if varying and must_vary:
                self._refuse(min(varying), name, reason)
            if varying:
                symbols = symbols.union(group)
        return symbols

    def equalities(self) -> list[Check]:
        """What the user said by giving one name to several dims."""
        return [
            Check("eq", sym(other), sym(first), f"dynamic calls both '{name}'")
            for name, (first, *others) in self._symbols.items()
            for other in others
        ]

    def _refuse(self, symbol: str, name: str, reason: str) -> NoReturn:
        text, why = self._session.arguments.text_of(symbol), self._why_refused()
        raise UserError(f"dynamic lets {text} vary ('{name}'), which the program refuses: {why or reason}")

    def _why_refused(self) -> str | None:
        """Why the program refuses other sizes that are as the user names them; None where it takes some."""
        why = why_refused(self._session, self._plans(self.groups))
        return why and f"at other sizes, {why}"


def why_refused(session: Session, plans: Iterable[Plan]) -> str | None:
    """Why the program takes none of these sizes, as the run has it that comes farthest: `add (model.py:8) gets
    [x.shape[0] - 1] = [10] and …`. None where it takes some, or where that is not about sizes."""
    farthest, found = -1, None
    for plan in plans:
        try:
            session.run(plan)
        except InternalError:
            raise
        except UnsupportedError:
            return None
        except Exception as error:
            if session.reached > farthest:
                farthest, found = session.reached, _why(session, plan, error)
        else:
            return None
    return found


def _why(session: Session, plan: Plan, error: Exception) -> str:
    words, refused = first_line(error), session.refused
    if refused is None:
        return f"{words} ({line_of(error) or session.line}{_compared(session, plan)})"
    sizes = " and ".join(_given(session.arguments, refused, plan, _fitted(session, plan, refused)))
    return f"{refused.record.op} ({refused.record.line}){' gets ' if sizes else ''}{sizes}: {words}"


def _given(arguments: Arguments, refused: Refused, plan: Plan, fitted: Mapping[Value, Sequence[Any]]) -> Iterator[str]:
    """What an operation gets: the sizes of tensors, and lists of numbers among which is a size."""
    for operand in _flat((*refused.record.args, *refused.record.kwargs.values())):
        if isinstance(operand, Value):
            known = zip(_dims(refused, operand), fitted.get(operand, operand.shape), strict=True)
            yield _both(arguments, [_formula(dim, other) for dim, other in known], operand.shape)
        elif isinstance(operand, (Expr, tuple)):
            numbers = cast(Operands, operand if isinstance(operand, tuple) else (operand,))
            yield _both(arguments, numbers, [_value(n, plan) for n in numbers])


def _dims(refused: Refused, tensor: Value) -> Sequence[Any]:
    """The sizes as the run knows them."""
    return refused.sizes.get(tensor) or [None] * len(tensor.shape)


def _formula(dim: Any, other: Any) -> Any:
    """The size of a trace as an expression, if it is known; else the other."""
    if isinstance(dim, TrackedInt):
        return dim.expr
    return dim if isinstance(dim, int) else other


def _fitted(session: Session, plan: Plan, refused: Refused) -> Mapping[Value, Sequence[Any]]:
    """The operands' sizes, as sums of fractions of the free ones if they are some, as runs at other sizes tell. Empty
    where all are known, or where other sizes are refused elsewhere."""
    tensors = _tensors(refused)
    if all(isinstance(dim, int) for tensor in tensors for dim in _dims(refused, tensor)):
        return {}
    free = [symbol for symbol in plan.values if symbol not in plan.kept]
    steps = {symbol: _STEP * prime for symbol, prime in zip(free, primes_from(2), strict=False)}
    moved: dict[str, Sequence[Sequence[int]]] = {}
    for symbol, step in steps.items():
        there = _operands_at(session, plan, {symbol: step}, refused)
        if there is None:
            return {}
        moved[symbol] = there
    together = _operands_at(session, plan, steps, refused)
    if together is None:
        return {}
    found: dict[Value, list[Any]] = {}
    for number, tensor in enumerate(tensors):
        dims: list[Any] = []
        for axis, size in enumerate(tensor.shape):
            factors = {s: Fraction(moved[s][number][axis] - size, step) for s, step in steps.items()}
            expected = size + sum(factor * steps[s] for s, factor in factors.items())
            dims.append(_sum(plan, size, factors) if expected == together[number][axis] else size)
        found[tensor] = dims
    return found


def _sum(plan: Plan, size: int, factors: Mapping[str, Fraction]) -> Expr:
    """Of fractions of symbols, and what is left of the size."""
    divisor = lcm(*(factor.denominator for factor in factors.values()))
    total = const(size * divisor)
    for symbol, factor in factors.items():
        total = add(total, mul(int(factor * divisor), sub(sym(symbol), plan.values[symbol])))
    return floordiv(total, divisor)


def _operands_at(
    session: Session, plan: Plan, steps: Mapping[str, int], refused: Refused
) -> Sequence[Sequence[int]] | None:
    """The operands' sizes where some of the plan are larger; None where another operation refuses them, or none."""
    values = {symbol: value + steps.get(symbol, 0) for symbol, value in plan.values.items()}
    attempt(session, Plan(values, plan.pinned, plan.held))
    there = session.refused
    if there is None or (there.position, there.record.op) != (refused.position, refused.record.op):
        return None
    shapes = [tensor.shape for tensor in _tensors(there)]
    same = list(map(len, shapes)) == [len(tensor.shape) for tensor in _tensors(refused)]
    return shapes if same else None


def _tensors(refused: Refused) -> list[Value]:
    operands = (*refused.record.args, *refused.record.kwargs.values())
    return [operand for operand in _flat(operands) if isinstance(operand, Value)]


def _flat(operands: Operands) -> Iterator[Any]:
    """The operands, tensors of a list one by one."""
    for operand in operands:
        listed = cast(Operands, operand) if isinstance(operand, tuple) else ()
        if any(isinstance(item, (Value, tuple)) for item in listed):
            yield from _flat(listed)
        elif not listed or any(isinstance(item, Expr) for item in listed):
            yield operand


def _both(arguments: Arguments, formulas: Sequence[Any], values: Sequence[Any]) -> str:
    """`[x.shape[0] - 1, 3] = [10, 3]`."""
    shown = f"[{', '.join(_shown(arguments, f, v) for f, v in zip(formulas, values, strict=True))}]"
    numbers = f"[{', '.join(map(str, values))}]"
    return numbers if shown == numbers else f"{shown} = {numbers}"


def _compared(session: Session, plan: Plan) -> str:
    """The last comparison that the program made of sizes; empty where it made none."""
    check = session.compared
    if check is None or check.comparison is None:
        return ""
    sides = [side for side in check.comparison[1:] if not side.is_const]
    shown = [f"{_shown(session.arguments, side, 'a size')} is {_value(side, plan)}" for side in sides]
    return f"; {' and '.join(shown)}, {check.text}"


def _value(number: Any, plan: Plan) -> Any:
    if not isinstance(number, Expr):
        return number
    return evaluate(number, plan.values) if number.free <= plan.values.keys() else "?"


def _shown(arguments: Arguments, formula: Any, value: Any) -> str:
    """A formula of sizes as the user knows them; the value where it has others in it."""
    if not isinstance(formula, Expr) or not formula.free <= arguments.example_sizes.keys():
        return str(value)
    return _NAME.sub(lambda m: arguments.text_of(m[0]), str(formula))
