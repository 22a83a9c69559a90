"""Branches on sizes whose ways are one program: it is found by taking each question's other way once.

`if h % 4: x = pad(x, …)` is a padding by `select(h % 4 != 0, …, 0)`. From a run on, each question that matters is
answered the other way, with whatever is asked only there answered both ways; `merge.py` makes one program of the ways,
as edits of the run's integers. Where only the other way has the operation (the padding), that way is taken for the run.
Where the other way is refused at the sizes of the trace, it runs at sizes that many numbers divide. What comes out is
held to the program as it is, at several sizes for which the questions are answered in many ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import lcm
from typing import Any

from dlcb.dialects.shape.expr import Expr, evaluate, logical_and, logical_not, post_order
from dlcb.dialects.shape.requirement import REQUIREMENTS
from dlcb.errors import InternalError
from dlcb.frontend.capture.merge import Merge, NoMerge, are_one, merge
from dlcb.frontend.capture.retrace import difference_at_traced_sizes
from dlcb.frontend.capture.run import Mend, Run, Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.primes import primes_from
from dlcb.frontend.tracing.steering import FREE, Path, Site, Steering
from dlcb.frontend.tracing.tracker import Check, Comparison

_MOST_WAYS = 6
"""Of one question with all that is asked on its other way."""
_MOST_RENAMED = 4
"""Runs of one way to tell it how to answer what it asks in other terms."""
_HALVINGS = 64
_LARGEST_STEP = 1 << 16
_FEWEST_WITNESSES = 3


@dataclass(frozen=True, slots=True)
class General:
    """A run that is the program whatever the answers to the questions in `settled` are."""

    run: Run
    steering: Steering = FREE
    settled: frozenset[Comparison] = frozenset()


@dataclass(slots=True)
class _Way:
    """What is answered otherwise than in the run, and what it asks on top, as conditions in the run's terms."""

    answers: dict[Comparison, bool]
    asked: list[Expr] = field(default_factory=list[Expr])


def generalized(session: Session, plan: Plan, general: General, among: Iterable[Comparison]) -> General:
    """The run with as many of these questions settled as can be, and of those that only other ways ask."""
    others = answers_of(general.run).keys() - set(among)
    found = _Search(session, plan, general).run(set(others))
    still_open = {_sides(check, found.run) for check in unsettled(found)}
    settled = [check for check in found.run.checks if check.comparison in found.settled - general.settled]
    if all(_sides(check, found.run) in still_open for check in settled):
        return general
    return found if _is_right(session, plan, found, general) else general


def attempt(session: Session, plan: Plan, steering: Steering = FREE, mend: Mend | None = None) -> Run | None:
    try:
        return session.run(plan, steering, mend)
    except InternalError:
        raise
    except Exception:
        return None


def _sides(check: Check, run: Run) -> tuple[Any, ...]:
    """What a check compares, in the trace: layers ask the same of sizes that are equal."""
    if check.comparison is None:
        return check.lhs, check.rhs
    kind, left, right = check.comparison
    return kind, evaluate(left, run.traced), evaluate(right, run.traced)


class _Renamed(NoMerge):
    """The other way asks a question of the run in terms of other sizes, and needs its answer."""

    def __init__(self, answer: dict[Comparison, bool]) -> None:
        super().__init__()
        self.answer = answer


