"""Where the results of a program lie: in memory of their own, in an argument's, in another result's; and how.

Torch's fakes say in which order the dims of each piece of memory lie. A result that is a view gets its strides from the
views that lead to it from all of its memory, as expressions over sizes and over the strides of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import torch
from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.strides import expand_strides, layout_strides, reshape_conditions
from dlcb.dialects.graph.types import (
    DenseLayout,
    Layout,
    TensorType,
    contiguous,
    dense,
    dim_to_expr,
    strided,
    tensor,
    type_of,
)
from dlcb.dialects.graph.view import ExpandOp, ReshapeOp, reshape_groups
from dlcb.dialects.shape.expr import Expr, add, const, eq, evaluate, le, logical_and, logical_or, mul, ne, select, sym
from dlcb.dialects.shape.requirement import Require
from dlcb.dialects.shape.system import Source, System
from dlcb.errors import LAYOUT, InternalError
from dlcb.frontend.tracing.layouts import is_dense, order_of
from dlcb.frontend.tracing.records import Captured, Place, Value
from dlcb.passes.fusion.updates import views_between
from dlcb.passes.sizes import DefinedSizes
from dlcb.passes.solve import STRIDES

MAY_COPY = frozenset({"reshape", "flatten", "reshape_as", "contiguous", "to", "_to_copy", "clone"})
"""Operations that give a view or a copy, as the strides of their operand allow."""


TAKES_NUMBERS = frozenset(
    {
        "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "eq", "ne", "lt", "le", "gt", "ge",
        "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor",
    }
)  # fmt: skip
"""Operations for which torch makes a tensor of a number."""


@dataclass(frozen=True, slots=True)
class Placed:
    """One result: the value that is all of its memory, how that lies, and what of it the caller gets (None: all). The
    memory is the `argument`'s of that number, that of the earlier result `shares`, or its own."""

    memory: SSAValue
    layout: Layout
    view: TensorType | None = None
    argument: int | None = None
    shares: int | None = None


def place_results(
    captured: Captured,
    system: System,
    value_of: Callable[[Value], SSAValue],
    numbers: Mapping[SSAValue, int],
    refuse: Callable[[Value], NoReturn],
) -> list[Placed]:
    """For each output that is a tensor. `numbers` are those of arguments. The system gets symbols, and what must hold
    at launch so that a result can be a view. `refuse` is told of a view of an argument that the graph does not show."""
    return _Placing(captured, system, value_of, numbers, refuse).run()


def require_layouts(captured: Captured, system: System) -> None:
    """Inputs must lie as the example does: their dims in the same order, expanded where the example's are; without gaps
    where it has none and the program asks."""
    for given in captured.inputs:
        if given.value is None or given.example is None or given.value.shape == ():
            continue
        root = given.value
        order = order_of(root.shape, root.strides)
        dims = [sym(system.symbol_of(Source.stride(given.name, axis), f"{given.name}_s{axis}")) for axis in order]
        sizes = [dim_to_expr(given.symbols[axis]) for axis in order]
        text = f"{LAYOUT}{given.name} lies in memory otherwise than what was compiled for"
        for axis, stride, size in zip(order, dims, sizes, strict=True):
            system.traced[stride.name] = root.strides[axis]
            is_expanded = root.strides[axis] == 0
            system.requires.append(Require.any_of([le(size, 1), (eq if is_expanded else ne)(stride, 0)], text))
        for place in range(len(order) - 1):
            ordered = le(dims[place + 1], dims[place])
            one = (le(sizes[place], 1), le(sizes[place + 1], 1))
            system.requires.append(Require.any_of([*one, ordered], text))
        if captured.asks_layouts and is_dense(root.shape, root.strides):
            step, is_empty = const(1), eq(mul(*sizes), 0)
            for place in reversed(range(len(order))):
                system.requires.append(Require.any_of([le(sizes[place], 1), is_empty, eq(dims[place], step)], text))
                step = mul(step, sizes[place])


