"""Random graphs: the CPU target, the evaluator and torch agree.

hypothesis draws the graphs; their kernels are compiled as one unit. `DLCB_RANDOM_GRAPHS=500` draws that many, and new
ones each time.
"""

from __future__ import annotations

import os
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Case, check_call, check_evaluator
from dlcb.tests.random_graphs import Program, as_case, programs

ASKED = os.environ.get("DLCB_RANDOM_GRAPHS")
COUNT = int(ASKED) if ASKED else 40


def draw(count: int) -> list[Program]:
    found: list[Program] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        derandomize=ASKED is None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(programs())
    def collect(program: Program) -> None:
        found.append(program)

    collect()
    return found


CASES: list[Case] = [as_case(program, number) for number, program in enumerate(draw(COUNT))]


@cache
def unit() -> Batch:
    batch = Batch()
    for case in CASES:
        batch.rehearse(batch.add(case.module()), case.calls)
    return batch


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_random_graph_computes_what_torch_computes(number: int) -> None:
    for seed in ORDER_SEEDS:
        compiled = unit().module(number, seed)
        for arguments in CASES[number].calls:
            check_call(compiled, CASES[number], arguments)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_evaluator_agrees_with_torch_on_a_random_graph(number: int) -> None:
    case = CASES[number]
    for arguments in case.calls[:2]:
        check_evaluator(case.module(), case, arguments)


def test_the_kernels_of_random_graphs_compile_for_sm_90() -> None:
    assert compile_cubin(unit().text(unit().needed)).data
