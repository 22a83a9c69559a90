"""An index out of range and an integer divided by 0: the evaluator, the coordinate kernels and the CPU target, whatever
the order of blocks and threads, raise what the op says, and only where an element needs the wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

from dlcb.dialects.graph.types import dims_attr
from dlcb.errors import ElementError
from dlcb.evaluator.graph import run_program
from dlcb.lowering import pipeline
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.stages import mark_stage
from dlcb.tests.graphs import ORDER_SEEDS, Batch, Graph, as_list, check_call, graph
from dlcb.tests.graphs import Case as GraphCase
from dlcb.tests.unit.op_samples import to_array

Arguments = tuple[Tensor, ...]
LARGE = 70001


@dataclass(frozen=True)
class Case:
    """A call that is right, and one that is not where `text` is given."""

    name: str
    build: Callable[[Graph], None]
    witness: Callable[..., object]
    good: Arguments
    bad: Arguments = ()
    kind: type[Exception] = IndexError
    text: str = ""


def with_last(indices: Tensor, value: int) -> Tensor:
    changed = indices.clone()
    changed.view(-1)[-1] = value
    return changed


X = torch.arange(1.0, 16.0).view(5, 3)
I = torch.tensor([4, 0, 2, 2])  # noqa: E741
MANY = torch.randint(0, 5, (LARGE,), generator=torch.Generator().manual_seed(0))
FEW, WIDE = (
    torch.tensor([[0, 4, 1], [2, 3, 3]]),
    torch.randint(0, 5, (3, 2050), generator=torch.Generator().manual_seed(1)),
)


def data(g: Graph) -> tuple:
    return g.input("x", "n", 3), g.input("i", "k", element="i64")


def grid(g: Graph) -> tuple:
    return g.input("x", "n", "m"), g.input("i", "k", "m", element="i64")


def numbers(g: Graph, element: str = "i64") -> tuple:
    return g.input("a", "k", element=element), g.input("b", "k", element=element)


def out_of(size: int, value: int, call: str = "take") -> str:
    return f"index {value} is out of range for dimension 0 of size {size}: {call}, model.py:12"


def divided(name: str, kind: str = "i64") -> Case:
    """By 0 at the end."""
    dtype = {"i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "ui8": torch.uint8}[kind]
    a, b = torch.tensor([7, 9, 100, 6], dtype=dtype), torch.tensor([2, 5, 3, 1], dtype=dtype)
    how = {
        "floordiv": lambda a, b: a // b,
        "mod": lambda a, b: a % b,
        "fmod": torch.fmod,
        "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    }[name]
    text = f"ZeroDivisionError: an integer is divided by 0: {name}, model.py:12"
    build = lambda g: g.give(g.op(name, *numbers(g, kind)))  # noqa: E731
    return Case(f"{name} of {kind}", build, how, (a, b), (a, with_last(b, 0)), RuntimeError, text)


def taken(value: int) -> Case:
    build = lambda g: g.give(g.take(*data(g), axis=0))  # noqa: E731
    return Case(f"take {value}", build, lambda x, i: x[i], (X, I), (X, with_last(I, value)), text=out_of(5, value))


def pads_a_take(g: Graph) -> None:
    """The indices, too, are padded: with numbers that are in no range of an empty tensor."""
    x, i = g.input("x", "n", element="f32"), g.input("i", "k", element="i64")
    g.give(g.pad(g.take(x, i, axis=0), low=(2,), high=(1,), value=7.0))


def masks_a_gather(g: Graph) -> None:
    x, i = grid(g)
    g.give(g.where(g.lt(i, g.number(3, "i64")), g.gather(x, i, axis=0), g.number(0.0)))


def divides_by_what_is_not_zero(g: Graph) -> None:
    a, b = numbers(g)
    zero = g.eq(b, g.number(0, "i64"))
    g.give(g.floordiv(a, g.where(zero, g.number(1, "i64"), b, element="i64")))


CASES = [
    *map(taken, (5, -6, 2**31, 2**32 + 1, -(2**32) - 1, 2**63 - 1, -(2**63))),
    Case(
        "a negative index where none may be",
        lambda g: g.give(g.take(*data(g), axis=0, nonnegative=True, call=StringAttr("embedding"))),
        lambda x, i: x[i],
        (X, I),
        (X, with_last(I, -1)),
        text=out_of(5, -1, "embedding"),
    ),
    Case(
        "the last of many",
        lambda g: g.give(g.take(*data(g), axis=0)),
        lambda x, i: x[i],
        (X, MANY),
        (X, with_last(MANY, 5)),
        text=out_of(5, 5),
    ),
    Case(
        "in a reduced row",
        lambda g: g.give(g.sum(g.take(g.input("x", "n"), g.input("i", 3, "k", element="i64"), axis=0), axes=[1])),
        lambda x, i: x[i].sum(1),
        (X[:, 0], WIDE),
        (X[:, 0], with_last(WIDE, 5)),
        text=out_of(5, 5),
    ),
    Case(
        "in a reduced column",
        lambda g: g.give(g.sum(g.take(*data(g), axis=0), axes=[0])),
        lambda x, i: x[i].sum(0),
        (X, I),
        (X, with_last(I, 9)),
        text=out_of(5, 9),
    ),
    Case(
        "in a scan",
        lambda g: g.give(g.cumsum(g.take(g.input("x", "n"), g.input("i", 3, "k", element="i64"), axis=0), axis=1)),
        lambda x, i: x[i].cumsum(1),
        (X[:, 0], WIDE),
        (X[:, 0], with_last(WIDE, -9)),
        text=out_of(5, -9),
    ),
    Case(
        "gather",
        lambda g: g.give(g.gather(*grid(g), axis=0, error=StringAttr("RuntimeError"), nonnegative=True)),
        lambda x, i: x.gather(0, i),
        (X, FEW),
        (X, with_last(FEW, -1)),
        RuntimeError,
        out_of(5, -1, "gather"),
    ),
    Case(
        "a gather that is masked there",
        masks_a_gather,
        lambda x, i: torch.where(i < 3, x.gather(0, i), 0),
        (X, FEW),
        (X, with_last(FEW, 5)),
        text=out_of(5, 5, "gather"),
    ),
    Case(
        "put",
        lambda g: g.give(
            g.put(g.exp(g.input("x", "n", 3)), g.input("i", "k", element="i64"), g.input("s", "k", 3), axis=0)
        ),
        lambda x, i, s: x.exp().index_copy(0, i, s),
        (X, I[:3], X[:3]),
        (X, with_last(I[:3], 5), X[:3]),
        text=out_of(5, 5, "put"),
    ),
    Case(
        "bounded",
        lambda g: g.give(g.bounded(g.input("i", "k", element="i32"), axis=0, extent=dims_attr((6,)), element="i64")),
        lambda i: i.long() % 6,
        (torch.tensor([-6, 5, 0], dtype=torch.int32),),
        (torch.tensor([-6, 5, 6], dtype=torch.int32),),
        text=out_of(6, 6, "bounded"),
    ),
    *(divided(name) for name in ("floordiv", "mod", "fmod", "truncdiv")),
    *(divided("floordiv", kind) for kind in ("i32", "i8", "ui8")),
    Case(
        "a padded take",
        pads_a_take,
        lambda x, i: torch.nn.functional.pad(x[i], (2, 1), value=7.0),
        (X[:, 0], I),
        (X[:, 0], with_last(I, 5)),
        text=out_of(5, 5),
    ),
    Case(
        "a padded take of nothing",
        pads_a_take,
        lambda x, i: torch.nn.functional.pad(x[i], (2, 1), value=7.0),
        (X[:0, 0], I[:0]),
    ),
    Case(
        "a divisor that is replaced",
        divides_by_what_is_not_zero,
        lambda a, b: a // torch.where(b == 0, 1, b),
        (torch.tensor([7, 9, 100]), torch.tensor([2, 0, 0])),
    ),
    Case(
        "a float",
        lambda g: g.give(g.floordiv(g.input("a", "k"), g.input("b", "k"))),
        lambda a, b: a // b,
        (torch.tensor([7.0, 9.0]), torch.tensor([2.0, 0.0])),
    ),
]
WRONG = [case for case in CASES if case.text]


@cache
def batch() -> Batch:
    made = Batch()
    for case in CASES:
        module = graph(case.build)
        made.rehearse(made.add(module), [case.good, *([case.bad] if case.text else [])])
    return made


def number_of(case: Case) -> int:
    return CASES.index(case)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_element_is_an_error_in_any_order(case: Case) -> None:
    for seed in ORDER_SEEDS:
        compiled = batch().module(number_of(case), seed)
        with pytest.raises(case.kind) as caught:
            compiled(*case.bad)
        assert type(caught.value) is case.kind
        assert str(caught.value) == case.text
        check_call(compiled, GraphCase(case.name, case.build, [case.good], case.witness), list(case.good))


@pytest.mark.parametrize("case", [case for case in CASES if not case.text], ids=lambda case: case.name)
def test_an_element_that_nothing_needs_is_no_error(case: Case) -> None:
    for seed in ORDER_SEEDS:
        (result,) = batch().module(number_of(case), seed)(*case.good)
        torch.testing.assert_close(result, *as_list(case.witness(*case.good)), equal_nan=True)


@pytest.mark.parametrize("stage", [None, "coordinates"])
@pytest.mark.parametrize("case", [case for case in WRONG if case.bad[-1].numel() < 1000], ids=lambda case: case.name)
def test_the_evaluator_raises_the_same_error(case: Case, stage: str | None) -> None:
    module = graph(case.build)
    mark_stage(module, "generalize")
    if stage is not None:
        pipeline.run(module, Context(), until=stage)
    with pytest.raises(ElementError) as caught:
        run_program(module, dict(zip(argument_names(case), map(to_array, case.bad), strict=True)))
    assert str(caught.value) == case.text
    assert type(caught.value.as_eager()) is case.kind


def argument_names(case: Case) -> list[str]:
    made = Graph()
    case.build(made)
    return made.names


def test_the_kernels_compile_for_sm_90() -> None:
    batch()
    assert compile_cubin(batch().text(batch().needed)).data


def test_a_kernel_without_indices_has_no_check() -> None:
    made = Batch()
    made.add(graph(lambda g: g.give(g.exp(g.input("x", "n")))))
    assert "DLCB_CHECK" not in made.text()
