"""Where the values of a function live: arguments, the arena, fresh outputs, what a library routine allocates, views of
these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from dlcb.dialects.graph.base import calls_library
from dlcb.dialects.graph.roots import is_view, root
from dlcb.dialects.graph.structure import FuncOp, LaunchOp
from dlcb.dialects.graph.types import StridedLayout, TensorType, type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.host.builder import HostBuilder
from dlcb.dialects.shape.expr import Expr, add, mul, sub
from dlcb.dialects.types import BYTES
from dlcb.lowering.buffer_plan import Lifetime, plan_buffers
from dlcb.passes.sizes import DefinedSizes

WRITES_OUT = frozenset({"matmul", "matmul_relu"})
"""Library routines that write into memory given to them; the others allocate their result."""


Array = tuple[tuple[Expr, Expr], Attribute]
"""Sizes and element type of an array of parts and rows."""


def allocates(value: SSAValue) -> bool:
    """Does a library routine make the memory of this root?"""
    op = value.owner
    return calls_library(op) and op.LIBRARY not in WRITES_OUT


class Memory:
    """Gives every value its tensor in the host program."""

    def __init__(self, builder: HostBuilder, func: FuncOp, sizes: DefinedSizes):
        self.builder = builder
        self.func = func
        self.sizes = sizes
        self.tensors: dict[SSAValue, SSAValue] = {}
        self.ops = list(func.body.block.ops)
        self.names = func.names
        returned = func.returned
        self.escaping = {root(v) for v in returned.operands}
        self._views: dict[SSAValue, SSAValue] = {}
        self._offsets: dict[SSAValue, Expr] = {}
        self._workspaces: dict[Operation, list[tuple[Array, Expr]]] = {}

    def place_arguments(self) -> None:
        b = self.builder
        for argument, name, kind in zip(self.func.body.block.args, self.func.names, self.func.kinds, strict=True):
            if kind == "input":
                self.tensors[argument] = b.argument(name)
            elif kind == "weight":
                self.tensors[argument] = b.weight(name)

    def plan(self, workspaces: Mapping[Operation, Sequence[Array]]) -> None:
        """Lay out the arena: every value that lives only inside the call and is made by a kernel, or written by a
        routine, and what the launches of an op share."""
        first: dict[SSAValue, int] = {}
        last: dict[SSAValue, int] = {}
        for step, op in enumerate(self.ops):
            for operand in op.operands:
                last[root(operand)] = step
            for result in op.results:
                if root(result) is result and not is_view(op):
                    first.setdefault(result, step)
                    last.setdefault(result, step)
        inside = [v for v in first if v not in self.escaping and not allocates(v)]
        lives = [Lifetime(first[v], last[v], self.bytes_of(v)) for v in inside]
        shared = [(step, array) for step, op in enumerate(self.ops) for array in workspaces.get(op, ())]
        lives += [Lifetime(step, step, mul(product(sizes), BYTES[element])) for step, (sizes, element) in shared]
        if not lives:
            return
        plan = plan_buffers(lives)
        self.arena = self.builder.arena(plan.total_bytes)
        self._offsets = dict(zip(inside, plan.offsets, strict=False))
        for (step, array), offset in zip(shared, plan.offsets[len(inside) :], strict=True):
            self._workspaces.setdefault(self.ops[step], []).append((array, offset))

    def workspace(self, op: Operation) -> list[SSAValue]:
        """The arrays that the launches of an op share."""
        return [
            self.builder.buffer(self.arena, offset, (parts, rows), (rows, 1), element)
            for ((parts, rows), element), offset in self._workspaces.get(op, ())
        ]

    def bytes_of(self, value: SSAValue) -> Expr:
        return mul(product(self.sizes.of(value)), BYTES[type_of(value).element])

    def create(self, value: SSAValue) -> SSAValue:
        """Memory for a value that is about to be made."""
        b = self.builder
        sizes = self.sizes.of(value)
        strides, _ = self.sizes.laid(type_of(value))
        element = type_of(value).element
        if value in self._offsets:
            made = b.buffer(self.arena, self._offsets[value], sizes, strides, element)
        else:
            made = b.output(sizes, strides, element)
        self.tensors[value] = made
        return made

    def whole(self, value: SSAValue) -> SSAValue:
        """The tensor in whose memory a value lies: what a kernel is given."""
        return self.tensors[root(value)]

    def tensor(self, value: SSAValue) -> SSAValue:
        """The value as a tensor of its own sizes and strides: what a library routine or the caller is given."""
        base = root(value)
        while isinstance(value, OpResult) and not is_view(value.op) and value is not base:
            assert isinstance(value.op, LaunchOp)
            value = value.op.operands[value.op.written_over[value.index]]
        if value is base:
            return self.tensors[base]
        known = self._views.get(value)
        if known is None:
            sizes = self.sizes.of(value)
            strides, offset = self.sizes.laid(type_of(value))
            known = self._views[value] = self.builder.view(self.tensors[base], offset, sizes, strides)
        return known

    def result(self, memory: SSAValue, view: TensorType | None) -> SSAValue:
        """What the caller gets: a view of the value's memory, or all of it."""
        if view is None:
            return self.tensor(memory)
        strides, offset = self.sizes.laid(view)
        return self.builder.view(self.whole(memory), offset, self.sizes.dims(view.dims), strides)

    def argument_name(self, value: SSAValue) -> str | None:
        """The name of the argument in whose memory a value lies."""
        base = root(value)
        return self.names[base.index] if isinstance(base, BlockArgument) else None


def span(value: SSAValue, sizes: DefinedSizes) -> Expr:
    """Elements from a tensor's first to past its last, at most."""
    layout = type_of(value).layout
    shape = sizes.of(value)
    if not isinstance(layout, StridedLayout):
        return product(shape)
    strides, offset = sizes.laid(type_of(value))
    return reach(shape, strides, offset)


def reach(shape: Sequence[Expr], strides: Sequence[Expr], offset: Expr) -> Expr:
    total = add(offset, 1)
    for size, stride in zip(shape, strides, strict=True):
        total = add(total, mul(sub(size, 1), stride))
    return total
