"""Give every value its layout.

    %1 = dlcb.graph.convolution … : (…) -> tensor<[x_0, 64, h, w], f16>
    →   … -> tensor<[x_0, 64, h, w], f16, dense<[0, 2, 3, 1]>>

* An input may lie in memory anyhow: its strides are symbols, read at launch.
* A view that a library routine or the caller needs is one where its strides allow: it gets them, and no memory. Other
  views are left without a layout: the kernels that read through them need none.
* What is written into an argument lies as the argument does.
* All else is dense. Values in a chain with a half-precision 2-d convolution lie channels-last, which is what the
  vendor's tensor-core routines want; weights of such a convolution are laid so too, in `@weights` (the choice is about
  order, so sizes may stay unknown).
* A result of the function lies as its `return` says, else contiguous; values that it is made of lie alike. What lies
  otherwise is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from dlcb.dialects._xdsl import set_type
from dlcb.dialects.graph.base import GraphOp, block_ops, calls_library
from dlcb.dialects.graph.contract import MatmulOp
from dlcb.dialects.graph.convolution import Convolution, DepthwiseOp
from dlcb.dialects.graph.roots import is_view
from dlcb.dialects.graph.strides import layout_strides
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import DenseLayout, Layout, contiguous, dense, strided, tensor, type_of
from dlcb.dialects.graph.view import CopyOp, InsertOp, PermuteOp
from dlcb.dialects.shape.expr import Expr, add, mul
from dlcb.dialects.shape.system import Source
from dlcb.dialects.types import bf16, f16
from dlcb.passes.concatenations import share_memory
from dlcb.passes.functions import functions, set_system, system_of
from dlcb.passes.fusion.updates import plan_updates, written_values
from dlcb.passes.patches import multiply_patches, reads_points
from dlcb.passes.results import separate_results
from dlcb.passes.sizes import DefinedSizes
from dlcb.passes.stages import mark_stage
from dlcb.passes.weights import NAME as WEIGHTS
from dlcb.passes.weights import drop_unused_weights, is_weight, lay_weight

CHANNELS_LAST = dense((0, 2, 3, 1))
TAPS_FIRST = dense((2, 3, 1, 0))
"""A weight whose channels, which are outputs too, lie side by side."""
KEEPS_ORDER = frozenset({"elementwise", "window"})
LIKES_ORDER = frozenset({"elementwise", "window", "reduce"})
"""Families whose kernels are best where operands lie in the order of the result."""


def wants_channels_last(op: GraphOp) -> bool:
    """Is this a convolution that is best computed channels-last?"""
    return (
        isinstance(op, Convolution)
        and type_of(op.results[0]).rank == 4
        and op.result_element in (f16, bf16)
        and op.transposed is None
    )


def puts_channels_second(op: GraphOp) -> bool:
    """Is this a permute by which what lies row-major lies channels-last?"""
    return isinstance(op, PermuteOp) and op.axes == (0, 3, 1, 2)


def channels_last_values(func: FuncOp, written: Mapping[SSAValue, SSAValue]) -> set[SSAValue]:
    """The values that lie channels-last: results of such convolutions, what is computed of them elementwise, memory
    that they are written into, and what such a convolution or a product of points reads, or one of these, if it is
    computed elementwise.
    `written` tells which values lie in the memory of which others."""
    found: set[SSAValue] = set()
    ops, known = block_ops(func), -1
    while known < len(found):
        known = len(found)
        for op in ops:
            follows = op.FAMILY in KEEPS_ORDER and any(v in found for v in op.operands)
            if wants_channels_last(op) or puts_channels_second(op) or (follows and type_of(op.results[0]).rank == 4):
                found.add(op.results[0])
            if isinstance(op, InsertOp) and op.src in found and op.res in written:
                found.add(written[op.res])
        for op in reversed(ops):
            takes = isinstance(op, PermuteOp) and reads_points(op)
            if wants_channels_last(op) or takes or (op.FAMILY == "elementwise" and op.results[0] in found):
                found.update(v for v in op.operands if _is_elementwise(v) and type_of(v).rank == 4)
    return found


def _is_elementwise(value: SSAValue) -> bool:
    maker = value.owner
    return isinstance(maker, GraphOp) and maker.FAMILY == "elementwise"


def orders_liked(func: FuncOp, asked: Mapping[SSAValue, Layout]) -> dict[SSAValue, DenseLayout]:
    """For values inside the function: the order of the dims of a result that is made of them."""
    found = {value: layout for value, layout in asked.items() if isinstance(layout, DenseLayout)}
    for op in reversed(block_ops(func)):
        order = found.get(op.results[0])
        if order is not None and (op.FAMILY in LIKES_ORDER or isinstance(op, Convolution)):
            for operand in op.operands:
                if type_of(operand).rank == len(order.list.data):
                    found.setdefault(operand, order)
    return found


def needs_memory(func: FuncOp) -> set[SSAValue]:
    """The results of views that something other than a generated kernel reads."""
    needed: set[SSAValue] = set()
    for op in reversed(list(func.body.block.ops)):
        if isinstance(op, ReturnOp) or calls_library(op):
            needed.update(op.operands)
        elif isinstance(op, GraphOp) and op.FAMILY == "view" and op.results[0] in needed:
            needed.add(op.operands[0])
    return needed


class _Layouts:
    def __init__(self, func: FuncOp):
        self.func = func
        self.system = system_of(func)
        share_memory(func, self.system)
        multiply_patches(func, self.system)
        self.sizes = DefinedSizes.from_system(self.system)
        plan_updates(func)
        self.written = written_values(func)
        separate_results(func, self.written)
        self.channels_last = channels_last_values(self.func, self.written)
        self.needed = needs_memory(self.func)
        self.returned = set(self.func.returned.operands)
        self.asked = self.layouts_asked()
        self.liked = orders_liked(func, self.asked)

    def layouts_asked(self) -> dict[SSAValue, Layout]:
        """How the memory of results has to lie that is their own."""
        returned = self.func.returned
        found: dict[SSAValue, Layout] = {}
        for result, value in enumerate(returned.results_returned):
            layout = returned.layout_of(result)
            if layout is not None and result not in returned.aliased and result not in returned.shared:
                found[value] = layout
        return found

    def assign(self) -> None:
        for argument, name, kind in zip(self.func.body.block.args, self.func.names, self.func.kinds, strict=True):
            if kind != "int" and type_of(argument).layout is None:
                self.give(argument, self.input_layout(argument, name) if kind == "input" else None)
        for op in block_ops(self.func):
            if wants_channels_last(op):
                self.prepare_convolution(op, TAPS_FIRST if isinstance(op, DepthwiseOp) else CHANNELS_LAST)
            if isinstance(op, MatmulOp):
                self.prepare_stacks(op)
            self.assign_result(op)
        for op in reversed(block_ops(self.func)):
            if is_view(op) and op.results[0] not in self.written:
                self.leave_to_kernels(op)
        set_system(self.func, self.system)

    def leave_to_kernels(self, view: GraphOp) -> None:
        """A view in memory that kernels alone read needs none: a view that was to follow it had to be computed."""
        (result,) = view.results
        readers = [use.operation for use in result.uses]
        if all(isinstance(op, GraphOp) and op.LIBRARY is None and not is_view(op) for op in readers):
            set_type(result, tensor(type_of(result).dims, type_of(result).element))

    def assign_result(self, op: GraphOp) -> None:
        result = op.results[0]
        if result in self.written:
            self.give(result, type_of(self.written[result]).layout)
            return
        asked = self.asked.get(result)
        if op.FAMILY == "view":
            if result in self.needed and (asked is None or self.lies(result, asked)):
                layout = self.view_layout(op)
                if layout is not None:
                    self.give(result, layout)
                    return
            if result not in self.needed:
                return
        if type_of(result).layout is not None:
            return
        order = op.result_order()
        natural = CHANNELS_LAST if result in self.channels_last else dense(order) if order is not None else None
        if result not in self.returned:
            self.give(result, natural or (self.liked.get(result) if op.LIBRARY is None else None))
            return
        rank = type_of(result).rank
        asked = asked or contiguous(rank)
        if op.LIBRARY is None or (isinstance(op, Convolution) and not wants_channels_last(op)):
            natural = asked
        elif (natural or contiguous(rank)) != asked:
            self.return_copy(op, asked)
        self.give(result, natural)

    def lies(self, value: SSAValue, asked: Layout) -> bool:
        """Does a value lie as the layout says, or is it read so where it is a view?"""
        found = self.strides(value)
        if found is None:
            return False
        have, start = found
        want, _ = layout_strides(asked, self.sizes.of(value), self.sizes.dim)
        return start.value == 0 and all(a is b for a, b in zip(have, want, strict=True))

    def strides(self, value: SSAValue) -> tuple[tuple[Expr, ...], Expr] | None:
        """Strides and offset of a value, of a view without a layout too; None where it has none."""
        layout = type_of(value).layout
        if layout is not None:
            return layout_strides(layout, self.sizes.of(value), self.sizes.dim)
        view = value.owner
        if not isinstance(view, GraphOp) or view.FAMILY != "view":
            return None
        base = self.strides(view.operands[0])
        got = None if base is None else view.view(base[0], self.sizes)
        return None if base is None or got is None else (got.strides, add(base[1], got.offset))

    def give(self, value: SSAValue, layout: Layout | None) -> None:
        t = type_of(value)
        set_type(value, tensor(t.dims, t.element, contiguous(t.rank) if layout is None else layout))

    def input_layout(self, argument: SSAValue, name: str) -> Layout:
        symbols: list[str] = []
        for axis in range(type_of(argument).rank):
            symbols.append(self.system.symbol_of(Source.stride(name, axis), f"{name}_s{axis}"))
        return strided(tuple(symbols))

    def view_layout(self, op: GraphOp) -> Layout | None:
        """The strides of a view; None where it must be computed."""
        found = self.strides(op.results[0])
        if found is None:
            return None
        system = self.system
        dims = tuple(system.define_fresh(s, "s") for s in found[0])
        start = system.define_fresh(found[1], "s")
        self.sizes.catch_up()
        return strided(dims, start)

    def prepare_convolution(self, op: GraphOp, of_weight: Layout) -> None:
        """Its 4-d operands must lie channels-last, a weight as said: it is laid so in `@weights`."""
        for i, operand in enumerate(op.operands):
            wanted = of_weight if i == 1 else CHANNELS_LAST
            if type_of(operand).rank != 4 or self.lies(operand, wanted):
                continue
            lay = lay_weight if is_weight(operand) else self.insert_copy
            op.operands[i] = lay(operand, op, wanted)

    def prepare_stacks(self, op: MatmulOp) -> None:
        """Stacks of matrices that do not lie at equal distances are copied; the library would, slowly."""
        for i, operand in enumerate(op.operands[:2]):
            t = type_of(operand)
            strides, _ = layout_strides(t.layout, self.sizes.of(operand), self.sizes.dim)
            if t.rank > 3 and self.known(strides) and not self.equally_spaced(operand, strides):
                lead, rows, columns = range(t.rank - 2), t.rank - 2, t.rank - 1
                order = (*lead, columns, rows) if strides[-2].value == 1 else (*lead, rows, columns)
                op.operands[i] = self.insert_copy(operand, op, dense(order))

    def known(self, strides: tuple[Expr, ...]) -> bool:
        """Are they those of memory of the program's own, and not the caller's?"""
        symbols = self.system.symbols
        return not any(name in symbols and symbols[name].kind == "stride" for s in strides for name in s.free)

    def equally_spaced(self, stack: SSAValue, strides: tuple[Expr, ...]) -> bool:
        wide = [(n, s) for n, s in zip(self.sizes.of(stack)[:-2], strides[:-2], strict=True) if n.value != 1]
        return all(outer is mul(size, inner) for (_, outer), (size, inner) in pairwise(wide))

    def insert_copy(self, value: SSAValue, before: GraphOp, layout: Layout) -> SSAValue:
        t = type_of(value)
        copy = CopyOp.make([value], [tensor(t.dims, t.element, layout)])
        copy.location = before.location
        block = before.parent_block()
        assert block is not None
        block.insert_op_before(copy, before)
        return copy.results[0]

    def return_copy(self, op: GraphOp, layout: Layout) -> None:
        t = type_of(op.results[0])
        copy = CopyOp.make([op.results[0]], [tensor(t.dims, t.element, layout)])
        copy.location = op.location
        block = op.parent_block()
        assert block is not None
        block.insert_op_after(copy, op)
        returned = self.func.returned
        for i, value in enumerate(returned.operands):
            if value is op.results[0]:
                returned.operands[i] = copy.results[0]


@dataclass(frozen=True)
class StridesPass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-strides"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in sorted(functions(op), key=lambda f: f.symbol == WEIGHTS):
            _Layouts(func).assign()
        for func in functions(op):
            drop_unused_weights(func)
        mark_stage(op, "strides")
