"""The closed table of library functions: what a host program may call by name. Thin names over torch, nothing else is
reachable.

Operands are tensors as they lie (a transposed matrix comes as a strided view). A function either writes `out` or
allocates its result; what it allocates lies densely in the dimension order of the option `order` (outermost first;
without it, row-major).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from dlcb.runtime.attention import attention, quick_attention
from dlcb.runtime.torch_private import addmm_relu

Operands = Sequence[Tensor]
Options = Mapping[str, Any]
OptionKind = Literal["integer", "number", "truth", "integers"]


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """`run(operands, options, out)` returns the result (`out` itself when it is given). `quick` does the same, slower
    where sizes came before and much faster where they are new. Only what is `capturable` may be recorded in a CUDA
    graph: it neither waits for the device nor reads sizes from it."""

    run: Callable[[Operands, Options, Tensor | None], Tensor]
    operands: tuple[int, int]
    options: Mapping[str, OptionKind]
    writes_out: bool
    allocates: bool
    capturable: bool = True
    quick: Callable[[Operands, Options, Tensor | None], Tensor] | None = None


def _matmul(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    """a @ b (+ bias), for matrices or stacks of them. `out` may be wider than the operands."""
    if out is not None and out.dtype != operands[0].dtype:
        operands = [operand.to(out.dtype) for operand in operands]
    a, b = operands[:2]
    if a.dim() == b.dim() == 2:
        return torch.mm(a, b, out=out) if len(operands) == 2 else torch.addmm(operands[2], a, b, out=out)
    lead = a.shape[:-2] if a.dim() > 2 else b.shape[:-2]
    stacks = [_stack(m, lead) for m in (a, b)]
    into = None if out is None else out.view(math.prod(lead), *out.shape[-2:])
    made = torch.bmm(*stacks, out=into) if len(operands) == 2 else torch.baddbmm(operands[2], *stacks, out=into)
    return out if out is not None else made.view(*lead, *made.shape[-2:])


def _matmul_relu(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    """max(a @ b + bias, 0), for matrices."""
    a, b, bias = operands
    return addmm_relu(bias, a, b, out)


def _stack(matrices: Tensor, lead: Sequence[int]) -> Tensor:
    """As one dim of matrices."""
    return matrices.expand(*lead, *matrices.shape[-2:]).reshape(math.prod(lead), *matrices.shape[-2:])


def _convolution(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    """x * w (+ bias) over one to three spatial dimensions."""
    x, w = operands[:2]
    bias = operands[2] if len(operands) == 3 else None
    ones = [1] * (x.dim() - 2)
    zeros = [0] * (x.dim() - 2)
    result = torch.convolution(
        x,
        w,
        bias,
        options.get("stride", ones),
        options.get("padding", zeros),
        options.get("dilation", ones),
        options.get("transposed", False),
        options.get("output_padding", zeros),
        options.get("groups", 1) or x.shape[1] // w.shape[1],
    )
    return in_order(result, options.get("order"))


def _convolution_relu(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    """max(x * w + bias (+ residual), 0); one cuDNN call where that exists."""
    x, w, bias = operands[:3]
    residual = operands[3] if len(operands) == 4 else None
    if x.is_cuda and x.numel() and torch.backends.cudnn.is_available():
        geometry = (options["stride"], options["padding"], options["dilation"], options.get("groups", 1))
        if residual is None:
            result = torch.cudnn_convolution_relu(x, w, bias, *geometry)
        else:
            result = torch.cudnn_convolution_add_relu(x, w, residual, 1.0, bias, *geometry)
    else:
        result = _convolution((x, w, bias), options, None)
        result = (result if residual is None else result.add_(residual)).relu_()
    return in_order(result, options.get("order"))


def _attention(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    return _attended(attention, operands, options)


def _quick_attention(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    return _attended(quick_attention, operands, options)


def _attended(routine: Callable[..., Tensor], operands: Operands, options: Options) -> Tensor:
    q, k, v = operands[:3]
    mask = operands[3] if len(operands) == 4 else None
    result = routine(q, k, v, mask, options.get("causal", False), options.get("scale"))
    return in_order(result, options.get("order"))


def _copy(operands: Operands, options: Options, out: Tensor | None) -> Tensor:
    if out is None:
        return in_order(operands[0].clone(), options.get("order"))
    return out.copy_(operands[0])


def in_order(tensor: Tensor, order: Sequence[int] | None) -> Tensor:
    """The tensor, lying densely with its dimensions in this order from the outermost; copied only if it does not."""
    if order is None:
        return tensor.contiguous()
    permuted = tensor.permute(*order)
    if permuted.is_contiguous():
        return tensor
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return permuted.contiguous().permute(*inverse)


_CONVOLUTION_OPTIONS: Mapping[str, OptionKind] = {
    "stride": "integers",
    "padding": "integers",
    "dilation": "integers",
    "transposed": "truth",
    "output_padding": "integers",
    "groups": "integer",
    "order": "integers",
}

LIBRARY: dict[str, LibraryFunction] = {
    "matmul": LibraryFunction(_matmul, (2, 3), {}, writes_out=True, allocates=True),
    "matmul_relu": LibraryFunction(_matmul_relu, (3, 3), {}, writes_out=True, allocates=True),
    "convolution": LibraryFunction(_convolution, (2, 3), _CONVOLUTION_OPTIONS, writes_out=False, allocates=True),
    "convolution_relu": LibraryFunction(
        _convolution_relu, (3, 4), _CONVOLUTION_OPTIONS, writes_out=False, allocates=True
    ),
    "attention": LibraryFunction(
        _attention,
        (3, 4),
        {"scale": "number", "causal": "truth", "order": "integers"},
        writes_out=False,
        allocates=True,
        quick=_quick_attention,
    ),
    "copy": LibraryFunction(_copy, (1, 1), {"order": "integers"}, writes_out=True, allocates=True),
}

_IS_KIND: dict[OptionKind, Callable[[Any], bool]] = {
    "integer": lambda v: type(v) is int,
    "number": lambda v: type(v) in (int, float),
    "truth": lambda v: type(v) is bool,
    "integers": lambda v: isinstance(v, list) and all(type(i) is int for i in v),  # pyright: ignore
}


def check_call(function: str, operands: int, into: bool, options: Any) -> str | None:
    """What is wrong with such a call, or None."""
    entry = LIBRARY.get(function)
    if entry is None:
        return f"no library function {function!r}; there are {', '.join(LIBRARY)}"
    least, most = entry.operands
    if not least <= operands <= most:
        return f"{function} takes {least} to {most} tensors, got {operands}"
    if into and not entry.writes_out:
        return f"{function} allocates its result, it can't write into a tensor"
    if not isinstance(options, dict):
        return f"{function}: expected options by name, got {options!r}"
    for name, value in options.items():  # pyright: ignore
        kind = entry.options.get(name) if isinstance(name, str) else None
        if kind is None:
            return f"{function} has no option {name!r}; there are {', '.join(entry.options) or 'none'}"
        if not _IS_KIND[kind](value):
            return f"{function}: option {name!r} must be of kind {kind}, got {value!r}"
    return None
