"""Tensors as memory: what a kernel's buffer holds, by the layout of the tensor's type."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dlcb.dialects.graph.types import DenseLayout, StridedLayout, TensorType
from dlcb.evaluator.scalars import DTYPE, Array
from dlcb.evaluator.sizes import Symbols


def strides_of(tensor: TensorType, symbols: Symbols) -> tuple[tuple[int, ...], int]:
    """Strides in elements and the offset of the first element; row-major where the type has no layout."""
    layout = tensor.layout
    if isinstance(layout, StridedLayout):
        return symbols.numbers(layout.strides), symbols.number(layout.offset)
    order = layout.order if isinstance(layout, DenseLayout) else tuple(range(tensor.rank))
    sizes = symbols.numbers(tensor.dims)
    strides = [0] * tensor.rank
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= sizes[axis]
    return tuple(strides), 0


def new_memory(tensor: TensorType, symbols: Symbols) -> Array:
    """Zeros, as many as reach from the base's start to the tensor's last element."""
    sizes = symbols.sizes(tensor)
    strides, offset = strides_of(tensor, symbols)
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    length = 0 if 0 in sizes else offset + last + 1
    return np.zeros(length, DTYPE[tensor.element])


def view_of(memory: Array, tensor: TensorType, symbols: Symbols) -> Array:
    """The tensor that lies in the memory; writing to it writes there."""
    sizes = symbols.numbers(tensor.dims)
    if 0 in sizes:
        return np.zeros(sizes, memory.dtype)
    strides, offset = strides_of(tensor, symbols)
    return as_strided(memory[offset:], sizes, [s * memory.itemsize for s in strides])


def to_memory(array: Array, tensor: TensorType, symbols: Symbols) -> Array:
    memory = new_memory(tensor, symbols)
    view_of(memory, tensor, symbols)[...] = array
    return memory
