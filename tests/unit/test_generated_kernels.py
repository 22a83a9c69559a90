"""Every graph of the table, and every sample of every op, through the whole pipeline and the CPU target, beside torch.

All kernels that the calls need are one translation unit; blocks and threads run in three orders, over poisoned memory.
The kernels compile for sm_90 too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from torch import Tensor

from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.stages import mark_stage
from dlcb.tests.graph_cases import CASES
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Case, as_it_lies, check_call, check_evaluator
from dlcb.tests.unit.op_samples import SAMPLES, Sample, differs, result_type, to_array

MAX_EVALUATED = 2000
"""Elements of the arguments up to which the evaluator is asked too; it is slow."""


@cache
def table() -> Batch:
    batch = Batch()
    for case in CASES:
        batch.rehearse(batch.add(case.module()), case.calls)
    return batch


@cache
def samples() -> Batch:
    batch = Batch()
    for sample in SAMPLES:
        module = sample.module()
        mark_stage(module, "generalize")
        batch.rehearse(batch.add(module), [sample.tensors])
    return batch


def test_names_of_cases_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: CASES[i].name)
def test_a_graph_computes_what_torch_computes(number: int) -> None:
    for seed in ORDER_SEEDS:
        compiled = table().module(number, seed)
        for arguments in CASES[number].calls:
            check_call(compiled, CASES[number], arguments)


def small_calls(case: Case) -> list[list[object]]:
    sized = [list(c) for c in case.calls if sum(getattr(a, "numel", int)() for a in c) <= MAX_EVALUATED]
    return sized[:3]


@pytest.mark.parametrize("case", [c for c in CASES if not c.name.startswith("deep")], ids=lambda case: case.name)
def test_the_evaluator_computes_what_torch_computes(case: Case) -> None:
    module = case.module()
    if any(op.name.rpartition(".")[2] in ("softmax", "layer_norm", "rms_norm") for op in module.walk()):
        pytest.skip("composite ops are decomposed before they are evaluated")
    for arguments in small_calls(case):
        check_evaluator(module, case, arguments)


@pytest.mark.parametrize("number", range(len(SAMPLES)), ids=lambda i: SAMPLES[i].name)
def test_an_op_computes_what_torch_computes(number: int) -> None:
    sample: Sample = SAMPLES[number]
    for seed in ORDER_SEEDS:
        (result,) = samples().module(number, seed)(*map(as_it_lies, sample.tensors))
        assert isinstance(result, Tensor)
        difference = differs(to_array(result), sample.expected(), result_type(sample.module()))
        assert difference is None, difference


@pytest.mark.parametrize("batch", [table, samples], ids=["table", "samples"])
def test_the_kernels_compile_for_sm_90(batch: Callable[[], Batch]) -> None:
    made = batch()
    assert compile_cubin(made.text(made.needed)).data
