"""Runs a `dlcb.coord.kernel` at all its coordinates at once: a value is an array over the axes, outer then row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from dlcb.dialects.coord.check import CheckOp
from dlcb.dialects.coord.ops import (
    AccessOp,
    BufferType,
    ConstantOp,
    IndexOp,
    KernelOp,
    LoopOp,
    ParamOp,
    ReduceOp,
    ScalarOp,
    ScanOp,
    StoreOp,
    ToElementOp,
    ToIndexOp,
    YieldOp,
)
from dlcb.dialects.failure import Failure
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.types import index
from dlcb.errors import InternalError
from dlcb.evaluator.coordinates import Indices, call
from dlcb.evaluator.elements import take
from dlcb.evaluator.scalars import Array, accumulate, apply, convert, fold

Value: TypeAlias = "int | Array"


def run_kernel(
    kernel: KernelOp, buffers: Sequence[Array], params: Mapping[str, int], failures: Sequence[Failure] = ()
) -> None:
    """Writes what the kernel stores into the buffers: one flat array for each, half precision as float32. A check that
    fails raises the failure of its number."""
    names = {p.data for p in kernel.params.data}
    if names != set(params):
        raise InternalError(f"kernel @{kernel.symbol}: got {sorted(params)}, expected the parameters {sorted(names)}")
    if len(buffers) != len(kernel.buffers):
        raise InternalError(f"kernel @{kernel.symbol}: got {len(buffers)} buffers, expected {len(kernel.buffers)}")
    _Run(kernel, buffers, params, failures).all()


def number_of(value: Attribute) -> float | int:
    if not isinstance(value, (FloatAttr, IntegerAttr)):
        raise InternalError(f"{value} is no number")
    return value.value.data


class _Run:
    def __init__(
        self, kernel: KernelOp, buffers: Sequence[Array], params: Mapping[str, int], failures: Sequence[Failure]
    ) -> None:
        self._kernel = kernel
        self._failures = failures
        self._params = params
        self._outer = [self._dim(d) for d in kernel.outer.dims]
        self._row = [self._dim(d) for d in kernel.row.dims]
        self._sizes = (*self._outer, *self._row)
        self._memory = dict(zip(kernel.buffers, buffers, strict=True))
        self._values: dict[SSAValue, Value] = {}
        self._coords: list[Indices] = list(np.indices(self._sizes, sparse=True)) if self._sizes else []

    def _dim(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self._params[dim]

    def all(self) -> None:
        if prod(self._outer) == 0:
            return
        self._values.update(zip(self._kernel.axes, self._coords, strict=True))
        self._block(self._kernel.body.block)

    def _block(self, block: Block) -> list[Value]:
        """Runs the ops; gives what the block yields."""
        for op in block.ops:
            match op:
                case StoreOp():
                    self._store(op)
                case YieldOp():
                    return [self._values[element] for element in op.elements]
                case LoopOp():
                    self._values.update(zip(op.results, self._loop(op), strict=True))
                case _:
                    self._values[op.results[0]] = self._compute(op)
        return []

    def _compute(self, op: Operation) -> Value:
        match op:
            case ParamOp():
                return self._params[op.param.data]
            case ConstantOp():
                return self._constant(op.value, op.res.type)
            case IndexOp():
                return call(op.function.data, [cast("int | Indices", self._values[a]) for a in op.args])
            case ScalarOp():
                return self._scalar(op)
            case ToElementOp():
                return convert(self._array(op.src), op.res.type)
            case ToIndexOp():
                return self._array(op.src).astype(np.int64)
            case AccessOp():
                return self._access(op)
            case CheckOp():
                return self._check(op)
            case ReduceOp():
                return self._reduce(op)
            case ScanOp():
                return self._scan(op)
            case _:
                raise InternalError(f"the evaluator does not know {op.name}")

    def _array(self, value: SSAValue) -> Array:
        return np.asarray(self._values[value])

    def _constant(self, value: Attribute, element: Attribute) -> Value:
        number = number_of(value)
        return int(number) if element == index else convert(np.asarray(number), element)

    def _scalar(self, op: ScalarOp) -> Array:
        operands = [self._array(a) for a in op.args]
        if op.function.data == "cast":
            return convert(operands[0], op.res.type)
        result, element = apply(op.function.data, op.args[-1].type, *operands)
        if element != op.res.type:
            raise InternalError(f"{op.function.data} gives {element}, its result is {op.res.type}")
        return result

    def _offset(self, strides: Sequence[Dim], extra: SSAValue | None) -> Indices:
        """Invariant along the axes whose stride is the literal 0, also where they are empty."""
        offset = np.asarray(0 if extra is None else self._values[extra], dtype=np.int64)
        for coord, stride in zip(self._coords, strides, strict=True):
            if stride != 0:
                offset = offset + coord * self._dim(stride)
        return offset

    def _mask(self, guard: SSAValue | None) -> Array:
        return np.asarray(True) if guard is None else np.not_equal(self._values[guard], 0)

    def _access(self, op: AccessOp) -> Array:
        mask = self._mask(op.guard)
        offset = self._offset(op.strides.dims, op.extra)
        taken = convert(take(self._memory[op.buffer], [offset], mask), op.res.type)
        return taken if op.other is None else np.where(mask, taken, self._array(op.other))

    def _check(self, op: CheckOp) -> Array:
        value, holds = self._array(op.value), self._array(op.holds) != 0
        shape = np.broadcast_shapes(value.shape, holds.shape)
        if prod(shape) and not holds.all():
            wrong = np.broadcast_to(value, shape)[~np.broadcast_to(holds, shape)]
            raise self._failures[op.number.data].error(int(wrong.flat[0]), int(self._array(op.size)))
        return value

    def _reduce(self, op: ReduceOp) -> Array:
        function, element = op.function.data, op.res.type
        outer, row = len(self._outer), self._row
        total = convert(np.asarray(number_of(op.initial)), element)
        if prod(row):
            values = np.broadcast_to(self._array(op.src), self._sizes).reshape(*self._outer, prod(row))
            folded = fold(function, np.moveaxis(values, -1, 0)).reshape(*self._outer, *[1] * len(row))
            total, _ = apply(function, element, total, folded)
        return np.broadcast_to(total, (*self._outer, *[1] * len(row))) if outer else total

    def _scan(self, op: ScanOp) -> Array:
        start = convert(np.asarray(number_of(op.initial)), op.res.type)
        values = np.broadcast_to(self._array(op.src), self._sizes)
        running = np.moveaxis(accumulate(op.function.data, np.moveaxis(values, -1, 0)), 0, -1)
        return apply(op.function.data, op.res.type, start, running)[0]

    def _loop(self, op: LoopOp) -> list[Array]:
        block, function, types = op.body.block, op.function.data, op.result_types
        totals = [convert(np.asarray(number_of(op.initial)), element) for element in types]
        for position in product(*(range(self._dim(d)) for d in op.extents.dims)):
            self._values.update(zip(block.args, position, strict=True))
            found = zip(types, totals, self._block(block), strict=True)
            totals = [apply(function, element, total, np.asarray(value))[0] for element, total, value in found]
        return totals

    def _store(self, op: StoreOp) -> None:
        buffer = op.buffer.type
        assert isinstance(buffer, BufferType)
        value = convert(self._array(op.value), buffer.element)
        offset, mask = self._offset(op.strides.dims, op.extra), self._mask(op.guard)
        shape = np.broadcast_shapes(value.shape, offset.shape, mask.shape)
        at, wanted = np.broadcast_to(offset, shape), np.broadcast_to(mask, shape)
        memory = self._memory[op.buffer]
        wrong = wanted & ((at < 0) | (at >= memory.size))
        if wrong.any():
            raise InternalError(f"store at offset {at[wrong].flat[0]}, outside of a buffer of {memory.size} elements")
        memory[at[wanted]] = np.broadcast_to(value, shape)[wanted]
