"""Whether a dim that the trace has at the example's size may have another: what is held so that it broadcasts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from dlcb.frontend.capture.branches import attempt
from dlcb.frontend.capture.relax import Relaxed
from dlcb.frontend.capture.retrace import difference
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.primes import primes_from
from dlcb.frontend.tracing.steering import FREE

_FEW_TRIES = 8
"""Sizes that are tried for a dim."""


def varies(session: Session, symbol: str, plan: Plan, run: Run, relaxed: Relaxed | None, taken: Iterable[int]) -> bool:
    """Is it the same program with another size in that place, or in all those of its axis that are held? Where it asks
    whether the size is this one, it need not be. `taken`: numbers of the program."""
    checks = run.checks if relaxed is None else relaxed.checks
    if any(c.kind == "eq" and c.comparison is not None and c.free == frozenset({symbol}) for c in checks):
        return True
    axes = session.arguments.axes_from_the_right
    beside = {plan.values[n] for n, axis in axes.items() if axis == axes.get(symbol)}
    together = frozenset(n for n in plan.held if axes.get(n) == axes.get(symbol))
    for other in islice(_others(plan.values[symbol], beside, plan, taken), _FEW_TRIES):
        for symbols in dict.fromkeys((frozenset({symbol}), together)):
            there = Plan({**plan.values, **dict.fromkeys(symbols, other)}, plan.pinned, plan.held)
            found = attempt(session, there, FREE if relaxed is None else relaxed.steering)
            if found is not None and difference(run, found) is None:
                return True
    return False


def _others(value: int, beside: Iterable[int], plan: Plan, taken: Iterable[int]) -> Iterator[int]:
    """Sizes to try in place of a value, the likely ones first: next to it, a multiple, those at the same axis of other
    tensors, one that no dim has, 1, and all that others have."""
    near = [value + 1, value - 1] if value > 1 else []
    fresh = next(primes_from(max(plan.values.values()) + 1))
    every = sorted({*plan.values.values(), *taken})
    return (n for n in dict.fromkeys([*near, 2 * value, *sorted(beside), fresh, 1, *every]) if n != value)
