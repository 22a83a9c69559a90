"""reshape(permute(x)), each dim split at most -> permute(reshape(x)).  Sound: a split acts within its dim, wherever that stands.
Not worse: as many ops; the reshape merges with one before the permute, so that dims which are merged only to be split again are
left alone, and what would have to be copied is a view.  Source: attention heads by torch.nn.functional.multi_head_attention_forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.types import Dim, dims_attr, dims_of, tensor, type_of
from dlcb.dialects.graph.view import PermuteOp, ReshapeOp
from dlcb.passes.graph_builder import int_list
from dlcb.passes.rule import Rule

_HEADS = '%x: tensor<[n, m, 24], f32> input "x"'
_MERGED = "%a = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[n, d, 8]>} : (tensor<[n, m, 24], f32>) -> tensor<[n, d, 8], f32>"
_TURNED = "%p = dlcb.graph.permute %a {order = [#builtin.int<1>, #builtin.int<0>, #builtin.int<2>]} : (tensor<[n, d, 8], f32>) -> tensor<[d, n, 8], f32>"


def _ending(shape: str) -> str:
    return f"""%r = dlcb.graph.reshape %p {{shape = #dlcb.graph.dims<{shape}>}} : (tensor<[d, n, 8], f32>) -> tensor<{shape}, f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<{shape}, f32> }}"""


class SplitBeforePermute(Rule):
    level = "graph"
    roots = (ReshapeOp,)
    before = f"""dlcb.graph.func @f({_HEADS}) {{
        {_MERGED}
        {_TURNED}
        {_ending("[m, 3, 1, n, 8]")}"""
    after = f"""dlcb.graph.func @f({_HEADS}) {{
        {_MERGED}
        %b = dlcb.graph.reshape %a {{shape = #dlcb.graph.dims<[n, m, 3, 1, 8]>}} : (tensor<[n, d, 8], f32>) -> tensor<[n, m, 3, 1, 8], f32>
        %r = dlcb.graph.permute %b {{order = [#builtin.int<1>, #builtin.int<2>, #builtin.int<3>, #builtin.int<0>, #builtin.int<4>]}} : (tensor<[n, m, 3, 1, 8], f32>) -> tensor<[m, 3, 1, n, 8], f32>
        dlcb.graph.return %r : !dlcb.graph.tensor<[m, 3, 1, n, 8], f32> }}"""
    refused: ClassVar = {
        "the source is no permute of a reshape": f"""dlcb.graph.func @f(%a: tensor<[n, d, 8], f32> input "a") {{
        {_TURNED}
        {_ending("[m, 3, n, 8]")}""",
        "not each dim is split by itself": f"""dlcb.graph.func @f({_HEADS}) {{
        {_MERGED}
        {_TURNED}
        {_ending("[d, k]")}""",
    }

    def why_not(self, op: ReshapeOp) -> str | None:
        permute = op.src.owner
        if not isinstance(permute, PermuteOp) or not isinstance(permute.src.owner, ReshapeOp):
            return "the source is no permute of a reshape"
        if splits(dims_of(op.src), dims_of(op.res)) is None:
            return "not each dim is split by itself"
        return None

    def rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        permute = op.src.owner
        assert isinstance(permute, PermuteOp)
        groups = splits(dims_of(op.src), dims_of(op.res))
        assert groups is not None
        result, axes = dims_of(op.res), permute.axes
        there = sorted(range(len(axes)), key=axes.__getitem__)
        places = [place for axis in there for place in groups[axis]]
        dims = tuple(result[place] for place in places)
        element = type_of(op.res).element
        split = ReshapeOp.make([permute.src], [tensor(dims, element)], shape=dims_attr(dims))
        order = int_list(tuple(places.index(place) for place in range(len(result))))
        rewriter.replace(op, [split, PermuteOp.make([split.res], [op.res.type], order=order)])


def splits(source: Sequence[Dim], result: Sequence[Dim]) -> list[range] | None:
    """For each dim of the source the places in the result that it is split into. All but one are told by their names,
    that one has what is left; dims of size 1 come and go. None where it is not so."""
    starts, i, j = [0], 0, 0
    while i < len(source) and j < len(result):
        if source[i] == result[j] or source[i] == 1:
            j += source[i] == result[j]
            i += 1
            starts.append(j)
        elif result[j] == 1:
            j += 1
        else:
            break
    ends, k, end = [len(result)], len(source), len(result)
    while k > i + 1:
        if end > j and source[k - 1] == result[end - 1]:
            k, end = k - 1, end - 1
        elif end > j and result[end - 1] == 1:
            end -= 1
            continue
        elif source[k - 1] == 1:
            k -= 1
        else:
            return None
        ends.append(end)
    if i == len(source):
        starts.pop()
        if not source or any(dim != 1 for dim in result[j:]):
            return None
    bounds = [*starts, *reversed(ends)]
    return [range(a, b) for a, b in pairwise(bounds)]
