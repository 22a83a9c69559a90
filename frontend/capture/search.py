"""Capture: from a PyTorch program and example inputs to records that hold at all sizes for which their checks hold.

The program is traced at sizes of our choice (`sizes.py`). A trace is taken if the model accepts these sizes and the
example's sizes pass every check of it: then the example goes the same way through the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from dlcb.dialects.shape.expr import substitute
from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.frontend.capture.branches import attempt
from dlcb.frontend.capture.exported import in_training
from dlcb.frontend.capture.inputs import (
    Dynamic,
    KnownDims,
    fixed_symbols,
    named_dims,
    read_arguments,
)
from dlcb.frontend.capture.learning import Learning
from dlcb.frontend.capture.planning import Planner
from dlcb.frontend.capture.refusals import first_line
from dlcb.frontend.capture.relax import Relaxed, blamed_symbols, relaxed
from dlcb.frontend.capture.run import Run, Session, names_in
from dlcb.frontend.capture.sizes import Choice, Plan, Spread
from dlcb.frontend.capture.unseen import unseen_use
from dlcb.frontend.capture.varying import varies
from dlcb.frontend.tracing.records import Captured
from dlcb.frontend.tracing.source import line_of
from dlcb.frontend.tracing.tracker import Check
from dlcb.passes.collection import without_collection


@without_collection()
def capture(
    program: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic = "auto",
) -> Captured:
    """Trace a module or function. `UserError`: the example itself fails. `UnsupportedError`: it can't be traced."""
    arguments = read_arguments(program, args, kwargs or {})
    if isinstance(program, torch.nn.Module) and in_training(program):
        raise UserError(f"{type(program).__name__} is in training mode; call .eval() first")
    session = Session(program, arguments)
    known = dynamic if isinstance(dynamic, KnownDims) else KnownDims({}, {})
    fixed, named = fixed_symbols(arguments, dynamic), named_dims(arguments, dynamic)
    planner = Planner(session, fixed, named, known.must_vary, known.derived)
    if isinstance(dynamic, Mapping):
        planner.named.check_example()
    general = _Search(session, planner).find_general()
    if isinstance(dynamic, Mapping):
        planner.named.check_free(planner.reasons)
    run = general.run
    return Captured(
        name=name_of(program),
        inputs=run.inputs,
        weights=run.weights,
        records=run.records,
        outputs=run.outputs,
        checks=general.checks + planner.named.equalities(),
        pins=planner.pins(),
        updates=run.updates,
        aliases=run.aliases,
        traced=run.traced,
        result_dims=run.result_dims,
        in_spec=arguments.spec,
        out_spec=run.out_spec,
        notes=run.notes,
        asks_layouts=run.asks_layouts,
        memory=run.memory,
        places=run.places,
        steering=general.steering,
        rewritten=session.rewritten is not None,
    )


def name_of(program: Callable[..., Any]) -> str:
    """What a program is called in messages."""
    return getattr(program, "__name__", type(program).__name__)


_MANY_TRIES = 24
"""Runs that a search for one dim to pin may take; where there are more dims, all are pinned and freed part by part."""


class _Refusal(Exception):
    """The model does not accept these sizes, or the example goes another way. `symbols`: those to blame, if known."""

    def __init__(
        self, reason: str, symbols: frozenset[str] = frozenset(), is_branch: bool = False, is_final: bool = False
    ) -> None:
        """`is_branch`: the program compares these sizes, and the example's answer is another. `is_final`: it uses the
        example's own size as a number, so no other sizes are accepted."""
        super().__init__(reason)
        self.reason = reason
        self.symbols = symbols
        self.is_branch = is_branch
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class _Found:
    plan: Plan
    run: Run
    relaxed: Relaxed | None = None
    """Its checks without those that don't matter, where that was asked already."""


