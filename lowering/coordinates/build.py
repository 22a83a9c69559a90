"""Rows → `dlcb.coord.kernel`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from dlcb.dialects.coord import ops
from dlcb.dialects.coord.check import CheckOp
from dlcb.dialects.graph.types import dims_attr
from dlcb.dialects.types import NAMES, index
from dlcb.lowering.coordinates.rows import KernelRows, Row


def build_kernel(name: str, kernel: KernelRows) -> ops.KernelOp:
    types = [_buffer_type(element) for element in kernel.buffers]
    block = Block(arg_types=[*types, *[index] * (len(kernel.outer) + len(kernel.row))])
    builder = _Builder(block, len(kernel.buffers))
    builder.add_all(kernel.rows)
    params = [f"p{i}" for i in range(len(kernel.bindings))]
    built = ops.KernelOp.build_from(name, params, kernel.outer, kernel.row, len(kernel.buffers), block)
    if kernel.numbers:
        built.properties["numbers"] = dims_attr(kernel.numbers)
    return built


@cache
def _buffer_type(element: str) -> ops.BufferType:
    return ops.BufferType(NAMES[element])


_string = cache(StringAttr)


@cache
def _number(value: int | str, element: str) -> Attribute:
    """A constant's attribute; floats come as hexadecimal text."""
    kind = NAMES.get(element, index)
    if isinstance(value, str):
        return FloatAttr(float.fromhex(value), kind)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return IntegerAttr(value, kind)  # pyright: ignore[reportArgumentType, reportCallIssue]


class _Builder:
    def __init__(self, block: Block, buffers: int):
        self.block = block
        self.arguments = block.args
        self.buffer_count = buffers
        self.values: dict[int, SSAValue] = {}
        self.loops: dict[int, ops.LoopOp] = {}
        self.count = 0

    def add_all(self, rows: Sequence[Row]) -> None:
        for row in rows:
            made = getattr(self, "_" + row[0])(*row[1:])
            if isinstance(made, ops.LoopOp):
                self.loops[self.count] = made
            elif made is not None:
                self.values[self.count] = made
            self.count += 1

    def _add(self, op: ops.CoordOp) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def _optional(self, number: int | None) -> SSAValue | None:
        return None if number is None else self.values[number]

    def _number(self, value: int) -> SSAValue:
        return self._add(ops.ConstantOp.make([], [index], value=_number(value, "index")))

    def _param(self, name: str) -> SSAValue:
        return self._add(ops.ParamOp.make([], [index], param=_string(name)))

    def _shift(self, dim: int | str) -> SSAValue:
        return self._number(dim) if isinstance(dim, int) else self._param(dim)

    def _axis(self, position: int) -> SSAValue:
        return self.arguments[self.buffer_count + position]

    def _index(self, function: str, *args: int) -> SSAValue:
        operands = [self.values[a] for a in args]
        return self._add(ops.IndexOp.make(operands, [index], function=_string(function)))

    def _constant(self, value: int | str, element: str) -> SSAValue:
        return self._add(ops.ConstantOp.make([], [NAMES[element]], value=_number(value, element)))

    def _scalar(self, function: str, args: tuple[int, ...], element: str) -> SSAValue:
        operands = [self.values[a] for a in args]
        return self._add(ops.ScalarOp.make(operands, [NAMES[element]], function=_string(function)))

    def _to_element(self, source: int, element: str) -> SSAValue:
        return self._add(ops.ToElementOp.make([self.values[source]], [NAMES[element]]))

    def _to_index(self, source: int) -> SSAValue:
        return self._add(ops.ToIndexOp.make([self.values[source]], [index]))

    def _check(self, number: int, value: int, holds: int, size: int, element: str) -> SSAValue:
        operands = [self.values[value], self.values[holds], self.values[size]]
        return self._add(CheckOp.make(operands, [NAMES[element]], number=IntAttr(number)))

    def _access(self, buffer: int, strides: Any, extra: int | None, guard: int | None, element: str) -> SSAValue:
        other = None
        if guard is not None:
            zero: int | str = (0.0).hex() if element[0] in "fb" else 0
            other = self._add(ops.ConstantOp.make([], [NAMES[element]], value=_number(zero, element)))
        return self._add(
            ops.AccessOp.build_from(
                self.arguments[buffer], strides, NAMES[element], self._optional(extra), self._optional(guard), other
            )
        )

    def _reduce(self, function: str, initial: int | str, source: int, element: str) -> SSAValue:
        return self._combine(ops.ReduceOp, function, initial, source, element)

    def _scan(self, function: str, initial: int | str, source: int, element: str) -> SSAValue:
        return self._combine(ops.ScanOp, function, initial, source, element)

    def _combine(
        self, kind: type[ops.CoordOp], function: str, initial: int | str, source: int, element: str
    ) -> SSAValue:
        properties = {"function": _string(function), "initial": _number(initial, element)}
        return self._add(kind.make([self.values[source]], [NAMES[element]], **properties))

    def _loop(
        self,
        function: str,
        initial: int | str,
        extents: Any,
        body: Sequence[Row],
        sources: Sequence[int],
        element: str,
    ) -> ops.LoopOp:
        outer = self.block
        self.block = Block(arg_types=[index] * len(extents))
        for argument in self.block.args:
            self.values[self.count] = argument
            self.count += 1
        self.add_all(body)
        self.block.add_op(ops.YieldOp.make([self.values[source] for source in sources], []))
        inner, self.block = self.block, outer
        op = ops.LoopOp.create(
            result_types=[NAMES[element]] * len(sources),
            properties={
                "function": _string(function),
                "extents": dims_attr(tuple(extents)),
                "initial": _number(initial, element),
            },
            regions=[Region(inner)],
        )
        outer.add_op(op)
        return op

    def _total(self, loop: int, place: int) -> SSAValue:
        return self.loops[loop].results[place]

    def _store(self, value: int, buffer: int, strides: Any, extra: int | None, guard: int | None) -> None:
        self.block.add_op(
            ops.StoreOp.build_from(
                self.values[value], self.arguments[buffer], strides, self._optional(extra), self._optional(guard)
            )
        )
