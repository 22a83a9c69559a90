"""How tensors lie in memory whatever their sizes: the order of their dims, which are expanded, where there are gaps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch

from dlcb.frontend.tracing.tracked import traced


def order_of(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The dims from outermost to innermost. Of dims with one stride, the one of size 1 is the inner one: so the strides
    of a dense tensor follow from the order."""
    return tuple(sorted(range(len(sizes)), key=lambda axis: (-strides[axis], sizes[axis] == 1, axis)))


def is_dense(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Neither gaps nor expanded dims?"""
    step = 1
    for axis in reversed(order_of(sizes, strides)):
        if strides[axis] != step:
            return False
        step *= sizes[axis]
    return True


def example_order(example: torch.Tensor) -> tuple[int, ...]:
    """The same, where dims of size 1 stand as they would in the layout that torch takes the tensor for."""
    rank = example.dim()
    if example.is_contiguous():
        return tuple(range(rank))
    if rank == 4 and example.is_contiguous(memory_format=torch.channels_last):
        return (0, 2, 3, 1)
    if rank == 5 and example.is_contiguous(memory_format=torch.channels_last_3d):
        return (0, 2, 3, 4, 1)
    return order_of(example.shape, example.stride())


def layout_class(tensor: torch.Tensor) -> Hashable:
    """What tensors of any sizes have in common that lie alike: rank, order, which dims are expanded, whether there are
    gaps."""
    if tensor.is_contiguous():
        return tensor.dim()
    sizes, strides = tensor.shape, tensor.stride()
    expanded = [axis for axis, stride in enumerate(strides) if stride == 0 and sizes[axis] > 1]
    return example_order(tensor), tuple(expanded), is_dense(sizes, strides)


def strides_like(example: torch.Tensor, sizes: Sequence[int]) -> tuple[int, ...]:
    """Strides of a tensor of these sizes that lies as the example does: in the same order, with gaps and expanded dims
    where it has them."""
    found = [1] * len(sizes)
    step = example_step = 1
    for axis in reversed(example_order(example)):
        size, stride = example.shape[axis], example.stride(axis)
        if stride == 0 and size > 1:
            found[axis] = 0
            continue
        if size > 1 and stride > example_step:
            step *= 2
        overlaps = size > 1 and stride < example_step
        found[axis] = 1 if overlaps else step
        step, example_step = max(step, found[axis] * sizes[axis]), max(example_step, stride * size)
    return tuple(found)


def extent(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of memory a tensor spans, from its first element to its last."""
    return 0 if 0 in sizes else 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def tracked_strides(dims: Sequence[int], strides: Sequence[int]) -> list[int | None]:
    """The strides of a tensor whose sizes are tracked ints, as these ints give them; None at a gap, and outside it."""
    found: list[int | None] = [None] * len(dims)
    step = 1
    for axis in reversed(order_of([traced(dim) for dim in dims], strides)):
        if strides[axis] == 0 and traced(dims[axis]) > 1:
            found[axis] = 0
            continue
        if strides[axis] != traced(step):
            break
        found[axis] = step
        step *= dims[axis]
    return found
