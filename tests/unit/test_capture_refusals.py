"""Operations that refuse the sizes of a trace say which sizes must be equal, and no others are tied."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dlcb
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.refusals import Guess, Lessons, Refused
from dlcb.frontend.capture.run import Session
from dlcb.frontend.capture.sizes import joined
from dlcb.frontend.tracing.records import Record, Value

WEIGHT = torch.randn(32, 32)


def write(x: Tensor, position: Tensor, kept: Tensor) -> Tensor:
    """Batch, heads and number of positions are all 4 in the example."""
    found = (x @ WEIGHT).view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2)
    return kept.index_copy(2, position, found)


def test_a_batch_heads_and_positions_of_one_size_are_told_apart() -> None:
    states = dlcb.compile(write, (torch.randn(4, 4, 32), torch.arange(4), torch.randn(4, 4, 16, 8))).dimensions()
    fixed = {dim for dim, state in states.items() if state.startswith("pinned")}
    assert fixed == {"x.shape[2]", "kept.shape[1]", "kept.shape[3]"}
    assert all("test_capture_refusals.py" in states[dim] for dim in fixed)
    assert states["kept.shape[0]"].startswith("equal to x_0")
    assert states["position.shape[0]"].startswith("equal to x_1")


SYMBOLS = {11: "q_0", 13: "q_1", 17: "q_2", 19: "k_0", 23: "k_1", 29: "k_2"}
EXAMPLE = {"q_0": 2, "q_1": 3, "q_2": 8, "k_0": 2, "k_1": 8, "k_2": 8}


def product(truth: set[Guess], position_after: int) -> list[Guess]:
    """What a refused product of q and k teaches, if these guesses are those that let the trace go on."""
    operands = tuple(
        Value(n, s, torch.float32, torch.device("cpu")) for n, s in enumerate([(11, 13, 17), (19, 23, 29)])
    )
    refused = Refused(Record("matmul", operands, {}, (), "model.py:1"), 5)
    after = Refused(refused.record, position_after)
    return Lessons(EXAMPLE, lambda guesses: after if truth <= set(guesses) else refused).of(refused, SYMBOLS)


def test_no_more_is_learned_than_the_operation_needs() -> None:
    """The width of q is as large as both sizes of k."""
    truth = {Guess("q_0", "k_0"), Guess("q_2", "k_1")}
    assert set(product(truth, 6)) == truth


def test_nothing_is_learned_where_no_guess_helps() -> None:
    assert not product(set(), 5)
    assert not product({Guess("q_1", "k_1")}, 6)


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (lambda x, y: x + y, ((5, 1), (5, 7))),
        (lambda x, y: torch.cat((x, y)), ((1, 3), (1, 3))),
    ],
)
def test_sizes_of_one_are_left_to_broadcast(program: Callable[..., Any], sizes: tuple[tuple[int, ...], ...]) -> None:
    assert not capture(program, tuple(map(torch.randn, sizes))).pins


def test_groups_that_share_a_symbol_are_one() -> None:
    groups = map(frozenset, ({"a", "b"}, {"c", "d"}, {"e"}, {"d", "a"}))
    assert set(joined(groups)) == {frozenset("abcd"), frozenset("e")}


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


Shape = tuple[int, ...]


def attention_arguments(q: Shape, k: Shape, mask: Shape) -> list[Tensor]:
    return [torch.randn(shape) for shape in (q, k, k, mask)]


@pytest.mark.parametrize(
    ("q", "k", "mask"),
    [
        ((2, 4, 5, 8), (2, 4, 7, 8), (2, 1, 1, 7)),
        ((1, 4, 5, 8), (1, 4, 7, 8), (1, 1, 5, 7)),
        ((1, 4, 1, 8), (1, 4, 7, 8), (1, 1, 1, 7)),
        ((2, 4, 5, 8), (2, 4, 7, 8), (1, 1, 1, 1)),
        ((1, 1, 1, 8), (1, 1, 1, 8), (1, 1, 1, 1)),
    ],
)
def test_attention_with_a_mask_is_free_whatever_is_1_in_the_example(q: Shape, k: Shape, mask: Shape) -> None:
    compiled = dlcb.compile(attend, tuple(attention_arguments(q, k, mask)), target="cpu")
    assert not [state for state in compiled.dimensions().values() if state.startswith("pinned")]
    for masked in ((3, 1, 1, 9), (3, 4, 6, 9), (1, 1, 6, 9), (1, 1, 1, 1)):
        arguments = attention_arguments((3, 4, 6, 8), (3, 4, 9, 8), masked)
        torch.testing.assert_close(compiled(*arguments), attend(*arguments))


@pytest.mark.parametrize("heads", [(4, 1), (1, 4)])
def test_heads_that_are_1_in_the_example_are_expanded(heads: tuple[int, int]) -> None:
    def attend_to_all(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    example = [torch.randn(2, n, m, 8) for n, m in zip((*heads, heads[1]), (5, 7, 7), strict=True)]
    compiled = dlcb.compile(attend_to_all, tuple(example), target="cpu")
    for batch, queries, keys in ((2, 5, 7), (3, 1, 9)):
        arguments = [
            torch.randn(batch, n, m, 8) for n, m in zip((*heads, heads[1]), (queries, keys, keys), strict=True)
        ]
        torch.testing.assert_close(compiled(*arguments), attend_to_all(*arguments))


@pytest.mark.parametrize(
    ("q", "k", "mask"),
    [
        ((1, 4, 5, 8), (1, 4, 7, 8), (2, 4, 5, 7)),
        ((2, 1, 5, 8), (2, 1, 7, 8), (2, 4, 5, 7)),
        ((2, 4, 1, 8), (2, 4, 7, 8), (2, 4, 5, 7)),
        ((2, 4, 5, 8), (2, 4, 7, 8), (3, 2, 4, 5, 7)),
    ],
)
def test_a_mask_that_is_larger_than_the_scores_is_refused_as_in_eager(q: Shape, k: Shape, mask: Shape) -> None:
    arguments = attention_arguments(q, k, mask)
    with pytest.raises(RuntimeError) as eager:
        attend(*arguments)
    with pytest.raises(dlcb.UserError, match="the program fails on its example inputs") as ours:
        dlcb.compile(attend, tuple(arguments), target="cpu")
    assert str(eager.value) in str(ours.value)


def decoder_step(tokens: Tensor, past: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """A cache of keys, which are values too, for each layer."""
    kept: list[Tensor] = []
    for keys in past:
        heads = tokens.unflatten(-1, (4, 8)).transpose(1, 2)
        kept.append(torch.cat((keys, heads), 2))
        found = torch.nn.functional.scaled_dot_product_attention(heads, kept[-1], kept[-1])
        tokens = tokens + found.transpose(1, 2).flatten(2)
    return tokens, kept


def traces(program: Callable[..., Any], arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the program is traced."""
    run, count = Session.run, 0

    def counted(session: Session, *given: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        return run(session, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", counted)
        capture(program, arguments)
    return count


def test_what_a_layer_teaches_holds_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(layers: int) -> tuple[Tensor, list[Tensor]]:
        return torch.randn(2, 3, 32), [torch.randn(2, 4, 7, 8) for _ in range(layers)]

    few, many = (traces(decoder_step, step(layers), monkeypatch) for layers in (2, 10))
    assert many == few
    found = capture(decoder_step, step(10))
    assert {pin.symbol for pin in found.pins} == {"tokens_2", *(f"past_{i}_{d}" for i in range(10) for d in (1, 3))}


def test_sizes_that_are_computed_are_equal_where_their_parts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length of a mask, and that of a cache and the new tokens."""

    def step(new: Tensor, past: Tensor, mask: Tensor) -> Tensor:
        keys = torch.cat((past, new), 2)
        return attend(new, keys, keys, torch.cat((mask, mask.new_zeros(new.shape[2])))[None])

    example = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 7, 8), torch.randn(7)
    compiled = dlcb.compile(step, example, target="cpu")
    assert {d for d, s in compiled.dimensions().items() if s.startswith("pinned")} == set()
    arguments = torch.randn(5, 4, 2, 8), torch.randn(5, 4, 11, 8), torch.randn(11)
    torch.testing.assert_close(compiled(*arguments), step(*arguments))


def test_a_size_that_is_divided_stays_free_where_another_is_pinned() -> None:
    def fours(x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        return x.view(x.shape[0], x.shape[1] // 4, 4).sum(1), torch.cat((past, WEIGHT))

    compiled = dlcb.compile(fours, (torch.randn(3, 12), torch.randn(5, 32)), target="cpu")
    assert {d for d, s in compiled.dimensions().items() if s.startswith("pinned")} == {"past.shape[1]"}
    for rows, columns in ((2, 20), (1, 4)):
        arguments = torch.randn(rows, columns), torch.randn(rows, 32)
        torch.testing.assert_close(compiled(*arguments), fours(*arguments))


W4 = torch.randn(4, 4)


def joined_twice(x: Tensor, u: Tensor) -> list[Tensor]:
    return [torch.cat([a, W4], d) for a, d in ((x, 0), (u, 1))]


def products(a: Tensor, b: Tensor) -> list[Tensor]:
    return [torch.matmul(p, q) for p, q in ((a, W4), (W4, b))]


def sums(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return torch.einsum("ij,jk->ik", a, W4), torch.einsum("ij,ik->jk", b, W4)


POSITIONS = torch.randn(16, 8)


def with_positions(tokens: Tensor, other: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
    """The table of positions is shorter than sizes of a trace."""
    embedded = torch.nn.functional.embedding(tokens, WEIGHT[:10, :8]) + POSITIONS[: tokens.shape[1]]
    return embedded, other + 1, torch.nn.functional.linear(rows, WEIGHT[:8, :8])


@pytest.mark.parametrize(
    ("program", "sizes", "fixed"),
    [
        (joined_twice, ((4, 4), (4, 4)), {"x.shape[1]", "u.shape[0]"}),
        (products, ((4, 4), (4, 4)), {"a.shape[1]", "b.shape[0]"}),
        (sums, ((4, 4), (4, 4)), {"a.shape[1]", "b.shape[0]"}),
        (lambda x, y: (x @ y, torch.nn.functional.linear(x, W4)), ((4, 4), (4, 4)), {"x.shape[1]", "y.shape[0]"}),
        (torch.bmm, ((4, 4, 4), (4, 4, 4)), set[str]()),
        (lambda x, y: (torch.nn.functional.linear(x, W4), x * y), ((3, 4), (4,)), {"x.shape[1]"}),
    ],
    ids=["cat", "matmul", "einsum", "square", "bmm", "broadcast"],
)
def test_no_size_is_pinned_that_an_operation_does_not_fix(
    program: Callable[..., Any], sizes: tuple[tuple[int, ...], ...], fixed: set[str]
) -> None:
    states = dlcb.compile(program, tuple(map(torch.randn, sizes)), target="cpu").dimensions()
    assert {dim for dim, state in states.items() if state.startswith("pinned")} == fixed


def test_a_table_that_is_shorter_than_a_traced_size_leaves_the_length_free() -> None:
    example = torch.randint(0, 10, (2, 5)), torch.randn(2, 2, 2), torch.randn(3, 8)
    compiled = dlcb.compile(with_positions, example, target="cpu")
    assert {d for d, s in compiled.dimensions().items() if s.startswith("pinned")} == {"rows.shape[1]"}
    arguments = torch.randint(0, 10, (3, 16)), torch.randn(1, 4, 3), torch.randn(2, 8)
    for have, want in zip(compiled(*arguments), with_positions(*arguments), strict=True):
        torch.testing.assert_close(have, want)


def test_heads_of_rank_3_are_shared() -> None:
    def shared(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    example = torch.randn(6, 5, 8), torch.randn(3, 7, 8), torch.randn(3, 7, 8)
    compiled = dlcb.compile(shared, example, target="cpu")
    for heads, fewer in ((6, 3), (9, 3), (3, 3)):
        arguments = torch.randn(heads, 2, 8), torch.randn(fewer, 9, 8), torch.randn(fewer, 9, 8)
        torch.testing.assert_close(compiled(*arguments), shared(*arguments))


def test_an_empty_part_of_rank_1_is_left_out_where_a_product_stands_beside_it() -> None:
    def joined_with_nothing(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x, y @ WEIGHT[:8, :4]], 0)

    compiled = dlcb.compile(joined_with_nothing, (torch.randn(0), torch.randn(4, 8)), target="cpu")
    arguments = torch.randn(0), torch.randn(6, 8)
    torch.testing.assert_close(compiled(*arguments), joined_with_nothing(*arguments))
