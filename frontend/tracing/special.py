"""Torch functions that capture treats on their own: sizes, conversions, in-place forms, constants, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch

from dlcb.errors import UnsupportedError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing import data_dependent
from dlcb.frontend.tracing.data_dependent import DATA_DEPENDENT
from dlcb.frontend.tracing.indexing import INDEXING
from dlcb.frontend.tracing.layouts import tracked_strides
from dlcb.frontend.tracing.names import ALIASING, CONVERSIONS, DROPOUTS, NOT_RECORDED, RESHAPING_IN_PLACE, aten_name
from dlcb.frontend.tracing.overloads import NATIVE_BATCH_NORM, overload_handler
from dlcb.frontend.tracing.permutes import PERMUTE_GETTERS, PERMUTES
from dlcb.frontend.tracing.records import Operands
from dlcb.frontend.tracing.result_sizes import are_same
from dlcb.frontend.tracing.source import source_line
from dlcb.frontend.tracing.sym_functions import SYM_FUNCTIONS
from dlcb.frontend.tracing.trace import Handler, Handlers, Trace, ask
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedSize, pinned

Function = Callable[..., Any]
Args = Operands
Kwargs = dict[str, Any]


# Sizes


def _shape(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> TrackedSize:
    return TrackedSize(trace.hand_out(args[0]))


def _size(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    source, *given = args
    dim = given[0] if given else kwargs.get("dim")
    dims = trace.hand_out(source)
    if dim is None:
        return TrackedSize(dims)
    func(*args, **kwargs)
    return dims[cast(int, pinned(dim, "a dimension"))]


def _numel(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> int:
    return TrackedSize(trace.hand_out(args[0])).numel()


def _nbytes(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> int:
    return _numel(trace, func, args, kwargs) * args[0].element_size()


def _len(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> int:
    return pinned(trace.dims(args[0])[0], "len()")


def _ask_layout(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    trace.notes.append(f"{func.__name__} is asked at {source_line()}, so arguments have to lie in memory as these do")
    trace.asks_layouts = True
    return func(*args, **kwargs)


def _storage(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """The memory of a tensor, whose size and place are not followed; torch itself may ask."""
    if not trace.is_inside_torch:
        raise UnsupportedError(f"{func.__name__}: {source_line()}: the memory of a tensor is not followed")
    return func(*args, **kwargs)


def _stride(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """As sizes give it in a tensor that lies so; a gap has no expression."""
    source, *given = args
    strides = func(source)
    found = tracked_strides(trace.dims(source), strides)
    dim = given[0] if given else kwargs.get("dim")
    asked = range(len(strides)) if dim is None else (range(len(strides))[cast(int, pinned(dim, "a dimension"))],)
    if any(found[axis] is None for axis in asked):
        raise UnsupportedError(f"stride: {source_line()}: of a tensor of strides {strides}, which has gaps")
    _ask_layout(trace, func, args, kwargs)
    return tuple(found) if dim is None else found[asked[0]]


def _squeeze(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """The program asks of each dim whether its size is 1, and goes on by the answer."""
    source = trace.fake(args[0] if args else kwargs["input"])
    dims: Any = pinned(args[1] if len(args) > 1 else kwargs.get("dim"), "a dimension")
    trace.check(func, source, *([] if dims is None else [dims]))
    sizes = trace.dims(source)
    axes = list(range(len(sizes)))
    listed: Any = dims if type(dims) in (tuple, list) else (dims,)
    asked: list[int] = axes if dims is None or not sizes else [axes[d] for d in listed]
    gone = sorted((axis for axis in asked if sizes[axis] == 1), reverse=True)
    if set(gone) == {axis for axis in asked if source.shape[axis] == 1}:
        return trace.perform("squeeze", func, (source,) if dims is None else (source, dims), {})
    for axis in gone:  # answered otherwise than these sizes say
        source = trace.perform("select", torch.select, (source, axis, 0), {})
    return source


# Conversions and aliases


def _convert(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """`to` and its like: nothing, a change of dtype, or a copy."""
    source = trace.fake(args[0])
    others = tuple(map(trace.fake, args[1:]))
    result = trace.fakes_of(func, source, *others, **kwargs)
    if not isinstance(result, torch.Tensor) or trace.memory.find(result) is not None:
        return result
    if result.device != source.device:
        moves = f"moves a tensor from {source.device} to {result.device}"
        return trace.perform(func.__name__, func, args, kwargs, why_eager=moves)
    layout = {key: value for key, value in kwargs.items() if key == "memory_format"}
    if result.dtype != source.dtype:
        return trace.perform("to", torch.Tensor.to, (source, result.dtype), layout)
    return trace.perform("clone", torch.clone, (source,), layout)


def _getter_of(function: Function) -> Handler:
    """An attribute that is another tensor."""
    return lambda trace, _, args, kwargs: trace.perform(function.__name__, function, args, {})


def _alias(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    source = trace.fake(args[0])
    trace.line = source_line()
    result = trace.fakes_of(func, source, *args[1:], **kwargs)
    if trace.memory.find(result) is None:
        trace.alias(result, source)
    return result


# Writing


def _inplace(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """x.op_(…): the functional op, written into x."""
    name = aten_name(func.__name__)
    target = trace.fake(args[0])
    functional = private.function_named(name[:-1]) or out_of_place(func)
    result = trace.perform(name[:-1], functional, (target, *args[1:]), kwargs)
    if result.shape != target.shape or not torch.can_cast(result.dtype, target.dtype):
        func(target, *map(trace.fake, args[1:]), **kwargs)
    trace.assign(target, _sized_as(trace, result, target))
    return args[0]


def _sized_as(trace: Trace, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The source expanded to the sizes of the target, which equal sizes of the trace need not be."""
    mine, theirs = trace.state(source).dims, trace.state(target).dims
    if len(mine) == len(theirs) and all(map(are_same, mine, theirs)):
        return source
    return trace.perform("expand_as", torch.Tensor.expand_as, (source, target), {})


