"""Concatenations that begin alike share their memory, as those of a dense block do, whose layers read all parts so far.

    %1 = concat %a, %b         →   %m = empty ; %m0 = insert %m, %a ; %m1 = insert %m0, %b ; %1 = slice %m1
    %2 = concat %a, %b, %c     →   %m2 = insert %m1, %c ; %2 = slice %m2

The inserts write in place (`passes/fusion/updates.py`). So what reads a concatenation reads one tensor, however many
parts it has: the kernels of all layers are one, and none asks for each element which part it is in. The price is one
copy of each part that a library routine made.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from dlcb.dialects.graph.creation import EmptyOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, DimsAttr, dims_attr, tensor, type_of
from dlcb.dialects.graph.view import ConcatOp, InsertOp, SliceOp
from dlcb.dialects.shape.expr import ZERO, Expr, add
from dlcb.dialects.shape.system import System
from dlcb.passes.fusion.updates import reads_late

FEWEST = 4
"""So many concatenations share memory, or none do: a part is copied once, and half of them read it."""


def share_memory(func: FuncOp, system: System) -> None:
    """Edit the function; `system` is its own, and gets the sizes that are new."""
    for family in families([op for op in func.body.block.ops if isinstance(op, ConcatOp)]):
        if len(family) < FEWEST:
            continue
        position = {op: i for i, op in enumerate(func.body.block.ops)}
        members = those_read_in_turn(family, position)
        if len(members) >= FEWEST:
            _Memory(members, system).rewrite()


def families(concats: Sequence[ConcatOp]) -> list[list[ConcatOp]]:
    """Those of which each begins with the one before, the shortest first; each belongs to the longest that it can."""
    found: list[list[ConcatOp]] = []
    for op in sorted(concats, key=lambda op: -len(op.operands)):
        home = next((family for family in found if _begins(family[-1], op)), None)
        if home is None:
            found.append([op])
        else:
            home.append(op)
    return [family[::-1] for family in found]


def _begins(longer: ConcatOp, op: ConcatOp) -> bool:
    parts = tuple(op.operands)
    return (
        longer.axis == op.axis and len(parts) < len(longer.operands) and tuple(longer.operands[: len(parts)]) == parts
    )


def those_read_in_turn(family: Sequence[ConcatOp], position: dict[Operation, int]) -> list[ConcatOp]:
    """The members that may share memory: each is read before the next one adds its parts, and none is returned."""
    members: list[ConcatOp] = []
    following = len(position) - 1
    for op in reversed(family):
        in_time = not any(reads_late(use.operation, following - 1, position) for use in op.res.uses)
        if position[op] < following and in_time:
            members.append(op)
            following = position[op]
    return members[::-1]


class _Memory:
    """The memory of concatenations, the shortest first, as their parts are written into it."""

    def __init__(self, members: Sequence[ConcatOp], system: System):
        self.members = members
        self.system = system
        longest = members[-1]
        self.axis, self.type = longest.axis.data, type_of(longest.res)
        self.memory: SSAValue | None = None
        self.written = 0
        self.end: Expr = ZERO

    def rewrite(self) -> None:
        for op in self.members:
            for part in op.operands[self.written :]:
                self.append(part, op)
            self.written = len(op.operands)
            self.replace(op)

    def append(self, part: SSAValue, before: ConcatOp) -> None:
        if self.memory is None:
            empty = self.add(EmptyOp.make([], [self.type], shape=dims_attr(self.type.dims)), before)
            self.memory = empty.results[0]
        starts = self.along(self.system.define_fresh(self.end, "start"))
        insert = InsertOp.make([self.memory, part], [self.type], starts=starts, steps=self.along(1, 1))
        self.memory = self.add(insert, before).results[0]
        self.end = add(self.end, self.system.value(type_of(part).dims[self.axis]))

    def replace(self, op: ConcatOp) -> None:
        assert self.memory is not None
        dims = type_of(op.res).dims
        slice_ = SliceOp.make(
            [self.memory],
            [tensor(dims, self.type.element)],
            starts=self.along(0),
            shape=dims_attr(dims),
            steps=self.along(1, 1),
        )
        op.res.replace_all_uses_with(self.add(slice_, op).results[0])
        op.detach()
        op.erase()

    def along(self, dim: Dim, other: Dim = 0) -> DimsAttr:
        """A dim of the axis, and the same one for all others."""
        return dims_attr(tuple([dim if axis == self.axis else other for axis in range(self.type.rank)]))

    def add(self, op: EmptyOp | InsertOp | SliceOp, before: ConcatOp) -> EmptyOp | InsertOp | SliceOp:
        block = before.parent_block()
        assert block is not None
        op.location = before.location
        block.insert_op_before(op, before)
        return op
