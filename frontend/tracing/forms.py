"""What operations go by in tensors without elements, and the forms of results that need no torch to tell.

For the operations that networks are mostly made of, torch finds the form of a result by Python that takes
milliseconds. A rule here has it for operands as they mostly are: floats of one dtype that lie without gaps in the usual
order. It says nothing of a call that is not so, or that torch may refuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import torch

from dlcb.frontend.tracing.result_sizes import Sizes, sizes_of_result
from dlcb.frontend.tracing.tracked import traced


class Form(NamedTuple):
    """Strides and offset count elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class New:
    """A result in memory of its own."""

    form: Form


@dataclass(frozen=True, slots=True)
class View:
    """A result in the memory of the tensor of that place among the operands."""

    form: Form
    of: int = 0


Result: TypeAlias = "New | View | None"
Rule: TypeAlias = Callable[..., Result]


def has_rule(op: str) -> bool:
    return op in _RULES


def result_of(op: str, operands: Sequence[Any], words: Mapping[str, Any]) -> Result:
    """The form of the one result of a call, whose tensors are given by their forms; None where no rule has it."""
    try:
        return _RULES[op](*map(_plain, operands), **words)
    except (TypeError, IndexError, ValueError):  # not a call that torch takes, or not in this form
        return None


def _plain(operand: Any) -> Any:
    """Numbers and lists of them as they are in the trace."""
    if isinstance(operand, (tuple, list)) and not isinstance(operand, Form):
        return tuple(map(_plain, cast("Sequence[Any]", operand)))
    return traced(operand)


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of torch's usual order."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.append(steps[-1] * max(size, 1))
    return tuple(reversed(steps)) if shape else ()


def _channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    n, *window, c = contiguous((shape[0], *shape[2:], shape[1]))
    return (n, c, *window)


_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})


def _is_usual(x: Form) -> bool:
    return x.dtype in _FLOATS and x.strides == contiguous(x.shape)


def _is_picture(x: Form) -> bool:
    """The usual order, or pictures with their channels last."""
    if _is_usual(x):
        return True
    return x.dtype in _FLOATS and len(x.shape) in (4, 5) and 0 not in x.shape and x.strides == _channels_last(x.shape)


def _are_alike(x: Form, *others: Form | None) -> bool:
    """Of one dtype on one device, as far as they are given."""
    return all(other is None or (other.dtype, other.device) == (x.dtype, x.device) for other in others)


def _has(form: Form | None, *shape: int) -> bool:
    return form is None or form.shape == shape


def _made(x: Form, shape: Sequence[int]) -> New:
    return New(Form(tuple(shape), contiguous(shape), 0, x.dtype, x.device))


def _shape(op: str, *operands: Any) -> Sequence[int]:
    """By the rules of sizes."""
    found = sizes_of_result(op, [Sizes(o.shape) if isinstance(o, Form) else o for o in operands], {})
    if found is None or None in found:
        raise ValueError(op)
    return cast("Sequence[int]", found)


# --- like an operand --------------------------------------------------------------------------------------------------


def _pointwise(x: Form, *numbers: float, approximate: str = "none") -> Result:
    is_known = _is_picture(x) and all(map(_is_number, numbers))
    return New(x._replace(offset=0)) if is_known else None


def _is_number(operand: Any) -> bool:
    """Of Python, and such as torch takes."""
    return type(operand) is float or (type(operand) is int and -(2**63) <= operand < 2**63)


def _arithmetic(a: Any, b: Any) -> Result:
    form, other = (a, b) if isinstance(a, Form) else (b, a)
    if isinstance(other, Form) and other.shape != form.shape:
        return _broadcast(form, other)
    is_like = other._replace(offset=form.offset) == form if isinstance(other, Form) else _is_number(other)
    return New(form._replace(offset=0)) if is_like and _is_picture(form) else None


def _broadcast(a: Form, b: Form) -> Result:
    """Of operands that lie in the usual order, of which one has all sizes of the result."""
    wide, narrow = (a, b) if math.prod(a.shape) >= math.prod(b.shape) else (b, a)
    sizes = zip(reversed(wide.shape), reversed(narrow.shape), strict=False)
    is_known = _is_usual(a) and _is_usual(b) and _are_alike(a, b) and min(wide.shape, default=0) > 1
    fits = len(narrow.shape) in range(1, len(wide.shape) + 1) and all(n in (1, size) for size, n in sizes)
    return _made(wide, wide.shape) if is_known and fits else None


def _like_dense(x: Form, value: float) -> Result:
    """Of what lies in the usual order, with gaps or without."""
    is_known = x.dtype in _FLOATS and min(x.shape, default=0) > 1 and all(a > b for a, b in pairwise(x.strides))
    return _made(x, x.shape) if is_known and _is_number(value) and x.strides[-1] > 0 else None