@cache
def out_of_place(func: Function) -> Function:
    """The same into a copy of its first argument."""

    def on_copy(target: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return func(target.clone(), *args, **kwargs)

    return on_copy


def _random(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """Random numbers, made by torch; x.normal_() and its like into x."""
    name = aten_name(func.__name__)
    if not name.endswith("_"):
        return trace.perform(name, func, args, kwargs, why_eager=_RANDOMLY, ordered=True)
    result = trace.perform(name[:-1], out_of_place(func), args, kwargs, why_eager=_RANDOMLY, ordered=True)
    trace.assign(trace.fake(args[0]), result)
    return args[0]


def _fill(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    written, *given = args
    target, value = trace.fake(written), given[0] if given else kwargs.get("value", 0)
    if isinstance(value, torch.Tensor):
        write(trace, target, value)
    else:
        trace.assign(target, trace.perform("full_like", torch.full_like, (target, value), {}))
    return written


def _copy(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    write(trace, trace.fake(args[0]), args[1])
    return args[0]


def write(trace: Trace, target: torch.Tensor, source: torch.Tensor) -> None:
    """target.copy_(source), with broadcasting."""
    fake = trace.fake(source)
    if fake.dtype != target.dtype:
        fake = trace.perform("to", torch.Tensor.to, (fake, target.dtype), {})
    trace.assign(target, _sized_as(trace, fake, target))


def _out(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """op(…, out=x)."""
    target = trace.fake(kwargs["out"])
    if not isinstance(target, torch.Tensor):
        raise UnsupportedError(f"{func.__name__}: {source_line()}: more than one tensor is given as out")
    name = aten_name(func.__name__)
    result = trace.perform(name, func, args, {key: value for key, value in kwargs.items() if key != "out"})
    if result.shape != target.shape:
        raise UnsupportedError(
            f"{name}: {trace.line}: out has sizes {list(target.shape)} and would be resized to {list(result.shape)}"
        )
    trace.assign(target, _sized_as(trace, result, target))
    return kwargs["out"]


def _reshaping_in_place(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    raise UnsupportedError(f"{func.__name__}: {source_line()}: changes more of a tensor in place than its elements")


def _set_attribute(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> None:
    name = cast(Any, func).__self__.__name__
    if name == "data":
        raise UnsupportedError(f"{source_line()}: a tensor is given other memory by its .data; write into it instead")
    func(*map(trace.fake, args))


# Constants


def _tensor(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """torch.tensor(data): a scalar stays a number; more elements become a weight."""
    data, *others = args
    dtype = kwargs.get("dtype", others[0] if others else None)
    if isinstance(data, torch.Tensor):
        return (
            data if func.__name__ in ("as_tensor", "asarray") and dtype in (None, data.dtype) else data.to(dtype=dtype)
        )
    if isinstance(data, (int, float)):
        return _scalar(trace, data, dtype)
    items = cast(Operands, data) if isinstance(data, (list, tuple)) else ()
    if any(type(item) in (TrackedInt, TrackedFloat) for item in items):
        return trace.perform("stack", torch.stack, ([_scalar(trace, item, dtype) for item in items],), {})
    with private.real_tensors():
        real = func(data, *others, **{**kwargs, "device": "cpu"})
    return trace.fake(real)


def _scalar(trace: Trace, value: float, dtype: torch.dtype | None) -> torch.Tensor:
    if dtype is None:
        dtype = (
            torch.bool
            if isinstance(value, bool)
            else torch.int64
            if isinstance(value, int)
            else torch.get_default_dtype()
        )
    return trace.perform("scalar_tensor", torch.scalar_tensor, (value,), {"dtype": dtype})


# What only eager can do


def _run_and_save_rng_state(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """Checkpoints keep the generator's state for the second run of what draws from it."""
    op, *given = args
    device = next(
        (fake.device for fake in map(trace.fake, given) if isinstance(fake, torch.Tensor)), torch.device("cpu")
    )
    read = private.generator_state(device)
    with private.real_tensors():
        size = read().numel()
    state = trace.perform(
        "get_rng_state", read, (), {}, _RANDOMLY, ordered=True, stand_in=lambda: torch.empty(size, dtype=torch.uint8)
    )
    return state, trace.__torch_function__(op, (), tuple(given), kwargs)


def _random_if(condition: Callable[[Args, Kwargs], Any], name: str) -> Handler:
    def handler(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
        if not condition(args, kwargs):
            return trace.perform(name.rstrip("_"), func, args, kwargs)
        return _random(trace, func, args, kwargs)

    return handler


def _drops(args: Args, kwargs: Kwargs) -> bool:
    return bool(
        (args[1] if len(args) > 1 else kwargs.get("p", 0.5))
        and (args[2] if len(args) > 2 else kwargs.get("train", True))
    )


def _attends_with_dropout(args: Args, kwargs: Kwargs) -> bool:
    return bool(args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0))


def _updates_statistics(args: Args, kwargs: Kwargs) -> bool:
    return (
        bool(args[5] if len(args) > 5 else kwargs.get("training")) and (args[3] if len(args) > 3 else None) is not None
    )


def _batch_norm(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """In training mode its running statistics are results, written into the buffers."""
    if not _updates_statistics(args, kwargs):
        return trace.perform("batch_norm", func, args, kwargs)
    mean, variance = args[3], args[4]
    name, function = private.functional_batch_norm()
    result, _, _, new_mean, new_variance = trace.perform(name, function, args[:8], {})
    trace.assign(trace.fake(mean), new_mean)
    trace.assign(trace.fake(variance), new_variance)
    return result


def _instance_norm(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    if _updates_statistics(args, kwargs):
        raise UnsupportedError(f"instance_norm: {source_line()}: updates its running statistics; call .eval()")
    return trace.perform("instance_norm", func, args, kwargs)


def _has_one_argument(args: Args, kwargs: Kwargs) -> bool:
    return len(args) + len(kwargs) == 1


_RANDOMLY = "random numbers; call .eval() where they come from dropout"


def _where(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """The method has the condition second: `x.where(condition, other)`."""
    if _has_one_argument(args, kwargs):
        return data_dependent.where(trace, func, args, kwargs)
    if func is torch.Tensor.where:
        source, *rest = args
        condition = kwargs.pop("condition") if not rest else rest.pop(0)
        args = (condition, source, *rest)
    return trace.perform("where", torch.where, args, kwargs)


def _meshgrid(trace: Trace, func: Function, args: Args, kwargs: Kwargs) -> Any:
    """Views of its operands. The Python function asks itself by its own name, so its body can't be run instead."""
    tensors = cast(Args, args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    rank = len(tensors)
    with trace:
        sizes = [tensor.numel() for tensor in tensors]
        grids = [t.reshape([1] * i + [-1] + [1] * (rank - i - 1)).expand(sizes) for i, t in enumerate(tensors)]
        turned = rank > 1 and kwargs.get("indexing", "ij") == "xy"
        return tuple(grid.transpose(0, 1) if turned else grid for grid in grids)


PARTLY_EAGER: dict[str, Handler] = {
    **{name: _random_if(_drops, name) for form in DROPOUTS for name in (form, f"{form}_")},
    "scaled_dot_product_attention": _random_if(_attends_with_dropout, "scaled_dot_product_attention"),
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "where": _where,
}


def make_handlers() -> Handlers:
    special: dict[str, Handler] = {
        "size": _size,
        "stride": _stride,
        "run_and_save_rng_state": _run_and_save_rng_state,
        "squeeze": _squeeze,
        "numel": _numel,
        "nelement": _numel,
        "__len__": _len,
        "fill_": _fill,
        "zero_": _fill,
        "copy_": _copy,
        "__set__": _set_attribute,
        "tensor": _tensor,
        "as_tensor": _tensor,
        "asarray": _tensor,
        "meshgrid": _meshgrid,
        **dict.fromkeys(NOT_RECORDED, ask),
        **dict.fromkeys(("is_contiguous", "storage_offset"), _ask_layout),
        **dict.fromkeys(("untyped_storage", "storage"), _storage),
        **dict.fromkeys(CONVERSIONS, _convert),
        **dict.fromkeys(ALIASING, _alias),
        **dict.fromkeys(RESHAPING_IN_PLACE, _reshaping_in_place),
        **DATA_DEPENDENT,
        **INDEXING,
        **PERMUTES,
        **PARTLY_EAGER,
        **SYM_FUNCTIONS,
        **NATIVE_BATCH_NORM,
    }
    getters: dict[str, Handler] = {
        "shape": _shape,
        "nbytes": _nbytes,
        "data": _alias,
        "real": _getter_of(torch.real),
        "imag": _getter_of(torch.imag),
        **PERMUTE_GETTERS,
    }
    return Handlers(special, getters, _inplace, _out, _random, overload_handler)
