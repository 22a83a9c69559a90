"""The evaluator on whole functions and kernels, read from IR."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.umbrella import DLCB
from dlcb.errors import InternalError, UnsupportedError, UserError
from dlcb.evaluator import elements
from dlcb.evaluator.coord import run_kernel
from dlcb.evaluator.graph import run
from dlcb.evaluator.scalars import Array
from dlcb.evaluator.sizes import lookup
from dlcb.evaluator.validate import compare

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def parse(text: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(DLCB)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def run_text(text: str, *arguments: Array | int) -> list[Array]:
    return run(lookup(parse(text), "main", FuncOp), arguments)


DOUBLE = """
dlcb.graph.func @main(%x: tensor<[n, 3], f32> input "x") {
  %y = dlcb.graph.add %x, %x : (tensor<[n, 3], f32>, tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return %y : !dlcb.graph.tensor<[n, 3], f32>
}
"""


def test_symbols_come_from_the_shapes_of_arguments() -> None:
    (y,) = run_text(DOUBLE, X)
    np.testing.assert_array_equal(y, X + X)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([X[:, :2]], r"x\.shape\[1\] is 2, expected 3"),
        ([X[0]], "x: got rank 1, expected 2"),
        ([X.astype(np.float64)], "x: got float64, expected float32 for f32"),
        ([3], "x: got int, expected an array"),
        ([X, X], "@main: got 2 arguments, expected 1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: list[Array], text: str) -> None:
    with pytest.raises(UserError, match=text):
        run_text(DOUBLE, *arguments)


def test_an_argument_by_name_that_is_missing_is_named() -> None:
    with pytest.raises(UserError, match=r"@main: no value for the argument 'x'; given: y"):
        run(lookup(parse(DOUBLE), "main", FuncOp), {"y": X})


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"there is no dlcb.graph.func @other in the module"):
        lookup(parse(DOUBLE), "other", FuncOp)


SYSTEM = """
dlcb.shape.system @main {
  %n = dlcb.shape.symbol "n" size "x" 0
  %s = dlcb.shape.symbol "s" stride "x" 0
  %k = dlcb.shape.symbol "k" int "k"
  %m = dlcb.shape.mul %n, %k
  dlcb.shape.define "m" = %m
  dlcb.shape.require eq %s, %k "view: model.py:3"
}
dlcb.graph.func @main(%x: tensor<[n, 3], f32> input "x", %k: index int "k") {
  %m = dlcb.graph.size {dim = #dlcb.graph.dims<[m]>, shape = #dlcb.graph.dims<[]>} : () -> tensor<[], i64>
  dlcb.graph.return %m : !dlcb.graph.tensor<[], i64>
}
"""


def test_the_system_defines_symbols_and_checks_requirements() -> None:
    assert run_text(SYSTEM, X, 3)[0] == 12
    with pytest.raises(UserError, match=r"view: model\.py:3: 3 and 5"):
        run_text(SYSTEM, X, 5)


def test_updates_of_arguments_come_first_and_leave_the_argument_as_it_was() -> None:
    text = """
    dlcb.graph.func @main(%c: tensor<[n, 3], f32> input "c", %x: tensor<[1, 3], f32> input "x") {
      %u = dlcb.graph.insert %c, %x {starts = #dlcb.graph.dims<[2, 0]>, steps = #dlcb.graph.dims<[1, 1]>}
        : (tensor<[n, 3], f32>, tensor<[1, 3], f32>) -> tensor<[n, 3], f32>
      dlcb.graph.return %u, %x : !dlcb.graph.tensor<[n, 3], f32>, !dlcb.graph.tensor<[1, 3], f32>
        {updates = [#builtin.int<0>]}
    }
    """
    before = X.copy()
    update, _ = run_text(text, X, -np.ones((1, 3), np.float32))
    assert update[2].tolist() == [-1, -1, -1]
    np.testing.assert_array_equal(X, before)


def test_a_fused_kernel_is_its_region() -> None:
    text = """
    dlcb.graph.func @main(%x: tensor<[n, 3], f32> input "x") {
      %y = dlcb.graph.kernel(%a = %x : tensor<[n, 3], f32>) -> (tensor<[n, 3], f32>) {
        %b = dlcb.graph.exp %a : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
        %c = dlcb.graph.neg %b : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32>
        dlcb.graph.yield %c : !dlcb.graph.tensor<[n, 3], f32>
      }
      dlcb.graph.return %y : !dlcb.graph.tensor<[n, 3], f32>
    }
    """
    np.testing.assert_allclose(run_text(text, X)[0], -np.exp(X), rtol=1e-6)


def test_an_index_out_of_range_is_an_error_that_names_it() -> None:
    text = """
    dlcb.graph.func @main(%x: tensor<[n, 3], f32> input "x", %i: tensor<[k], i64> input "i") {
      %y = dlcb.graph.take %x, %i {axis = #builtin.int<0>}
        : (tensor<[n, 3], f32>, tensor<[k], i64>) -> tensor<[k, 3], f32>
      dlcb.graph.return %y : !dlcb.graph.tensor<[k, 3], f32>
    }
    """
    assert run_text(text, X, np.asarray([-1, 0]))[0][0].tolist() == X[3].tolist()
    with pytest.raises(UserError, match="index 4 is out of range for dimension 0 of size 4: take"):
        run_text(text, X, np.asarray([0, 4]))


def test_a_tensor_of_any_rank_is_not_supported() -> None:
    text = """
    dlcb.graph.func @main(%x: tensor<*, f32> input "x") {
      dlcb.graph.return %x : !dlcb.graph.tensor<*, f32>
    }
    """
    with pytest.raises(UnsupportedError, match="x: the evaluator needs a rank"):
        run_text(text, X)


def test_long_rows_are_reduced_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    dlcb.graph.func @main(%x: tensor<[n, m], f64> input "x", %y: tensor<[m, k], f64> input "y") {
      %z = dlcb.graph.matmul %x, %y : (tensor<[n, m], f64>, tensor<[m, k], f64>) -> tensor<[n, k], f64>
      dlcb.graph.return %z : !dlcb.graph.tensor<[n, k], f64>
    }
    """
    monkeypatch.setattr(elements, "MAX_POINTS", 100)
    x, y = np.random.default_rng(0).standard_normal((2, 7, 7))
    np.testing.assert_allclose(run_text(text, x, y)[0], np.einsum("nm,mk->nk", x, y), rtol=1e-12)


SOFTMAX = """
dlcb.coord.kernel @softmax params [p0, p1, s] outer [p0] row [p1]
    (%x : !dlcb.coord.buffer<f32>, %o : !dlcb.coord.buffer<f16>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[s, 1]> : !dlcb.coord.buffer<f32> -> f32
  %m = dlcb.coord.reduce "maximum" %v from 0xFF800000 : f32 : f32
  %d = dlcb.coord.scalar "sub" %v, %m : (f32, f32) -> f32
  %e = dlcb.coord.scalar "exp" %d : (f32) -> f32
  %t = dlcb.coord.reduce "add" %e from 0.0 : f32 : f32
  %r = dlcb.coord.scalar "div" %e, %t : (f32, f32) -> f32
  dlcb.coord.store %r, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f16>
}
"""


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_a_kernel_reduces_its_row_and_rounds_what_it_stores() -> None:
    kernel = lookup(parse(SOFTMAX), "softmax", KernelOp)
    memory, out = np.zeros(4 * 5, np.float32), np.zeros(12, np.float32)
    memory.reshape(4, 5)[:, :3] = X
    run_kernel(kernel, [memory, out], {"p0": 4, "p1": 3, "s": 5})
    np.testing.assert_array_equal(out.reshape(4, 3), softmax(X).astype(np.float16))


@pytest.mark.parametrize(("rows", "width"), [(0, 3), (4, 0), (1, 1)])
def test_a_kernel_runs_with_sizes_zero_and_one(rows: int, width: int) -> None:
    kernel = lookup(parse(SOFTMAX), "softmax", KernelOp)
    out = np.zeros(rows * width, np.float32)
    run_kernel(kernel, [np.zeros(rows * width, np.float32), out], {"p0": rows, "p1": width, "s": width})
    assert out.tolist() == [1.0] * (rows * width)


def test_an_access_outside_of_its_buffer_is_found() -> None:
    kernel = lookup(parse(SOFTMAX), "softmax", KernelOp)
    with pytest.raises(InternalError, match="coordinate 11 of dim 0 is outside of its size, 11"):
        run_kernel(kernel, [np.zeros(11, np.float32), np.zeros(12, np.float32)], {"p0": 4, "p1": 3, "s": 3})
    with pytest.raises(InternalError, match="store at offset 11, outside of a buffer of 11 elements"):
        run_kernel(kernel, [np.zeros(12, np.float32), np.zeros(11, np.float32)], {"p0": 4, "p1": 3, "s": 3})


def test_parameters_and_buffers_must_be_those_of_the_kernel() -> None:
    kernel = lookup(parse(SOFTMAX), "softmax", KernelOp)
    with pytest.raises(InternalError, match=r"got \['p0'\], expected the parameters \['p0', 'p1', 's'\]"):
        run_kernel(kernel, [], {"p0": 1})
    with pytest.raises(InternalError, match="got 0 buffers, expected 2"):
        run_kernel(kernel, [], {"p0": 1, "p1": 1, "s": 1})


def test_loops_guards_and_data_dependent_coordinates() -> None:
    """out[i] = max over k < 3 of table[indices[i] + k - 1] where that is in range, else -1."""
    text = """
    dlcb.coord.kernel @k params [n, m] outer [n] row []
        (%t : !dlcb.coord.buffer<f32>, %j : !dlcb.coord.buffer<i64>, %o : !dlcb.coord.buffer<f32>) at (%i) {
      %m = dlcb.coord.param "m"
      %one = dlcb.coord.constant 1 : index : index
      %zero = dlcb.coord.constant 0 : index : index
      %none = dlcb.coord.constant -1.0 : f32 : f32
      %a = dlcb.coord.access %j at <[1]> : !dlcb.coord.buffer<i64> -> i64
      %b = dlcb.coord.to_index %a : i64
      %r = dlcb.coord.loop "maximum" <[3]> from -1.0 : f32 : f32 {
      ^bb0(%k : index):
        %s = dlcb.coord.index "add" %b, %k
        %at = dlcb.coord.index "sub" %s, %one
        %low = dlcb.coord.index "le" %zero, %at
        %high = dlcb.coord.index "lt" %at, %m
        %in = dlcb.coord.index "mul" %low, %high
        %v = dlcb.coord.access %t at <[0]> plus %at if %in else %none : f32 : !dlcb.coord.buffer<f32> -> f32
        dlcb.coord.yield %v : f32
      }
      %in = dlcb.coord.index "lt" %i, %one
      dlcb.coord.store %r, %o at <[1]> : f32, !dlcb.coord.buffer<f32>
    }
    """
    table, indices, out = np.asarray([5, 1, 2, 4], np.float32), np.asarray([0, 3, 2]), np.zeros(3, np.float32)
    run_kernel(lookup(parse(text), "k", KernelOp), [table, indices, out], {"n": 3, "m": 4})
    assert out.tolist() == [5, 4, 4]


LAUNCH = (
    """
dlcb.graph.func @main(%x: tensor<[p0, p1], f32, strided<[s, 1]>> input "x") {
  %y = dlcb.graph.launch(%x) {forms = [
    {kernel = @missing, when = 0, bindings = {}},
    {kernel = @softmax, when = 1, bindings = {p0 = "p0", p1 = "p1", s = "s"}}
  ]} : (!dlcb.graph.tensor<[p0, p1], f32, strided<[s, 1]>>) -> !dlcb.graph.tensor<[p0, p1], f16>
  dlcb.graph.return %y : !dlcb.graph.tensor<[p0, p1], f16>
}
dlcb.shape.system @main {
  %s = dlcb.shape.symbol "s" stride "x" 0
}
"""
    + SOFTMAX
)


def test_a_launch_runs_the_first_form_whose_condition_holds_on_memory_as_it_lies() -> None:
    wide = np.zeros((4, 5), np.float32)
    wide[:, :3] = X
    (y,) = run_text(LAUNCH, wide[:, :3])
    np.testing.assert_array_equal(y, softmax(X).astype(np.float16))


def test_comparing_finds_no_difference_where_there_is_none() -> None:
    assert compare(parse(DOUBLE), parse(DOUBLE)) is None


def test_comparing_names_the_first_result_that_differs() -> None:
    difference = compare(parse(DOUBLE), parse(DOUBLE.replace("dlcb.graph.add", "dlcb.graph.mul")))
    assert difference is not None
    assert str(difference).startswith("result 0 at [0, 0] is ")
    assert "inputs x: [" in str(difference)


WEIGHTS = """
dlcb.graph.func @weights(%w: tensor<[3], f32> weight "w") {
  %v = dlcb.graph.exp %w : (tensor<[3], f32>) -> tensor<[3], f32>
  dlcb.graph.return %v : !dlcb.graph.tensor<[3], f32>
}
dlcb.graph.func @main(%x: tensor<[n, 3], f32> input "x", %v: tensor<[3], f32> weight "w|exp")
    attributes {dlcb.derived = {"w|exp" = 0}} {
  %y = dlcb.graph.mul %x, %v : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return %y : !dlcb.graph.tensor<[n, 3], f32>
}
"""
DIRECT = """
dlcb.graph.func @main(%x: tensor<[n, 3], f32> input "x", %w: tensor<[3], f32> weight "w") {
  %v = dlcb.graph.exp %w : (tensor<[3], f32>) -> tensor<[3], f32>
  %y = dlcb.graph.mul %x, %v : (tensor<[n, 3], f32>, tensor<[3], f32>) -> tensor<[n, 3], f32>
  dlcb.graph.return %y : !dlcb.graph.tensor<[n, 3], f32>
}
"""


@pytest.mark.parametrize("texts", [(DIRECT, WEIGHTS), (WEIGHTS, DIRECT), (WEIGHTS, WEIGHTS)])
def test_derived_weights_are_computed_from_the_given_ones(texts: tuple[str, str]) -> None:
    before, after = map(parse, texts)
    assert compare(before, after) is None


def test_comparing_looks_for_sizes_that_the_function_accepts() -> None:
    text = DOUBLE.replace("%x: tensor<[n, 3], f32>", '%w: tensor<[m, 3], f32> input "w", %x: tensor<[n, 3], f32>')
    text = text.replace("%y = dlcb.graph.add %x, %x", "%y = dlcb.graph.add %x, %w")
    text = text.replace("(tensor<[n, 3], f32>, tensor<[n, 3]", "(tensor<[n, 3], f32>, tensor<[m, 3]")
    assert compare(parse(text), parse(text)) is None
