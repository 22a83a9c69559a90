"""The evaluator's tables: none of the scalar and index functions is missing, and each does what its definition says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from dlcb.dialects import scalar
from dlcb.dialects.coord.ops import INDEX_FUNCTIONS
from dlcb.dialects.cuda.values import DOMAINS
from dlcb.dialects.shape import expr
from dlcb.dialects.types import bf16, f16, f64, i1, i32, i64
from dlcb.errors import InternalError
from dlcb.evaluator.coordinates import ARRAY_FUNCTIONS, call, evaluate_indices
from dlcb.evaluator.scalars import SCALARS, apply, convert, fold

_ARITY = {"select": 3, "scaled": 3, "logical_not": 1, "isqrt": 1}
ARITY = {name: _ARITY.get(name, 2) for name in expr.FUNCTIONS}


def test_the_table_of_scalar_functions_is_complete() -> None:
    assert SCALARS.keys() | {"cast"} == scalar.FUNCTIONS.keys()


@pytest.mark.parametrize("function", scalar.FUNCTIONS.values(), ids=lambda f: f.name)
def test_a_scalar_function_keeps_the_type_that_the_table_says(function: scalar.ScalarFunction) -> None:
    if function.name == "cast":
        pytest.skip("`convert` has its own tests")
    for element in DOMAINS[function.domain]:
        operands = [convert(np.asarray([0, 1, 2]), element) for _ in range(function.arity)]
        if function.name == "select":
            operands[0] = convert(operands[0], i1)
        result, kind = apply(function.name, element, *operands)
        assert kind == (i1 if function.result == "bool" else element)
        assert result.shape == (3,)


def test_a_function_of_floats_refuses_integers() -> None:
    with pytest.raises(InternalError, match="exp is a function of floats, its operands are i32"):
        apply("exp", i32, np.asarray([1], np.int32))


@pytest.mark.parametrize("function", ["erfc", "asin", "acos", "atan", "sinh", "cosh"])
def test_functions_that_no_graph_op_uses_agree_with_torch(function: str) -> None:
    x = torch.linspace(-0.9, 0.9, 13, dtype=torch.float64)
    np.testing.assert_allclose(apply(function, f64, x.numpy())[0], getattr(torch, function)(x).numpy(), rtol=1e-12)


def test_shifts_by_all_bits_leave_only_the_sign() -> None:
    a, by = np.asarray([-5, 5, -5, 6], np.int32), np.asarray([32, 40, 1, 1], np.int32)
    assert apply("shl", i32, a, by)[0].tolist() == [0, 0, -10, 12]
    assert apply("shr", i32, a, by)[0].tolist() == [-1, 0, -3, 3]


def test_integer_division_by_zero_gives_zero() -> None:
    a, zero = np.asarray([7, -7, 0], np.int64), np.zeros(3, np.int64)
    for function in ("floordiv", "truncdiv", "mod", "fmod"):
        assert apply(function, i64, a, zero)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("element", "dtype"), [(f16, torch.float16), (bf16, torch.bfloat16)])
def test_rounding_to_half_precision_is_torchs_for_all_exponents_and_ties(element: object, dtype: torch.dtype) -> None:
    bits = np.arange(0, 1 << 32, 40009, dtype=np.uint32)
    ties = (np.arange(0, 1 << 16, 7, dtype=np.uint32) << 16) + 0x8000
    x = np.concatenate([bits, ties]).view(np.float32)
    rounded = torch.from_numpy(x.copy()).to(dtype).float().numpy()
    assert np.array_equal(convert(x, element), rounded, equal_nan=True)  # pyright: ignore[reportArgumentType]


def test_only_functions_that_fold_can_reduce() -> None:
    with pytest.raises(InternalError, match="erf can't reduce"):
        fold("erf", np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("function", expr.FUNCTIONS)
def test_index_functions_on_arrays_are_those_on_integers(function: str) -> None:
    assert ARRAY_FUNCTIONS.keys() == expr.FUNCTIONS.keys()
    low = 1 if function == "scaled" else -4
    operands = list(itertools.product(*[range(low, 5)] * ARITY[function]))
    columns = [np.asarray(c) for c in zip(*operands, strict=True)]
    want = [expr.FUNCTIONS[function](*values) for values in operands]
    assert np.asarray(ARRAY_FUNCTIONS[function](*columns)).astype(np.int64).tolist() == want


@pytest.mark.parametrize("function", INDEX_FUNCTIONS)
def test_the_functions_of_kernels_coordinates_work_on_numbers_and_arrays(function: str) -> None:
    operands = [1, 3, 2] if function == "select" else [1, 3]
    arrays = [np.asarray([o]) for o in operands]
    assert np.asarray(call(function, arrays)).tolist() == [call(function, operands)]


def test_expressions_on_arrays_are_those_on_integers() -> None:
    i, n = expr.sym("i"), expr.sym("n")
    e = expr.add(expr.mul(3, i, n), expr.mod(expr.add(i, 5), n), expr.floordiv(i, 4), -2)
    axis = np.arange(11)
    want = [expr.evaluate(e, {"i": int(k), "n": 3}) for k in axis]
    assert np.asarray(evaluate_indices(e, {"i": axis, "n": 3})).tolist() == want


def test_a_symbol_without_a_value_is_named() -> None:
    with pytest.raises(InternalError, match="symbol 'm' has no value; known: n"):
        evaluate_indices(expr.sym("m"), {"n": 3})
