"""Sizes of results that are sizes of operands, or follow from the numbers of a call.

Without them each size of a result is a symbol of its own until the program's requirements are solved, and a program
that asks whether the width of its layers is what it expects (`assert x.shape[-1] == width`) would be a program of two
ways, each to be traced. A rule gets the operands of a call that torch has accepted, tensors as their sizes, and says of
each size of the result what it is, whatever the sizes are; None where it does not say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest
from typing import Any, Final, TypeAlias, cast

import torch

from dlcb.frontend.tracing.records import Value
from dlcb.frontend.tracing.tracked import TrackedInt, traced


@dataclass(eq=False, slots=True)
class Unknown:
    """A size of a result that no rule gives. Once the program asks for it, it is a symbol."""

    value: Value
    axis: int
    known: int | None = None


class Fixed(Enum):
    FIXED = auto()


FIXED: Final = Fixed.FIXED
"""In place of a size: the number of the trace, whatever the sizes of the inputs are, for it follows from numbers
alone."""

Dim: TypeAlias = "int | Unknown"
"""A number, a tracked int, or a size that is not known."""
Found: TypeAlias = "Sequence[Dim | Fixed | None] | None"
Rule: TypeAlias = Callable[..., Found]


class Sizes(tuple[Dim, ...]):
    """Those of one tensor."""

    def __getitem__(self, place: Any) -> Any:
        found = cast(Any, super().__getitem__(place))
        return Sizes(found) if isinstance(place, slice) else found


def sizes_of_result(op: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Found:
    """Of the one result of a call, whose tensors are given as their `Sizes`. Words that say nothing of sizes are left
    out."""
    rule = RULES.get(op)
    if rule is None:
        return None
    try:
        return rule(*args, **kwargs)
    except (TypeError, IndexError, ValueError):  # a form of the call that the rule does not have
        return None


_SIZELESS_TYPES: Final = frozenset(
    {int, float, bool, str, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout, torch.memory_format}
)


def is_literal(operand: Any) -> bool:
    """Has it no number that the sizes of the inputs decide?"""
    if isinstance(operand, (tuple, list)):
        return all(map(is_literal, cast("Sequence[Any]", operand)))
    if type(operand) is slice:
        return is_literal((operand.start, operand.stop, operand.step))
    return type(operand) in _SIZELESS_TYPES


def in_trace(dim: Dim) -> int:
    """The size in the trace."""
    return dim.value.shape[dim.axis] if isinstance(dim, Unknown) else cast(int, traced(dim))


def are_same(a: Dim, b: Dim) -> bool:
    """Equal whatever the sizes are, as far as their expressions tell."""
    if type(a) is TrackedInt and type(b) is TrackedInt:
        return a.expr is b.expr
    return a is b or (type(a) is int and type(b) is int and a == b)


def _is_one(dim: Dim) -> bool:
    return type(dim) is int and dim == 1


def _listed(given: Sequence[Any]) -> Sequence[Any]:
    """Numbers that may be given one by one or as a sequence."""
    first = given[0] if len(given) == 1 else None
    return cast("Sequence[Any]", first) if isinstance(first, (tuple, list)) else given


# --- elementwise ------------------------------------------------------------------------------------------------------


def _like(x: Sizes, *_: Any, **__: Any) -> Found:
    return x


def broadcast(*operands: Any, **words: Any) -> list[Dim | None]:
    """Of the sizes among the operands."""
    shapes = [reversed(operand) for operand in (*operands, *words.values()) if isinstance(operand, Sizes)]
    return [_joined(dims) for dims in zip_longest(*shapes, fillvalue=1)][::-1]


def _joined(dims: Iterable[Dim]) -> Dim | None:
    """What sizes that broadcast become: a number other than 1 is that, whether the others are it or 1."""
    wide = [dim for dim in dims if not _is_one(dim)]
    number = next((dim for dim in wide if type(dim) is int), None)
    if number is not None or not wide:
        return 1 if number is None else number
    return wide[0] if all(are_same(wide[0], dim) for dim in wide[1:]) else None


# --- contractions -----------------------------------------------------------------------------------------------------


def _linear(x: Sizes, weight: Sizes, bias: Any = None) -> Found:
    return (*x[:-1], *weight[:-1])


def _matmul(x: Sizes, y: Sizes) -> Found:
    return (*broadcast(x[:-2], y[:-2]), *x[:-1][-1:], *(y[-1:] if len(y) > 1 else ()))


def _addmm(bias: Any, x: Sizes, y: Sizes, *, beta: Any = 1, alpha: Any = 1) -> Found:
    return (*x[:-1], y[-1])


def _convolution(x: Sizes, weight: Sizes, *given: Any, **words: Any) -> Found:
    window = len(weight) - 2
    return (*x[: len(x) - window - 1], weight[0], *_windows(x[len(x) - window :], *given, *words.values()))


def _attention(query: Sizes, key: Sizes, value: Sizes, *_: Any, enable_gqa: bool = False, **__: Any) -> Found:
    batches = [(*x[:-3], 1) if enable_gqa else x[:-2] for x in (key, value)]
    lead = [_joined(dims) for dims in zip(query[:-2], *batches, strict=True)]
    return (*lead, query[-2], value[-1])


def _embedding(weight: Sizes, indices: Sizes, *_: Any, **__: Any) -> Found:
    return (*indices, weight[1])


# --- windows ----------------------------------------------------------------------------------------------------------


def _adaptive(rank: int) -> Rule:
    def pool(x: Sizes, output_size: Any) -> Found:
        several = isinstance(output_size, (tuple, list))
        sizes = cast("Sequence[Any]", output_size) if several else [output_size] * rank
        kept = x[len(x) - rank :]
        return (*x[: len(x) - rank], *(b if a is None else a for a, b in zip(sizes, kept, strict=True)))

    return pool


def _pool(rank: int) -> Rule:
    def pool(x: Sizes, *given: Any, **words: Any) -> Found:
        return (*x[: len(x) - rank], *_windows(x[len(x) - rank :], *given, *words.values()))

    return pool


def _windows(sizes: Sizes, *numbers: Any) -> list[Fixed | None]:
    """How many windows there are along these axes."""
    are_literal = is_literal(numbers)
    return [FIXED if are_literal and type(size) is int else None for size in sizes]


# --- views ------------------------------------------------------------------------------------------------------------


def _permute(x: Sizes, *order: Any) -> Found:
    return [x[axis] for axis in _listed(order)]


def _unsqueeze(x: Sizes, dim: int) -> Found:
    place = range(len(x) + 1)[dim]
    return (*x[:place], 1, *x[place:])


def _squeeze(x: Sizes, dim: Any = None) -> Found:
    """Which sizes are 1 is what the program goes by."""
    dims = range(len(x)) if dim is None else _listed((dim,))
    axes = range(len(x))
    gone = {axes[d] for d in dims if in_trace(x[d]) == 1}
    return [size for axis, size in enumerate(x) if axis not in gone]


def _select(x: Sizes, dim: int, index: Any) -> Found:
    axis = range(len(x))[dim]
    return (*x[:axis], *x[axis + 1 :])


def _slice(x: Sizes, dim: int, start: Any, end: Any, step: int) -> Found:
    whole = x[dim]
    is_literal = type(whole) is int and type(start) is int and type(end) in (int, type(None))
    cut = len(range(whole)[start:end:step]) if is_literal else None
    return (*x[:dim], cut, *x[dim + 1 :])


def _expand(x: Sizes, *sizes: Any, implicit: bool = False) -> Found:
    wanted = _listed(sizes)
    old = (*[1] * (len(wanted) - len(x)), *x)
    return [b if type(a) is int and a == -1 else a for a, b in zip(wanted, old, strict=True)]


def _view(x: Sizes, *sizes: Any) -> Found:
    wanted = _listed(sizes)
    if not all(isinstance(size, int) for size in wanted):
        return None
    return [_rest(x, wanted) if type(size) is int and size == -1 else size for size in wanted]


def _rest(x: Sizes, wanted: Sequence[int]) -> int | None:
    """The size that is left, where the others divide those of the tensor. Torch does not take a call in which the
    others make 0."""
    left = [dim for dim in x if type(dim) is not int]
    for size in wanted:
        if type(size) is not int:
            found = next((place for place, dim in enumerate(left) if are_same(dim, size)), None)
            if found is None:
                return None
            del left[found]
    elements = math.prod(dim for dim in x if type(dim) is int)
    others = math.prod(size for size in wanted if type(size) is int and size != -1)
    if not others or elements % others or not _are_numbers(left):
        return None
    return math.prod(cast("list[int]", left), start=elements // others)


def _unflatten(x: Sizes, dim: int, sizes: Any) -> Found:
    axis = range(len(x))[dim]
    parts = _view(x[axis : axis + 1], sizes)
    return None if parts is None else (*x[:axis], *parts, *x[axis + 1 :])


def _flatten(x: Sizes, start_dim: int = 0, end_dim: int = -1) -> Found:
    if not x:
        return (1,)
    first, last = range(len(x))[start_dim], range(len(x))[end_dim]
    merged = x[first : last + 1]
    product = math.prod(cast("Sequence[int]", merged)) if _are_numbers(merged) else None
    return (*x[:first], merged[0] if len(merged) == 1 else product, *x[last + 1 :])


# --- others -----------------------------------------------------------------------------------------------------------


def _reduce(x: Sizes, dim: Any = None, keepdim: bool = False) -> Found:
    """An empty list of dims is all of them for some functions, none for others."""
    axes = range(len(x))
    listed: Sequence[Any] = axes if dim is None else _listed((dim,))
    if dim is not None and not listed:
        return None
    gone: set[int] = {axes[d] for d in listed}
    return [1 if axis in gone else size for axis, size in enumerate(x) if keepdim or axis not in gone]


def _pad(x: Sizes, amounts: Sequence[Any], *_: Any) -> Found:
    """Where the amounts follow from sizes, the result's sizes stay symbols: the program may pad on one way only."""
    pairs = [amounts[place : place + 2] for place in range(0, len(amounts), 2)]
    padded = dict(zip(reversed(range(len(x))), pairs, strict=False))
    return [_grown(dim, *padded.get(axis, (0, 0))) for axis, dim in enumerate(x)]