class _Placing:
    def __init__(
        self,
        captured: Captured,
        system: System,
        value_of: Callable[[Value], SSAValue],
        numbers: Mapping[SSAValue, int],
        refuse: Callable[[Value], NoReturn],
    ) -> None:
        self._captured = captured
        self._system = system
        self._value_of = value_of
        self._numbers = numbers
        self._refuse = refuse
        self._sizes = DefinedSizes.from_system(system)
        self._names = {given.value: given.name for given in captured.inputs}
        self._weights = {weight.value: weight.tensor for weight in captured.weights}
        self._made = {value: record for record in captured.records for value in record.results}
        self._known = {*self._names, *self._weights, *self._made}
        self._of = {alias.output: alias.of for alias in captured.aliases}
        self._placed: dict[int, Placed] = {}
        self._numbers_of_results: dict[int, int] = {}

    def run(self) -> list[Placed]:
        for index, output in enumerate(self._captured.outputs):
            if isinstance(output, Value):
                self._numbers_of_results[index] = len(self._placed)
                self._placed[index] = self._result(index, output)
        return list(self._placed.values())

    def _result(self, index: int, output: Value) -> Placed:
        of = self._of.get(index)
        result = self._value_of(output)
        if isinstance(of, Value):
            return self._in_argument(output, result, of)
        place = self._place_of(output)
        memory = self._value_of(place.content)
        placed = self._view(result, output, memory, own_layout(place.root))
        if placed is None:
            return Placed(result, own_layout(output))
        if placed.view is None and self._is_contiguous_if_it_can(place.root):
            placed = replace(placed, view=self._contiguous_if_it_can(result, own_layout(place.root)))
        if of is not None and self._placed[of].memory is memory:
            return replace(placed, shares=self._numbers_of_results[of])
        return placed

    def _in_argument(self, output: Value, result: SSAValue, argument: Value) -> Placed:
        layout = self._argument_layout(argument)
        for content in (self._place_of(output).content, argument):
            placed = self._view(result, output, self._value_of(content), layout)
            if placed is not None:
                return replace(placed, argument=self._numbers[self._value_of(argument)])
        self._refuse(output)

    def _place_of(self, output: Value) -> Place:
        known = self._captured.places.get(output)
        if known is not None and known.content in self._known:
            return known
        root = self._captured.memory.get(output, output)
        if root not in self._known:
            root = output
        return Place(root, root)

    def _argument_layout(self, argument: Value) -> Layout:
        if argument in self._weights:
            weight = self._weights[argument]
            return weight_layout(weight) or contiguous(weight.dim())
        return self._input_layout(self._names[argument], argument)

    def _input_layout(self, name: str, root: Value) -> Layout:
        """The layout of an input: its strides, which the system gets as symbols."""
        return strided(tuple(self._stride(name, axis, stride) for axis, stride in enumerate(root.strides)))

    def _stride(self, name: str, axis: int, traced: int) -> str:
        symbol = self._system.symbol_of(Source.stride(name, axis), f"{name}_s{axis}")
        self._system.traced[symbol] = traced
        return symbol

    def _view(self, result: SSAValue, traced: Value, memory: SSAValue, layout: Layout) -> Placed | None:
        """None where the graph does not show how the result lies in that memory."""
        if result is memory:
            return Placed(memory, layout)
        views = views_between(result, memory)
        if views is None:
            return None
        strides, offset, conditions = self._strides(views, memory, layout)
        if not self._is_traced(strides, traced):
            return None
        self._require(conditions, traced)
        dims = tuple(self._system.define_fresh(stride, "s") for stride in strides)
        start = self._system.define_fresh(offset, "s")
        t = type_of(result)
        return Placed(memory, layout, tensor(t.dims, t.element, strided(dims, start)))

    def _is_contiguous_if_it_can(self, value: Value) -> bool:
        """Is it made by an elementwise operation of dense tensors of its sizes? Torch makes the result of contiguous
        tensors contiguous, whatever strides their dims of size 1 have. Where a number is one of the operands, it asks
        what made the tensor."""
        while True:
            record = self._made.get(value)
            op = self._value_of(value).owner
            if record is None or not isinstance(op, GraphOp) or op.FAMILY != "elementwise" or record.op in MAY_COPY:
                return False
            tensors = [v for v in record.args if isinstance(v, Value)]
            if any(t.shape != value.shape or not is_dense(t.shape, t.strides) for t in tensors):
                return False
            if record.op not in TAKES_NUMBERS or len(tensors) != 1 or len(record.args) == 1:
                return True
            value = tensors[0]

    def _contiguous_if_it_can(self, result: SSAValue, layout: DenseLayout) -> TensorType | None:
        """All of the memory, row-major where the dims that lie in another order have size 1."""
        sizes, order = self._sizes.of(result), layout.order
        turned = [(a, b) for place, a in enumerate(order) for b in order[place + 1 :] if a > b]
        can = logical_and(*(logical_or(eq(sizes[a], 1), eq(sizes[b], 1)) for a, b in turned))
        if can.is_const:
            return None
        strides, _ = layout_strides(layout, sizes, self._sizes.dim)
        plain, _ = layout_strides(None, sizes, self._sizes.dim)
        t = type_of(result)
        dims = [self._system.define_fresh(select(can, p, s), "s") for p, s in zip(plain, strides, strict=True)]
        return tensor(t.dims, t.element, strided(tuple(dims)))

    def _strides(
        self, views: Sequence[GraphOp], memory: SSAValue, layout: Layout
    ) -> tuple[tuple[Expr, ...], Expr, list[tuple[GraphOp, Expr]]]:
        sizes = self._sizes
        strides, offset = layout_strides(layout, sizes.of(memory), sizes.dim)
        conditions: list[tuple[GraphOp, Expr]] = []
        for view in views:
            if isinstance(view, ExpandOp):
                strides = expand_strides(sizes.of(view.operands[0]), strides, sizes.of(view.results[0]))
                continue
            got = view.view(strides, sizes)
            if got is not None:
                strides, offset = got.strides, add(offset, got.offset)
                continue
            if not isinstance(view, ReshapeOp):
                raise InternalError(f"{view.title}: is a view, but has no strides")
            before, after = sizes.of(view.operands[0]), sizes.of(view.results[0])
            runs = reshape_groups(self._traced_sizes(before), self._traced_sizes(after))
            needed: list[Expr]
            strides, needed = reshape_conditions(before, strides, after, runs)
            conditions += [(view, condition) for condition in needed]
        return strides, offset, conditions

    def _require(self, conditions: Sequence[tuple[GraphOp, Expr]], output: Value) -> None:
        """That the strides allow the views. Where eager would copy else, it is a matter of what was compiled for."""
        may_copy = self._may_copy(output)
        for view, condition in conditions:
            where = f"at {view.line} its memory is viewed with other sizes, which its strides do not allow"
            text = f"{STRIDES}{where}: there are gaps between the dims, or they lie in another order"
            if may_copy:
                text = f"{LAYOUT}{where}; the program was compiled for arguments whose strides do"
            self._system.requires.append(Require.any_of([condition], text))

    def _may_copy(self, output: Value) -> bool:
        """Does eager copy on the way to the output where it can't make a view?"""
        while output in self._made:
            record = self._made[output]
            if record.op in MAY_COPY:
                return True
            first = record.args[0] if record.args else None
            if not isinstance(first, Value) or output not in self._captured.memory:
                return False
            output = first
        return False

    def _traced_sizes(self, sizes: Sequence[Expr]) -> list[Expr]:
        return [const(evaluate(self._system.value(size), self._system.traced)) for size in sizes]

    def _is_traced(self, strides: Sequence[Expr], traced: Value) -> bool:
        """Are these the strides that torch gave the fake? Those of dims of size 1 mean nothing."""
        known = self._system.traced
        return all(
            size <= 1 or evaluate(self._system.value(mine), known) == theirs
            for size, mine, theirs in zip(traced.shape, strides, traced.strides, strict=True)
        )


def own_layout(root: Value) -> DenseLayout:
    """Memory of its own lies densely, in the order that eager gives it."""
    return dense(order_of(root.shape, root.strides))


def weight_layout(weight: torch.Tensor) -> Layout | None:
    """How a weight lies; None for a contiguous one."""
    if weight.is_contiguous():
        return None
    if is_dense(weight.shape, weight.stride()):
        return dense(order_of(weight.shape, weight.stride()))
    return strided(tuple(weight.stride()))