class _Search:
    def __init__(self, session: Session, plan: Plan, general: General) -> None:
        self._session, self._plan, self._general = session, plan, general
        self._divisible = divisible(plan, general.run)
        self._runs: dict[tuple[bool, frozenset[tuple[Comparison, bool]]], Run | None] = {}
        """What was tried with the general run as it is."""

    def run(self, tried: set[Comparison | None]) -> General:
        while (check := self._next(tried)) is not None:
            alike = self._alike(check)
            found = None
            if not self._part_ways(alike):
                found = self._settled(self._general, check) or self._settled_otherwise(self._general, check)
            if found is None:
                tried |= {c.comparison for c in alike}
            else:
                self._general, self._runs = found, {}
        return self._general

    def _next(self, tried: set[Comparison | None]) -> Check | None:
        return next((check for check in unsettled(self._general) if check.comparison not in (None, *tried)), None)

    def _alike(self, check: Check) -> list[Check]:
        """What asks the same as this check, in the trace. Only where all of it is settled does that help."""
        sides = _sides(check, self._general.run)
        return [c for c in unsettled(self._general) if _sides(c, self._general.run) == sides]

    def _part_ways(self, alike: list[Check]) -> bool:
        """Whether the other answers to all of these lead to another program: then no one program has them settled."""
        if len(alike) == 1:
            return False
        run = self._general.run
        answers = {c.comparison: not c.answer for c in alike if c.comparison is not None}
        other = self._attempt(self._general, self._plan, answers)
        return other is not None and not are_one(run, other) and not are_one(other, run)

    def _settled(self, general: General, check: Check) -> General | None:
        """The run, if all ways that the other answer leads to are one program with it."""
        question = check.comparison
        assert question is not None
        edits: dict[Site, dict[Path, Expr]] = {site: dict(paths) for site, paths in general.steering.edits.items()}
        ways = [_Way({question: not check.answer}, [logical_not(check.condition)])]
        for number, way in enumerate(ways):
            merged = None if number >= _MOST_WAYS else self._merged(general, way, ways)
            if merged is None:
                return None
            for site, paths in merged.edits.items():
                if any(path in edits.get(site, {}) for path in paths):
                    return None
                edits.setdefault(site, {}).update(paths)
        answers = {**general.steering.answers, question: check.answer}
        steering = Steering(answers, edits, general.run.sites)
        run = general.run if edits == general.steering.edits else attempt(self._session, self._plan, steering)
        return None if run is None else General(run, steering, general.settled | {question})

    def _settled_otherwise(self, general: General, check: Check) -> General | None:
        """The run on the other way, if it has operations that this one lacks and all ways are one program with it."""
        question = check.comparison
        assert question is not None
        answers = {question: not check.answer}
        run = self._attempt(general, self._plan, answers)
        if run is None or len(run.records) <= len(general.run.records):
            return None
        steering = Steering({**general.steering.answers, **answers}, general.steering.edits, run.sites)
        there = next((c for c in run.checks if c.comparison == question), None)
        return None if there is None else self._settled(General(run, steering, general.settled), there)

    def _merged(self, general: General, way: _Way, ways: list[_Way]) -> Merge | None:
        """One way merged. What it asks that the run does not makes more ways, which are added."""
        plan, answers = self._plan, dict(way.answers)
        if self._attempt(general, plan, answers) is None:
            plan = self._divisible
        for _ in range(_MOST_RENAMED):
            other = self._attempt(general, plan, answers)
            if other is None:
                return None
            when = partial(self._condition, general.run, other, way, ways)
            try:
                return merge(general.run, other, when)
            except _Renamed as question:
                answers |= question.answer
            except NoMerge:
                return None
        return None

    def _attempt(self, general: General, plan: Plan, answers: Mapping[Comparison, bool]) -> Run | None:
        """The program at a plan's sizes, on the way of the general run but for these answers."""
        key = (plan is self._plan, frozenset(answers.items()))
        if general is not self._general:
            return attempt(self._session, plan, _steering(general, answers))
        if key not in self._runs:
            self._runs[key] = attempt(self._session, plan, _steering(general, answers))
        return self._runs[key]

    def _condition(self, base: Run, other: Run, way: _Way, ways: list[_Way], merged: Merge) -> Expr:
        """When the way is taken."""
        known = {merged.plain(c.comparison): c.answer for c in base.checks if c.comparison is not None}
        pinned = {merged.plain(("eq", c.lhs, c.rhs))[1] for c in base.checks if c.comparison is None}
        answers, asked = dict(way.answers), list(way.asked)
        more: list[_Way] = []
        for check in other.checks:
            if check.comparison is None:
                if merged.plain(merged.question(("eq", check.lhs, check.rhs)))[1] not in pinned:
                    raise NoMerge
                continue
            question = merged.question(check.comparison)
            answer = known.get(merged.plain(question))
            if check.comparison in way.answers or answer == check.answer:
                continue
            if answer is not None:
                raise _Renamed({check.comparison: answer})
            if not (question[1].free | question[2].free) <= base.traced.keys():
                raise NoMerge
            holds = REQUIREMENTS[question[0]](question[1], question[2])
            condition = holds if check.answer else logical_not(holds)
            more.append(_Way({**answers, check.comparison: not check.answer}, [*asked, logical_not(condition)]))
            answers[check.comparison] = check.answer
            asked.append(condition)
        ways += more
        return logical_and(*asked)


