"""Why an op may not join a group: reasons, decided apart from any editing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import Coords, GraphOp, Sizes
from dlcb.dialects.graph.convolution import DepthwiseOp
from dlcb.dialects.graph.reduce import Reduce
from dlcb.dialects.graph.row import AlongRow
from dlcb.dialects.graph.view import ConcatOp, CopyOp, ExpandOp, FlipOp, PadOp, PermuteOp, ReshapeOp, product
from dlcb.passes.fusion.groups import Group, Partition
from dlcb.passes.fusion.space import Space, merged_space, reads_at

MAX_BUFFERS = 24
MAX_OPS = 96
CHEAP = 4
"""Cost up to which a group may be computed more than once an element."""
EXPENSIVE_COST = 8
EXPENSIVE = frozenset("exp log tanh erf sin cos pow sigmoid silu gelu gelu_tanh div sqrt rsqrt".split())


class Refusal(Enum):
    """Why an op and a group do not share a kernel."""

    CYCLE = "something outside the kernel lies between them"
    ELSEWHERE = "the value is read at other coordinates, and is needed by others too"
    REDUCED = "the value is read at other coordinates than those the kernel reduces over"
    REPEATED = "it would be computed several times an element, and is not cheap"
    UNCHECKED = "indices in it are checked, and only a part would be computed"
    DATA = "where it is read depends on data"
    TOO_LARGE = "the kernel would have too many operands or ops"
    IN_PLACE = "the kernel writes into an argument"
    SPACE = "the kernels iterate over different coordinates, or reduce over different ones"


def op_cost(op: GraphOp) -> int:
    """What one element costs, in simple instructions."""
    return EXPENSIVE_COST if op.name.rpartition(".")[2] in EXPENSIVE else 1


def space_of(op: GraphOp, sizes: Sizes, in_place: bool = False) -> Space:
    """The space of a kernel that computes this op alone. An op that writes in place iterates over what it writes (its
    `src`)."""
    if isinstance(op, AlongRow):
        space = Space(sizes.of(op.operands[0]), op.row_axes)
    else:
        space = Space(sizes.of(op.operands[-1] if in_place else op.results[0]))
    if not in_place:
        place = place_in(op, space, sizes)
        assert place is not None
        space.places[op.results[0]] = place
    return space


def place_in(op: GraphOp, space: Space, sizes: Sizes) -> Coords | None:
    """Where the op's result would stand in the space."""
    if not isinstance(op, Reduce):
        return space.place_for(sizes.of(op.results[0]))
    kept, dropped = space.reduced_places
    return kept[1] if op.keep is not None else dropped[1]


def why_not_join(op: GraphOp, group: Group, partition: Partition, sizes: Sizes) -> Refusal | None:
    """May `op` be computed in the kernel of `group`, as things stand?"""
    if group.in_place:
        return Refusal.IN_PLACE
    if len(group.ops) >= MAX_OPS or not partition.have_room([group], len(op.operands), MAX_BUFFERS):
        return Refusal.TOO_LARGE
    return Refusal.CYCLE if partition.would_cycle(op, group) else None


def shared_space(op: GraphOp, group: Group, partition: Partition, sizes: Sizes) -> Space | None:
    """The group's space with `op` in it; None where `op` does not fit, or reads the group's values elsewhere than they
    stand."""
    space = group.space
    assert space is not None
    axes = space.axes
    if isinstance(op, AlongRow):
        if sizes.of(op.operands[0]) != space.domain or (axes and axes != op.row_axes):
            return None
        axes = op.row_axes
    if axes and (isinstance(op, DepthwiseOp) or has_blocks(group)):
        return None
    trial = Space(space.domain, axes, space.places)
    place = place_in(op, trial, sizes)
    reads = None if place is None else reads_at(op, place, sizes, partition.free_op)
    if place is None or reads is None:
        return None
    if any(space.places.get(value, at) != at for value, at in reads):
        return None
    if any(value not in space.places for value, _ in reads if value in set(group.results())):
        return None
    return Space(trial.domain, axes, {**space.places, op.results[0]: place})


def why_not_absorb(op: GraphOp, group: Group, partition: Partition, sizes: Sizes) -> Refusal | None:
    """May the whole group be computed for each element that `op` reads, wherever that is? Only if nothing else needs
    it."""
    assert group.space is not None
    if group.space.axes:
        return Refusal.REDUCED
    if not partition.feeds_only(group, op):
        return Refusal.ELSEWHERE
    return _why_not_where_read([op], group, partition, sizes)


