"""Give tensors of any rank their ranks: `dlcb-instantiate{ranks="x=3","y=2"}`.

Before: arguments `tensor<*, f32>`, and ops on them whose results have no rank either. After: each such argument has a
symbol for each of its sizes (`x_0`, `x_1`, …), and every op's result has the sizes that the op infers; an axis that
counts from the end (`axis = -1`) is counted from the start. From there on all stages are as for any program.

Refused: names that are no argument of any rank, such arguments without a rank, ranks below 0, and ops that do not take
operands of these ranks (a `permute` of three dims).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import set_type
from dlcb.dialects.graph.base import GraphOp, SizesOnly
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dims, TensorType, tensor, type_of
from dlcb.dialects.graph.window import ints
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import UserError
from dlcb.passes.functions import functions, set_system, system_of, unranked

_RANK = re.compile(r"\s*(\S+?)\s*=\s*(\d+)\s*")


def parse_ranks(texts: Sequence[str]) -> dict[str, int]:
    """`("x=3",)` as a map."""
    ranks: dict[str, int] = {}
    for text in texts:
        match = _RANK.fullmatch(text)
        if match is None:
            raise UserError(f"expected 'argument=rank' with a rank of at least 0, got '{text}'")
        if ranks.setdefault(match[1], int(match[2])) != int(match[2]):
            raise UserError(f"'{match[1]}' is to be of rank {ranks[match[1]]} and {match[2]}")
    return ranks


def why_not_instantiate(func: FuncOp, ranks: Mapping[str, int]) -> str | None:
    """The reason why these ranks do not make a program of the function."""
    found = unranked(func)
    foreign = [name for name in ranks if name not in found]
    missing = [name for name in found if name not in ranks]
    known = ", ".join(found) or "none"
    if foreign:
        return f"'{foreign[0]}' is no argument of any rank; those of @{func.symbol} are: {known}"
    return f"the argument '{missing[0]}' is of any rank, and has been given none" if missing else None


def instantiate(func: FuncOp, ranks: Mapping[str, int]) -> None:
    """Write the ranks into the function's types, and its new sizes into its system."""
    refusal = why_not_instantiate(func, ranks)
    if refusal is not None:
        raise UserError(refusal)
    system = system_of(func)
    for name, argument in unranked(func).items():
        dims = tuple([system.symbol_of(Source.size(name, axis), f"{name}_{axis}") for axis in range(ranks[name])])
        _retype(argument, dims)
    for op in func.body.block.ops:
        if isinstance(op, GraphOp) and any(isinstance(r.type, TensorType) and not r.type.ranked for r in op.results):
            _infer(op, system)
    set_system(func, system)


def instantiate_main(module: ModuleOp, ranks: Mapping[str, int]) -> None:
    """The one function that callers know; `@weights` has only tensors of known sizes."""
    instantiate(next(func for func in functions(module) if func.symbol == "main"), ranks)


def _infer(op: GraphOp, system: System) -> None:
    _count_axes_from_the_start(op)
    try:
        sizes = op.infer(SizesOnly())
    except (VerifyException, IndexError, ValueError) as error:
        given = ", ".join(str(type_of(operand)) for operand in op.operands)
        raise UserError(f"{op.title}: does not take operands of these ranks: {given}") from error
    for result, of_result in zip(op.results, sizes, strict=True):
        _retype(result, tuple(map(system.define_fresh, of_result)))
    op.verify_()


def _count_axes_from_the_start(op: GraphOp) -> None:
    rank = type_of(op.operands[0]).rank if op.operands else 0
    axis, axes = op.properties.get("axis"), op.properties.get("axes")
    if isinstance(axis, IntAttr):
        op.properties["axis"] = IntAttr(_from_start(op, cast("IntAttr[int]", axis).data, rank))
    if isinstance(axes, ArrayAttr):
        numbers = [_from_start(op, axis, rank) for axis in ints(cast("ArrayAttr[IntAttr]", axes))]
        if len(set(numbers)) < len(numbers):
            raise UserError(f"{op.title}: of a tensor of rank {rank}, two of the axes are the same")
        op.properties["axes"] = ArrayAttr(map(IntAttr, numbers))


def _from_start(op: GraphOp, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise UserError(f"{op.title}: a tensor of rank {rank} has no axis {axis}")
    return axis % rank


def _retype(value: SSAValue, dims: Dims) -> None:
    old = value.type
    assert isinstance(old, TensorType)
    set_type(value, tensor(dims, old.element, old.layout))


@dataclass(frozen=True)
class InstantiatePass(ModulePass):
    name = "dlcb-instantiate"

    ranks: tuple[str, ...] = ()
    """`"x=3"` for each argument of any rank."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            instantiate_main(op, parse_ranks(self.ranks))
        except UserError as error:
            raise UserError(f"{self.name}: {error}") from error
