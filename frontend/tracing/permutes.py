"""Every exchange of dimensions is recorded as `permute(self, order)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch

from dlcb.frontend.tracing.records import Operands
from dlcb.frontend.tracing.trace import Handler, Trace
from dlcb.frontend.tracing.tracked import pinned

Order = Callable[..., list[int]]


def _exchanged(rank: int, a: int, b: int) -> list[int]:
    order = list(range(rank))
    if rank:
        order[a], order[b] = order[b], order[a]
    return order


def _reversed(rank: int) -> list[int]:
    return list(reversed(range(rank)))


def _listed(rank: int, *dims: Any) -> list[int]:
    listed: Operands = cast(Operands, dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    return [d + rank if d < 0 else d for d in listed]


def _moved(rank: int, source: Any, destination: Any) -> list[int]:
    sources = _listed(rank, source)
    places = dict(zip(_listed(rank, destination), sources, strict=True))
    others = iter(d for d in range(rank) if d not in sources)
    return [places[d] if d in places else next(others) for d in range(rank)]


def _permuting(order_of: Order, arguments: tuple[str, ...]) -> Handler:
    def handler(trace: Trace, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        source, *given = args if args else (kwargs["input"],)
        given += [kwargs[a] for a in arguments if a in kwargs]
        fake = trace.fake(source)
        if not _is_right(order_of, fake.dim(), given):
            trace.check(func, fake, *given)
        order = order_of(fake.dim(), *_pinned(given))
        return trace.perform("permute", torch.permute, (fake, tuple(order)), {})

    return handler


def _is_right(order_of: Order, rank: int, given: list[Any]) -> bool:
    """Whether torch takes the call, as far as that is plain to see."""
    if order_of not in (_exchanged, _listed):
        return False
    alone: Any = given[0] if len(given) == 1 else None
    dims = list(cast(Operands, alone)) if isinstance(alone, (tuple, list)) else given
    if not dims or not all(type(dim) is int and -rank <= dim < rank for dim in dims):
        return False
    return len(dims) == 2 if order_of is _exchanged else sorted(_listed(rank, dims)) == list(range(rank))


def _pinned(dims: Any) -> list[Any]:
    return [_pinned(d) if isinstance(d, (tuple, list)) else pinned(d, "a dimension") for d in dims]


def _getting(order_of: Order) -> Handler:
    def handler(trace: Trace, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        fake = trace.fake(args[0])
        trace.check(func, fake)
        return trace.perform("permute", torch.permute, (fake, tuple(order_of(fake.dim()))), {})

    return handler


def _transposed(rank: int) -> list[int]:
    return _exchanged(rank, -2, -1)


PERMUTES: dict[str, Handler] = {
    "t": _permuting(_reversed, ()),
    "transpose": _permuting(_exchanged, ("dim0", "dim1", "axis0", "axis1")),
    "movedim": _permuting(_moved, ("source", "destination")),
    "permute": _permuting(_listed, ("dims",)),
    "adjoint": _permuting(_transposed, ()),
    **dict.fromkeys(("numpy_T", "matrix_H"), _permuting(_reversed, ())),  # as Dynamo of torch 2.14 has `x.T`, `x.H`,
    **dict.fromkeys(("mT", "mH"), _permuting(_transposed, ())),  # `x.mT` and `x.mH`
}
PERMUTE_GETTERS: dict[str, Handler] = {
    "T": _getting(_reversed),
    "H": _getting(_reversed),
    "mT": _getting(_transposed),
    "mH": _getting(_transposed),
}
