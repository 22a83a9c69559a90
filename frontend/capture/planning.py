"""What is known of a program's sizes while general ones are sought, and the sizes of traces that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from dlcb.dialects.shape.expr import Expr, evaluate
from dlcb.frontend.capture.named import Groups, NamedDims
from dlcb.frontend.capture.run import Session
from dlcb.frontend.capture.sizes import (
    Choice,
    Plan,
    Spread,
    equal_groups,
    is_square,
    joined,
    numbers_of,
    plan_below,
    plan_sizes,
)
from dlcb.frontend.tracing.records import Pin


class Planner:
    """Pins, dims that keep the example's size, sizes that are to be equal; plans of sizes that go by them."""

    def __init__(
        self,
        session: Session,
        fixed: Mapping[str, str],
        named: Mapping[str, list[str]],
        must_vary: bool,
        derived: Mapping[str, Expr],
    ) -> None:
        self.example = session.arguments.example_sizes
        self.must_vary = must_vary
        self.reasons = dict(fixed)
        """Why symbols are pinned."""
        self.refused: set[str] = set()
        """What is pinned because the program refuses it, and not because the user said so."""
        self.doubtful: set[str] = set()
        """What is pinned because an operation refuses it that may take yet other sizes: a broadcast, a quotient."""
        self.held: dict[str, str] = {}
        """What keeps the example's size for the answers that this gives, with the reason; it may vary as far as they
        stay."""
        self.alike: tuple[frozenset[str], ...] = ()
        """Sizes that operations want equal."""
        self.taken = numbers_of(session.program)
        """Numbers that no size is to be."""
        self.named = NamedDims(session, named, self._plans_of)
        self._axes = session.arguments.axes
        self._fixed = fixed
        self._derived = derived

    @property
    def pinned(self) -> frozenset[str]:
        return frozenset(self.reasons)

    def pins(self) -> list[Pin]:
        return [Pin(symbol, self.example[symbol], reason) for symbol, reason in self.reasons.items()]

    def pin(self, symbols: frozenset[str], reason: str) -> None:
        """Pin them, and what has a name in common with one."""
        symbols = self.named.pinned_with(symbols, reason, self.must_vary)
        self.refused |= symbols
        for symbol in sorted(symbols):
            self.reasons[symbol] = reason

    # Plans

    def plan(self, pinned: Iterable[str], choice: Choice, taken: set[int] | None = None) -> Plan:
        choice = replace(choice, held=choice.held | self.held.keys())
        plan = plan_sizes(self.example, pinned, choice, self.taken if taken is None else taken)
        return self._with_derived(plan)

    def _with_derived(self, plan: Plan) -> Plan:
        derived = {s: evaluate(expr, plan.values) for s, expr in self._derived.items() if s not in plan.pinned}
        return Plan({**plan.values, **derived}, plan.pinned, plan.held) if derived else plan

    def example_plan(self) -> Plan:
        return Plan(self.example, self.pinned)

    def plans_like(self, plan: Plan) -> Iterator[Plan]:
        """Plans of other sizes, equal where these are: far away, then next to them."""
        groups = tuple(equal_groups({name: size for name, size in plan.values.items() if name not in plan.kept}))
        taken = self.taken | set(plan.values.values())
        for spread in Spread:
            yield self.plan(plan.pinned, Choice(groups, spread, plan.held), taken)
        yield self._with_derived(plan_below(plan, taken))

    def _plans_of(self, groups: Groups) -> Iterator[Plan]:
        """Sizes that are equal in these groups, where only that is fixed which the user fixed."""
        for spread in self.spreads():
            yield plan_sizes(self.example, self._fixed, Choice(groups, spread), self.taken)

    # What plans choose from

    def choices(self) -> list[Choice]:
        together = joined([*self.named.groups, *self.alike])
        if not self.must_vary:
            return [Choice(together, spread) for spread in self.spreads()]
        groupings = dict.fromkeys((together, tuple(self.equal_groups(by_axis=True)), tuple(self.equal_groups())))
        return [Choice(groups, spread) for spread in self.spreads() for groups in groupings]

    def spreads(self) -> list[Spread]:
        free = (size for name, size in self.example.items() if name not in self.reasons)
        return [spread for spread in Spread if spread is not Spread.SQUARES or any(map(is_square, free))]

    def equal_groups(self, by_axis: bool = False) -> list[frozenset[str]]:
        """Symbols that are not pinned, by the example's size; with `by_axis`, only those at the same axis together."""
        axes = self._axes if by_axis else {}
        return equal_groups({n: (size, axes.get(n)) for n, size in self.example.items() if n not in self.reasons})

    def parts(self) -> list[frozenset[str]]:
        """Which sizes to free together: those equal in the example, then those of one axis, then each alone. Large ones
        first, ints after sizes: what must be below another number can only follow it. Where all that may vary is named,
        the names say which go together."""
        if not self.must_vary:
            return list(self.named.groups)
        aligned = self.equal_groups(by_axis=True)
        parts: list[frozenset[str]] = []
        for group in sorted(self.equal_groups(), key=lambda group: -self.example[next(iter(group))]):
            parts += [group, *(part for part in aligned if part < group)]
            parts += [frozenset({name}) for name in sorted(group, key=lambda n: (n not in self._axes, n))]
        return list(dict.fromkeys(parts))