def why_not_dissolve(group: Group, home: Group, partition: Partition, sizes: Sizes) -> Refusal | None:
    """May a group that only `home` reads be computed for each element that is read, wherever that is?"""
    if home.space is None or group.space is None:
        return Refusal.SPACE
    if group.space.axes:
        return Refusal.REDUCED
    made = set(group.results())
    readers = [op for op in home.ops if any(not partition.roots(o).isdisjoint(made) for o in op.operands)]
    if home.space.axes and not is_cheap(group):
        return Refusal.REPEATED
    if partition.between(group, home):
        return Refusal.CYCLE
    return _why_not_one(group, home, partition) or _why_not_where_read(readers, group, partition, sizes)


def _why_not_where_read(readers: Sequence[GraphOp], group: Group, partition: Partition, sizes: Sizes) -> Refusal | None:
    """May the group be computed for each element that these ops read, which are all that read it?"""
    made = set(group.results())
    if has_checks(group) and not all(reads_all(op, group, partition) for op in readers):
        return Refusal.UNCHECKED
    if any(op.FAMILY == "index" and not partition.roots(op.operands[0]).isdisjoint(made) for op in readers):
        return Refusal.DATA
    if has_blocks(group) or any(isinstance(op, DepthwiseOp) for op in readers):
        return Refusal.REPEATED
    if not is_cheap(group) and (len(readers) > 1 or any(repeats(op, group, partition, sizes) for op in readers)):
        return Refusal.REPEATED
    return None


def _why_not_one(group: Group, other: Group, partition: Partition) -> Refusal | None:
    """Are two groups of a kind and size that one kernel may have?"""
    if group.in_place or other.in_place:
        return Refusal.IN_PLACE
    if len(group.ops) + len(other.ops) > MAX_OPS or not partition.have_room([group, other], 0, MAX_BUFFERS):
        return Refusal.TOO_LARGE
    return None


def why_not_merge(other: Group, home: Group, partition: Partition, sizes: Sizes) -> Refusal | None:
    """May two kernels be one, where ops of `home` read values of `other`?"""
    a, b = other.space, home.space
    if a is None or b is None or a.domain != b.domain or (a.axes and b.axes and a.axes != b.axes):
        return Refusal.SPACE
    if (a.axes or b.axes) and (has_blocks(other) or has_blocks(home)):
        return Refusal.SPACE
    if (refusal := _why_not_one(other, home, partition)) is not None:
        return refusal
    if partition.between(other, home):
        return Refusal.CYCLE
    made, space = set(other.results()), merged_space(a, b)
    if not all(_reads_in_place(op, made, space, partition, sizes) for op in home.ops):
        return Refusal.ELSEWHERE
    return None


def _reads_in_place(op: GraphOp, made: set[SSAValue], space: Space, partition: Partition, sizes: Sizes) -> bool:
    """Does the op read the values `made` only where they stand in the space?"""
    if all(partition.roots(operand).isdisjoint(made) for operand in op.operands):
        return True
    place = space.places.get(op.results[0])
    reads = None if place is None else reads_at(op, place, sizes, partition.free_op)
    return reads is not None and all(value not in made or space.places.get(value) == at for value, at in reads)


def is_cheap(group: Group) -> bool:
    return sum(map(op_cost, group.ops)) <= CHEAP


def has_blocks(group: Group) -> bool:
    """Does a thread of its kernel compute a block of neighbours, which share what they read? Such a kernel has no
    rows, and its results are computed once, where they stand."""
    return any(isinstance(op, DepthwiseOp) for op in group.ops)


def has_checks(group: Group) -> bool:
    """Does it look at the values of elements, such as whether an index is in range?"""
    return any(op.failure() is not None for op in group.ops)


def reads_all(op: GraphOp, group: Group, partition: Partition) -> bool:
    """Does `op` surely read every element of what it reads of the group?"""
    made = set(group.results())
    read = [operand for operand in op.operands if partition.roots(operand) & made]
    by_index = op.FAMILY == "index" and op.operands[0] not in read
    whole = by_index or op.FAMILY in ("elementwise", "reduce", "scan") or isinstance(op, _ALL)
    return whole and all(_is_whole(operand, partition) for operand in read)


def _is_whole(value: SSAValue, partition: Partition) -> bool:
    """Has the value all elements of what it is made of through free ops?"""
    maker = partition.free_op(value)
    return maker is None or (isinstance(maker, _ALL) and all(_is_whole(v, partition) for v in maker.operands))


_ALL = (PermuteOp, ReshapeOp, ExpandOp, CopyOp, FlipOp, PadOp, ConcatOp)


def repeats(op: GraphOp, group: Group, partition: Partition, sizes: Sizes) -> bool:
    """May `op` read an element of the group several times?"""
    if isinstance(op, ExpandOp) or op.FAMILY in ("window", "index"):
        return True
    whole = product(sizes.of(op.operands[0] if isinstance(op, Reduce) else op.results[0]))
    made = set(group.results())
    for operand in op.operands:
        for root in partition.roots(operand) & made:
            if product(sizes.of(root)) is not whole and op.FAMILY not in ("move", "view"):
                return True
    return False
