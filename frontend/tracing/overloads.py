"""Calls of `torch.ops.aten.<op>.<overload>`, as graphs of AOTAutograd and exported programs make them.

An overload becomes the record of its packet: `aten.view.default` is `view`. Its schema puts arguments by keyword in
their places and names those that it writes. What capture treats on its own (`select`, `add_`, `size`) has one handler,
whether it is called as a method or as an overload; `OVERLOADS` has what only overloads have.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import torch

from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.indexing import put_at, slice_, take_at
from dlcb.frontend.tracing.names import aten_name
from dlcb.frontend.tracing.records import Operands
from dlcb.frontend.tracing.source import source_line
from dlcb.frontend.tracing.trace import Handler, Trace
from dlcb.frontend.tracing.tracked import pinned

Args = Operands
Kwargs = dict[str, Any]


def overload_handler(func: Any, named: Callable[[str], Handler]) -> Handler:
    """The handler of an overload, or of a packet, which chooses its overload by the arguments. `named` finds the
    handler of an ATen function by its name."""
    if private.is_packet(func):
        return _resolved
    schema = private.schema_of(func)
    name = aten_name(schema.name)
    own = OVERLOADS.get(func.__name__) or OVERLOADS.get(name)
    if own is None and schema.written - {"out"} and not (name.endswith("_") and schema.written == frozenset({"self"})):
        return _refusing(f"{name}: {{}}: writes into its arguments {', '.join(sorted(schema.written))}")
    inner = own or named(name)
    called = private.without_out(func) if "out" in schema.written else func
    if called is None:
        return _refusing(f"{name}: {{}}: there is no form of it that does not write into out")

    def handler(trace: Trace, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return inner(trace, called, *schema.in_place(args, kwargs))

    return handler


def _resolved(trace: Trace, func: Any, args: Args, kwargs: Kwargs) -> Any:
    given = trace.fake(args), {key: trace.fake(value) for key, value in kwargs.items()}
    return trace.__torch_function__(private.resolve_packet(func, *given), (), args, kwargs)


def _refusing(text: str) -> Handler:
    def handler(trace: Trace, func: Any, args: Args, kwargs: Kwargs) -> Any:
        raise UnsupportedError(text.format(source_line()))

    return handler


# Indexing


def _slice(
    trace: Trace, source: torch.Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> torch.Tensor:
    fake = trace.fake(source)
    axis = pinned(dim, "a dimension")
    stop = None if type(end) is int and end == sys.maxsize else end
    first = 0 if start is None else start
    return slice_(trace, fake, axis + fake.dim() if axis < 0 else axis, first, stop, pinned(step, "a step"))


def _index(trace: Trace, source: torch.Tensor, indices: Any) -> torch.Tensor:
    return take_at(trace, trace.fake(source), _fakes(trace, indices))


def _index_put(trace: Trace, source: torch.Tensor, indices: Any, values: Any, accumulate: bool = False) -> torch.Tensor:
    return put_at(trace, trace.fake(source), _fakes(trace, indices), values, accumulate)


def _index_put_in_place(
    trace: Trace, source: torch.Tensor, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False
) -> torch.Tensor:
    trace.assign(trace.fake(source), _index_put(trace, source, indices, values, accumulate))
    return source


def _fakes(trace: Trace, indices: Any) -> list[torch.Tensor | None]:
    return [None if index is None else trace.fake(index) for index in cast(Operands, indices)]


# Numbers and checks


def _assert_scalar(trace: Trace, condition: Any, message: str = "") -> None:
    """Comparing tracked numbers was noted when it was done; what is left is its answer."""
    if isinstance(condition, torch.Tensor):
        raise UnsupportedError(f"assert: {source_line()}: Python would wait for elements of a tensor")
    if not condition:
        raise UserError(f"{source_line()}: {message or 'an assertion of the program fails'}")


def _assert_metadata(
    trace: Trace,
    source: torch.Tensor,
    size: Any = None,
    stride: Any = None,
    dtype: torch.dtype | None = None,
    **others: Any,
) -> None:
    """What it says of sizes is checked at launch. Strides are those of the capture, not of the call."""
    if size is not None:
        for have, want in zip(trace.dims(source), size, strict=True):
            _assert_scalar(trace, have == want, f"a size is {have}, the program asserts {want}")
    if stride is not None:
        trace.notes.append(f"strides are asserted at {source_line()} and not checked")
    if dtype not in (None, source.dtype):
        raise UserError(f"{source_line()}: a tensor is of {source.dtype}, the program asserts {dtype}")


def _constrain_range(trace: Trace, size: Any, min: Any = None, max: Any = None) -> None:
    if min is not None:
        _assert_scalar(trace, size >= min, f"{size} is asserted to be at least {min}")
    if max is not None:
        _assert_scalar(trace, size <= max, f"{size} is asserted to be at most {max}")


# Conversions


def _convert_element_type(trace: Trace, source: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    fake = trace.fake(source)
    if fake.dtype == dtype:
        return trace.perform("clone", torch.clone, (fake,), {})
    return trace.perform("to", torch.Tensor.to, (fake, dtype), {})


# Batch norm


def _batch_norm(
    trace: Trace,
    source: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    variance: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Its running statistics, where it updates them, are results that are written into them."""
    aten, scale = torch.ops.aten, (source, weight, bias)
    if mean is None or variance is None:
        how = (True, momentum, eps)
        return trace.perform("_native_batch_norm_legit", aten._native_batch_norm_legit.no_stats, (*scale, *how), {})
    if not training:
        name, function = "_native_batch_norm_legit_no_training", aten._native_batch_norm_legit_no_training.default
        return trace.perform(name, function, (*scale, mean, variance, momentum, eps), {})
    name, function = private.functional_batch_norm()
    *results, new_mean, new_variance = trace.perform(name, function, (*scale, mean, variance, True, momentum, eps), {})
    trace.assign(trace.fake(mean), new_mean)
    trace.assign(trace.fake(variance), new_variance)
    return tuple(results)


def _by_schema(function: Callable[..., Any]) -> Handler:
    """A handler from a function that has the arguments of the schema."""

    def handler(trace: Trace, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return function(trace, *args, **kwargs)

    return handler


def _native_batch_norm(trace: Trace, func: Any, args: Args, kwargs: Kwargs) -> Any:
    """The same by torch's functions, of which the one without statistics has the same name."""
    if len(args) + len(kwargs) < 8:
        return trace.perform("_native_batch_norm_legit", func, args, kwargs)
    return _batch_norm(trace, *args, **kwargs)


NATIVE_BATCH_NORM: dict[str, Handler] = dict.fromkeys(
    ("native_batch_norm", "_native_batch_norm_legit"), _native_batch_norm
)

OVERLOADS: dict[str, Handler] = {
    name: _by_schema(function)
    for function, names in (
        (_slice, ("slice",)),
        (_index, ("index", "_unsafe_index")),
        (_index_put, ("index_put", "_unsafe_index_put")),
        (_index_put_in_place, ("index_put_", "_index_put_impl_")),
        (_assert_scalar, ("_assert_scalar", "_assert_async")),
        (_assert_metadata, ("_assert_tensor_metadata",)),
        (_constrain_range, ("sym_constrain_range", "sym_constrain_range_for_size")),
        (_convert_element_type, ("prims::convert_element_type",)),
        (_batch_norm, ("native_batch_norm", "_native_batch_norm_legit.default")),
    )
    for name in names
}