def _grown(dim: Dim, before: Any, after: Any) -> Dim | None:
    if type(before) is not int or type(after) is not int:
        return None
    if before == after == 0:
        return dim
    return dim + before + after if isinstance(dim, int) else None


def _cat(tensors: Sequence[Sizes], dim: int = 0) -> Found:
    given = [sizes for sizes in tensors if len(sizes) != 1 or type(sizes[0]) is not int or sizes[0] != 0]
    first = given[0]
    axis = range(len(first))[dim]
    along = [sizes[axis] for sizes in given]
    total = sum(cast("list[int]", along[1:]), start=cast(int, along[0])) if _are_numbers(along) else None
    return (*first[:axis], total, *first[axis + 1 :])


def _are_numbers(dims: Iterable[Dim]) -> bool:
    return all(isinstance(dim, int) for dim in dims)


def _stack(tensors: Sequence[Sizes], dim: int = 0) -> Found:
    first = tensors[0]
    place = range(len(first) + 1)[dim]
    return (*first[:place], len(tensors), *first[place:])


def _arange(end: Any) -> Found:
    return (end,) if isinstance(end, int) else None


def _filled(*size: Any) -> Found:
    return _listed(size)


def _full(size: Any, fill_value: Any) -> Found:
    return _listed((size,))


