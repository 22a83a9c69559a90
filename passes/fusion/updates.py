"""Which ops write in place: into an argument that the function updates, into an `empty`, or into a copy made for them.

Values are never changed in the graph; an update is an op (`insert`, `put`) whose base dies with it. Here the base's
later readers are given a copy, so that it does die, and the op is named as one that writes into its base's memory. A
KV-cache step has no later reader of the old cache, hence no copy.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, OpResult, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.creation import EmptyOp
from dlcb.dialects.graph.indexing import Put
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import Layout, contiguous, dims_attr, tensor, type_of
from dlcb.dialects.graph.view import CopyOp, InsertOp

Writer = InsertOp | Put


def written_values(func: FuncOp) -> dict[SSAValue, SSAValue]:
    """Edit the function so that every update is a chain of writers from the argument; the values that are written into
    the memory of an argument, or of an `empty` → that argument, or `empty`."""
    block, returned = func.body.block, func.returned
    lies_in: dict[SSAValue, SSAValue] = {}
    for i, argument_index in enumerate(returned.updated):
        argument = block.args[argument_index]
        chain = writers(returned.operands[i], argument)
        if chain is None:
            value = returned.operands[i]
            whole = write_whole(argument, value, returned)
            returned.operands[i] = whole.results[0]
            views = [r for r, a in returned.aliased.items() if a == argument_index]
            rebuild_views(returned, [len(returned.updated) + r for r in views], value, whole.results[0])
            chain = [whole]
        lies_in.update((op.results[0], argument) for op in chain)
    for op in block.ops:
        if isinstance(op, InsertOp):
            memory = lies_in.get(op.base, op.base)
            if isinstance(memory.owner, EmptyOp):
                lies_in[op.res] = memory
    return lies_in


def rebuild_views(returned: ReturnOp, places: list[int], value: SSAValue, other: SSAValue) -> None:
    """Let what is returned at `places` as a view of `value` be a view of `other`, which is equal but lies elsewhere."""
    for place in places:
        views = views_between(returned.operands[place], value)
        if views is None:
            continue
        moved = other
        for view in views:
            again = type(view).create(
                operands=[moved], result_types=view.result_types, properties=dict(view.properties)
            )
            again.location = view.location
            _insert_before(again, returned)
            moved = again.results[0]
        returned.operands[place] = moved


def plan_updates(func: FuncOp) -> set[GraphOp]:
    """Edit the function so that every update is written by ops in place; these ops. A second time changes nothing."""
    block = func.body.block
    chosen = [value.owner for value in written_values(func) if isinstance(value.owner, GraphOp)]
    for op in block.ops:
        if isinstance(op, Put) and op not in chosen:
            if not is_own_copy(op.operands[0]):
                op.operands[0] = copy_before(op.operands[0], op)
            chosen.append(op)
    position = _places(block)
    for op in sorted(chosen, key=position.__getitem__):
        if reads_memory_of(op.operands[-1], op.operands[0]):
            op.operands[len(op.operands) - 1] = copy_before(op.operands[-1], op)
            position = _places(block)
        if spare_late_readers(op, position):
            position = _places(block)
    return set(chosen)


def _places(block: Block) -> dict[Operation, int]:
    return {op: place for place, op in enumerate(block.ops)}


def reads_memory_of(value: SSAValue, base: SSAValue) -> bool:
    """Is the value the base, or a view of it?"""
    return views_between(value, base) is not None


def views_between(value: SSAValue, base: SSAValue) -> list[GraphOp] | None:
    """The views, from the base on, that make the value of the base; None where something else makes it."""
    views: list[GraphOp] = []
    while value is not base:
        if not isinstance(value, OpResult) or not isinstance(value.op, GraphOp) or value.op.FAMILY != "view":
            return None
        views.append(value.op)
        value = value.op.operands[0]
    return views[::-1]


def writers(value: SSAValue, argument: SSAValue) -> list[GraphOp] | None:
    """The ops that write, one after the other, from the argument to its new value; None where something else makes
    it."""
    chain: list[GraphOp] = []
    while value is not argument:
        if not isinstance(value, OpResult) or not isinstance(value.op, (InsertOp, Put)):
            return None
        chain.append(value.op)
        value = value.op.operands[0]
    return chain[::-1]


def write_whole(argument: SSAValue, value: SSAValue, before: Operation) -> GraphOp:
    t = type_of(argument)
    op = InsertOp.make([argument, value], [t], starts=dims_attr((0,) * t.rank), steps=dims_attr((1,) * t.rank))
    op.location = value.op.location if isinstance(value, OpResult) else before.location
    _insert_before(op, before)
    return op


def is_own_copy(value: SSAValue) -> bool:
    return isinstance(value.owner, CopyOp) and value.has_one_use()


def copy_before(value: SSAValue, before: Operation, layout: Layout | None = None) -> SSAValue:
    """A copy that lies so; contiguous where no layout is given."""
    t = type_of(value)
    copy = CopyOp.make([value], [tensor(t.dims, t.element, layout or contiguous(t.rank))])
    copy.location = before.location
    _insert_before(copy, before)
    return copy.results[0]


def spare_late_readers(op: GraphOp, position: dict[Operation, int]) -> bool:
    """Give every reader of the base that comes after `op` a copy of it. Was there one?"""
    here = position[op]
    base = op.operands[0]
    late = [use for use in list(base.uses) if use.operation is not op and reads_late(use.operation, here, position)]
    if late:
        copy = copy_before(base, min([op, *(u.operation for u in late)], key=position.__getitem__))
        for use in late:
            use.operation.operands[use.index] = copy
    return bool(late)


def reads_late(op: Operation, here: int, position: dict[Operation, int]) -> bool:
    """Does the op, or what views its result, read memory after place `here`?"""
    if position.get(op, here) > here:
        return True
    if isinstance(op, GraphOp) and op.FAMILY == "view":
        return any(reads_late(u.operation, here, position) for r in op.results for u in r.uses)
    return False


def _insert_before(op: Operation, before: Operation) -> None:
    block = before.parent_block()
    assert block is not None
    block.insert_op_before(op, before)
