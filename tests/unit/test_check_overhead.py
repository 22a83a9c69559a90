"""What recognizing a call and checking its arguments may cost."""

from __future__ import annotations

import pytest

from dlcb.benchmarks.check_overhead import BAR_OFFSET_US, BAR_SLOPE_US, LAYOUTS, line, measure, report

ROOM = 3
TRIES = 5


def test_key_and_checks_cost_little_where_shapes_were_seen_before() -> None:
    """The best of several tries: another process may slow down any of them."""
    tries = [measure(21) for _ in range(TRIES)]
    for layout in LAYOUTS:
        best = {n: min(costs[layout][n] for costs in tries) for n in tries[0][layout]}
        offset, slope = line(best)
        assert offset <= ROOM * BAR_OFFSET_US, best
        assert slope <= ROOM * BAR_SLOPE_US, best


def test_a_line_is_found_and_a_dear_tensor_shows() -> None:
    assert line({n: 0.5 + 0.7 * n for n in (1, 2, 4, 32)}) == pytest.approx((0.5, 0.7))
    assert line({n: 0.5 + 2.5 * n for n in (1, 2, 4, 32)})[1] > ROOM * BAR_SLOPE_US


def test_the_report_names_no_machine() -> None:
    found = report({"contiguous": {1: 1.2, 2: 1.9}})
    assert found.keys() == {"date", "python", "torch", "unit", "bar", "costs", "fit"}
    assert found["fit"]["contiguous"] == {"offset": 0.5, "slope": 0.7}
