"""Concatenations that begin alike share memory where they may."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import dlcb
from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.graph.creation import EmptyOp
from dlcb.dialects.graph.structure import LaunchOp
from dlcb.dialects.graph.view import ConcatOp, InsertOp
from dlcb.lowering import pipeline
from dlcb.passes.concatenations import FEWEST
from dlcb.tests.graphs import Graph, graph


def lowered(build: Callable[[Graph], None], until: str) -> ModuleOp:
    module = graph(build)
    pipeline.run(module, Context(), until=until)
    return module


def count(module: ModuleOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


def block(layers: int, begin: int = 0) -> Callable[[Graph], None]:
    """A dense block of literal widths; its concatenations begin with the part numbered `begin`."""

    def build(g: Graph) -> None:
        parts = [g.input("x", "n", 64), g.input("y", "n", 32)]
        w = g.input("w", 32, 32)
        for _ in range(layers):
            whole = g.concat(*parts[begin:], axis=1) if len(parts) > begin + 1 else parts[begin]
            parts.append(g.matmul(g.slice(g.relu(whole), (0, 0), ("n", 32)), w))
        g.give(g.exp(g.concat(*parts[begin:], axis=1)))

    return build


def test_a_layer_more_of_a_dense_block_needs_no_kernel_more() -> None:
    few, many = (lowered(block(layers), "coordinates") for layers in (8, 16))
    assert count(few, KernelOp) == count(many, KernelOp)
    assert count(many, LaunchOp) - count(few, LaunchOp) == 2 * 8


def test_each_part_is_written_once_into_one_memory() -> None:
    module = lowered(block(8), "strides")
    assert count(module, EmptyOp) == 1
    assert count(module, InsertOp) == 10
    assert count(module, ConcatOp) == 0


def test_few_concatenations_are_left_alone() -> None:
    assert count(lowered(block(FEWEST - 2), "strides"), EmptyOp) == 0
    assert count(lowered(block(FEWEST - 1), "strides"), EmptyOp) == 1


def test_those_that_begin_otherwise_have_memory_of_their_own() -> None:
    def build(g: Graph) -> None:
        for begin, name in ((0, "a"), (1, "b")):
            parts = [g.input(f"{name}{i}", "n", 8) for i in range(6)]
            results = [g.exp(g.concat(*parts[:length], axis=begin)) for length in range(2, 7)]
            g.give(*g.returned.operands, *results)

    assert count(lowered(build, "strides"), EmptyOp) == 2


def chain(read_late: int | None, returned: int | None = None) -> Callable[[Graph], None]:
    """Concatenations of 2, 3, … parts: that of `read_late` parts is read at the end, that of `returned` is a result."""

    def build(g: Graph) -> None:
        parts = [g.input(f"a{i}", "n", 8) for i in range(7)]
        wholes: dict[int, SSAValue] = {}
        sums: list[SSAValue] = []
        for length in range(2, 8):
            wholes[length] = g.concat(*parts[:length], axis=1)
            sums.append(g.sum(wholes[length], axes=[1]))
        late = [] if read_late is None else [g.sum(g.permute(wholes[read_late], order=[1, 0]), axes=[1])]
        g.give(*sums, *late, *([] if returned is None else [wholes[returned]]))

    return build


def test_what_is_read_after_the_next_part_is_written_stays_apart() -> None:
    assert count(lowered(chain(None), "strides"), ConcatOp) == 0
    module = lowered(chain(4), "strides")
    assert (count(module, ConcatOp), count(module, InsertOp)) == (1, 7)
    assert count(lowered(chain(7), "strides"), ConcatOp) == 0  # the last one may be read at any time


def test_what_is_returned_has_memory_of_its_own() -> None:
    for length, parts in ((3, 7), (7, 6)):
        module = lowered(chain(None, length), "strides")
        assert (count(module, ConcatOp), count(module, InsertOp)) == (1, parts)


def read_by_a_late_kernel(a: Tensor, b: Tensor, w: Tensor) -> Tensor:
    """What reads the shorter ones is cheap, and read by one kernel behind all writes."""
    sums, parts = list[Tensor](), [a, b]
    for _ in range(5):
        whole = torch.cat(parts, 1)
        sums.append(whole.relu()[:, :2])
        parts.append(whole @ w[: whole.shape[1]])
    result = parts[-1][:, :2]
    for read in sums:
        result = result + read
    return result


def of_a_concatenation(*tensors: Tensor) -> Tensor:
    """The first part is one itself, along another dim."""
    parts = [torch.cat(tensors[:2], 2), *tensors[2:]]
    return torch.stack([torch.cat(parts[:n], 1).relu().sum((1, 2)) for n in range(2, 6)]).sum(0)


def cache_read_before(cache: Tensor, key: Tensor, w: Tensor) -> Tensor:
    old = (cache * 2)[:, :3]
    cache[:, 0] = key
    return old.flip(0) + cache @ w


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (read_by_a_late_kernel, ((4, 5), (4, 5), (60, 5))),
        (of_a_concatenation, ((2, 3, 5), (2, 3, 2), *[(2, 2, 7)] * 4)),
        (cache_read_before, ((4, 5), (4,), (5, 3))),
    ],
)
def test_readers_come_before_what_is_written_over(
    program: Callable[..., Tensor], sizes: tuple[tuple[int, ...], ...]
) -> None:
    compiled = dlcb.compile(program, tuple(map(torch.randn, sizes)), target="cpu")
    arguments = tuple(map(torch.randn, sizes))
    expected = program(*[argument.clone() for argument in arguments])
    torch.testing.assert_close(compiled(*arguments), expected)
