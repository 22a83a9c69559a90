"""What only the elements show to be wrong raises as in eager, through every way in, at many sizes from one compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dlcb
from dlcb.frontend import dynamo
from dlcb.tests.end_to_end.agreement import compiled, hostile

CLASSES = 7
SIZES = ((5, 3, 4), (1, 1, 1), (17, 31, 9), (300, 5, 1200))
"""Rows and columns of the data, and how many indices."""


def program(x: Tensor, at: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Every operation that looks at indices or integer divisors, each with its own."""
    updated = x * 2
    updated[at["setitem"]] = 1.0
    return (
        F.embedding(at["embedding"], x) + 1,
        F.embedding(at["padded"], x, padding_idx=0),
        x[at["index"]].exp(),
        x[at["rows"], at["columns"]],
        x[:, at["inner"]],
        x.index_select(0, at["index_select"]),
        x.gather(0, at["gather"]),
        torch.take_along_dim(x, at["take_along_dim"], 0),
        x.take(at["take"]),
        x.index_put((at["index_put"],), x.new_ones(())),
        x.index_put((at["put_rows"], at["put_columns"]), x.new_ones(())),
        updated,
        x.scatter(0, at["scatter"], 3.0),
        x.index_copy(0, at["index_copy"], x.new_zeros(at["index_copy"].shape[0], x.shape[1])),
        x.index_fill(0, at["index_fill"], 2.0),
        F.one_hot(at["one_hot"], CLASSES),
        torch.where(at["masked"] == 0, x.gather(0, at["masked"]), 0),
        at["numerator"] // at["floor_divide"],
        torch.div(at["numerator"], at["truncated"], rounding_mode="trunc"),
        at["numerator"] % at["remainder"],
        torch.fmod(at["numerator"], at["fmod"]),
    )


def rows_of_a_part(x: Tensor, at: Tensor) -> Tensor:
    return F.embedding(at, x)[:2] * 2


def turned_part(x: Tensor, at: Tensor) -> Tensor:
    part = F.embedding(at, x).permute(1, 0)[:, :2]
    return part - part.mean(1, keepdim=True)


@pytest.mark.parametrize("part", [rows_of_a_part, turned_part])
def test_an_index_whose_element_is_not_needed_is_looked_at(part: Callable[..., Tensor]) -> None:
    model = compiled(part, (torch.randn(5, 4), torch.tensor([0, 1, 2, 3])))
    x = torch.randn(6, 4)
    right, wrong = torch.tensor([5, 1, 0]), torch.tensor([5, 1, 6])
    torch.testing.assert_close(model(x, right), part(x, right))
    for call in (part, model):
        with pytest.raises(IndexError):
            call(x, wrong)


DIVISORS = ("floor_divide", "truncated", "remainder", "fmod")
SPREAD = ("gather", "take_along_dim", "scatter", "masked")
"""Indices that are as wide as the data."""
COLUMNS = ("columns", "inner", "put_columns")
PLACES = (
    *("embedding", "padded", "index", "rows", *COLUMNS, "index_select", *SPREAD, "take", "index_put", "put_rows"),
    *("setitem", "index_copy", "index_fill", "one_hot"),
)


def limit(name: str, rows: int, columns: int) -> int:
    return {"take": rows * columns, "one_hot": CLASSES, **dict.fromkeys(COLUMNS, columns)}.get(name, rows)


def arguments(rows: int, columns: int, count: int) -> tuple[Tensor, dict[str, Tensor]]:
    at = {name: torch.randint(0, limit(name, rows, columns), (count,)) for name in PLACES}
    for name in SPREAD:
        at[name] = torch.randint(0, rows, (count, columns))
    return torch.randn(rows, columns), {**at, **{n: torch.randint(1, 9, (count,)) for n in ("numerator", *DIVISORS)}}


def with_last(at: dict[str, Tensor], name: str, value: int) -> dict[str, Tensor]:
    changed = at[name].clone()
    changed.view(-1)[-1] = value
    return {**at, name: changed}


def raised(call: Callable[..., Any], *given: Any) -> type[Exception] | None:
    try:
        call(*given)
    except Exception as error:
        return type(error)
    return None