def _steering(general: General, answers: Mapping[Comparison, bool]) -> Steering:
    return Steering({**answers_of(general.run), **answers}, general.steering.edits, general.run.sites)


# Sizes at which the program is looked at


def divisible(plan: Plan, run: Run) -> Plan:
    """Sizes that all divisors in the questions of a run divide, and many halvings."""
    divisors = [
        node.args[1].value or 1
        for check in run.checks
        for node in post_order((check.lhs, check.rhs))
        if node.op in ("mod", "floordiv", "ceildiv")
    ]
    step = lcm(_HALVINGS, *(abs(divisor) for divisor in divisors))
    primes = primes_from(3)
    return _resized(plan, lambda size: (step if step <= _LARGEST_STEP else _HALVINGS) * next(primes))


def _witnesses(plan: Plan, run: Run) -> Iterator[Plan]:
    nice = divisible(plan, run)
    yield plan
    yield nice
    free = sorted({size for name, size in plan.values.items() if name not in plan.kept})
    for shift in (1, 2, 3):
        yield _shifted(plan, nice, lambda place, shift=shift: shift if place % 2 else 0, free)
        yield _shifted(plan, nice, lambda place, shift=shift: 0 if place % 2 else -shift, free)
    odd = primes_from(101)
    yield _resized(plan, lambda size: 3 * next(odd))


def _shifted(plan: Plan, nice: Plan, shift: Callable[[int], int], free: list[int]) -> Plan:
    places = dict(zip(free, count()))
    values = {
        name: nice.values[name] + (0 if name in plan.kept else shift(places[size]))
        for name, size in plan.values.items()
    }
    return Plan(values, plan.pinned, plan.held)


def _resized(plan: Plan, size_of: Callable[[int], int]) -> Plan:
    """Other sizes, equal ones for equal ones, for all that are not pinned."""
    free = sorted({size for name, size in plan.values.items() if name not in plan.kept})
    sizes = {size: size_of(size) for size in free}
    values = {name: size if name in plan.kept else sizes[size] for name, size in plan.values.items()}
    return Plan(values, plan.pinned, plan.held)


def _is_right(session: Session, plan: Plan, found: General, before: General) -> bool:
    """Is it the program at other sizes, whenever its other checks hold there?"""
    merged = [c for c in found.run.checks if c.comparison in found.settled - before.settled]
    steering = Steering(answers_of(found.run), found.steering.edits, found.run.sites)
    otherwise: set[Comparison | None] = set()
    right = 0
    for there in _witnesses(plan, found.run):
        one, other = attempt(session, there, steering), attempt(session, there)
        if one is None or other is None or not all(check.holds(one.traced) for check in unsettled(found)):
            continue
        if difference_at_traced_sizes(one, other) is not None:
            return False
        right += 1
        otherwise |= {check.comparison for check in merged if not check.holds(one.traced)}
    return right >= _FEWEST_WITNESSES and all(check.comparison in otherwise for check in merged)


def unsettled(general: General) -> list[Check]:
    return [c for c in general.run.checks if c.comparison is None or c.comparison not in general.settled]


def answers_of(run: Run) -> dict[Comparison, bool]:
    return {c.comparison: c.answer for c in run.checks if c.comparison is not None}