class _Search:
    """Finds sizes that the model accepts, with as few pins as it can."""

    def __init__(self, session: Session, planner: Planner) -> None:
        self._session = session
        self._planner = planner
        self._learning = Learning(session, self._planner)
        self._example = self._planner.example
        self._example_runs: dict[frozenset[str], Run] = {}
        self._needed: set[str] = set()
        """What checks say that the example does not pass and that matter."""

    def find_general(self) -> Relaxed:
        """A run that is the program wherever its checks hold."""
        while True:
            found = self._find()
            general = found.relaxed or relaxed(self._session, found.plan, found.run)
            unseen = unseen_use(self._session, found.plan, general, self._planner.plans_like(found.plan))
            if unseen is None:
                return general
            symbols, what = unseen
            self._planner.pin(symbols, f"it is used where it can't be followed: at other sizes, {what}")

    def _find(self) -> _Found:
        planner = self._planner
        while True:
            found, refusal = self._first_accepted(planner.choices())
            if found is None and not refusal.symbols:
                if planner.must_vary and self._learning.learn():
                    continue
                found = self._with_ones(refusal.reason)
            if found is not None:
                return self._with_held(found, planner.refused if found.plan.held else planner.doubtful)
            if not refusal.symbols:
                pinned = self._pin_one(refusal.reason) if planner.must_vary else None
                return self._with_held(pinned or self._pin_all_but_some(refusal.reason), planner.refused)
            if refusal.is_branch and not refusal.symbols <= planner.held.keys():
                planner.held |= dict.fromkeys(refusal.symbols, refusal.reason)
            else:
                planner.pin(refusal.symbols, refusal.reason)

    def _first_accepted(self, choices: Iterable[Choice]) -> tuple[_Found | None, _Refusal]:
        """The first run that is accepted, or why none is: by the last reason that blames a size, if any does."""
        refusal = _Refusal("")
        tried: list[Plan] = []
        for choice in choices:
            plan = self._planner.plan(self._planner.reasons, choice)
            if plan in tried:
                continue
            tried.append(plan)
            try:
                return self._accepted(plan), refusal
            except _Refusal as error:
                refusal = error if error.symbols or not refusal.reason else refusal
                if error.is_final:
                    break
        return None, refusal

    # Dims that are free although the trace has them at the example's size

    def _with_ones(self, reason: str) -> _Found | None:
        """A run with the dims of size 1 as they are: they may be broadcast."""
        planner, axes = self._planner, self._session.arguments.axes
        ones = frozenset(n for n, size in self._example.items() if size == 1 and n in axes) - planner.pinned
        choices = [replace(choice, held=ones) for choice in planner.choices()] if ones else []
        found, _ = self._first_accepted(choices)
        if found is not None:
            planner.held |= dict.fromkeys(ones - planner.held.keys(), reason)
        return found

    def _with_held(self, found: _Found, doubtful: set[str]) -> _Found:
        """The run with those dims free that the program takes at another size too, when all else stays: of what is
        held, and of the pins that are doubtful."""
        planner, plan = self._planner, found.plan
        pins = doubtful & plan.pinned
        candidates = plan.held | {n for n in pins if n in planner.doubtful or self._may_broadcast(n)}
        if not candidates:
            return found
        try:
            freed = self._accepted(Plan(plan.values, plan.pinned - candidates, candidates))
            there = freed.plan, freed.run, freed.relaxed, planner.taken
            varying = frozenset(name for name in candidates if varies(self._session, name, *there))
            if varying < candidates:
                freed = self._accepted(Plan(plan.values, (plan.pinned | candidates) - varying, varying))
        except _Refusal:
            return self._with_pins(found)
        for name in sorted(candidates - varying):
            planner.reasons.setdefault(name, planner.held.get(name, ""))
        for name in varying:
            planner.reasons.pop(name, None)
        return freed

    def _with_pins(self, found: _Found) -> _Found:
        """The run with what is held pinned."""
        plan = found.plan
        self._planner.reasons |= {name: self._planner.held[name] for name in plan.held}
        return self._accepted(Plan(plan.values, plan.kept)) if plan.held else found

    def _may_broadcast(self, symbol: str) -> bool:
        """A dim of size 1, or one beside another tensor's."""
        arguments = self._session.arguments
        several = sum(leaf.kind == "tensor" for leaf in arguments.leaves) > 1
        return symbol in arguments.axes and (several or self._example[symbol] == 1)

    # Pins

    def _pin_one(self, reason: str) -> _Found | None:
        """A run with one more dim, or dims of one size, at the example's size."""
        groups = self._planner.equal_groups()
        primes = [choice for choice in self._planner.choices() if choice.spread is Spread.PRIMES]
        if len(primes) * sum(map(len, groups)) > _MANY_TRIES:
            return None
        singles = [(frozenset({n}), choice) for choice in primes for group in groups for n in sorted(group)]
        for symbols, choice in [*singles, *((group, primes[-1]) for group in groups)]:
            try:
                found = self._accepted(self._planner.plan(symbols | self._planner.reasons.keys(), choice))
            except _Refusal:
                continue
            self._planner.pin(symbols, reason)
            return found
        return None

    def _pin_all_but_some(self, reason: str) -> _Found:
        """From the example's sizes, free what can be freed: dims of one size together, else one by one."""
        pinned = frozenset(self._example)
        why = dict.fromkeys(pinned - self._planner.reasons.keys(), reason)
        best = _Found(self._planner.example_plan(), self._example_sizes())
        freed: list[frozenset[str]] = []
        for symbols in self._planner.parts():
            if not symbols <= pinned:
                continue
            try:
                best = self._freed(pinned - symbols, (*freed, symbols))
            except _Refusal as refusal:
                why |= dict.fromkeys(symbols, refusal.reason)
            else:
                pinned -= symbols
                freed.append(symbols)
        for symbol in sorted(pinned - self._planner.reasons.keys()):
            self._planner.pin(frozenset({symbol}), why[symbol])
        return best

    def _freed(self, pinned: frozenset[str], groups: tuple[frozenset[str], ...]) -> _Found:
        *spreads, last = self._planner.spreads()
        for spread in spreads:
            try:
                return self._accepted(self._planner.plan(pinned, Choice(groups, spread)))
            except _Refusal:
                continue
        return self._accepted(self._planner.plan(pinned, Choice(groups, last)))

    def _accepted(self, plan: Plan) -> _Found:
        """The run, if the model accepts these sizes and the example passes all checks of it."""
        try:
            run = self._learning.known_run(plan) or self._session.run(plan)
            if run.hands_out_sizes and self._session.rewrite():
                self._forget_runs()
                run = self._session.run(plan)
        except InternalError:
            raise
        except Exception as error:
            if isinstance(error, UnsupportedError) or plan.pinned == self._example.keys():
                self._example_sizes()
            raise _Refusal(f"at other sizes, {first_line(error)} ({self._line(error)})") from error
        if run.failed is not None and plan.pinned != self._example.keys():
            raise _Refusal(f"the program goes on where an operation fails ({run.failed})")
        broken = [] if plan.pinned == self._example.keys() else list(self._broken(run, plan.pinned))
        if not broken:
            return _Found(plan, run)
        needed = [check for check in broken if check.comparison is None or check.text in self._needed]
        if not needed:
            general = relaxed(self._session, plan, run, broken)
            needed = self._still_broken(general, plan.pinned, broken)
            if not needed:
                return _Found(plan, general.run, general)
            run = general.run
            self._needed |= {check.text for check in needed}
        is_branch = all(check.comparison is not None for check in needed)
        final = [check for check in needed if self._is_used(check, plan.pinned)]
        first = (final or needed)[0]
        raise _Refusal(first.text, frozenset(blamed_symbols(first, plan, run)), is_branch, bool(final))

    def _forget_runs(self) -> None:
        """Those of the program as it is written."""
        self._example_runs.clear()
        self._learning.forget_runs()

    def _is_used(self, check: Check, pinned: frozenset[str]) -> bool:
        """Whether the program, at the example's own sizes too, uses the very size that a check is about: then it is no
        other, whatever the sizes of the trace. What follows from sizes may be the same for others."""
        if check.comparison is not None or check.lhs.op != "symbol":
            return False
        there = self._example_sizes(pinned).checks
        return any(c.comparison is None and c.lhs is check.lhs and c.text == check.text for c in there)

    def _still_broken(self, general: Relaxed, pinned: frozenset[str], broken: list[Check]) -> list[Check]:
        """The checks that the example does not pass, if it is led the same way through the program."""
        there = attempt(self._session, Plan(self._example, pinned), general.steering)
        return broken if there is None else [c for c in general.checks if not c.holds(there.traced)]

    def _example_sizes(self, pinned: frozenset[str] | None = None) -> Run:
        """The run at the example's own sizes, of which these are plain numbers to the program."""
        plan = self._planner.example_plan() if pinned is None else Plan(self._example, pinned)
        if plan.pinned not in self._example_runs:
            try:
                self._example_runs[plan.pinned] = self._session.run(plan)
            except (InternalError, UnsupportedError):
                raise
            except Exception as error:
                raise UserError(
                    f"the program fails on its example inputs: {first_line(error)} ({self._line(error)})"
                ) from error
        return self._example_runs[plan.pinned]

    def _line(self, error: Exception) -> str:
        """Where the program failed: where the error says so, else where it was last."""
        return line_of(error) or self._session.line

    def _broken(self, run: Run, pinned: frozenset[str]) -> Iterator[Check]:
        """Checks of a run that the example does not pass."""
        if all(check.free <= self._example.keys() for check in run.checks):
            yield from (check for check in run.checks if not check.holds(self._example))
            return
        there = self._example_sizes(pinned)
        names = names_in(run, there)
        for check, other in zip(run.checks, there.checks, strict=False):
            if check.condition is not substitute(other.condition, names):
                yield check
        yield from run.checks[len(there.checks) :]