def _new_filled(x: Sizes, *size: Any) -> Found:
    return _listed(size)


def _like_other(x: Sizes, other: Sizes) -> Found:
    return other


def _gather(x: Sizes, dim: int, index: Sizes) -> Found:
    return index


RULES: dict[str, Rule] = {
    name: rule
    for rule, names in (
        (
            _like,
            "abs acos alpha_dropout asin atan batch_norm bernoulli bitwise_not ceil celu clone contiguous cos "
            "cosh cumsum dropout elu empty_like erf erfc exp exp2 expm1 feature_dropout flip floor full_like gelu "
            "group_norm hardshrink hardsigmoid hardswish hardtanh instance_norm isfinite isinf isnan layer_norm "
            "leaky_relu log log10 log1p log2 log_sigmoid log_softmax logical_not mish neg ones_like rand_like "
            "randn_like reciprocal relu relu6 rms_norm roll round rsqrt scatter scatter_add selu sigmoid sign "
            "silu sin sinh softmax softplus softshrink sqrt square tan tanh to tril triu trunc zeros_like",
        ),
        (
            broadcast,
            "add addcdiv addcmul atan2 bitwise_and bitwise_or bitwise_xor clamp clamp_max clamp_min div eq floor_divide"
            " fmod ge gt le lerp logical_and logical_or logical_xor lt masked_fill maximum minimum mul ne pow remainder"
            " rsub sub where xlogy",
        ),
        (_reduce, "all amax amin any argmax argmin logsumexp mean sum"),
        (_linear, "linear"),
        (_matmul, "bmm matmul mm"),
        (_addmm, "addmm baddbmm"),
        (_convolution, "conv1d conv2d conv3d"),
        (_attention, "scaled_dot_product_attention"),
        (_embedding, "embedding"),
        (_adaptive(1), "adaptive_avg_pool1d"),
        (_adaptive(2), "adaptive_avg_pool2d"),
        (_adaptive(3), "adaptive_avg_pool3d"),
        (_pool(1), "avg_pool1d max_pool1d"),
        (_pool(2), "avg_pool2d max_pool2d"),
        (_pool(3), "avg_pool3d max_pool3d"),
        (_permute, "permute"),
        (_unsqueeze, "unsqueeze"),
        (_squeeze, "squeeze"),
        (_select, "select"),
        (_slice, "slice"),
        (_expand, "expand"),
        (_view, "reshape view"),
        (_flatten, "flatten"),
        (_unflatten, "unflatten"),
        (_pad, "pad"),
        (_cat, "cat"),
        (_stack, "stack"),
        (_arange, "arange"),
        (_filled, "empty ones rand randn zeros"),
        (_full, "full"),
        (_new_filled, "new_empty new_ones new_zeros"),
        (_gather, "gather"),
        (_like_other, "expand_as reshape_as view_as"),
    )
    for name in names.split()
}
