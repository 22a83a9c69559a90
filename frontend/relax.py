"""Checks that do not matter: the program is the same whatever the answer to the comparison was.

`q_len > 1 and mask is None` asks for a length though the mask decides. Every comparison is answered the other way once,
line by line; if the records stay the same, its checks go. If they change, the program may still be the same where the
answer really is the other one: an `expand` to the same size at batch 1. So where a check fails for few values of a
size, the program runs at these values by both answers, and if the runs agree there, the check lets these values pass:
they are the same operations, or operations that compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice

from dlcb.dialects.shape.expr import Expr, eq, logical_and, logical_or, sym
from dlcb.errors import InternalError
from dlcb.frontend.equivalence import same_numbers
from dlcb.frontend.retrace import difference, difference_at_traced_sizes
from dlcb.frontend.run import Run, Session
from dlcb.frontend.sizes import Plan
from dlcb.frontend.tracker import Check, Comparison

_LARGEST_TRIED = 1 << 12
_MOST_EXCEPTIONS = 3


Exceptions = Callable[[int, int], bool]
"""Is the program the same by both answers where the symbols of this traced size have this value?"""


def relaxed_checks(session: Session, plan: Plan, run: Run) -> list[Check]:
    """The checks of a run without those that don't matter."""
    kept = [c for group in _by_line(run.checks) if not _same_by_other_answers(session, plan, run, group) for c in group]
    answers = {c.comparison: c.answer for c in run.checks if c.comparison is not None}

    @cache
    def same(size: int, value: int) -> bool:
        free = {s: value for s, n in plan.values.items() if n == size and s not in plan.pinned}
        there = Plan({**plan.values, **free}, plan.pinned)
        one, other = _attempt(session, there, {}), _attempt(session, there, answers)
        if one is None or other is None:
            return False
        return difference_at_traced_sizes(one, other) is None or same_numbers(one, other)

    return [check for old in kept if (check := _with_exceptions(old, plan, run, same)) is not None]


def blamed_symbols(check: Check, plan: Plan, run: Run) -> list[str]:
    """Symbols of inputs that a check is about. A size of a result stands for the inputs that have its traced size."""
    sizes = {run.traced[name] for name in check.free - plan.values.keys()}
    return [
        name for name, size in plan.values.items() if name not in plan.pinned and (name in check.free or size in sizes)
    ]


def _by_line(checks: Iterable[Check]) -> Iterable[list[Check]]:
    groups: dict[tuple[str, bool], list[Check]] = {}
    for check in checks:
        groups.setdefault((check.text, check.comparison is None), []).append(check)
    return groups.values()


def _same_by_other_answers(session: Session, plan: Plan, run: Run, group: list[Check]) -> bool:
    answers = {c.comparison: not c.answer for c in group if c.comparison is not None}
    other = _attempt(session, plan, answers) if answers else None
    if other is None or difference(run, other) is not None:
        return False
    return {c.comparison for c in other.checks} <= {c.comparison for c in run.checks}


def _with_exceptions(check: Check, plan: Plan, run: Run, same: Exceptions) -> Check | None:
    """The check with the values that pass although it fails there; None where that is all of them."""
    if check.comparison is None:
        return check
    blamed: dict[int, list[Expr]] = {}
    for name in blamed_symbols(check, plan, run):
        blamed.setdefault(plan.values[name], []).append(sym(name))
    failing = {size: _failing(check, size, run) for size in blamed}
    passing = [(n, v) for n, values in failing.items() if len(values) <= _MOST_EXCEPTIONS for v in values if same(n, v)]
    if not passing:
        return check
    if len(check.free) == 1 and len(passing) == sum(map(len, failing.values())):
        return None
    exceptions = [logical_and(*[eq(symbol, value) for symbol in blamed[size]]) for size, value in passing]
    return Check("any_of", check.condition, logical_or(*exceptions), check.text, check.comparison)


def _failing(check: Check, size: int, run: Run) -> list[int]:
    """The values for which a check fails if all that has this traced size has them; at most one more than are tried."""
    names = [name for name in check.free if run.traced[name] == size]
    values = (v for v in range(_LARGEST_TRIED) if not check.holds({**run.traced, **dict.fromkeys(names, v)}))
    return list(islice(values, _MOST_EXCEPTIONS + 1))


def _attempt(session: Session, plan: Plan, answers: dict[Comparison, bool]) -> Run | None:
    try:
        return session.run(plan, answers)
    except InternalError:
        raise
    except Exception:
        return None
