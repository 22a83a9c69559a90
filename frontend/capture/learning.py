"""Finding what a program's operations want of sizes, from what they refuse: traces, lessons, and traces again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from dlcb.frontend.capture.branches import attempt
from dlcb.frontend.capture.planning import Planner
from dlcb.frontend.capture.refusals import Guess, Lessons, Refused
from dlcb.frontend.capture.run import Mend, Run, Session
from dlcb.frontend.capture.sizes import Choice, Plan, Spread, joined
from dlcb.frontend.tracing.trace import Resized


class Learning:
    """Tells the planner which sizes are to be equal, or the example's."""

    def __init__(self, session: Session, planner: Planner) -> None:
        self._session = session
        self._planner = planner
        self._lessons = Lessons(planner.example, self._probe)
        self._spread = Spread.PRIMES
        self._last: tuple[Plan, Run] | None = None
        """What was traced last without refusal."""

    def known_run(self, plan: Plan) -> Run | None:
        """The run at these sizes, if the last that no operation refused was it."""
        return self._last[1] if self._last is not None and self._last[0] == plan else None

    def forget_runs(self) -> None:
        self._last = None

    def learn(self) -> bool:
        """Finds the sizes that the program's operations want equal, or at the example's; whether there are any."""
        planner = self._planner
        before = set(planner.alike), planner.pinned
        self._learn_all()
        return before != (set(planner.alike), planner.pinned)

    def _learn_all(self) -> None:
        taken: set[Guess] = set()
        while True:
            plan = self._planner.plan(self._planner.reasons, self._choice())
            symbols = {size: name for name, size in plan.values.items() if name not in plan.kept}
            noted: list[tuple[Refused, list[Guess]]] = []
            refused = self._probe([], partial(self._note, noted, symbols))
            if noted and refused is not None and noted[-1][0].record is refused.record:
                noted.pop()  # what it was given was not what it wants
            if not taken.issuperset(guess for _, guesses in noted for guess in guesses):
                for where, guesses in noted:
                    self._take(where, guesses)
                    taken.update(guesses)
                continue
            if refused is None:
                return
            guesses = self._lessons.of(refused, symbols)
            if not guesses and self._spreads_otherwise(refused):
                continue
            alone = [] if guesses else self._lessons.alone(refused, symbols)
            if not guesses and not alone:
                return
            self._take(refused, guesses or alone)
            self._planner.doubtful.update(guess.symbol for guess in alone)

    def _note(
        self, noted: list[tuple[Refused, list[Guess]]], symbols: Mapping[int, str], refused: Refused
    ) -> Resized | None:
        """What is known of an operation that is refused, so that one run tells of all such ones."""
        guesses, sizes = self._lessons.again(refused, symbols)
        if guesses:
            noted.append((refused, guesses))
        return sizes or None

    def _take(self, refused: Refused, guesses: Sequence[Guess]) -> None:
        planner = self._planner
        planner.alike = joined([*planner.alike, *_groups(guesses)])
        pinned = self._pinned(guesses)
        planner.pin(pinned, f"at other sizes, {refused.text} ({refused.record.op}, {refused.record.line})")
        planner.doubtful |= pinned
        if refused.is_exact:
            exact = {guess.symbol for guess in guesses}
            planner.refused -= exact
            planner.doubtful -= exact

    def _choice(self) -> Choice:
        choices = self._planner.choices()
        return next((choice for choice in choices if choice.spread is self._spread), choices[0])

    def _spreads_otherwise(self, refused: Refused) -> bool:
        """Whether sizes of another kind, kept from here on, get past the operation."""
        was = self._spread
        for spread in self._planner.spreads():
            self._spread = spread
            then = self._probe([]) if spread is not was else refused
            if then is None or then.position > refused.position:
                return True
        self._spread = was
        return False

    def _probe(self, guesses: list[Guess], mend: Mend | None = None) -> Refused | None:
        """The operation that refuses a trace with these guesses, and is not mended."""
        choice = self._choice()
        together = replace(choice, groups=joined([*choice.groups, *_groups(guesses)]))
        plan = self._planner.plan(self._planner.reasons.keys() | self._pinned(guesses), together)
        if self.known_run(plan) is not None:
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

    def _pinned(self, guesses: Iterable[Guess]) -> frozenset[str]:
        """What has the example's size, and what is equal to that."""
        symbols = frozenset(guess.symbol for guess in guesses if guess.other is None)
        return symbols.union(*(group for group in self._planner.alike if group & symbols))


def _groups(guesses: Iterable[Guess]) -> list[frozenset[str]]:
    return [frozenset({guess.symbol, guess.other}) for guess in guesses if guess.other is not None]
