"""Why ops may not share a kernel: one small graph for each reason, and beside it one where the reason does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcb.dialects.graph.base import GraphOp, Sizes, block_ops
from dlcb.dialects.graph.structure import FuncOp, KernelOp
from dlcb.lowering.lower import context
from dlcb.lowering.pipeline import run
from dlcb.passes.functions import system_of
from dlcb.passes.fuse import free_ops, stands_alone
from dlcb.passes.fusion.groups import Group, Partition
from dlcb.passes.fusion.legality import (
    MAX_OPS,
    Refusal,
    shared_space,
    space_of,
    why_not_absorb,
    why_not_join,
    why_not_merge,
)
from dlcb.passes.sizes import DefinedSizes
from dlcb.tests.graphs import Graph, graph, main_of


class Plan:
    """A function before `fuse`, whose ops the test puts into groups; ops are called by their names, in order."""

    def __init__(self, build: Callable[[Graph], None]) -> None:
        module = graph(build)
        run(module, context(), until="strides")
        self.func: FuncOp = main_of(module)
        self.partition = Partition(self.func.body.block, free_ops(self.func))
        self.sizes: Sizes = DefinedSizes.from_system(system_of(self.func))

    def ops(self, name: str) -> list[GraphOp]:
        return [op for op in block_ops(self.func) if op.name == f"dlcb.graph.{name}"]

    def op(self, name: str) -> GraphOp:
        (op,) = self.ops(name)
        return op

    def alone(self, *ops: GraphOp) -> list[Group]:
        """Each op in a unit of its own."""
        spaces = [None if stands_alone(op) else space_of(op, self.sizes) for op in ops]
        return [self.partition.add(op, space) for op, space in zip(ops, spaces, strict=True)]

    def join(self, op: GraphOp, group: Group) -> Refusal | None:
        return why_not_join(op, group, self.partition, self.sizes)

    def absorb(self, op: GraphOp, group: Group) -> Refusal | None:
        return why_not_absorb(op, group, self.partition, self.sizes)

    def merge(self, other: Group, home: Group) -> Refusal | None:
        return why_not_merge(other, home, self.partition, self.sizes)

    def shares(self, op: GraphOp, group: Group) -> bool:
        return shared_space(op, group, self.partition, self.sizes) is not None


def kernels(build: Callable[[Graph], None]) -> list[list[str]]:
    """The names of the ops in each kernel that `fuse` makes."""
    module = graph(build)
    run(module, context(), until="fuse", check=True)
    found = [op for op in main_of(module).body.block.ops if isinstance(op, KernelOp)]
    return [[op.name.rpartition(".")[2] for op in block_ops(kernel)] for kernel in found]


def test_an_op_that_waits_for_a_library_routine_does_not_join_what_that_reads() -> None:
    def build(g: Graph) -> None:
        x = g.input("x", "n", "n")
        e = g.exp(x)
        g.give(g.add(e, g.matmul(e, x)))

    plan = Plan(build)
    (group, _) = plan.alone(plan.op("exp"), plan.op("matmul"))
    assert plan.join(plan.op("add"), group) is Refusal.CYCLE
    assert kernels(build) == [["exp"], ["add"]]


def test_what_others_need_is_not_computed_elsewhere() -> None:
    def build(g: Graph, also: bool = True) -> None:
        e = g.exp(g.input("x", "n", "m"))
        turned = g.neg(g.permute(e, order=[1, 0]))
        g.give(turned, g.relu(e)) if also else g.give(turned)

    plan = Plan(build)
    (group,) = plan.alone(plan.op("exp"))
    assert not plan.shares(plan.op("neg"), group)
    assert plan.absorb(plan.op("neg"), group) is Refusal.ELSEWHERE
    plan = Plan(lambda g: build(g, also=False))
    (group,) = plan.alone(plan.op("exp"))
    assert plan.absorb(plan.op("neg"), group) is None


def test_a_reduced_value_is_read_where_it_stands() -> None:
    def build(g: Graph, keep: bool) -> None:
        x, y = g.input("x", "n", "n"), g.input("y", "n", "n")
        g.give(g.add(y, g.sum(x, axes=[1], keep=keep)))

    along, across = Plan(lambda g: build(g, False)), Plan(lambda g: build(g, True))
    (group,) = along.alone(along.op("sum"))
    assert not along.shares(along.op("add"), group)
    assert along.absorb(along.op("add"), group) is Refusal.REDUCED
    (group,) = across.alone(across.op("sum"))
    assert across.shares(across.op("add"), group)


WINDOW: dict[str, Any] = {"kernel": [3], "stride": [1], "padding": [1], "dilation": [1]}


def test_only_what_is_cheap_is_computed_several_times() -> None:
    def build(g: Graph, name: str) -> None:
        g.give(g.max_pool(g.op(name, g.input("x", "n", "m")), **WINDOW))

    costly, cheap = Plan(lambda g: build(g, "exp")), Plan(lambda g: build(g, "relu"))
    assert costly.absorb(costly.op("max_pool"), costly.alone(costly.op("exp"))[0]) is Refusal.REPEATED
    assert cheap.absorb(cheap.op("max_pool"), cheap.alone(cheap.op("relu"))[0]) is None


def test_what_is_read_at_places_that_data_says_lies_in_memory() -> None:
    def build(g: Graph) -> None:
        x, i = g.input("x", "n", 3), g.input("i", "k", element="i64")
        g.give(g.take(g.relu(x), g.neg(i), axis=0))

    plan = Plan(build)
    data, indices = plan.alone(plan.op("relu"), plan.op("neg"))
    assert plan.absorb(plan.op("take"), data) is Refusal.DATA
    assert plan.absorb(plan.op("take"), indices) is None


def test_a_kernel_has_a_limit() -> None:
    def build(g: Graph) -> None:
        x = g.input("x", "n")
        for _ in range(MAX_OPS + 4):
            x = g.sin(x)
        g.give(x)

    plan = Plan(build)
    first, *others = plan.ops("sin")
    (group,) = plan.alone(first)
    for op in others[: MAX_OPS - 1]:
        assert plan.join(op, group) is None
        plan.partition.join(op, group)
    assert plan.join(others[MAX_OPS - 1], group) is Refusal.TOO_LARGE
    assert [len(k) for k in kernels(build)] == [MAX_OPS, 4]


def test_nothing_joins_a_kernel_that_writes_into_an_argument() -> None:
    def build(g: Graph) -> None:
        x, y = g.input("x", "n", 4), g.input("y", 2, 4)
        after = g.insert(x, y, (0, 0))
        g.give(after, g.relu(after), updates=[0])

    plan = Plan(build)
    (group,) = plan.alone(plan.op("insert"))
    group.in_place = True
    assert plan.join(plan.op("relu"), group) is Refusal.IN_PLACE
    assert kernels(build) == [["insert"], ["relu"]]


def test_kernels_over_different_coordinates_stay_apart() -> None:
    def build(g: Graph) -> None:
        x, y = g.input("x", "n", "m"), g.input("y", "m")
        g.give(g.add(g.exp(x), g.exp(y)))

    plan = Plan(build)
    wide, narrow = plan.alone(*plan.ops("exp"))
    assert plan.merge(wide, narrow) is Refusal.SPACE
    assert plan.merge(wide, wide) is not Refusal.SPACE


def test_kernels_that_reduce_over_different_axes_stay_apart() -> None:
    def build(g: Graph) -> None:
        x = g.input("x", "n", "m")
        rows, columns = g.sum(x, axes=[1], keep=True), g.sum(x, axes=[0], keep=True)
        g.give(g.sub(g.sub(x, rows), columns))

    plan = Plan(build)
    assert plan.merge(*plan.alone(*plan.ops("sum"))) is Refusal.SPACE
    assert sorted(k.count("sum") for k in kernels(build)) == [1, 1]


def test_kernels_merge_only_where_all_their_reads_stay_in_place() -> None:
    def build(g: Graph) -> None:
        x, y = g.input("x", "n", "n"), g.input("y", "n", "n")
        kept = g.sum(x, axes=[1], keep=True)
        along = g.add(y, g.reshape(kept, shape=("n",)))
        g.give(g.sub(along, kept))

    plan = Plan(build)
    other, home = plan.alone(plan.op("sum"), plan.op("add"))
    assert plan.merge(other, home) is Refusal.ELSEWHERE


def test_kernels_do_not_merge_around_a_library_routine() -> None:
    def build(g: Graph) -> None:
        x = g.input("x", "n", "n")
        e = g.exp(x)
        g.give(g.sub(g.add(g.matmul(e, x), x), e))

    plan = Plan(build)
    other, _, home = plan.alone(plan.op("exp"), plan.op("matmul"), plan.op("add"))
    assert plan.merge(other, home) is Refusal.CYCLE


def test_a_reader_of_the_old_value_comes_before_the_writer() -> None:
    def build(g: Graph) -> None:
        x, y = g.input("x", "n", 4), g.input("y", 2, 4)
        old = g.sum(x, axes=[0])
        after = g.insert(x, g.exp(y), (0, 0))
        g.give(after, old, g.relu(after), updates=[0])

    assert kernels(build) == [["sum"], ["exp", "insert"], ["relu"]]


def test_a_late_reader_of_the_old_value_gets_a_copy() -> None:
    def build(g: Graph) -> None:
        x, y = g.input("x", "n", 4), g.input("y", 2, 4)
        after = g.insert(x, y, (0, 0))
        g.give(after, g.sub(g.sum(after, axes=[0]), g.sum(x, axes=[0])), updates=[0])

    names = kernels(build)
    assert ["copy", "sum"] in names
    assert names.index(["copy", "sum"]) < names.index(["insert"])


def test_a_cache_is_updated_without_a_copy() -> None:
    def build(g: Graph) -> None:
        cache, new = g.input("cache", "b", "n", 4), g.input("new", "b", 1, 4)
        after = g.insert(cache, g.mul(new, new), (0, g.integer("at"), 0))
        g.give(after, g.sum(after, axes=[2]), updates=[0])

    assert kernels(build) == [["mul", "insert"], ["sum"]]


def test_softmax_and_layer_norm_are_one_kernel_each() -> None:
    assert len(kernels(lambda g: g.give(g.softmax(g.input("x", "n", "m"), axis=1)))) == 1

    def norm(g: Graph) -> None:
        x, w = g.input("x", "n", 24), g.input("w", 24)
        g.give(g.layer_norm(g.relu(x), w, w, axes=1, eps=1e-5))

    assert len(kernels(norm)) == 1
