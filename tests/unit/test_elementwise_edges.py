"""Elementwise operations in all dtypes at numbers where they go wrong, as the evaluator and kernels compute them."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import ModuleOp

from dlcb.evaluator.graph import run
from dlcb.frontend.aten import contract, creation, elementwise, indexing, nn, reductions, scans, statistics, views
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.tests.cases.scalars import OF_ONE, OF_THREE, OF_TWO, QUOTIENTS, TIES, Operation, eager, together
from dlcb.tests.edges import DTYPES, all_pairs, difference, edges
from dlcb.tests.graphs import Batch, main_of, to_array

KERNELS = (torch.uint8, torch.float32)
"""The dtypes whose programs are compiled; each scalar function is compiled for all types elsewhere."""
GROUPS: dict[str, list[Operation]] = {
    "one": OF_ONE,
    "two": OF_TWO,
    "ties": TIES,
    "three": OF_THREE,
    "quotients": QUOTIENTS,
}


def operands_of(dtype: torch.dtype, group: str) -> tuple[Tensor, ...]:
    x = edges(dtype)
    if group == "one":
        return (x,)
    if group == "three":
        return three(dtype)
    if group == "quotients":
        return quotients(dtype)
    a, b = all_pairs(x, x)
    if dtype.is_floating_point:  # torch's vectors lose a remainder where the quotient overflows
        kept = ~((a / b).isinf() & a.isfinite() & (b != 0))
    else:  # eager dies of these divisors
        kept = (b != 0) & (b != -1) if dtype != torch.bool else b | True
    return a[kept], b[kept]


def quotients(dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Multiples of the divisors, the numbers next to them, and decimal fractions that no float holds."""
    if not dtype.is_floating_point:
        return tuple(t.to(dtype) for t in all_pairs(torch.arange(0, 120, 7), torch.arange(1, 12, 2)))
    divisors = torch.tensor([0.1, -0.2, 1 / 3, 0.7, 3, -7, 37, 49, 41, 0.3], dtype=dtype)
    counts, by = all_pairs(torch.arange(-30, 31, 3).to(dtype), divisors)
    whole = counts * by
    above, below = (torch.nextafter(whole, torch.full_like(whole, end)) for end in (1e4, -1e4))
    tenths = torch.linspace(-6, 6, len(whole), dtype=torch.float64).to(dtype)
    return torch.cat([whole, above, below, tenths]), by.repeat(4)


def three(dtype: torch.dtype) -> tuple[Tensor, ...]:
    g = torch.Generator().manual_seed(5)
    if dtype == torch.bool:
        return tuple(torch.rand(50, generator=g) > 0.5 for _ in range(3))
    if dtype.is_floating_point:
        return tuple((torch.randn(50, generator=g, dtype=torch.float64) * 2).to(dtype) for _ in range(3))
    return tuple(torch.randint(1, 9, (50,), generator=g).to(dtype) for _ in range(3))


@dataclass(frozen=True)
class Program:
    """Many operations of the same operands, with what eager gives and what it gives in float64."""

    operations: list[Operation]
    operands: tuple[Tensor, ...]
    wanted: list[tuple[Tensor, Tensor]]

    def module(self) -> ModuleOp:
        return import_captured(capture(together(self.operations), self.operands)).module

    def check(self, results: list[Tensor], signs: bool) -> None:
        wrong: list[str] = []
        for operation, result, (want, exact) in zip(self.operations, results, self.wanted, strict=True):
            found = difference(result.to(want.dtype), want, exact, signs)
            if found is not None:
                code = operation.__code__ if hasattr(operation, "__code__") else None
                wrong.append(f"{operation.__name__}{f' in line {code.co_firstlineno}' if code else ''}: {found}")
        assert not wrong, "\n".join(wrong)


@cache
def program_of(dtype: torch.dtype, group: str) -> Program:
    operands = operands_of(dtype, group)
    wide = tuple(o.double() if o.is_floating_point() else o for o in operands)
    operations: list[Operation] = []
    wanted: list[tuple[Tensor, Tensor]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for operation in GROUPS[group]:
            result = eager(operation, operands)
            if result is not None:
                exact = eager(operation, wide)
                operations.append(operation)
                wanted.append((result, result if exact is None else exact))
    return Program(operations, operands, wanted)


def parameters(dtypes: tuple[torch.dtype, ...]) -> Any:
    return pytest.mark.parametrize(
        ("dtype", "group"), [(d, g) for d in dtypes for g in GROUPS], ids=lambda p: str(p).removeprefix("torch.")
    )


@cache
def compiled() -> tuple[Batch, dict[tuple[torch.dtype, str], int]]:
    batch, numbers = Batch(), dict[tuple[torch.dtype, str], int]()
    for dtype in KERNELS:
        for group in GROUPS:
            program = program_of(dtype, group)
            number = numbers[dtype, group] = batch.add(program.module())
            batch.rehearse(number, [program.operands])
    return batch, numbers


def test_eager_has_most_operations_for_floats() -> None:
    for group, operations in GROUPS.items():
        assert len(program_of(torch.float32, group).operations) > 0.75 * len(operations)


@parameters(DTYPES)
def test_the_evaluator_computes_what_eager_does(dtype: torch.dtype, group: str) -> None:
    program = program_of(dtype, group)
    results = run(main_of(program.module()), [to_array(o) for o in program.operands])
    program.check([torch.from_numpy(r.copy()) for r in results], signs=group != "ties")


@parameters(KERNELS)
def test_kernels_compute_what_eager_does(dtype: torch.dtype, group: str) -> None:
    batch, numbers = compiled()
    program = program_of(dtype, group)
    results = cast(list[Tensor], list(batch.module(numbers[dtype, group])(*program.operands)))
    program.check(results, signs=group != "ties")


def test_no_operation_has_two_handlers() -> None:
    parts = [contract, creation, elementwise, indexing, nn, reductions, scans, statistics, views]
    names = Counter(name for part in parts for name in part.TABLE)
    assert not [name for name, count in names.items() if count > 1]
