"""Guards that hold for an interval of an axis, and loads that take what it has of a row."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from dlcb.dialects.coord.intervals import Bound, Interval, interval_of
from dlcb.dialects.coord.ops import AccessOp, ConstantOp, KernelOp
from dlcb.dialects.coord.vectors import Along
from dlcb.lowering.coord_to_cuda import lower_kernel
from dlcb.lowering.cuda_to_text import kernels_to_text
from dlcb.lowering.lower import context
from dlcb.lowering.text_to_cpu import compile_cpu

ROWS, LENGTH = 9, 37
SCHEDULE = "row = block, threads = 32, vector = 8, items = 0, stage = none, index = 32, start = shifted"
GUARDS: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    "below": ('"lt" %k, %ten', lambda i, k: k < 10),
    "up to": ('"le" %k, %ten', lambda i, k: k <= 10),
    "above": ('"lt" %ten, %k', lambda i, k: k > 10),
    "from": ('"le" %ten, %k', lambda i, k: k >= 10),
    "shifted": ('"lt" %later, %ten', lambda i, k: k + i < 10),
    "shifted back": ('"le" %ten, %earlier', lambda i, k: k - i >= 10),
    "between": ('"and" %low, %high', lambda i, k: 10 < k <= 20),
    "some rows": ('"and" %high, %odd', lambda i, k: k <= 20 and i < 5),
    "rows": ('"lt" %i, %five', lambda i, k: i < 5),
}
"""A guard of row i and coordinate k, and where it holds."""


def kernel_of(guard: str, other: float = 0.0) -> KernelOp:
    """o[i, k] = x[k - 3, of row i] where the guard holds, else `other`."""
    text = f"""
dlcb.coord.kernel @k params [] outer [{ROWS}] row [{LENGTH}]
    (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k)
    schedules [#dlcb.coord.schedule<{SCHEDULE}>] {{
  %five = dlcb.coord.constant 5 : index : index
  %ten = dlcb.coord.constant 10 : index : index
  %twenty = dlcb.coord.constant 20 : index : index
  %later = dlcb.coord.index "add" %i, %k
  %earlier = dlcb.coord.index "sub" %k, %i
  %low = dlcb.coord.index "lt" %ten, %k
  %high = dlcb.coord.index "le" %k, %twenty
  %odd = dlcb.coord.index "lt" %i, %five
  %guard = dlcb.coord.index {guard}
  %other = dlcb.coord.constant {other} : f16 : f16
  %extra = dlcb.coord.constant 3 : index : index
  %v = dlcb.coord.access %x at <[40, 1]> plus %extra if %guard else %other : f16 : !dlcb.coord.buffer<f16> -> f16
  dlcb.coord.store %v, %o at <[{LENGTH}, 1]> : f16, !dlcb.coord.buffer<f16>
}}
"""
    module = Parser(context(), text).parse_module()
    assert isinstance(module, ModuleOp)
    module.verify()
    (kernel,) = module.body.block.ops
    assert isinstance(kernel, KernelOp)
    return kernel


def interval_in(kernel: KernelOp) -> Interval | None:
    (access,) = [op for op in kernel.walk() if isinstance(op, AccessOp)]
    assert access.guard is not None
    return interval_of(access.guard, kernel.axes[-1], Along(kernel).varying)


def value(of: SSAValue, kernel: KernelOp, row: int) -> int:
    if of is kernel.axes[0]:
        return row
    assert isinstance(of.owner, ConstantOp)
    return int(of.owner.number)


def place(bound: Bound, kernel: KernelOp, row: int) -> int:
    terms = [sign * value(term, kernel, row) for sign, term in bound.terms]
    return value(bound.start, kernel, row) + sum(terms) + bound.more


@pytest.mark.parametrize("name", [name for name in GUARDS if "rows" not in name])
def test_an_interval_has_the_coordinates_for_which_the_guard_holds(name: str) -> None:
    guard, holds = GUARDS[name]
    kernel = kernel_of(guard)
    interval = interval_in(kernel)
    assert interval is not None
    for row in range(ROWS):
        lower = [place(bound, kernel, row) for bound in interval.lower]
        upper = [place(bound, kernel, row) for bound in interval.upper]
        found = [k for k in range(LENGTH) if all(k >= at for at in lower) and all(k < at for at in upper)]
        assert found == [k for k in range(LENGTH) if holds(row, k)]


def test_what_is_the_same_for_a_row_is_a_condition() -> None:
    for name, bounds in (("rows", 0), ("some rows", 1)):
        interval = interval_in(kernel_of(GUARDS[name][0]))
        assert interval is not None
        assert len(interval.conditions) == 1
        assert len(interval.upper) == bounds


@pytest.mark.parametrize("guard", ['"eq" %k, %ten', '"mod" %k, %ten', '"lt" %k, %earlier', '"and" %low, %later'])
def test_other_guards_are_no_intervals(guard: str) -> None:
    assert interval_in(kernel_of(guard)) is None


@pytest.mark.parametrize("name", GUARDS)
def test_what_lies_outside_the_interval_is_the_other_value(name: str, launch_cpu: Callable[..., None]) -> None:
    guard, holds = GUARDS[name]
    library = compile_cpu(kernels_to_text(lower_kernel(kernel_of(guard, 2.5))))
    x = torch.randn(ROWS, 40, dtype=torch.float16)
    made = torch.full((ROWS, LENGTH), float("nan"), dtype=torch.float16)
    launch_cpu(library, "k_blocklong_v8_shifted", (x, made, ctypes.c_int(0)), ROWS)
    where = torch.tensor([[holds(i, k) for k in range(LENGTH)] for i in range(ROWS)])
    assert torch.equal(made, torch.where(where, x[:, 3:], 2.5))
