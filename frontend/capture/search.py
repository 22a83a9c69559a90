"""Capture: from a PyTorch program and example inputs to records that hold at all sizes for which their checks hold.

The program is traced at sizes of our choice (`sizes.py`). A trace is taken if the model accepts these sizes and the
example's sizes pass every check of it: then the example goes the same way through the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from dlcb.dialects.shape.expr import Expr, evaluate
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
from dlcb.frontend.capture.named import Groups, NamedDims
from dlcb.frontend.capture.refusals import Guess, Lessons, Refused, first_line
from dlcb.frontend.capture.relax import Relaxed, blamed_symbols, relaxed
from dlcb.frontend.capture.run import Mend, Run, Session
from dlcb.frontend.capture.sizes import Choice, Plan, Spread, equal_groups, is_square, joined, numbers_of, plan_sizes
from dlcb.frontend.capture.unseen import unseen_use
from dlcb.frontend.capture.varying import varies
from dlcb.frontend.tracing.records import Captured, Pin
from dlcb.frontend.tracing.source import line_of
from dlcb.frontend.tracing.trace import Resized
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
    search = _Search(session, fixed, named, known.must_vary, known.derived)
    if isinstance(dynamic, Mapping):
        search.named.check_example()
    general = search.find_general()
    if isinstance(dynamic, Mapping):
        search.named.check_free(search.reasons)
    run = general.run
    return Captured(
        name=name_of(program),
        inputs=run.inputs,
        weights=run.weights,
        records=run.records,
        outputs=run.outputs,
        checks=general.checks + search.named.equalities(),
        pins=search.pins(),
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

    def __init__(
        self,
        session: Session,
        fixed: dict[str, str],
        named: dict[str, list[str]],
        must_vary: bool,
        derived: Mapping[str, Expr],
    ) -> None:
        self._session = session
        self._must_vary = must_vary
        self._derived = derived
        self._example = session.arguments.example_sizes
        self._fixed = fixed
        self.reasons = dict(fixed)
        """Why symbols are pinned."""
        self._taken = numbers_of(session.program)
        self.named = NamedDims(session, named, self._plans_of)
        self._example_runs: dict[frozenset[str], Run] = {}
        self._refused: set[str] = set()
        """What is pinned because the program refuses it, and not because the user said so."""
        self._held: dict[str, str] = {}
        """What keeps the example's size for the answers that this gives, with the reason; it may vary as far as they
        stay."""
        self._alike: tuple[frozenset[str], ...] = ()
        """Sizes that operations want equal."""
        self._lessons = Lessons(self._example, self._probe)
        self._spread = Spread.PRIMES
        """How sizes are chosen while lessons are learned."""
        self._last: tuple[Plan, Run] | None = None
        """What was traced last without refusal while these were sought."""
        self._needed: set[str] = set()
        """What checks say that the example does not pass and that matter."""

    def find_general(self) -> Relaxed:
        """A run that is the program wherever its checks hold."""
        while True:
            found = self._find()
            general = found.relaxed or relaxed(self._session, found.plan, found.run)
            unseen = unseen_use(self._session, found.plan, general, self._plans_like(found.plan))
            if unseen is None:
                return general
            if self._session.rewrite():
                self._example_runs.clear()
                self._last = None
                continue
            symbols, what = unseen
            self._pin(symbols, f"it is used where it can't be followed: at other sizes, {what}")

    def _plans_like(self, plan: Plan) -> Iterator[Plan]:
        """Plans of other sizes, equal where these are."""
        groups = tuple(equal_groups({name: size for name, size in plan.values.items() if name not in plan.kept}))
        taken = self._taken | set(plan.values.values())
        for spread in Spread:
            yield self._plan(plan.pinned, Choice(groups, spread, plan.held), taken)

    def _find(self) -> _Found:
        while True:
            found, refusal = self._first_accepted(self._choices())
            if found is None and not refusal.symbols:
                if self._must_vary and self._learn():
                    continue
                found = self._with_ones(refusal.reason)
            if found is not None:
                return self._with_held(found) if found.plan.held else found
            if not refusal.symbols:
                pinned = self._pin_one(refusal.reason) if self._must_vary else None
                return self._with_held(pinned or self._pin_all_but_some(refusal.reason))
            if refusal.is_branch and not refusal.symbols <= self._held.keys():
                self._held |= dict.fromkeys(refusal.symbols, refusal.reason)
            else:
                self._pin(refusal.symbols, refusal.reason)

    def _first_accepted(self, choices: Iterable[Choice]) -> tuple[_Found | None, _Refusal]:
        """The first run that is accepted, or why none is: by the last reason that blames a size, if any does."""
        refusal = _Refusal("")
        for choice in choices:
            try:
                return self._accepted(self._plan(self.reasons, choice)), refusal
            except _Refusal as error:
                refusal = error if error.symbols or not refusal.reason else refusal
                if error.is_final:
                    break
        return None, refusal

    def _choices(self) -> list[Choice]:
        together = joined([*self.named.groups, *self._alike])
        if not self._must_vary:
            return [Choice(together, spread) for spread in self._spreads()]
        groupings = dict.fromkeys((together, tuple(self._equal_groups(by_axis=True)), tuple(self._equal_groups())))
        return [Choice(groups, spread) for spread in self._spreads() for groups in groupings]

    def _spreads(self) -> list[Spread]:
        free = (size for name, size in self._example.items() if name not in self.reasons)
        return [spread for spread in Spread if spread is not Spread.SQUARES or any(map(is_square, free))]

    def pins(self) -> list[Pin]:
        return [Pin(symbol, self._example[symbol], reason) for symbol, reason in self.reasons.items()]

    def _plans_of(self, groups: Groups) -> Iterator[Plan]:
        """Sizes that are equal in these groups, where only that is fixed which the user fixed."""
        for spread in self._spreads():
            yield plan_sizes(self._example, self._fixed, Choice(groups, spread), self._taken)

    def _plan(self, pinned: Iterable[str], choice: Choice, taken: set[int] | None = None) -> Plan:
        choice = replace(choice, held=choice.held | self._held.keys())
        plan = plan_sizes(self._example, pinned, choice, self._taken if taken is None else taken)
        derived = {s: evaluate(expr, plan.values) for s, expr in self._derived.items() if s not in plan.pinned}
        return Plan({**plan.values, **derived}, plan.pinned, plan.held) if derived else plan

    def _equal_groups(self, by_axis: bool = False) -> list[frozenset[str]]:
        """Symbols that are not pinned, by the example's size; with `by_axis`, only those at the same axis together."""
        axes = self._session.arguments.axes if by_axis else {}
        return equal_groups({n: (size, axes.get(n)) for n, size in self._example.items() if n not in self.reasons})

    def _pin(self, symbols: frozenset[str], reason: str) -> None:
        symbols = self.named.pinned_with(symbols, reason, self._must_vary)
        self._refused |= symbols
        for symbol in sorted(symbols):
            self.reasons[symbol] = reason

    # What operations say that refuse sizes

    def _learn(self) -> bool:
        """Finds the sizes that the program's operations want equal, or at the example's; whether there are any."""
        learned = False
        taken: set[Guess] = set()
        while True:
            plan = self._plan(self.reasons, self._learning())
            symbols = {size: name for name, size in plan.values.items() if name not in plan.kept}
            noted: list[tuple[Refused, list[Guess]]] = []
            refused = self._probe([], partial(self._note, noted, symbols))
            if not taken.issuperset(guess for _, guesses in noted for guess in guesses):
                for where, guesses in noted:
                    self._take(where, guesses)
                    taken.update(guesses)
                continue
            if refused is None:
                return learned
            guesses = self._lessons.of(refused, symbols)
            if not guesses and self._spreads_otherwise(refused):
                continue
            guesses = guesses or self._lessons.alone(refused, symbols)
            if not guesses:
                return learned
            learned = True
            self._take(refused, guesses)

    def _note(
        self, noted: list[tuple[Refused, list[Guess]]], symbols: Mapping[int, str], refused: Refused
    ) -> Resized | None:
        """What is known of an operation that is refused, so that one run tells of all such ones."""
        guesses, sizes = self._lessons.again(refused, symbols)
        if guesses:
            noted.append((refused, guesses))
        return sizes or None

    def _take(self, refused: Refused, guesses: Iterable[Guess]) -> None:
        groups = [frozenset({g.symbol, g.other}) for g in guesses if g.other is not None]
        self._alike = joined([*self._alike, *groups])
        pinned = self._like({g.symbol for g in guesses if g.other is None})
        self._pin(pinned, f"at other sizes, {refused.text} ({refused.record.op}, {refused.record.line})")
        if refused.is_exact:
            self._refused -= pinned

    def _learning(self) -> Choice:
        choices = self._choices()
        return next((choice for choice in choices if choice.spread is self._spread), choices[0])

    def _spreads_otherwise(self, refused: Refused) -> bool:
        """Whether sizes of another kind, kept from here on, get past the operation."""
        was = self._spread
        for spread in self._spreads():
            self._spread = spread
            then = self._probe([]) if spread is not was else refused
            if then is None or then.position > refused.position:
                return True
        self._spread = was
        return False

    def _probe(self, guesses: list[Guess], mend: Mend | None = None) -> Refused | None:
        """The operation that refuses a trace with these guesses, and is not mended."""
        groups = [frozenset({g.symbol, g.other}) for g in guesses if g.other is not None]
        pinned = self._like({g.symbol for g in guesses if g.other is None})
        choice = self._learning()
        plan = self._plan(self.reasons.keys() | pinned, replace(choice, groups=joined([*choice.groups, *groups])))
        if self._known_run(plan) is not None:
            return None
        was_mended = False

        def mended(refused: Refused) -> Resized | None:
            nonlocal was_mended
            sizes = None if mend is None else mend(refused)
            was_mended = was_mended or sizes is not None
            return sizes

        run = attempt(self._session, plan, mend=mended)
        if run is None:
            return self._session.refused
        if not was_mended:
            self._last = plan, run
        return None

    def _known_run(self, plan: Plan) -> Run | None:
        """The run at these sizes, if the last that no operation refused was it."""
        return self._last[1] if self._last is not None and self._last[0] == plan else None

    def _like(self, symbols: set[str]) -> frozenset[str]:
        """The symbols and those that are equal to them."""
        return frozenset(symbols).union(*(group for group in self._alike if group & symbols))

    # Dims that are free although the trace has them at the example's size

    def _with_ones(self, reason: str) -> _Found | None:
        """A run with the dims of size 1 as they are: they may be broadcast."""
        axes = self._session.arguments.axes
        ones = frozenset(n for n, size in self._example.items() if size == 1 and n in axes and n not in self.reasons)
        choices = [replace(choice, held=ones) for choice in self._choices()] if ones else []
        found, _ = self._first_accepted(choices)
        if found is not None:
            self._held |= dict.fromkeys(ones - self._held.keys(), reason)
        return found

    def _with_held(self, found: _Found) -> _Found:
        """The run with those dims free that the program takes at another size too, when all else stays."""
        plan = found.plan
        candidates = plan.held | {n for n in self._refused & plan.pinned if self._may_broadcast(n)}
        if not candidates:
            return found
        try:
            freed = self._accepted(Plan(plan.values, plan.pinned - candidates, candidates))
            varying = frozenset(
                n for n in candidates if varies(self._session, n, freed.plan, freed.run, freed.relaxed, self._taken)
            )
            if varying < candidates:
                freed = self._accepted(Plan(plan.values, (plan.pinned | candidates) - varying, varying))
        except _Refusal:
            return self._with_pins(found)
        for name in candidates:
            self.reasons.pop(name, None) if name in varying else self.reasons.setdefault(name, self._held.get(name, ""))
        return freed

    def _with_pins(self, found: _Found) -> _Found:
        """The run with what is held pinned."""
        plan = found.plan
        self.reasons |= {name: self._held[name] for name in plan.held}
        return self._accepted(Plan(plan.values, plan.kept)) if plan.held else found

    def _may_broadcast(self, symbol: str) -> bool:
        """A dim of size 1, or one beside another tensor's."""
        arguments = self._session.arguments
        several = sum(leaf.kind == "tensor" for leaf in arguments.leaves) > 1
        return symbol in arguments.axes and (several or self._example[symbol] == 1)

    # Pins

    def _pin_one(self, reason: str) -> _Found | None:
        """A run with one more dim, or dims of one size, at the example's size."""
        groups = self._equal_groups()
        primes = [choice for choice in self._choices() if choice.spread is Spread.PRIMES]
        if len(primes) * sum(map(len, groups)) > _MANY_TRIES:
            return None
        singles = [(frozenset({n}), choice) for choice in primes for group in groups for n in sorted(group)]
        for symbols, choice in [*singles, *((group, primes[-1]) for group in groups)]:
            try:
                found = self._accepted(self._plan(symbols | self.reasons.keys(), choice))
            except _Refusal:
                continue
            self._pin(symbols, reason)
            return found
        return None

    def _pin_all_but_some(self, reason: str) -> _Found:
        """From the example's sizes, free what can be freed: dims of one size together, else one by one."""
        pinned = frozenset(self._example)
        why = dict.fromkeys(pinned - self.reasons.keys(), reason)
        best = _Found(self._example_plan(), self._example_sizes())
        freed: list[frozenset[str]] = []
        for symbols in self._parts():
            if not symbols <= pinned:
                continue
            try:
                best = self._freed(pinned - symbols, (*freed, symbols))
            except _Refusal as refusal:
                why |= dict.fromkeys(symbols, refusal.reason)
            else:
                pinned -= symbols
                freed.append(symbols)
        for symbol in sorted(pinned - self.reasons.keys()):
            self._pin(frozenset({symbol}), why[symbol])
        return best

    def _parts(self) -> list[frozenset[str]]:
        """Which sizes to free together: those equal in the example, then those of one axis, then each alone. Large ones
        first, ints after sizes: what must be below another number can only follow it. Where all that may vary is named,
        the names say which go together."""
        if not self._must_vary:
            return list(self.named.groups)
        axes = self._session.arguments.axes
        aligned = self._equal_groups(by_axis=True)
        parts: list[frozenset[str]] = []
        for group in sorted(self._equal_groups(), key=lambda group: -self._example[next(iter(group))]):
            parts += [group, *(part for part in aligned if part < group)]
            parts += [frozenset({name}) for name in sorted(group, key=lambda n: (n not in axes, n))]
        return list(dict.fromkeys(parts))

    def _freed(self, pinned: frozenset[str], groups: tuple[frozenset[str], ...]) -> _Found:
        *spreads, last = self._spreads()
        for spread in spreads:
            try:
                return self._accepted(self._plan(pinned, Choice(groups, spread)))
            except _Refusal:
                continue
        return self._accepted(self._plan(pinned, Choice(groups, last)))

    def _accepted(self, plan: Plan) -> _Found:
        """The run, if the model accepts these sizes and the example passes all checks of it."""
        try:
            run = self._known_run(plan) or self._session.run(plan)
        except InternalError:
            raise
        except Exception as error:
            if isinstance(error, UnsupportedError) or plan.pinned == self._example.keys():
                self._example_sizes()
            raise _Refusal(f"at other sizes, {first_line(error)} ({self._line(error)})") from error
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

    def _example_plan(self) -> Plan:
        return Plan(self._example, frozenset(self.reasons))

    def _example_sizes(self, pinned: frozenset[str] | None = None) -> Run:
        """The run at the example's own sizes, of which these are plain numbers to the program."""
        plan = self._example_plan() if pinned is None else Plan(self._example, pinned)
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
        there = self._example_sizes(pinned).checks
        yield from (
            check for check, other in zip(run.checks, there, strict=False) if check.condition is not other.condition
        )
        yield from run.checks[len(there) :]
