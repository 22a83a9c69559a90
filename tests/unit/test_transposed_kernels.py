"""Kernels that read or write along another axis than the innermost one: right at all sizes and strides, in every thread
order, by tiles where these pay, and wrong without either of their barriers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given as examples
from hypothesis import strategies
from torch import Tensor
from xdsl.dialects.builtin import ArrayAttr, ModuleOp

from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.coord.transpose import MIN_SIDE
from dlcb.dialects.cuda.ops import BarrierOp
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.types import dense
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.lowering.text_to_cubin import compile_cubin
from dlcb.passes.stages import Stage
from dlcb.passes.tile_schedule import TILE_BYTES, tile_sides
from dlcb.tests.graphs import (
    ORDER_SEEDS,
    Batch,
    Case,
    Graph,
    Inputs,
    check_call,
    graph,
    misaligned,
    stepped,
    transposed,
)

given = Inputs(5)
SIZES = [(0, 9), (9, 0), (1, 33), (33, 1), (7, 65), (8, 8), (16, 24), (64, 64), (65, 33), (72, 257)]
FEW = [(65, 33), (72, 64)]


def with_gap(t: Tensor) -> Tensor:
    """The same values, rows three elements apart."""
    wide = torch.zeros(*t.shape[:-1], t.shape[-1] + 3, dtype=t.dtype)
    return wide[..., : t.shape[-1]].copy_(t)


def lay(g: Graph, *orders: tuple[int, ...]) -> None:
    """Say how the results lie in memory."""
    g.returned.properties["layouts"] = ArrayAttr(map(dense, orders))


def added(first: str, second: str) -> Callable[[Graph], None]:
    def build(g: Graph) -> None:
        x, y = g.input("x", "m", "n", element=first), g.input("y", "n", "m", element=second)
        turned = g.permute(x, order=[1, 0])
        wide = g.cast(turned, element=second) if first != second else turned
        g.give(g.add(wide, y), g.gt(y, wide))

    return build


def matrices(*elements: str, sizes: Iterable[tuple[int, int]] = FEW) -> list[list[Tensor]]:
    first, *others = elements
    return [[given(m, n, element=first), *(given(n, m, element=e) for e in others)] for n, m in sizes]


def copied(g: Graph) -> None:
    g.give(g.add(g.permute(g.input("x", "m", "n", element="f16"), order=[1, 0]), g.number(1.0, "f16")))


def both_ways(g: Graph) -> None:
    """Results in two orders, of a value that is read in a third place too."""
    x, y = g.input("x", "m", "n"), g.input("y", "n", "m")
    total = g.mul(g.permute(x, order=[1, 0]), y)
    g.give(total, g.neg(total), g.add(total, y))
    lay(g, (1, 0), (0, 1), (1, 0))


def products(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x.t() * y, -(x.t() * y), x.t() * y + y


def channels_last(g: Graph) -> None:
    x, bias = g.input("x", "n", "c", "h", "w", element="f16"), g.input("bias", "c", element="f16")
    g.give(g.add(g.permute(x, order=[0, 2, 3, 1]), bias))


def channels_first(g: Graph) -> None:
    x, scale = g.input("x", "n", "h", "w", "c"), g.input("scale", "n", 1, 1, 1)
    g.give(g.mul(g.permute(x, order=[0, 3, 1, 2]), g.expand(scale, shape=("n", "c", "h", "w"))))


def keys(g: Graph) -> None:
    """What attention does to keys, in heads of a size that is known."""
    x = g.input("x", "b", "s", 4, 12, element="bf16")
    g.give(g.mul(g.permute(x, order=[0, 2, 3, 1]), g.number(0.5, "bf16")))


def joined(g: Graph) -> None:
    """Which of two is read depends on the place along the innermost axis."""
    x, y = g.input("x", "m", "n"), g.input("y", "k", "n")
    g.give(g.neg(g.permute(g.concat(x, y, axis=0), order=[1, 0])))


def looked_up(g: Graph) -> None:
    table, rows = g.input("table", "v", "e"), g.input("rows", "s", element="i64")
    g.give(g.neg(g.permute(g.take(table, rows, axis=0), order=[1, 0])))


def many(g: Graph) -> None:
    """More operands than a block has shared memory for."""
    total = g.permute(g.input("x0", "m", "n", element="f64"), order=[1, 0])
    for i in range(1, 7):
        total = g.add(total, g.permute(g.input(f"x{i}", "m", "n", element="f64"), order=[1, 0]))
    g.give(total)


X, Y = matrices("f32", "f32", sizes=[(72, 40)])[0]
LYING: list[list[Tensor]] = [
    [f(X), h(Y)] for f in (with_gap, stepped, transposed, misaligned) for h in (with_gap, misaligned)
]
CASES = [
    Case("copied", copied, matrices("f16", sizes=SIZES), lambda x: (x + 1).t().contiguous()),
    Case(
        "added",
        added("f32", "f32"),
        [*matrices("f32", "f32", sizes=SIZES), *LYING],
        lambda x, y: (x.t() + y, y > x.t()),
    ),
    *[
        Case(f"added {a} {b}", added(a, b), matrices(a, b), lambda x, y: (x.t() + y, y > x.t()))
        for a, b in [("f16", "f16"), ("bf16", "f32"), ("f64", "f64"), ("i8", "i32")]
    ],
    Case(
        "both ways",
        both_ways,
        matrices("f32", "f32", sizes=SIZES),
        products,
    ),
    Case(
        "channels last",
        channels_last,
        [
            (given(n, c, h, w, element="f16"), given(c, element="f16"))
            for n, c, h, w in [(2, 16, 5, 8), (1, 9, 7, 3), (0, 8, 8, 8), (2, 3, 9, 9)]
        ],
        lambda x, bias: x.permute(0, 2, 3, 1) + bias,
    ),
    Case(
        "channels first",
        channels_first,
        [
            (given(n, h, w, c), given(n, 1, 1, 1))
            for n, h, w, c in [(2, 5, 8, 16), (3, 7, 3, 9), (1, 1, 1, 64), (2, 9, 9, 3)]
        ],
        lambda x, scale: x.permute(0, 3, 1, 2) * scale,
    ),
    Case(
        "keys",
        keys,
        [(given(b, s, 4, 12, element="bf16"),) for b, s in [(2, 33), (1, 160), (3, 7)]],
        lambda x: x.permute(0, 2, 3, 1) * 0.5,
    ),
    Case(
        "joined",
        joined,
        [(given(m, n), given(k, n)) for m, k, n in [(33, 40, 24), (0, 9, 9), (64, 64, 65)]],
        lambda x, y: -torch.cat([x, y]).t(),
    ),
    Case(
        "looked up",
        looked_up,
        [(given(9, e), torch.randint(9, (s,))) for e, s in [(40, 33), (64, 72), (5, 9)]],
        lambda t, r: -t[r].t(),
    ),
    Case(
        "many",
        many,
        [tuple(given(m, n, element="f64") for _ in range(7)) for m, n in FEW],
        lambda *x: torch.stack(x).sum(0).t(),
    ),
]


@dataclass(frozen=True)
class Operand:
    """An input whose dims lie in this order, some of them of size 1 and expanded."""

    order: tuple[int, ...]
    ones: frozenset[int]
    element: str

    def sizes(self, domain: Sequence[Any]) -> list[Any]:
        return [1 if axis in self.ones else domain[axis] for axis in self.order]

    @property
    def back(self) -> list[int]:
        return [self.order.index(axis) for axis in range(len(self.order))]


@dataclass(frozen=True)
class Mixture:
    """The sum of operands that lie in any order, given back in several orders."""

    operands: tuple[Operand, ...]
    orders: tuple[tuple[int, ...], ...]

    @property
    def rank(self) -> int:
        return len(self.orders[0])

    def build(self, g: Graph) -> None:
        domain = [f"d{axis}_" for axis in range(self.rank)]
        inputs = [g.input(f"x{i}", *o.sizes(domain), element=o.element) for i, o in enumerate(self.operands)]
        total: Any = None
        for operand, value in zip(self.operands, inputs, strict=True):
            turned = g.permute(value, order=operand.back) if self.rank > 1 else value
            wide = g.cast(turned, element="f32") if operand.element != "f32" else turned
            full = g.expand(wide, shape=domain) if operand.ones else wide
            total = full if total is None else g.add(total, full)
        g.give(*[g.mul(total, g.number(float(i + 1))) for i in range(len(self.orders))])
        lay(g, *self.orders)

    def witness(self, *tensors: Tensor) -> list[Tensor]:
        widest = torch.promote_types(torch.float32, tensors[0].dtype)
        total = torch.zeros((), dtype=widest)
        for tensor, operand in zip(tensors, self.operands, strict=True):
            total = total + tensor.permute(operand.back).to(widest)
        return [total * (i + 1) for i in range(len(self.orders))]


def mixture(seed: int) -> Case:
    draw = random.Random(seed)
    rank = draw.choice((2, 2, 3, 3, 4, 5))
    order = lambda: tuple(draw.sample(range(rank), rank))  # noqa: E731
    operands = [Operand(order(), frozenset(), draw.choice(("f32", "f16", "bf16")))]
    for _ in range(draw.randint(0, 3)):
        ones = frozenset(axis for axis in range(rank) if draw.random() < 0.3)
        operands.append(Operand(order(), ones, draw.choice(("f32", "f16", "i32", "i1"))))
    made = Mixture(tuple(operands), tuple(order() for _ in range(draw.randint(1, 3))))
    calls: list[list[Tensor]] = []
    for _ in range(3):
        sizes = [draw.choice((1, 3, 7, 8, 9, 16)) for _ in range(rank)]
        for axis in draw.sample(range(rank), 2):
            sizes[axis] = draw.choice((0, 1, 8, 33, 40, 64, 65))
        lying = [draw.choice((Tensor.clone, with_gap, misaligned)) for _ in operands]
        calls.append([f(given(*o.sizes(sizes), element=o.element)) for f, o in zip(lying, operands, strict=True)])
    return Case(f"mixture {seed}", made.build, calls, made.witness)


MIXTURES = 12
ALL = [*CASES, *map(mixture, range(MIXTURES))]


@cache
def unit() -> Batch:
    batch = Batch()
    for case in ALL:
        batch.rehearse(batch.add(case.module()), case.calls)
    return batch


@pytest.mark.parametrize("number", range(len(ALL)), ids=lambda i: ALL[i].name)
def test_what_lies_along_another_axis_is_read_and_written_as_torch_does(number: int) -> None:
    for seed in ORDER_SEEDS:
        compiled = unit().module(number, seed)
        for arguments in ALL[number].calls:
            check_call(compiled, ALL[number], arguments)


def test_the_kernels_compile_for_sm_90() -> None:
    assert compile_cubin(unit().text(unit().needed)).data


def keep_wide(stage: Stage, module: ModuleOp) -> None:
    """Leave the tiles with 64-bit coordinates alone, as soon as kernels have schedules."""
    for kernel in module.body.block.ops if stage.name == "schedule" else ():
        if isinstance(kernel, KernelOp) and kernel.schedules is not None:
            tiles = [s for s in kernel.schedules.data if s.transpose is not None and s.index == 64]
            kernel.properties["schedules"] = ArrayAttr(tiles or kernel.schedules.data)


def test_coordinates_of_64_bits() -> None:
    case = Case("both ways", both_ways, matrices("f32", "f32"), products)
    batch = Batch()
    batch.rehearse(batch.add(case.module(), keep_wide), case.calls)
    (name,) = (name for name, unit in batch.names[0].items() if unit in batch.needed)
    assert name.endswith("_32x32_v1_v1_i64")
    for seed in ORDER_SEEDS:
        for arguments in case.calls:
            check_call(batch.module(0, seed), case, arguments)


def launched(module: ModuleOp, *call: Tensor) -> list[str]:
    """The variants that a call launches: sides of tiles, width of vectors of what crosses, width along the innermost
    axis."""
    batch = Batch()
    number = batch.add(module)
    batch.rehearse(number, [call])
    names = {unit: name for name, unit in reversed(batch.names[number].items())}
    return sorted(re.sub(r"^.*?_(?=\d+x\d+|v\d)", "", names[unit]) for unit in batch.needed)


@pytest.mark.parametrize(
    ("sizes", "variant"),
    [
        ((64, 128), "64x64_v8_v8"),
        ((60, 128), "64x64_v8_v1"),
        ((64, 129), "64x64_v1_v8"),
        ((9, 9), "64x64_v1_v1"),
        ((MIN_SIDE, MIN_SIDE), "64x64_v8_v8"),
        ((MIN_SIDE - 1, 64), "v1"),
        ((64, MIN_SIDE - 1), "v1"),
    ],
)
def test_sizes_decide_how_what_crosses_moves(sizes: tuple[int, int], variant: str) -> None:
    assert launched(graph(copied), given(*sizes, element="f16")) == [variant]


def test_addresses_and_strides_decide_too() -> None:
    x = given(64, 64, element="f16")
    assert launched(graph(copied), misaligned(x)) == ["64x64_v1_v8"]
    assert launched(graph(copied), with_gap(x)) == ["64x64_v1_v8"]
    assert launched(graph(copied), given(64, 128, element="f16")[:, 64:]) == ["64x64_v8_v8"]
    assert launched(graph(copied), stepped(x)) == launched(graph(copied), transposed(x)) == ["v1"]


def captured(program: Callable[..., Any], *inputs: Tensor, dynamic: Any = "auto") -> ModuleOp:
    return import_captured(capture(program, inputs, {}, dynamic)).module


def turned(x: Tensor) -> Tensor:
    return (x + 1).t().contiguous()


@pytest.mark.parametrize(
    ("sizes", "variants"),
    [
        ((192, 256), ["64x64_v4_v4"]),
        ((192, 255), ["64x64_v1_v4"]),
        ((4096, 12), ["16x256_v4_v4"]),
        ((12, 4096), ["256x16_v4_v4"]),
        ((4096, 7), ["v4"]),
        ((100, 100), ["v4"]),
    ],
)
def test_known_sizes_decide_the_sides_of_tiles(sizes: tuple[int, int], variants: list[str]) -> None:
    x = torch.randn(sizes)
    assert launched(captured(turned, x, dynamic=False), x) == variants


@pytest.mark.parametrize("dynamic", ["auto", False])
def test_inputs_are_expected_to_lie_as_the_example_does(dynamic: Any) -> None:
    x = torch.randn(192, 256)
    for layout, variant in ((Tensor.contiguous, "64x64_v4_v4"), (transposed, "v4"), (with_gap, "64x64_v1_v4")):
        assert launched(captured(turned, layout(x), dynamic=dynamic), layout(x)) == [variant], layout


SIDES = strategies.none() | strategies.integers(MIN_SIDE, 5000)


@examples(SIDES, SIDES, strategies.integers(1, 32))
def test_a_tile_has_room_and_is_no_longer_than_it_need_be(along: int | None, across: int | None, size: int) -> None:
    sides = tile_sides(along, across, size)
    assert sides[0] * sides[1] * size <= TILE_BYTES
    for side, length in zip(sides, (along, across), strict=True):
        assert side >= MIN_SIDE
        assert length is None or side < 2 * max(length, MIN_SIDE)


BREAKABLE = {
    "add_64x64_v8_v8": (Case("copied", copied, matrices("f16", sizes=[(72, 64)]), lambda x: (x + 1).t()), 1),
    "add_64x64_v1_v1": (Case("copied", copied, matrices("f16", sizes=[(33, 65)]), lambda x: (x + 1).t()), 1),
    "mul_neg_add_64x64_v4_v4": (Case("", both_ways, matrices("f32", "f32", sizes=[(72, 64)]), products), 2),
}
"""A part of a kernel's name → a graph, and the barriers of the kernel."""
BROKEN = [(kernel, n) for kernel, (_, barriers) in BREAKABLE.items() for n in range(barriers)]


def break_kernels(part: str, number: int) -> Callable[[Stage, ModuleOp], None]:
    """Take a barrier out of the kernels of this name as soon as they are there."""

    def after(stage: Stage, module: ModuleOp) -> None:
        for kernel in module.body.block.ops if stage.name == "cuda" else ():
            if isinstance(kernel, CudaKernelOp) and part in kernel.sym_name.data:
                barriers = [op for op in kernel.walk() if isinstance(op, BarrierOp)]
                assert len(barriers) == BREAKABLE[part][1]
                barriers[number].detach()

    return after


@cache
def broken() -> Batch:
    batch = Batch()
    for part, number in BROKEN:
        case, _ = BREAKABLE[part]
        batch.rehearse(batch.add(case.module(), break_kernels(part, number)), case.calls)
    return batch


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=lambda i: f"{BROKEN[i][0]} {BROKEN[i][1]}")
def test_a_kernel_without_one_barrier_is_wrong_in_every_hostile_order(number: int) -> None:
    case, _ = BREAKABLE[BROKEN[number][0]]
    for seed in ORDER_SEEDS[1:]:
        with pytest.raises(AssertionError):
            check_call(broken().module(number, seed), case, case.calls[0])
