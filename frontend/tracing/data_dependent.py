"""Operations whose results have as many elements as some tensor has true or different ones, and reads of an element.

They run in eager. In the trace their results have a size of our choice, which is a symbol like the sizes of inputs:
what follows is compiled for every size. Numbers that a program reads from a tensor are symbols too. Python must not
branch on either, for the trace goes one way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dlcb.errors import UnsupportedError
from dlcb.frontend.tracing.source import source_line
from dlcb.frontend.tracing.trace import Handler, Trace
from dlcb.frontend.tracing.tracker import WAITS

Function = Callable[..., Any]
Args = tuple[Any, ...]
Kwargs = dict[str, Any]

SIZED = "the size of the result depends on elements"
MASKS = (torch.bool, torch.uint8)


def sized_by_data(trace: Trace, name: str, func: Function, args: Args, kwargs: Kwargs, stand_in: Function) -> Any:
    """Record an operation that capture can't run on fakes; `stand_in` makes results of its form."""
    return trace.perform(name, func, args, kwargs, why_eager=SIZED, stand_in=stand_in)


def _long(like: torch.Tensor, *sizes: int) -> torch.Tensor:
    return torch.empty(sizes, dtype=torch.int64, device=like.device)


def _nonzero(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    count = trace.fresh_size()
    if kwargs.get("as_tuple"):
        return where(trace, _places, args, {})

    def stand_in(x: torch.Tensor, **_: Any) -> torch.Tensor:
        return _long(x, count, x.dim())

    return sized_by_data(trace, "nonzero", func, args, kwargs, stand_in)


def _places(condition: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.nonzero(condition, as_tuple=True)


def where(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """`torch.where(condition)`: one tensor of places for each dim."""
    count = trace.fresh_size()

    def stand_in(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(_long(x, count) for _ in range(x.dim()))

    return sized_by_data(trace, "where", func, args, kwargs, stand_in)


def _masked_select(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    count = trace.fresh_size()

    def stand_in(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x.new_empty(count)

    return sized_by_data(trace, "masked_select", func, args, kwargs, stand_in)


def _unique(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """`unique(x, sorted, return_inverse, return_counts, dim)`."""
    found = _unique_forms(trace.fresh_size())

    def stand_in(x: torch.Tensor, sorted: bool = True, *given: Any, **words: Any) -> Any:
        return found(x, *given, **words)

    return sized_by_data(trace, "unique", func, args, kwargs, stand_in)


def _unique_consecutive(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    return sized_by_data(trace, "unique_consecutive", func, args, kwargs, _unique_forms(trace.fresh_size()))


def _unique_forms(count: int) -> Function:
    def found(
        x: torch.Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        if dim is None:
            sizes, inverse = [count], list(x.shape)
        else:
            dim %= x.dim()
            sizes, inverse = [*x.shape[:dim], count, *x.shape[dim + 1 :]], [x.shape[dim]]
        several = (x.new_empty(sizes), *[_long(x, *inverse)] * return_inverse, *[_long(x, count)] * return_counts)
        return several if len(several) > 1 else several[0]

    return found


def take_where(trace: Trace, view: torch.Tensor, indices: tuple[torch.Tensor | None, ...]) -> torch.Tensor:
    """The elements where masks hold, and at index tensors."""

    def stand_in(view: torch.Tensor, indices: tuple[torch.Tensor | None, ...]) -> torch.Tensor:
        count = trace.fresh_size()
        places: list[Any] = []
        for index in _without_covered(indices):
            is_mask = isinstance(index, torch.Tensor) and index.dtype in MASKS
            places += [_long(view, count) for _ in range(index.dim())] if is_mask else [index]
        return view[tuple(places)]

    return sized_by_data(trace, "index", _taken, (view, indices), {}, stand_in)


def _taken(view: torch.Tensor, indices: tuple[torch.Tensor | None, ...]) -> torch.Tensor:
    return view[tuple(_without_covered(indices))]


def put_where(trace: Trace, view: torch.Tensor, indices: tuple[torch.Tensor | None, ...], value: Any) -> torch.Tensor:
    """The tensor with new elements where masks hold, and at index tensors."""

    def put(view: torch.Tensor, indices: tuple[torch.Tensor | None, ...], value: Any) -> torch.Tensor:
        result = view.clone()
        result[tuple(_without_covered(indices))] = value
        return result

    def stand_in(view: torch.Tensor, *_: Any) -> torch.Tensor:
        return view.clone()

    why = "how many elements are written depends on elements"
    return trace.perform("index_put", put, (view, indices, value), {}, why_eager=why, stand_in=stand_in)


def _without_covered(indices: tuple[torch.Tensor | None, ...]) -> list[Any]:
    """The index for Python: a mask stands for all dims that it covers."""
    items: list[Any] = []
    place = 0
    while place < len(indices):
        index = indices[place]
        items.append(slice(None) if index is None else index)
        place += index.dim() if index is not None and index.dtype in MASKS else 1
    return items


def _item(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    source = trace.fake(args[0])
    if source.dtype.is_floating_point or source.dtype.is_complex or source.dtype == torch.bool or source.numel() != 1:
        _refuse(trace, func, args, kwargs)
    why = "Python reads an element of a tensor: the host waits for the device"
    return trace.element(trace.perform("item", _read, (source,), {}, why_eager=why, stand_in=_scalar_like))


def _scalar_like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty((), dtype=x.dtype, device=x.device)


def _read(source: torch.Tensor) -> torch.Tensor:
    return source.reshape(())


def _refuse(trace: Trace, func: Any, args: Args, kwargs: Kwargs) -> Any:
    raise UnsupportedError(f"{func.__name__}: {source_line()}: {WAITS}")


DATA_DEPENDENT: dict[str, Handler] = {
    "nonzero": _nonzero,
    "argwhere": _nonzero,
    "masked_select": _masked_select,
    "unique": _unique,
    "unique_consecutive": _unique_consecutive,
    "item": _item,
    "_local_scalar_dense": _item,
    **dict.fromkeys(
        (
            "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__", "__complex__",
            "is_nonzero", "nonzero_static", "_unique", "_unique2", "unique_dim", "equal", "allclose", "bincount",
            "__contains__", "__dlpack__",
        ),
        _refuse,
    ),
}  # fmt: skip
