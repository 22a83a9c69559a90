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
    The grid starts where their storage does, or where the first of them does."""
    if a.dtype.itemsize != b.dtype.itemsize or a.dim() != b.dim() or a.stride() != b.stride():
        return False
    if a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    offsets = int(a.storage_offset()), int(b.storage_offset())
    return any(_apart(a, b, offsets[0] - start, offsets[1] - start) for start in (0, min(offsets)))


def _apart(a: Tensor, b: Tensor, a_offset: int, b_offset: int) -> bool:
    """With strides that are at least the extent of the inner dimensions of both boxes, an element has one coordinate in
    the grid: boxes are apart if they are so in one dimension, or lie at different places inside the smallest stride."""
    apart = False
    outer: int | None = None
    for stride, a_size, b_size in sorted(zip(a.stride(), a.shape, b.shape, strict=True), reverse=True):
        if stride == 0:
            return False
        a_first, a_offset = divmod(a_offset, stride)
        b_first, b_offset = divmod(b_offset, stride)
        if outer is not None and max(a_first + a_size, b_first + b_size) * stride > outer:
            return False
        apart = apart or a_first + a_size <= b_first or b_first + b_size <= a_first
        outer = stride
    return apart or a_offset != b_offset
