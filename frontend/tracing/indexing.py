"""Indexing and splitting, recorded as `select`, `slice`, `unsqueeze`, and for index tensors `index` and `index_put`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, cast

import torch

from dlcb.dialects.shape.expr import ceildiv, eq, maximum
from dlcb.dialects.shape.expr import select as choose
from dlcb.errors import UnsupportedError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.data_dependent import MASKS, put_where, take_where
from dlcb.frontend.tracing.records import Operands
from dlcb.frontend.tracing.source import source_line
from dlcb.frontend.tracing.trace import Handler, Trace
from dlcb.frontend.tracing.tracked import expr_of, number, pinned, traced

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def select(trace: Trace, source: torch.Tensor, dim: int, index: int) -> torch.Tensor:
    return trace.perform("select", torch.select, (source, dim, index), {})


def slice_(trace: Trace, source: torch.Tensor, dim: int, start: int, end: int | None, step: int = 1) -> torch.Tensor:
    """source[start:end:step] along one dim; an end of None is the size."""
    if step == 1 and end is None and type(start) is int and start == 0:
        return source
    return trace.perform("slice", _slice, (source, dim, start, end, step), {})


def _slice(source: torch.Tensor, dim: int, start: int, end: int | None, step: int) -> torch.Tensor:
    return source[(slice(None),) * dim + (slice(start, end, step),)]


def _index_items(trace: Trace, index: Any, rank: int) -> list[Any]:
    """The index with an ellipsis written out and lists as tensors."""
    items = [_index_item(trace, i) for i in (cast(Operands, index) if isinstance(index, tuple) else (index,))]
    ellipses = [at for at, item in enumerate(items) if item is Ellipsis]
    if ellipses:
        taken = sum(_dims_taken(item) for item in items)
        at = ellipses[0]
        items[at : at + 1] = [slice(None)] * (rank - taken)
    return items


def _index_item(trace: Trace, item: Any) -> Any:
    if isinstance(item, bool):
        raise UnsupportedError(f"indexing with {item}: {source_line()}")
    if item is None or item is Ellipsis or isinstance(item, int) or type(item) is slice:
        return item
    if isinstance(item, torch.Tensor):
        return trace.fake(item)
    with private.real_tensors():
        return trace.fake(torch.as_tensor(item))


def _dims_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.dim() if isinstance(item, torch.Tensor) and item.dtype in MASKS else 1


def _basic(trace: Trace, source: torch.Tensor, items: list[Any]) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    """Apply all but index tensors as views; also the index tensors, one a dim of the view, trailing Nones cut."""
    view, dim = source, 0
    left: list[torch.Tensor | None] = []
    for item in items:
        if isinstance(item, int):
            view = select(trace, view, dim, item)
            continue
        if isinstance(item, torch.Tensor):
            left += [item, *[None] * (_dims_taken(item) - 1)]
            dim += _dims_taken(item)
            continue
        if item is None:
            view = trace.perform("unsqueeze", torch.unsqueeze, (view, dim), {})
        else:
            view = _sliced(trace, view, dim, item)
        left.append(None)
        dim += 1
    while left and left[-1] is None:
        left.pop()
    return view, left


def _sliced(trace: Trace, view: torch.Tensor, dim: int, item: slice) -> torch.Tensor:
    step = 1 if item.step is None else pinned(item.step, "a step")
    return slice_(trace, view, dim, 0 if item.start is None else item.start, item.stop, step)


def _getitem(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    source = trace.fake(args[0])
    view, left = _basic(trace, source, _index_items(trace, args[1], source.dim()))
    return take_at(trace, view, left) if left else view


def take_at(trace: Trace, view: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
    """The elements of a tensor at index tensors, one a dim."""
    if any(index is not None and index.dtype in MASKS for index in indices):
        return take_where(trace, view, tuple(indices))
    return trace.perform("index", _indexed, (view, tuple(indices)), {})


def _indexed(view: torch.Tensor, indices: tuple[torch.Tensor | None, ...]) -> torch.Tensor:
    return view[_index_of(indices)]


def _index_of(indices: tuple[torch.Tensor | None, ...]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def _setitem(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> None:
    target, value = trace.fake(args[0]), args[2]
    view, left = _basic(trace, target, _index_items(trace, args[1], target.dim()))
    if not left:
        _write(trace, view, value)
    else:
        trace.assign(view, put_at(trace, view, left, value))


def put_at(
    trace: Trace, view: torch.Tensor, indices: list[torch.Tensor | None], value: Any, accumulate: bool = False
) -> torch.Tensor:
    """The tensor with new elements at index tensors, one a dim, or where a mask holds."""
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype in MASKS and not accumulate:
        return _put_where(trace, view, indices[0], value)
    if any(index is not None and index.dtype in MASKS for index in indices):
        return put_where(trace, view, tuple(indices), value)
    if not isinstance(value, torch.Tensor):
        value = trace.perform("scalar_tensor", torch.scalar_tensor, (value,), {"dtype": view.dtype})
    elif value.dtype != view.dtype:
        value = trace.perform("to", torch.Tensor.to, (value, view.dtype), {})
    added = (True,) if accumulate else ()
    return trace.perform("index_put", _index_put, (view, tuple(indices), value, *added), {})


def _index_put(
    view: torch.Tensor, indices: tuple[torch.Tensor | None, ...], value: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    if accumulate:
        return torch.ops.aten.index_put.default(view, list(indices), value, True)
    result = view.clone()
    result[_index_of(indices)] = value
    return result


def _write(trace: Trace, view: torch.Tensor, value: Any) -> None:
    with trace:
        view.copy_(value) if isinstance(value, torch.Tensor) else view.fill_(value)


def _put_where(trace: Trace, view: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and value.dim() > 0:
        return put_where(trace, view, (mask,), value)
    for _ in range(view.dim() - mask.dim()):
        mask = trace.perform("unsqueeze", torch.unsqueeze, (mask, -1), {})
    return trace.perform("masked_fill", torch.masked_fill, (view, mask, value), {})


# Splitting


def _argument(args: Args, kwargs: Kwargs, at: int, names: tuple[str, ...], default: Any) -> Any:
    return args[at] if len(args) > at else next((kwargs[n] for n in names if n in kwargs), default)


def _source_and_dim(trace: Trace, args: Args, kwargs: Kwargs, at: int) -> tuple[torch.Tensor, int]:
    source = trace.fake(_argument(args, kwargs, 0, ("input", "tensor", "self"), None))
    dim = pinned(_argument(args, kwargs, at, ("dim", "axis"), 0), "a dimension")
    return source, dim + source.dim() if dim < 0 else dim


def _pieces(trace: Trace, source: torch.Tensor, dim: int, bounds: list[int]) -> tuple[torch.Tensor, ...]:
    return tuple(slice_(trace, source, dim, start, end) for start, end in pairwise(bounds))


def _split(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> tuple[torch.Tensor, ...]:
    source, dim = _source_and_dim(trace, args, kwargs, 2)
    size = _argument(args, kwargs, 1, ("split_size", "split_sizes", "split_size_or_sections"), None)
    if not isinstance(size, (tuple, list)):
        trace.check(func, source, traced(size), dim)
        total = trace.dims(source)[dim]
        some: int = (total + size - 1) // size
        count = number(trace.tracker, maximum(expr_of(some), 1), max(traced(some), 1))
        return _split_evenly(trace, source, dim, size, count)
    parts: list[int] = list(cast(Operands, size))
    trace.check(func, source, [traced(part) for part in parts], dim)
    return _pieces(trace, source, dim, list(accumulate(parts, initial=0)))


def _split_evenly(trace: Trace, source: torch.Tensor, dim: int, size: int, count: int) -> tuple[torch.Tensor, ...]:
    bounds = [i * size for i in range(pinned(count, "the number of parts"))]
    return _pieces(trace, source, dim, [*bounds, trace.dims(source)[dim]])


def _chunk(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> tuple[torch.Tensor, ...]:
    source, dim = _source_and_dim(trace, args, kwargs, 2)
    chunks = pinned(_argument(args, kwargs, 1, ("chunks",), None), "the number of parts")
    trace.check(func, source, chunks, dim)
    total = trace.dims(source)[dim]
    size = (total + chunks - 1) // chunks
    return _split_evenly(trace, source, dim, size, _count_of_chunks(trace, total, size, chunks))


def _count_of_chunks(trace: Trace, total: int, size: int, chunks: int) -> int:
    """As many as are asked for where there is nothing to divide, else as many as have elements."""
    some = ceildiv(expr_of(total), expr_of(size))
    count = choose(eq(expr_of(total), 0), chunks, some)
    return number(trace.tracker, count, -(-traced(total) // traced(size)) if traced(total) else chunks)


def _tensor_split(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> tuple[torch.Tensor, ...]:
    source, dim = _source_and_dim(trace, args, kwargs, 2)
    parts = _argument(args, kwargs, 1, ("sections", "indices", "indices_or_sections"), None)
    if isinstance(parts, torch.Tensor):
        raise UnsupportedError(f"tensor_split: {source_line()}: the bounds are elements of a tensor")
    total = trace.dims(source)[dim]
    if isinstance(parts, (tuple, list)):
        return _pieces(trace, source, dim, [0, *parts, total])
    count = pinned(parts, "the number of parts")
    small, larger = total // count, total % count
    starts = [i * small + min(i, larger) for i in range(count)]
    return _pieces(trace, source, dim, [*starts, total])


def _splitting_along(dim: Callable[[int], int]) -> Handler:
    """`tensor_split` along the dim that a tensor of some rank has."""

    def split(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> tuple[torch.Tensor, ...]:
        source, parts = trace.fake(args[0]), _argument(args, kwargs, 1, ("sections", "indices"), None)
        trace.check(func, source, traced(parts) if isinstance(parts, int) else parts)
        return _tensor_split(trace, func, (source, parts, dim(source.dim())), {})

    return split


def _unbind(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> tuple[torch.Tensor, ...]:
    source, dim = _source_and_dim(trace, args, kwargs, 1)
    count = pinned(trace.dims(source)[dim], "unpacking")
    return tuple(select(trace, source, dim, i) for i in range(count))


def _narrow(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> torch.Tensor:
    source, dim = _source_and_dim(trace, args, kwargs, 1)
    start = _argument(args, kwargs, 2, ("start",), None)
    length = _argument(args, kwargs, 3, ("length",), None)
    if isinstance(start, torch.Tensor):
        raise UnsupportedError(f"narrow: {source_line()}: the start is an element of a tensor")
    trace.check(func, source, dim, start, length)
    return slice_(trace, source, dim, start, start + length)


def _select(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> torch.Tensor:
    source, dim = _source_and_dim(trace, args, kwargs, 1)
    return select(trace, source, dim, _argument(args, kwargs, 2, ("index",), None))


INDEXING: dict[str, Handler] = {
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "select": _select,
    "narrow": _narrow,
    "split": _split,
    "split_with_sizes": _split,
    "chunk": _chunk,
    "tensor_split": _tensor_split,
    "hsplit": _splitting_along(lambda rank: min(rank - 1, 1)),
    "vsplit": _splitting_along(lambda rank: 0),
    "dsplit": _splitting_along(lambda rank: 2),
    "unbind": _unbind,
}
