"""The partition of a function's ops into units of launch, while it is being made.

A unit is a group of ops that one kernel computes, or a single op (a library routine, a view in memory). *Free* ops
(views without memory, constants) belong to no unit: each kernel that reads through them gets its own copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, OpResult, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.errors import InternalError
from dlcb.passes.fusion.space import Space


@dataclass(eq=False)
class Group:
    """One unit. A single op has no space."""

    id: int
    ops: list[GraphOp]
    space: Space | None
    in_place: bool = False
    before: set[int] = field(default_factory=set[int])
    """Units whose results this one reads, or that must read memory before this one writes it."""

    def results(self) -> Iterable[SSAValue]:
        return (r for op in self.ops for r in op.results)


class Partition:
    """All units, and which come before which."""

    def __init__(self, block: Block, free: set[GraphOp]):
        self.block = block
        self.free = free
        self.groups: dict[int, Group] = {}
        self.unit_of: dict[Operation, Group] = {}
        self._ancestors: list[int] = []
        self._maker = {id(r): op for op in free for r in op.results}
        self._roots: dict[int, frozenset[SSAValue]] = {}
        self._read: dict[Operation, tuple[Operation, ...]] = {}
        self._users: dict[SSAValue, set[Operation]] = {}
        self._find_users()

    # Values

    def free_op(self, value: SSAValue) -> GraphOp | None:
        """The free op that makes the value."""
        return self._maker.get(id(value))

    def roots(self, value: SSAValue) -> frozenset[SSAValue]:
        """The values in memory that a value is made of through free ops."""
        known = self._roots.get(id(value))
        if known is None:
            maker = self.free_op(value)
            made_of = map(self.roots, maker.operands) if maker is not None else ((value,),)
            known = self._roots[id(value)] = frozenset[SSAValue]().union(*made_of)
        return known

    def users(self, value: SSAValue) -> set[Operation]:
        """The ops that read the value, directly or through free ops."""
        return self._users.get(value, set())

    def _find_users(self) -> None:
        for op in self.block.ops:
            if op in self.free:
                continue
            for operand in op.operands:
                for root in self.roots(operand):
                    self._users.setdefault(root, set()).add(op)

    # Units

    def add(self, op: GraphOp, space: Space | None, in_place: bool = False) -> Group:
        group = Group(len(self._ancestors), [op], space, in_place)
        self.groups[group.id] = group
        self.unit_of[op] = group
        group.before = self.units_read(op) - {group.id}
        self._ancestors.append(self._with_ancestors(group.before))
        return group

    def join(self, op: GraphOp, group: Group) -> None:
        group.ops.append(op)
        self.unit_of[op] = group
        self._depend(group, self.units_read(op) - {group.id})

    def merge(self, group: Group, other: Group) -> None:
        """Move all of `other` into `group`."""
        for op in other.ops:
            self.unit_of[op] = group
        group.ops = other.ops + group.ops
        del self.groups[other.id]
        bit, keep = 1 << other.id, 1 << group.id
        for unit in self.groups.values():
            if other.id in unit.before:
                unit.before.discard(other.id)
                unit.before.add(group.id)
            if self._ancestors[unit.id] & bit:
                self._ancestors[unit.id] = (self._ancestors[unit.id] & ~bit) | keep
        group.before.discard(group.id)
        self._ancestors[group.id] &= ~keep
        self._depend(group, other.before - {group.id})

    def must_precede(self, first: Group, then: Group) -> None:
        if first is not then:
            self._depend(then, {first.id})

    def units_read(self, op: Operation) -> set[int]:
        unit_of = self.unit_of
        return {unit_of[maker].id for maker in self._makers(op) if maker in unit_of}

    def _makers(self, op: Operation) -> tuple[Operation, ...]:
        """The ops that make the values in memory which `op` reads."""
        known = self._read.get(op)
        if known is None:
            roots = [root for operand in op.operands for root in self.roots(operand)]
            makers = dict.fromkeys(root.owner for root in roots if isinstance(root, OpResult))
            known = self._read[op] = tuple(makers)
        return known

    def would_cycle(self, op: GraphOp, group: Group) -> bool:
        """If `op` joined, would the group wait for something that waits for it?"""
        return any(u != group.id and self._ancestors[u] >> group.id & 1 for u in self.units_read(op))

    def waits(self, group: Group, earlier: Group) -> bool:
        """Must `group` come after `earlier`?"""
        return bool(self._ancestors[group.id] >> earlier.id & 1)

    def between(self, group: Group, later: Group) -> bool:
        """Does something lie between the two, so that they cannot be one unit?"""
        if self.waits(group, later):
            return True
        return any(u != group.id and self._ancestors[u] >> group.id & 1 for u in later.before)

    def feeds_only(self, group: Group, op: GraphOp) -> bool:
        inside = {op, *group.ops}
        return all(self.users(r) <= inside for r in group.results())

    def have_room(self, groups: Sequence[Group], more: int, limit: int) -> bool:
        """Do the groups read and make few enough values in memory for one kernel, with `more` operands to come?"""
        ops = [op for group in groups for op in group.ops]
        at_most = sum(len(op.results) + sum(len(self.roots(o)) for o in op.operands) for op in ops) + more
        return at_most <= limit or self._buffers(ops) + more <= limit

    def _buffers(self, ops: Sequence[GraphOp]) -> int:
        """How many values in memory the ops together read or make."""
        made = {r for op in ops for r in op.results}
        read = {root for op in ops for operand in op.operands for root in self.roots(operand)}
        inside = set(ops)
        return len(read - made) + sum(1 for r in made if not self.users(r) <= inside)

    def _depend(self, group: Group, on: set[int]) -> None:
        fresh = on - group.before
        if not fresh:
            return
        group.before |= fresh
        added = self._with_ancestors(fresh)
        if added & ~self._ancestors[group.id]:
            self._ancestors[group.id] |= added
            bit = 1 << group.id
            for unit in self.groups:
                if self._ancestors[unit] & bit:
                    self._ancestors[unit] |= added

    def _with_ancestors(self, units: set[int]) -> int:
        """These units and all that come before them, as bits."""
        found = 0
        for unit in units:
            found |= self._ancestors[unit] | 1 << unit
        return found

    def in_order(self) -> list[Group]:
        """The units, each after all that come before it; else in program order."""
        position = {op: i for i, op in enumerate(self.block.ops)}
        place = {g.id: max(position[op] for op in g.ops) for g in self.groups.values()}
        done: set[int] = set()
        ordered: list[Group] = []
        most = len(self.groups) + sum(len(group.before) for group in self.groups.values())
        for start in sorted(self.groups, key=place.__getitem__):
            stack = [start]
            while stack:
                top = stack[-1]
                missing = [] if top in done else [u for u in self.groups[top].before if u not in done]
                if len(stack) > most:
                    raise InternalError(
                        f"kernels wait for one another: {', '.join(op.title for op in self.groups[top].ops)}"
                    )
                if missing:
                    stack += sorted(missing, key=place.__getitem__, reverse=True)
                    continue
                stack.pop()
                if top not in done:
                    done.add(top)
                    ordered.append(self.groups[top])
        return ordered
