"""Uses of sizes that a trace does not see: `0.5 * n`, `names[n]`, the text of a size.

Python hands an `int` to a float on its left, to the index of a list and to C code without asking it. What comes out has
no expression; in a run at other sizes it is another number, and the two runs are not one program. The sizes on which
that depends are found by changing one at a time. The least of a size and a number is that number at most sizes, so
one more run is made on its other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice

from dlcb.dialects.shape.expr import Expr, evaluate, sub
from dlcb.frontend.capture.branches import attempt
from dlcb.frontend.capture.relax import Relaxed
from dlcb.frontend.capture.retrace import difference
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.tracker import Check

_MOST = 8
"""Runs on other sides of extrema."""
_NEAR = 64
"""Literals up to this are looked at."""


def unseen_use(
    session: Session, plan: Plan, general: Relaxed, others: Iterable[Plan]
) -> tuple[frozenset[str], str] | None:
    """Sizes that the program uses unseen, and what differs. `others`: plans that are tried until the program takes one;
    equal sizes are equal there too. A program that is another at the same sizes again (it draws random numbers) has no
    answer."""
    if not general.run.hands_out_sizes:
        return None

    def run_at(there: Plan) -> Run | None:
        return attempt(session, there, general.steering)

    bounds = _Bounds(plan)
    for there in others:
        if bounds.is_beyond(there):
            continue
        other = run_at(there)
        broken = None if other is None else _broken(general, other)
        if other is None or broken is not None:
            bounds.note(there, broken)
            continue
        found = difference(general.run, other)
        if found is None:
            break
        again = run_at(plan)
        if again is None or difference(general.run, again) is not None:
            return None
        return _blamed(plan, there, general.run, run_at), found
    for there in islice(_other_sides(plan, general.run.extrema), _MOST):
        other = run_at(there)
        found = difference(general.run, other) if other is not None and _broken(general, other) is None else None
        if found is not None:
            return _blamed(plan, there, general.run, run_at), found
    return None


def _other_sides(plan: Plan, extrema: Iterable[Expr]) -> Iterator[Plan]:
    """Plans where the least or greatest of a size and a literal is the other one."""
    for expr in sorted(extrema, key=str):
        for one, other in combinations(expr.args, 2):
            gap = sub(one, other)
            symbols = [name for name in gap.free if name in plan.values and name not in plan.kept]
            if len(symbols) != 1 or len(gap.free) != 1:
                continue
            size = plan.values[symbols[0]]
            here = evaluate(gap, {symbols[0]: size})
            across = next((n for n in reversed(range(_NEAR)) if here * evaluate(gap, {symbols[0]: n}) < 0), None)
            if across is not None:
                same = {name for name, value in plan.values.items() if value == size and name not in plan.kept}
                yield Plan({**plan.values, **dict.fromkeys(same, across)}, plan.pinned, plan.held)


def _broken(general: Relaxed, other: Run) -> Check | None:
    """What the program was told there that is not true of these sizes."""
    known = (check for check in general.checks if check.free <= other.traced.keys())
    return next((check for check in known if not check.holds(other.traced)), None)


class _Bounds:
    """Sizes that lead another way because one is too large or too small; then larger, or smaller ones do as well."""

    def __init__(self, plan: Plan) -> None:
        self._free = [name for name in plan.values if name not in plan.kept]
        self._upper: list[Plan] = []
        self._lower: list[Plan] = []

    def note(self, there: Plan, broken: Check | None) -> None:
        if broken is not None and broken.kind in ("le", "lt"):
            if broken.rhs.value is not None:
                self._upper.append(there)
            elif broken.lhs.value is not None:
                self._lower.append(there)

    def is_beyond(self, there: Plan) -> bool:
        above = any(all(there.values[n] >= plan.values[n] for n in self._free) for plan in self._upper)
        return above or any(all(there.values[n] <= plan.values[n] for n in self._free) for plan in self._lower)


def _blamed(plan: Plan, there: Plan, run: Run, run_at: Callable[[Plan], Run | None]) -> frozenset[str]:
    """Those whose change alone makes a difference; all, where the program takes no change of one alone."""
    free = {name for name in plan.values if name not in plan.kept and plan.values[name] != there.values[name]}
    blamed: set[str] = set()
    for size in sorted({plan.values[name] for name in free}):
        names = {name for name in free if plan.values[name] == size}
        other = run_at(Plan({**plan.values, **{name: there.values[name] for name in names}}, plan.pinned, plan.held))
        if other is not None and difference(run, other) is not None:
            blamed |= names
    return frozenset(blamed or free)