def _masked_fill(x: Form, mask: Form, value: float) -> Result:
    is_known = _is_usual(x) and (mask.dtype, mask.device) == (torch.bool, x.device)
    is_like = mask.shape == x.shape and mask.strides == x.strides and min(x.shape, default=0) > 1
    return _made(x, x.shape) if is_known and is_like and _is_number(value) else None


def _roll(x: Form, shifts: Sequence[int], dims: Sequence[int]) -> Result:
    rank = range(-len(x.shape), len(x.shape))
    is_known = _is_usual(x) and 0 not in x.shape and len(shifts) == len(dims) > 0 and all(d in rank for d in dims)
    return _made(x, x.shape) if is_known and all(map(_is_number, shifts)) else None


def _batch_norm(
    x: Form,
    weight: Form | None,
    bias: Form | None,
    mean: Form,
    variance: Form,
    training: bool,
    momentum: float,
    eps: float,
    cudnn: bool,
) -> Result:
    of_channels = (weight, bias, mean, variance)
    is_known = not training and _is_picture(x) and 0 not in x.shape and _are_alike(x, *of_channels)
    return New(x._replace(offset=0)) if is_known and all(_has(form, x.shape[1]) for form in of_channels) else None


def _layer_norm(
    x: Form, shape: Sequence[int], weight: Form | None, bias: Form | None, eps: float, cudnn: bool = True
) -> Result:
    rows = tuple(shape)
    is_known = _is_usual(x) and rows == x.shape[len(x.shape) - len(rows) :] and _are_alike(x, weight, bias)
    return _made(x, x.shape) if is_known and rows and _has(weight, *rows) and _has(bias, *rows) else None


def _group_norm(
    x: Form, groups: int, weight: Form | None = None, bias: Form | None = None, eps: float = 1e-5, cudnn: bool = True
) -> Result:
    """On the CPU it lies as its operand does; fakes of torch 2.14 say otherwise."""
    is_known = (_is_picture(x) if x.device.type == "cpu" else _is_usual(x)) and 0 not in x.shape
    channels = x.shape[1]
    is_right = type(groups) is int and groups > 0 and channels % groups == 0 and _are_alike(x, weight, bias)
    return (
        New(x._replace(offset=0)) if is_known and is_right and all(_has(f, channels) for f in (weight, bias)) else None
    )


def _softmax(x: Form, dim: int, dtype: None = None) -> Result:
    return _made(x, x.shape) if _is_usual(x) and dim in range(-len(x.shape), len(x.shape)) else None


# --- others -----------------------------------------------------------------------------------------------------------


def _linear(x: Form, weight: Form, bias: Form | None = None) -> Result:
    out, inner = weight.shape
    is_known = _is_usual(x) and _is_usual(weight) and _are_alike(x, weight, bias)
    return _made(x, _shape("linear", x, weight)) if is_known and x.shape[-1] == inner and _has(bias, out) else None


def _matmul(x: Form, y: Form) -> Result:
    """Of stacks of matrices, of one size."""
    (*stack, rows, inner), (*other, height, columns) = x.shape, y.shape
    is_known = x.dtype in _FLOATS and _are_alike(x, y) and len(stack) > 0 and 0 not in (*x.shape, *y.shape)
    return _made(x, (*stack, rows, columns)) if is_known and stack == other and inner == height else None


def _convolution(
    x: Form, weight: Form, bias: Form | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Result:
    n, channels, *window = x.shape
    out, inner, *kernel = weight.shape
    if len(window) != 2 or len(kernel) != 2 or not _is_usual(x) or not _is_usual(weight):
        return None
    if not _are_alike(x, weight, bias) or channels != inner * groups or out % groups or not _has(bias, out):
        return None
    steps, pads, gaps = ([each] * 2 if isinstance(each, int) else each for each in (stride, padding, dilation))
    sizes = [
        (size + 2 * pad - gap * (k - 1) - 1) // step + 1
        for size, k, step, pad, gap in zip(window, kernel, steps, pads, gaps, strict=True)
    ]
    is_known = min(*x.shape, *weight.shape, *sizes, *steps, *gaps) > 0 <= min(pads)
    return _made(x, (n, out, *sizes)) if is_known else None


def _cat(tensors: Sequence[Form], dim: int = 0) -> Result:
    """Channels come last only where they do in all operands."""
    first, *others = tensors
    axis = range(len(first.shape))[dim]
    lengths = [form.shape[axis] for form in tensors]
    are_same = all(_shape_but(axis, form.shape) == _shape_but(axis, first.shape) for form in others)
    is_known = any(map(_is_usual, tensors)) and 0 not in (*lengths, *first.shape)
    if not is_known or not are_same or not _are_alike(first, *others):
        return None
    return _made(first, (*first.shape[:axis], sum(lengths), *first.shape[axis + 1 :]))


def _shape_but(axis: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:axis], -1, *shape[axis + 1 :])


