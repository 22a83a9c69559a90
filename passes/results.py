"""Results own their memory, unless the program says that they share it.

    return %y, %y                  →   %c = dlcb.graph.copy %y; return %y, %c
    return %x (an argument)        →   %c = dlcb.graph.copy %x; return %c

Equal values are one value in the graph, so two results of a program may have become one, or a result an argument. Who
changes the one must not change the other; so a copy is made, and what shares memory with that result lies in the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import BlockArgument, SSAValue

from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.passes.functions import memory_base
from dlcb.passes.fusion.updates import copy_before, rebuild_views


def separate_results(func: FuncOp, lies_in: Mapping[SSAValue, SSAValue]) -> None:
    """Edit the function; `lies_in` tells which values are written into which argument's memory."""
    returned = func.returned
    taken: set[SSAValue] = set()
    for group in _those_of_views_last(returned):
        if group[0] in returned.aliased:
            continue
        value = result_value(returned, group[0])
        base, layout = memory_base(value), returned.layout_of(group[0])
        if base in taken or isinstance(base, BlockArgument) or base in lies_in:
            places = [len(returned.updated) + result for result in group]
            if layout is None:
                rebuild_views(returned, places, base, copy_before(base, returned))
            else:
                rebuild_views(returned, places, value, copy_before(value, returned, layout))
        taken.add(memory_base(result_value(returned, group[0])))


def _those_of_views_last(returned: ReturnOp) -> Sequence[list[int]]:
    """The results by whose memory they lie in. Of a value and a view of it that both are to have memory of their own,
    the view is copied."""
    return sorted(sharing_groups(returned), key=lambda group: _is_view(result_value(returned, group[0])))


def _is_view(value: SSAValue) -> bool:
    return memory_base(value) is not value


def sharing_groups(returned: ReturnOp) -> Sequence[list[int]]:
    """The results by whose memory they lie in: each list starts with the owner."""
    groups: dict[int, list[int]] = {}
    for result in range(len(returned.results_returned)):
        groups.setdefault(returned.shared.get(result, result), []).append(result)
    return list(groups.values())


def result_value(returned: ReturnOp, result: int) -> SSAValue:
    return returned.operands[len(returned.updated) + result]
