"""Cut the graph into kernels.

    %1 = dlcb.graph.add %x, %y …            →   %2 = dlcb.graph.kernel(%a = %x, %b = %y) -> (…) {
    %2 = dlcb.graph.relu %1 …                     %1 = dlcb.graph.add %a, %b … ; %2 = dlcb.graph.relu %1 … ; yield %2 }

Every tensor op ends in a kernel; library routines and views that lie in memory stay. Ops share a kernel where that is
legal (`fusion/legality.py`), for each value that stays inside is a write and a read saved; what would be computed more
than once an element shares only if it is cheap. At the end a kernel whose values one other kernel reads, wherever that
is, is computed there. A library routine is never fused. An op that writes into an argument ends its kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from dlcb.dialects.graph.base import GraphOp, Sizes, block_ops
from dlcb.dialects.graph.creation import EmptyOp
from dlcb.dialects.graph.roots import is_view
from dlcb.dialects.graph.structure import FuncOp, KernelOp, YieldOp
from dlcb.dialects.graph.types import type_of
from dlcb.passes.functions import functions, system_of
from dlcb.passes.fusion.groups import Group, Partition
from dlcb.passes.fusion.legality import (
    shared_space,
    space_of,
    why_not_absorb,
    why_not_dissolve,
    why_not_join,
    why_not_merge,
)
from dlcb.passes.fusion.space import merged_space
from dlcb.passes.fusion.updates import plan_updates
from dlcb.passes.sizes import DefinedSizes
from dlcb.passes.stages import mark_stage


def free_ops(func: FuncOp) -> set[GraphOp]:
    """Views without memory, and constants that only kernels read."""
    free: set[GraphOp] = set()
    for op in reversed(block_ops(func)):
        if op.FAMILY == "view" and type_of(op.results[0]).layout is None:
            free.add(op)
        elif op.FAMILY == "creation" and all(_is_computed(u.operation) for u in op.results[0].uses):
            free.add(op)
    return free


def _is_computed(op: Operation) -> bool:
    return isinstance(op, GraphOp) and not stands_alone(op)


def stands_alone(op: GraphOp) -> bool:
    """A library routine, a view that lies in memory, or memory."""
    return op.LIBRARY is not None or is_view(op) or isinstance(op, EmptyOp)


class _Cutter:
    def __init__(self, func: FuncOp):
        self.func = func
        self.in_place = plan_updates(func)
        self.sizes: Sizes = DefinedSizes.from_system(system_of(func))
        self.partition = Partition(func.body.block, free_ops(func))

    def cut(self) -> None:
        for op in block_ops(self.func):
            if op in self.partition.free:
                continue
            if stands_alone(op):
                self.partition.add(op, None)
            else:
                self.place(op)
            if op in self.in_place:
                for unit in self.reading_units(op):
                    self.partition.must_precede(unit, self.partition.unit_of[op])
        for group in sorted(self.partition.groups.values(), key=lambda g: g.id):
            home = self.only_reader(group)
            if home is not None and why_not_dissolve(group, home, self.partition, self.sizes) is None:
                self.partition.merge(home, group)
        self.rebuild()

    def place(self, op: GraphOp) -> None:
        """Put a computed op into the kernel of one of its operands, else into one of its own; then draw in the kernels
        of the others."""
        writes = op in self.in_place
        candidates = self.candidates(op, writes)
        home: Group | None = None
        for group in candidates:
            if why_not_join(op, group, self.partition, self.sizes) is not None:
                continue
            space = None if writes else shared_space(op, group, self.partition, self.sizes)
            if space is None and why_not_absorb(op, group, self.partition, self.sizes) is None:
                space = space_of(op, self.sizes, writes)
            if space is not None:
                self.partition.join(op, group)
                group.space, group.in_place, home = space, writes, group
                break
        if home is None:
            self.partition.add(op, space_of(op, self.sizes, writes), writes)
        elif not writes:
            for other in candidates:
                if other is not home:
                    self.draw_in(other, home)

    def candidates(self, op: GraphOp, writes: bool) -> list[Group]:
        """The kernels that make operands of the op, the latest first; for an op that writes in place, none that makes
        what it overwrites, or that what reads it waits for."""
        units = {self.partition.groups[u] for u in self.partition.units_read(op)}
        if writes:
            readers = self.reading_units(op)
            units = {
                g
                for g in units
                if op.operands[0] not in g.results() and not any(r is g or self.partition.waits(r, g) for r in readers)
            }
        return sorted((g for g in units if g.space is not None), key=lambda g: -g.id)

    def only_reader(self, group: Group) -> Group | None:
        """The one other kernel that reads what the group makes; None where none or several units do, or it is a result
        of the function."""
        inside = set(group.ops)
        users = {user for value in group.results() for user in self.partition.users(value)} - inside
        units = {self.partition.unit_of.get(user) for user in users}
        return units.pop() if len(units) == 1 else None

    def draw_in(self, other: Group, home: Group) -> None:
        """Merge a second kernel that an op of `home` reads into it."""
        if why_not_merge(other, home, self.partition, self.sizes) is None:
            assert other.space is not None
            assert home.space is not None
            home.space = merged_space(other.space, home.space)
            self.partition.merge(home, other)

    def reading_units(self, op: GraphOp) -> list[Group]:
        """The units that read what `op` overwrites, and so must come before it. All stand already: later readers were
        given a copy."""
        unit_of = self.partition.unit_of
        return [unit_of[r] for r in self.readers(op.operands[0]) if r is not op and r in unit_of]

    def readers(self, value: SSAValue) -> list[Operation]:
        found: list[Operation] = []
        for user in self.partition.users(value):
            found.append(user)
            if isinstance(user, GraphOp) and user.FAMILY == "view":
                found += self.readers(user.results[0])
        return found

    # Editing

    def rebuild(self) -> None:
        block = self.func.body.block
        last = block.last_op
        assert last is not None
        position = {op: i for i, op in enumerate(block.ops)}
        for group in self.partition.in_order():
            group.ops.sort(key=position.__getitem__)
            if group.space is None:
                (op,) = group.ops
                op.detach()
                block.insert_op_before(op, last)
            else:
                self.build_kernel(group, last)
        for op in reversed(block_ops(self.func)):
            if op in self.partition.free:
                assert not any(r.uses for r in op.results)
                block.erase_op(op)

    def build_kernel(self, group: Group, last: Operation) -> None:
        """Move the ops of a group into a kernel before `last`; a group that nothing needs is dropped."""
        inside = set(group.ops)
        results = [r for op in group.ops for r in op.results if self.needed_outside(r, inside)]
        body = _Body(self.partition)
        for op in group.ops if results else ():
            body.copy(op, [body.enter(v) for v in op.operands])
        if results:
            body.block.add_op(YieldOp.create(operands=[body.inner[r] for r in results]))
            kernel = KernelOp.create(
                operands=body.outer,
                result_types=[r.type for r in results],
                properties=self.kernel_properties(group, body),
                regions=[Region(body.block)],
            )
            kernel.location = group.ops[-1].location
            self.func.body.block.insert_op_before(kernel, last)
            for old, new in zip(results, kernel.results, strict=True):
                new.name_hint = old.name_hint
                old.replace_all_uses_with(new)
        for op in reversed(group.ops):
            self.func.body.block.erase_op(op, safe_erase=False)

    def kernel_properties(self, group: Group, body: _Body) -> dict[str, Attribute]:
        if not group.in_place:
            return {}
        base = body.outer.index(group.ops[-1].operands[0])
        return {"in_place": ArrayAttr([ArrayAttr([IntAttr(0), IntAttr(base)])])}

    def needed_outside(self, value: SSAValue, inside: set[GraphOp]) -> bool:
        return not self.partition.users(value) <= inside


class _Body:
    """The region of a kernel under construction: values outside become block arguments, free ops are copied in."""

    def __init__(self, partition: Partition):
        self.partition = partition
        self.block = Block()
        self.inner: dict[SSAValue, SSAValue] = {}
        self.outer: list[SSAValue] = []

    def enter(self, value: SSAValue) -> SSAValue:
        known = self.inner.get(value)
        if known is not None:
            return known
        maker = self.partition.free_op(value)
        if maker is not None:
            self.copy(maker, [self.enter(v) for v in maker.operands])
            return self.inner[value]
        self.outer.append(value)
        argument = self.inner[value] = self.block.insert_arg(value.type, len(self.block.args))
        argument.name_hint = value.name_hint
        return argument

    def copy(self, op: GraphOp, operands: list[SSAValue]) -> None:
        fresh = type(op).create(
            operands=operands,
            result_types=[r.type for r in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        fresh.location = op.location
        self.block.add_op(fresh)
        for old, new in zip(op.results, fresh.results, strict=True):
            self.inner[old] = new
            new.name_hint = old.name_hint


@dataclass(frozen=True)
class FusePass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-fuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions(op):
            _Cutter(func).cut()
        mark_stage(op, "fuse")
