"""Uses of sizes that a trace does not see: `0.5 * n`, `names[n]`, the text of a size.

Python hands an `int` to a float on its left, to the index of a list and to C code without asking it. What comes out has
no expression; in a run at other sizes it is another number, and the two runs are not one program. The sizes on which
that depends are found by changing one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dlcb.frontend.capture.branches import attempt
from dlcb.frontend.capture.relax import Relaxed
from dlcb.frontend.capture.retrace import difference
from dlcb.frontend.capture.run import Run, Session
from dlcb.frontend.capture.sizes import Plan


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

    for there in others:
        other = run_at(there)
        if other is None or not _goes_the_same_way(general, other):
            continue
        found = difference(general.run, other)
        if found is None:
            return None
        again = run_at(plan)
        if again is None or difference(general.run, again) is not None:
            return None
        return _blamed(plan, there, general.run, run_at), found
    return None


def _goes_the_same_way(general: Relaxed, other: Run) -> bool:
    """Whether what the program was told there is true of these sizes."""
    return all(check.holds(other.traced) for check in general.checks if check.free <= other.traced.keys())


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
