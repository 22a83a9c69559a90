"""take(weight, indices), the indices a weight too, and the views that follow -> a derived weight, computed in `@weights`.

Sound: it depends on weights alone; an index out of range fails there.  Not worse: done where the lookup repeats rows, so
every reader of the result would read an index and jump for each element; the result is not large.  Source: the tables of
relative positions that Swin transformers add to their scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar, Final

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.derived import NAME
from dlcb.dialects.graph.indexing import TakeOp
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import dims_of
from dlcb.dialects.graph.view import CopyOp, PermuteOp, ReshapeOp
from dlcb.passes.rule import Rule
from dlcb.passes.weights import WeightFunction, weight_name, why_not_weights

MOST_ELEMENTS: Final = 1 << 23
_VIEWS: Final = (ReshapeOp, PermuteOp)

_WEIGHTS = '%w: tensor<[3, 2], f16> weight "table", %i: tensor<[2, 2], i64> weight "index"'
_LOOKUP = """%j = dlcb.graph.reshape %i {shape = #dlcb.graph.dims<[4]>} : (tensor<[2, 2], i64>) -> tensor<[4], i64>
        %t = dlcb.graph.take %w, %j {axis = #builtin.int<0>} : (tensor<[3, 2], f16>, tensor<[4], i64>) -> tensor<[4, 2], f16>
        %p = dlcb.graph.permute %t {order = [#builtin.int<1>, #builtin.int<0>]} : (tensor<[4, 2], f16>) -> tensor<[2, 4], f16>"""
_ADD = "%r = dlcb.graph.add %x, %p : (tensor<[n, 2, 4], f16>, tensor<[2, 4], f16>) -> tensor<[n, 2, 4], f16>"
_RETURN = "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 2, 4], f16>"


class HoistTake(Rule):
    level = "graph"
    priority = 40  # before the views that follow become those of others
    roots = (TakeOp,)
    before = f"""dlcb.graph.func @main(%x: tensor<[n, 2, 4], f16> input "x", {_WEIGHTS}) {{
        {_LOOKUP}
        {_ADD}
        {_RETURN} }}"""
    after = f"""dlcb.graph.func @weights({_WEIGHTS}) {{
        {_LOOKUP}
        %c = dlcb.graph.copy %p : (tensor<[2, 4], f16>) -> tensor<[2, 4], f16>
        dlcb.graph.return %c : !dlcb.graph.tensor<[2, 4], f16> }}
      dlcb.graph.func @main(%x: tensor<[n, 2, 4], f16> input "x", {_WEIGHTS}, %p: tensor<[2, 4], f16> weight "table|index")
          attributes {{dlcb.derived = {{"table|index" = 0 : i64}}}} {{
        {_ADD}
        {_RETURN} }}"""
    refused: ClassVar = {
        "an operand is no weight": before.replace('weight "index"', 'input "index"'),
        "the program updates a weight": before.replace(
            "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 2, 4], f16>",
            "dlcb.graph.return %w, %r : !dlcb.graph.tensor<[3, 2], f16>, !dlcb.graph.tensor<[n, 2, 4], f16>"
            " {updates = [#builtin.int<1>]}",
        ),
        "it is computed among the weights": after,
        "the program returns it": before.replace(
            f"{_ADD}\n        {_RETURN}", "dlcb.graph.return %p : !dlcb.graph.tensor<[2, 4], f16>"
        ),
        "it repeats no row": before.replace("[3, 2]", "[4, 2]"),
        "it is large": before.replace("[2, 2], i64", "[2, 4194304], i64")
        .replace("[4]", "[8388608]")
        .replace("[4, 2]", "[8388608, 2]")
        .replace("2, 4]", "2, 8388608]"),
    }

    def why_not(self, op: TakeOp) -> str | None:
        func = op.parent_op()
        if isinstance(func, FuncOp) and func.symbol == NAME:
            return "it is computed among the weights"
        reason = why_not_weights(func, [_source(operand)[0] for operand in op.operands])
        if reason is not None:
            return reason
        count = _count(op.res)
        if count <= _count(op.data):
            return "it repeats no row"
        if count > MOST_ELEMENTS:
            return "it is large"
        last = _chain(op)[-1]
        returned = any(isinstance(use.operation, ReturnOp) for use in last.results[0].uses)
        return "the program returns it" if returned else None

    def rewrite(self, op: TakeOp, rewriter: PatternRewriter) -> None:
        func, chain = op.parent_op(), _chain(op)
        assert isinstance(func, FuncOp)
        sources = [_source(operand) for operand in op.operands]
        roots = [root for root, _ in sources]
        weights = WeightFunction.of(func, rewriter)
        known = dict(zip(roots, weights.arguments(roots), strict=True))
        made = [again for _, views in sources for again in _again(views, known)]
        made += _again(chain, known)
        if len(chain) > 1:
            made.append(CopyOp.make([made[-1].results[0]], [made[-1].results[0].type]))
        weights.append(made)
        names = map(weight_name, roots)
        (derived,) = weights.derive({"|".join(names): made[-1].results[0]})
        rewriter.replace(chain[-1], [], [derived])


def _source(value: SSAValue) -> tuple[SSAValue, list[GraphOp]]:
    """What this is a view of, and the views between, the first first."""
    views: list[GraphOp] = []
    while isinstance(value.owner, _VIEWS) and _is_literal(value):
        views.insert(0, value.owner)
        value = value.owner.src
    return value, views


def _chain(op: TakeOp) -> list[GraphOp]:
    """The op and the views that follow, each the only use of the one before."""
    chain: list[GraphOp] = [op]
    while isinstance(user := chain[-1].results[0].get_user_of_unique_use(), _VIEWS) and _is_literal(user.res):
        chain.append(user)
    return chain


def _is_literal(value: SSAValue) -> bool:
    return all(isinstance(dim, int) for dim in dims_of(value))


def _count(value: SSAValue) -> int:
    """Elements of a weight, or of what is made of weights: their sizes are numbers."""
    return prod(dim for dim in dims_of(value) if isinstance(dim, int))


def _again(ops: list[GraphOp], known: dict[SSAValue, SSAValue]) -> Iterator[GraphOp]:
    """The ops once more, reading what `known` says in place of their operands; it learns their results."""
    for op in ops:
        again = type(op).create(
            operands=[known[operand] for operand in op.operands],
            result_types=op.result_types,
            properties=dict(op.properties),
        )
        again.location = op.location
        known[op.results[0]] = again.results[0]
        yield again
