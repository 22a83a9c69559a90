"""Whether tensors share memory, by their addresses, sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def first_overlap(
    tensors: Sequence[Tensor], spans: Sequence[tuple[int, int]], updated: Sequence[bool]
) -> tuple[int, int] | None:
    """The first updated tensor that shares memory with another one, and that one; None if there is none. `spans` are
    (address, bytes from the first to the last element). Costs a sort unless spans overlap."""
    reach = updated_reach = 0
    suspicious = False
    for (start, length), number in sorted(zip(spans, range(len(spans)), strict=True)):
        if length == 0:
            continue
        suspicious = suspicious or start < (reach if updated[number] else updated_reach)
        reach = max(reach, start + length)
        if updated[number]:
            updated_reach = max(updated_reach, start + length)
    if not suspicious:
        return None
    for mine, is_updated in enumerate(updated):
        for other in range(len(spans)) if is_updated else ():
            if other != mine and _meet(spans[mine], spans[other]) and not _interleaved(tensors[mine], tensors[other]):
                return mine, other
    return None


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[1] > 0 < b[1] and a[0] < b[0] + b[1] and b[0] < a[0] + a[1]


def _interleaved(a: Tensor, b: Tensor) -> bool:
    """Whether the tensors are provably apart although their spans meet: boxes of one grid, such as columns of a matrix.

    With equal strides, each at least the extent of the inner dimensions of both boxes, an address has one coordinate in
    the grid; boxes are apart if they are so in one dimension, or start at another offset inside the smallest stride.
    """
    if a.dtype.itemsize != b.dtype.itemsize or a.dim() != b.dim() or a.stride() != b.stride():
        return False
    if a.data_ptr() > b.data_ptr():
        a, b = b, a
    distance, rest = divmod(b.data_ptr() - a.data_ptr(), a.dtype.itemsize)
    if rest:
        return False
    dims = sorted(zip(a.stride(), a.shape, b.shape, strict=True), reverse=True)
    apart = False
    outer_stride: int | None = None
    for stride, a_size, b_size in dims:
        if stride == 0:
            return False
        shift, distance = divmod(distance, stride)
        if outer_stride is not None and max(a_size, shift + b_size) * stride > outer_stride:
            return False
        apart = apart or shift >= a_size
        outer_stride = stride
    return apart or distance > 0
