"""Arguments and intermediates that are updated, with readers of the old value and of the new."""

from __future__ import annotations

import torch
from torch import Tensor

from dlcb.dialects.shape.expr import sub, sym
from dlcb.tests.cases.table import case, given
from dlcb.tests.graphs import Graph, expanded, misaligned, stepped, transposed


def kv_step(cache: Tensor, new: Tensor, at: int) -> Tensor:
    cache[:, at : at + new.shape[1]] = new * 2
    return cache.sum(-1)


@case(
    "a cache is updated and read",
    [(given(2, 9, 4), given(2, k, 4), at) for k, at in [(1, 0), (3, 5), (0, 9), (9, 0)]]
    + [
        (x, given(2, 3, 4), 2)
        for x in (transposed(given(2, 9, 4)), stepped(given(2, 9, 4)), misaligned(given(2, 9, 4)))
    ],
    kv_step,
)
def _(g: Graph) -> None:
    c, new = g.input("cache", "b", "n", 4), g.input("new", "b", "k", 4)
    at = g.integer("at")
    after = g.insert(c, g.mul(new, g.number(2.0)), (0, at, 0))
    g.give(after, g.sum(after, axes=[2]), updates=[0])


def add_in_place(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    before = x + 1
    x += y
    return before, x * 2


@case(
    "an argument is updated by an elementwise result, and the old value is read too",
    [(x, given(4, 6)) for x in (given(4, 6), transposed(given(4, 6)), stepped(given(4, 6)), misaligned(given(4, 6)))],
    add_in_place,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    after = g.add(x, y)
    g.give(after, g.add(x, g.number(1.0)), g.mul(after, g.number(2.0)), updates=[0])


def shift(x: Tensor) -> Tensor:
    x[1:] = x[:-1].clone()
    return x + 1


@case("x[1:] = x[:-1]", [(given(n, 3),) for n in (1, 2, 7, 300)] + [(stepped(given(5, 3)),)], shift)
def _(g: Graph) -> None:
    x = g.input("x", "n", 3)
    rest = g.dim(sub(sym("n"), 1))
    after = g.insert(x, g.slice(x, (0, 0), (rest, 3)), (1, 0))
    g.give(after, g.add(after, g.number(1.0)), updates=[0])


def transpose_in_place(x: Tensor) -> Tensor:
    x.copy_(x.t().clone() + x)
    return x.sum(0)


@case("x = x.t() + x in place", [(given(n, n),) for n in (0, 1, 5, 40)] + [(stepped(given(5, 5)),)], transpose_in_place)
def _(g: Graph) -> None:
    x = g.input("x", "n", "n")
    after = g.add(g.permute(x, order=[1, 0]), x)
    g.give(after, g.sum(after, axes=[0]), updates=[0])


def chain_of_updates(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    middle = x.clone()
    x[:2] = y
    first = x.sum(0)
    x[1:3] = y * x[:2]
    x[::2] = x[::2].exp().clone()
    return first, middle


@case(
    "a chain of updates with readers between",
    [(given(5, 3), given(2, 3)), (stepped(given(5, 3)), given(2, 3)), (given(5, 3), expanded(given(2, 3)))],
    chain_of_updates,
)
def _(g: Graph) -> None:
    x, y = g.input("x", 5, "m"), g.input("y", 2, "m")
    a = g.insert(x, y, (0, 0))
    b = g.insert(a, g.mul(y, g.slice(a, (0, 0), (2, "m"))), (1, 0))
    even = g.slice(b, (0, 0), (3, "m"), (2, 1))
    c = g.insert(b, g.exp(even), (0, 0), (2, 1))
    g.give(c, g.sum(a, axes=[0]), g.copy(x), updates=[0])


def two_updates(x: Tensor, y: Tensor) -> Tensor:
    old = x.clone()
    x.copy_(y + 1)
    y.copy_(old * 2)
    return x + y


@case(
    "two arguments swap",
    [(given(3, 4), given(3, 4)), (given(0, 4), given(0, 4)), (transposed(given(3, 4)), stepped(given(3, 4)))],
    two_updates,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    a, b = g.add(y, g.number(1.0)), g.mul(x, g.number(2.0))
    g.give(a, b, g.add(a, b), updates=[0, 1])


def put_rows(x: Tensor, i: Tensor, y: Tensor) -> Tensor:
    before = x.sum()
    x[i] = y.exp()
    return before + x.sum(0)


@case(
    "put into an argument",
    [
        (given(6, 4), torch.tensor([4, 0, -1]), given(3, 4)),
        (stepped(given(6, 4)), torch.tensor([2]), given(1, 4)),
        (given(6, 4), torch.tensor([], dtype=torch.int64), given(0, 4)),
    ],
    put_rows,
)
def _(g: Graph) -> None:
    x, i, y = g.input("x", "n", 4), g.input("i", "k", element="i64"), g.input("y", "k", 4)
    after = g.put(x, i, g.exp(y), axis=0)
    g.give(after, g.add(g.sum(x, axes=[0, 1]), g.sum(after, axes=[0])), updates=[0])


def put_copy(x: Tensor, i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    a = x.exp().index_copy(0, i, y)
    b = a.index_copy(0, i.flip(0), y + 1)
    return a * 2, b + x


@case(
    "put into intermediates",
    [(given(6, 4), torch.tensor([4, 0, 5]), given(3, 4)), (transposed(given(6, 4)), torch.tensor([2]), given(1, 4))],
    put_copy,
)
def _(g: Graph) -> None:
    x, i, y = g.input("x", "n", 4), g.input("i", "k", element="i64"), g.input("y", "k", 4)
    a = g.put(g.exp(x), i, y, axis=0)
    b = g.put(a, g.flip(i, axes=[0]), g.add(y, g.number(1.0)), axis=0)
    g.give(g.mul(a, g.number(2.0)), g.add(b, x))


@case(
    "insert into intermediates and arguments that stay",
    [(given(6, 4), given(2, 4)), (stepped(given(6, 4)), given(2, 4)), (transposed(given(6, 4)), given(2, 4))],
    lambda x, y: (torch.slice_scatter(x, y, 0, 1, 3), torch.slice_scatter(x.exp(), y, 0, 2, 6, 2).sum(0), x * 2),
)
def _(g: Graph) -> None:
    x, y = g.input("x", 6, 4), g.input("y", 2, 4)
    g.give(g.insert(x, y, (1, 0)), g.sum(g.insert(g.exp(x), y, (2, 0), (2, 1)), axes=[0]), g.mul(x, g.number(2.0)))


def alias_results(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    x += y
    return x[1:], x.t()


@case(
    "results are views of an updated argument",
    [(given(4, 3), given(4, 3)), (transposed(given(4, 3)), given(4, 3)), (stepped(given(4, 3)), given(4, 3))],
    alias_results,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    after = g.add(x, y)
    rest = g.dim(sub(sym("n"), 1))
    g.give(
        after,
        g.slice(after, (1, 0), (rest, "m")),
        g.permute(after, order=[1, 0]),
        updates=[0],
        aliases=[(0, 0), (1, 0)],
    )


def update_slice_by_reduction(x: Tensor) -> Tensor:
    x[:, 0] = x.sum(1)
    return x.amax(1)


@case(
    "a column is set to the sum",
    [(given(n, m),) for n, m in [(3, 5), (1, 1), (0, 4), (70, 40)]] + [(stepped(given(3, 5)),)],
    update_slice_by_reduction,
)
def _(g: Graph) -> None:
    x = g.input("x", "n", "m")
    after = g.insert(x, g.sum(x, axes=[1], keep=True), (0, 0))
    g.give(after, g.amax(after, axes=[1]), updates=[0])


def half_update(x: Tensor, y: Tensor) -> Tensor:
    x.copy_(y)
    return x + 0


@case(
    "an update by another argument",
    [
        (given(3, 4, element="f16"), given(3, 4, element="f16")),
        (stepped(given(3, 4, element="f16")), transposed(given(3, 4, element="f16"))),
    ],
    half_update,
)
def _(g: Graph) -> None:
    g.input("x", "n", "m", element="f16")
    y = g.input("y", "n", "m", element="f16")
    g.give(y, g.add(y, g.number(0.0)), updates=[0])


def old_and_new(x: Tensor, y: Tensor) -> Tensor:
    old = x.exp()
    x += y
    return old * x


@case("old and new value meet", [(given(3, 4), given(3, 4)), (stepped(given(3, 4)), given(3, 4))], old_and_new)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", "m"), g.input("y", "n", "m")
    e = g.exp(x)
    after = g.add(x, y)
    g.give(after, g.mul(e, after), updates=[0])


def old_and_inserted(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    e = y.exp()
    r = x[:2] + e
    x[:2] = e
    return r, x.sum(0)


@case(
    "the source is made by a kernel that a reader of the old value waits for",
    [(given(5, 4), given(2, 4)), (transposed(given(5, 4)), given(2, 4))],
    old_and_inserted,
)
def _(g: Graph) -> None:
    x, y = g.input("x", "n", 4), g.input("y", 2, 4)
    e = g.exp(y)
    r = g.add(g.slice(x, (0, 0), (2, 4)), e)
    after = g.insert(x, e, (0, 0))
    g.give(after, r, g.sum(after, axes=[0]), updates=[0])


def views_of_old(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    old = x.clone()
    x[1:3] = y
    return old.t() @ x, x.t() @ x


@case(
    "a matmul reads a view of the old value late",
    [(given(4, 5), given(2, 5)), (transposed(given(4, 5)), given(2, 5)), (stepped(given(4, 5)), given(2, 5))],
    views_of_old,
)
def _(g: Graph) -> None:
    x, y = g.input("x", 4, "m"), g.input("y", 2, "m")
    turned = g.permute(x, order=[1, 0])
    after = g.insert(x, y, (1, 0))
    g.give(after, g.matmul(turned, after), g.matmul(g.permute(after, order=[1, 0]), after), updates=[0])
