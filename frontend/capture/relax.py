"""Checks that do not matter: the program is the same whatever the answer to the comparison was.

`q_len > 1 and mask is None` asks for a length though the mask decides. Every comparison is answered the other way once,
line by line; if the records stay the same, its checks go. If they change, the program may still be the same where the
answer really is the other one: an `expand` to the same size at batch 1. So where a check fails for few values of a
size, the program runs at these values by both answers, and if the runs agree there, the check lets these values pass:
they are the same operations, or operations that compute the same. For what is left, `branches.py` looks for one program
of both ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from dlcb.dialects.shape.expr import Expr, eq, logical_and, logical_or, sym
from dlcb.frontend.capture.branches import General, answers_of, attempt, generalized, unsettled
from dlcb.frontend.capture.equivalence import same_numbers
from dlcb.frontend.capture.retrace import difference, difference_at_traced_sizes
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.steering import FREE, Steering
from dlcb.frontend.tracing.tracker import Check

_LARGEST_TRIED = 1 << 12
_MOST_EXCEPTIONS = 3
_FEW = 4
_RESULT = re.compile(r"%\d+")


Exceptions = Callable[[int, int], bool]
"""Is the program the same by both answers where the symbols of this traced size have this value?"""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A run that is the program wherever the checks hold."""

    run: Run
    checks: list[Check]
    steering: Steering
    """Leads to this run at any sizes."""


def relaxed(session: Session, plan: Plan, run: Run, needed: Sequence[Check] = ()) -> Relaxed:
    """The run without the checks that don't matter, or another that needs fewer. `needed`: checks that must go; where
    they stay, others are not looked at."""
    if needed:
        tried = _relaxed(session, plan, run, frozenset(needed))
        if len(needed) == len(run.checks) or not frozenset(tried.checks).isdisjoint(needed):
            return tried
    return _relaxed(session, plan, run, frozenset(run.checks))


def _relaxed(session: Session, plan: Plan, run: Run, among: frozenset[Check]) -> Relaxed:
    """Of these checks those that matter, and all others."""
    general = _without(General(run), _irrelevant(session, plan, run, among))
    excepted = _with_exceptions(session, plan, general, among)
    general = _without(general, [check for check, rest in excepted.items() if rest is None])
    open_questions = [c.comparison for c, rest in excepted.items() if c.comparison is not None and rest is c]
    if open_questions:
        general = generalized(session, plan, general, open_questions)
    checks = [excepted.get(check) or check for check in unsettled(general)]
    steering = Steering(answers_of(general.run), general.steering.edits, general.run.sites)
    return Relaxed(general.run, checks, steering)


def _without(general: General, checks: Iterable[Check]) -> General:
    settled = general.settled | {check.comparison for check in checks if check.comparison is not None}
    return General(general.run, general.steering, settled)


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


def _irrelevant(session: Session, plan: Plan, run: Run, among: frozenset[Check]) -> list[Check]:
    """Checks whose answers change nothing, line by line and all together, on the lines of these."""
    lines = [group for group in _by_line(run.checks) if not among.isdisjoint(group)]
    groups = [group for group in lines if _same_by_other_answers(session, plan, run, group)]
    found = [check for group in groups for check in group]
    if len(groups) > 1:
        other = attempt(
            session, plan, Steering({c.comparison: not c.answer for c in found if c.comparison is not None})
        )
        if other is not None and difference(run, other) is not None:
            return []
    return found


def _same_by_other_answers(session: Session, plan: Plan, run: Run, group: list[Check]) -> bool:
    """Whether other answers change nothing: all of them at once, then half of them, so that each two are told apart."""
    known = {c.comparison for c in run.checks}
    for flipped in (group, *_halves(group)):
        answers = {c.comparison: not c.answer for c in flipped if c.comparison is not None}
        other = attempt(session, plan, Steering(answers)) if answers else None
        if other is None or difference(run, other) is not None or not {c.comparison for c in other.checks} <= known:
            return False
    return True


def _halves(group: list[Check]) -> Iterable[list[Check]]:
    """Few alone; of many, both halves by each bit of their places."""
    if 1 < len(group) <= _FEW:
        yield from ([check] for check in group)
        return
    for bit in range((len(group) - 1).bit_length()):
        for half in (0, 1):
            yield [check for place, check in enumerate(group) if place >> bit & 1 == half]


def _settles(session: Session, plan: Plan, run: Run, steering: Steering, known: set[str]) -> bool:
    """Whether what the run asks, and what is not known of it from elsewhere, changes nothing: the sizes of the trace
    answer it in one way, other sizes may in another."""
    asked = [check for check in run.checks if _question(check) not in known]
    if len(asked) > _FEW or any(c.comparison is None for c in asked):
        return False
    known = known | _questions(run)
    for flipped in ([c] for c in asked) if len(asked) < 2 else (asked, *_halves(asked)):
        answers = {c.comparison: not c.answer for c in flipped if c.comparison is not None}
        other = attempt(session, plan, Steering({**steering.answers, **answers}, steering.edits, steering.ids))
        if other is None or not _questions(other) <= known or not _same_there(run, other):
            return False
    return True


def _same_there(one: Run, other: Run) -> bool:
    """Two runs at equal sizes."""
    return difference_at_traced_sizes(one, other) is None or same_numbers(one, other)


def _questions(run: Run) -> set[str]:
    return {_question(check) for check in run.checks}


def _question(check: Check) -> str:
    """What the program asks or uses, whatever the answer. Results have other numbers where operations are left out, so
    they go without."""
    asked = f"{check.lhs}" if check.comparison is None else " ".join(map(str, check.comparison))
    return f"{check.text}: {_RESULT.sub('%', asked)}"


def _with_exceptions(
    session: Session, plan: Plan, general: General, among: frozenset[Check]
) -> dict[Check, Check | None]:
    """Each of these checks with the values that pass although it fails there; None where that is all of them. Sizes
    pass alone and all together."""
    answers = Steering(answers_of(general.run))
    known = _questions(general.run)
    excepted: dict[int, int] = {}

    def differs(values: Mapping[int, int]) -> bool:
        free = {s: values[n] for s, n in plan.values.items() if n in values and s not in plan.pinned}
        there = Plan({**plan.values, **free}, plan.pinned, plan.held)
        one, other = attempt(session, there), attempt(session, there, answers)
        if one is None or other is None:
            return one is not None or len(values) == 1
        if not _settles(session, there, one, FREE, known) or not _settles(session, there, other, answers, known):
            return True
        return not _same_there(one, other)

    @cache
    def same(size: int, value: int) -> bool:
        if differs({size: value}):
            return False
        excepted[size] = value
        return True

    asked = [check for check in unsettled(general) if check in among]
    found = {check: _with_exception(check, plan, general.run, same) for check in asked}
    return dict(zip(found, found, strict=True)) if len(excepted) > 1 and differs(excepted) else found


def _with_exception(check: Check, plan: Plan, run: Run, same: Exceptions) -> Check | None:
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