def agree(
    call: Callable[..., Any],
    sizes: tuple[int, int, int],
    program: Callable[..., Any] = program,
    names: Sequence[str] = (*PLACES, *DIVISORS),
) -> None:
    """Raises what eager raises for every index and divisor that is wrong, and computes what eager computes else."""
    x, at = arguments(*sizes)
    for name in names:
        size = limit(name, *sizes[:2])
        for value in (0,) if name in DIVISORS else (size, -1, -size - 1, 2**40):
            wrong = with_last(at, name, value)
            expected = raised(program, x, wrong)
            assert raised(call, x, wrong) is expected, f"{name} = {value} of {size}, expected {expected}"
    torch.testing.assert_close(call(x, at), program(x, at))


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.manual_seed(0)
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def test_compiled_for_the_cpu() -> None:
    model = compiled(program, arguments(*SIZES[0]), target="cpu")
    for seed, sizes in enumerate(SIZES):
        agree(model, sizes)
        hostile(model, seed + 1)


def test_by_the_reference() -> None:
    model = dlcb.compile(program, arguments(*SIZES[0]), target="reference")
    for sizes in SIZES[:3]:
        agree(model, sizes)


def few(x: Tensor, at: dict[str, Tensor]) -> tuple[Tensor, ...]:
    looked_up = F.embedding(at["embedding"], x)
    return torch.sort(looked_up).values + 1, x[at["rows"], at["columns"]], at["numerator"] % at["remainder"]


def test_through_the_torch_compiler() -> None:
    """A region raises before an operation in eager and after it, and is not run in eager instead."""
    call = torch.compile(few, backend="dlcb", dynamic=True)
    for sizes in (SIZES[0], SIZES[2]):
        agree(call, sizes, few, ("embedding", "rows", "columns", "remainder"))
    graph = dynamo.programs()[-1]
    assert graph.refusals == []
    x, at = arguments(*SIZES[0])
    with pytest.raises(IndexError, match="is out of range for dimension 1 of size 3: index, test_element_errors"):
        call(x, with_last(at, "columns", 3))


def test_targets_of_a_loss() -> None:
    def loss(x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(x * 2, target).exp()

    call = torch.compile(loss, backend="dlcb")
    x = torch.randn(4, 3)
    for last in (3, -1, -100, 2):
        target = torch.tensor([0, 1, 2, last])
        assert raised(call, x, target) is raised(loss, x, target)


def test_the_text_names_the_index_the_size_and_the_line() -> None:
    def looks_up(i: Tensor, table: Tensor) -> Tensor:
        return F.embedding(i, table).sum(1)

    table = torch.randn(5, 3)
    line = rf"index 7 is out of range for dimension 0 of size 5: embedding, test_element_errors\.py:{_line(looks_up)}"
    for target in ("reference", "cpu"):
        model = dlcb.compile(looks_up, (torch.tensor([0, 1]), table), target=target)
        with pytest.raises(IndexError, match=line):
            model(torch.tensor([0, 7]), table)


def _line(function: Any) -> int:
    return function.__code__.co_firstlineno + 1


def guarded(x: Tensor, i: Tensor, z: Tensor) -> tuple[Tensor, ...]:
    inside = (i >= 0) & (i < x.shape[0])
    return (
        F.pad(x[torch.where(inside, i, 0)], (1, 2)),
        torch.where(inside, x.gather(0, i.clamp(0, x.shape[0] - 1)), -1.0),
        i // torch.where(z == 0, 1, z),
        torch.cat([x[i[:1] * 0], x]) / z.sum(),
        i.double() // z.double(),
    )


def test_an_element_that_is_never_wrong_raises_nothing() -> None:
    x, i, z = torch.randn(6), torch.tensor([5, 99, -7, 2]), torch.tensor([1, 0, 3, 0])
    call = torch.compile(guarded, backend="dlcb", dynamic=True)
    for data in (x, torch.randn(9)):
        torch.testing.assert_close(call(data, i, z), guarded(data, i, z), equal_nan=True)