# --- views ------------------------------------------------------------------------------------------------------------


def _seen(x: Form, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> View:
    return View(Form(tuple(shape), tuple(strides), x.offset + offset, x.dtype, x.device))


def _all_of(x: Form, shape: Sequence[int]) -> Result:
    """All elements, in their order; there are some."""
    is_known = x.strides == contiguous(x.shape) and math.prod(shape) == math.prod(x.shape)
    return _seen(x, shape, contiguous(shape)) if is_known and min(shape, default=1) > 0 else None


def _view(x: Form, *sizes: Any) -> Result:
    return _all_of(x, _shape("view", x, *sizes))


def _reshape(x: Form, *sizes: Any) -> Result:
    """A view where one can be, else a copy in the usual order."""
    shape = _shape("reshape", x, *sizes)
    if min(*shape, *x.shape, 2) < 2 or math.prod(shape) != math.prod(x.shape):
        return _all_of(x, shape)
    strides = _strides_of_view(x, shape)
    return _made(x, shape) if strides is None else _seen(x, shape, strides)


def _strides_of_view(x: Form, shape: Sequence[int]) -> list[int] | None:
    """Strides with which the tensor's elements have this shape; None where no strides do. All sizes are above 1.
    Source: ATen's `computeStride`."""
    found: list[int] = []
    left = list(shape)
    inner, step = 1, x.strides[-1]
    for axis in reversed(range(len(x.shape))):
        inner *= x.shape[axis]
        if axis and x.strides[axis - 1] == inner * step:
            continue  # the next axis lies on without a gap
        covered = 1
        while covered < inner:
            found.append(covered * step)
            covered *= left.pop()
        if covered != inner:
            return None
        inner, step = 1, x.strides[axis - 1]
    return found[::-1]


def _flatten(x: Form, start_dim: int = 0, end_dim: int = -1) -> Result:
    shape = _shape("flatten", x, start_dim, end_dim)
    return _all_of(x, shape) if len(shape) < len(x.shape) else None


def _permute(x: Form, order: Sequence[int]) -> Result:
    if sorted(order) != list(range(len(x.shape))):
        return None
    return _seen(x, [x.shape[d] for d in order], [x.strides[d] for d in order])


def _unsqueeze(x: Form, dim: int) -> Result:
    place = range(len(x.shape) + 1)[dim]
    stride = x.shape[place] * x.strides[place] if place < len(x.shape) else 1
    return _seen(x, (*x.shape[:place], 1, *x.shape[place:]), (*x.strides[:place], stride, *x.strides[place:]))


def _select(x: Form, dim: int, index: int) -> Result:
    axis = range(len(x.shape))[dim]
    offset = range(x.shape[axis])[index] * x.strides[axis]
    return _seen(x, (*x.shape[:axis], *x.shape[axis + 1 :]), (*x.strides[:axis], *x.strides[axis + 1 :]), offset)


def _slice(x: Form, dim: int, start: int, end: int | None, step: int) -> Result:
    cut = range(x.shape[dim])[start:end:step]
    if step < 1:
        return None
    shape, strides = list(x.shape), list(x.strides)
    offset = cut.start * strides[dim]
    shape[dim], strides[dim] = len(cut), strides[dim] * step
    return _seen(x, shape, strides, offset)


def _expand(x: Form, *sizes: Any) -> Result:
    shape = _shape("expand", x, *sizes)
    new = len(shape) - len(x.shape)
    wanted = cast("Sequence[int]", sizes[0] if isinstance(sizes[0], tuple) else sizes)
    grows = all(b in (a, 1) for a, b in zip(shape[new:], x.shape, strict=True))
    if not grows or min(shape, default=0) < 0 or min(wanted[:new], default=0) < 0:
        return None
    strides = [s if a == b else 0 for a, b, s in zip(shape[new:], x.shape, x.strides, strict=True)]
    for place in reversed(range(new)):
        following = shape[place + 1] * strides[0] if strides else 1
        strides.insert(0, following if shape[place] == 1 else 0)
    return _seen(x, shape, strides)


_RULES: dict[str, Rule] = {
    **dict.fromkeys("cos exp hardsigmoid hardswish neg relu relu6 rsqrt".split(), _pointwise),
    **dict.fromkeys("gelu hardtanh leaky_relu sigmoid silu sin sqrt tanh".split(), _pointwise),
    **dict.fromkeys(("add", "sub", "mul", "div"), _arithmetic),
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "softmax": _softmax,
    "masked_fill": _masked_fill,
    "full_like": _like_dense,
    "roll": _roll,
    "linear": _linear,
    "matmul": _matmul,
    "conv2d": _convolution,
    "cat": _cat,
    "view": _view,
    "reshape": _reshape,
    "flatten": _flatten,
    "permute": _permute,
    "unsqueeze": _unsqueeze,
    "select": _select,
    "slice": _slice,
    "expand": _expand,
}
