"""Every op means what torch says: the evaluator on the samples of the table, and the texts of what ops refuse."""

from __future__ import annotations

import re

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.graph.creation import EmptyOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.errors import UnsupportedError, UserError
from dlcb.evaluator.graph import run, run_program
from dlcb.lowering import pipeline
from dlcb.tests.unit.op_samples import OP, REFUSALS, SAMPLES, Refusal, Sample, differs, result_type

SIMPLE = [s for s in SAMPLES if s.op.FAMILY != "composite"]
COMPOSITE = [s for s in SAMPLES if s.op.FAMILY == "composite"]


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp))


def test_every_op_has_a_sample() -> None:
    undetermined = {EmptyOp.name}
    assert {op.name for op in OP.values()} == {s.op.name for s in SAMPLES} | undetermined


@pytest.mark.parametrize("sample", SIMPLE, ids=lambda s: s.name)
def test_the_evaluator_computes_what_torch_computes(sample: Sample) -> None:
    module = sample.module()
    module.verify()
    (actual,) = run(main_of(module), sample.arrays)
    difference = differs(actual, sample.expected(), result_type(module))
    assert difference is None, difference


@pytest.mark.parametrize("sample", COMPOSITE, ids=lambda s: s.name)
def test_the_evaluator_asks_for_composites_to_be_decomposed(sample: Sample) -> None:
    module = sample.module()
    module.verify()
    with pytest.raises(UnsupportedError, match=r"model\.py:12: .* `simplify`"):
        run(main_of(module), sample.arrays)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_the_coordinate_kernels_compute_what_torch_computes(sample: Sample) -> None:
    module = sample.module()
    element = result_type(module)
    pipeline.run(module, Context(), until="coordinates")
    (actual,) = run_program(module, dict(zip(main_of(module).names, sample.arrays, strict=True)))
    difference = differs(actual, sample.expected(), element)
    assert difference is None, difference


def assert_names(values: tuple[int, ...], text: str) -> None:
    numbers = set(map(int, re.findall(r"(?<![\w.:])-?\d+(?!\w)", text)))
    assert numbers.issuperset(values), text


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: r.name)
def test_literal_sizes_that_do_not_fit_are_refused_by_the_verifier(refusal: Refusal) -> None:
    with pytest.raises(VerifyException) as caught:
        refusal.module(symbolic=False).verify()
    assert_names(refusal.values, str(caught.value))


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: r.name)
def test_free_sizes_that_do_not_fit_are_refused_when_the_function_runs(refusal: Refusal) -> None:
    module = refusal.module(symbolic=True)
    module.verify()
    with pytest.raises((UserError, UnsupportedError)) as caught:
        run(main_of(module), refusal.arrays)
    if refusal.op.FAMILY != "composite":
        assert "model.py:12" in str(caught.value)
        assert_names(refusal.values, str(caught.value))
