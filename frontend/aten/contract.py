"""Matrix products, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from dlcb.dialects.graph.contract import AttentionOp
from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.reduce import SumOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import Expr, broadcast, const, floordiv, mul, sub
from dlcb.dialects.types import compute_type, f64
from dlcb.errors import UserError
from dlcb.frontend.aten import einsum, padding
from dlcb.frontend.aten.arithmetic import arithmetic, scaled
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table, several, spread
from dlcb.frontend.tracing.real import Real
from dlcb.passes.graph_builder import int_list

TABLE = Table(einsum.TABLE)


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def transposed(i: Builder, value: SSAValue) -> SSAValue:
    order = list(range(rank_of(value)))
    order[-2:] = reversed(order[-2:])
    return i.permute(value, order)


# Matrix products


@TABLE.handles("inner")
def inner(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    """Over the last dim of both."""
    if not rank_of(self) or not rank_of(other):
        return arithmetic(i, "mul", self, other)
    return tensordot(i, self, other, (-1,), (-1,))


@TABLE.handles("tensordot")
def tensordot(i: Builder, self: SSAValue, other: SSAValue, dims_self: Any, dims_other: Any) -> SSAValue:
    """One matrix product of rows by what is summed, and what is summed by columns."""
    gone = [i.axis(d, rank_of(self)) for d in several(dims_self)]
    theirs = [i.axis(d, rank_of(other)) for d in several(dims_other)]
    rows = [a for a in range(rank_of(self)) if a not in gone]
    columns = [a for a in range(rank_of(other)) if a not in theirs]
    have, want = i.sizes(self), i.sizes(other)
    for mine, its in zip(gone, theirs, strict=True):
        i.require("eq", have[mine], want[its], "sizes that are summed over differ")
    lhs = i.reshape(
        i.permute(self, [*rows, *gone]), (product([have[a] for a in rows]), product([have[a] for a in gone]))
    )
    inner_and_columns = (product([want[a] for a in theirs]), product([want[a] for a in columns]))
    rhs = i.reshape(i.permute(other, [*theirs, *columns]), inner_and_columns)
    return i.reshape(i.matmul(lhs, rhs), [*(have[a] for a in rows), *(want[a] for a in columns)])


@TABLE.handles("addbmm")
def addbmm(
    i: Builder, self: SSAValue, batch1: SSAValue, batch2: SSAValue, *, beta: Any = 1, alpha: Any = 1
) -> SSAValue:
    """The sum of a stack of matrix products is one product of all columns by all rows."""
    batch, rows, inner_size = i.sizes(batch1)
    i.require("eq", batch, i.sizes(batch2)[0], "numbers of matrices differ")
    lhs = i.reshape(i.permute(batch1, (1, 0, 2)), (rows, product([batch, inner_size])))
    rhs = i.reshape(batch2, (product([batch, inner_size]), i.sizes(batch2)[2]))
    return addmm(i, self, lhs, rhs, beta=beta, alpha=alpha)


@TABLE.handles("bilinear")
def bilinear(i: Builder, self: SSAValue, input2: SSAValue, weight: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    """result[.., o] = Σ self[.., a] · weight[o, a, b] · input2[.., b] (+ bias[o])."""
    if rank_of(self) == 1:
        rows = (i.unsqueeze(v, 0) for v in (self, input2))
        return i.without_axis(bilinear(i, *rows, weight, bias), 0)
    out, first, second = i.sizes(weight)
    *lead, _ = i.sizes(self)
    for mine, its in zip(lead, i.sizes(input2), strict=False):
        i.require("eq", mine, its, "leading sizes differ")
    i.require("eq", second, i.sizes(input2)[-1], "size of the second input")
    wide = compute_type(i.element)
    folded = i.matmul(self, i.reshape(i.permute(weight, (1, 0, 2)), (first, product([out, second]))), element=wide)
    pairs = i.reshape(folded, (*lead, out, second))
    terms = i.call("mul", pairs, i.unsqueeze(input2, rank_of(input2) - 1), element=wide)
    total = i.reduce(SumOp, terms, (len(lead) + 1,), keep=False, element=wide)
    return i.cast(total, i.element) if bias is None else i.call("add", total, bias)


@TABLE.handles("bmm")
def bmm(i: Builder, self: SSAValue, mat2: SSAValue) -> SSAValue:
    return i.matmul(self, mat2)


@TABLE.handles("matmul", "mm", "mv", "dot", "vdot")
def matmul(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    """A vector is a matrix of one row or column, which vanishes again; leading dims broadcast."""
    lhs = self if rank_of(self) > 1 else i.unsqueeze(self, 0)
    rhs = other if rank_of(other) > 1 else i.unsqueeze(other, 1)
    result = i.matmul(*_broadcast_lead(i, lhs, rhs))
    sizes = list(i.sizes(result))
    if rank_of(other) == 1:
        sizes.pop()
    if rank_of(self) == 1:
        sizes.pop(-1 if rank_of(other) == 1 else -2)
    return i.reshape(result, sizes)


def _broadcast_lead(i: Builder, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Operands whose leading dims are equal, or one of them without."""
    *a_lead, m, k = i.sizes(lhs)
    *b_lead, inner, n = i.sizes(rhs)
    if a_lead == b_lead or not a_lead or not b_lead:
        return lhs, rhs
    lead = list(a_lead if len(a_lead) >= len(b_lead) else b_lead)
    for at in range(1, min(len(a_lead), len(b_lead)) + 1):
        lead[-at] = _broadcast_size(i, a_lead[-at], b_lead[-at])
    return i.expand(lhs, (*lead, m, k)), i.expand(rhs, (*lead, inner, n))


def _broadcast_size(i: Builder, a: Expr, b: Expr) -> Expr:
    """Equal at the sizes of the trace means equal, unless one of them is literally 1."""
    if a is b or b.value == 1:
        return a
    if a.value == 1:
        return b
    i.require("broadcastable", a, b, "leading sizes that do not broadcast")
    return broadcast(a, b)


@TABLE.handles("linear")
def linear(i: Builder, self: SSAValue, weight: SSAValue, bias: SSAValue | None = None) -> SSAValue:
    if rank_of(self) == 1:
        return i.reshape(linear(i, i.unsqueeze(self, 0), weight, bias), i.sizes(weight)[:1])
    return i.matmul(self, transposed(i, weight), *(() if bias is None else (bias,)))


@TABLE.handles("addmm", "baddbmm")
def addmm(i: Builder, self: SSAValue, mat1: SSAValue, mat2: SSAValue, *, beta: Any = 1, alpha: Any = 1) -> SSAValue:
    if beta == 1 and alpha == 1 and rank_of(self) == 1 and i.sizes(self)[0] is i.sizes(mat2)[-1]:
        return i.matmul(mat1, mat2, self)
    wide = compute_type(i.element)
    result = i.matmul(mat1, mat2, element=wide)
    require_expandable(i, self, i.sizes(result))
    if beta == 0:
        return i.cast(i.call("mul", result, alpha, element=wide), i.element)
    return arithmetic(i, "add", scaled(i, self, beta), scaled(i, result, alpha))


def require_expandable(i: Builder, value: SSAValue, sizes: Sequence[Expr]) -> None:
    """What is added to a product does not enlarge it."""
    if rank_of(value) > len(sizes):
        raise UserError(f"{i.title}: a tensor of rank {rank_of(value)} is added to a product of rank {len(sizes)}")
    for mine, size in zip(reversed(i.sizes(value)), reversed(sizes), strict=False):
        i.require("expandable", mine, size, "the tensor that is added does not expand to the product")


@TABLE.handles("outer", "ger")
def outer(i: Builder, self: SSAValue, vec2: SSAValue) -> SSAValue:
    return arithmetic(i, "mul", i.unsqueeze(self, 1), vec2)


@TABLE.handles("addr")
def addr(i: Builder, self: SSAValue, vec1: SSAValue, vec2: SSAValue, *, beta: Any = 1, alpha: Any = 1) -> SSAValue:
    wide = compute_type(i.element)
    product_ = i.call("mul", i.unsqueeze(vec1, 1), vec2, element=wide)
    require_expandable(i, self, i.sizes(product_))
    if beta == 0:
        return i.cast(i.call("mul", product_, alpha, element=wide), i.element)
    return arithmetic(i, "add", scaled(i, self, beta), scaled(i, product_, alpha))


@TABLE.handles("addmv")
def addmv(i: Builder, self: SSAValue, mat: SSAValue, vec: SSAValue, *, beta: Any = 1, alpha: Any = 1) -> SSAValue:
    column = i.unsqueeze(i.expand(self, (i.sizes(mat)[0],)), 1)
    return i.without_axis(addmm(i, column, mat, i.unsqueeze(vec, 1), beta=beta, alpha=alpha), 1)


@TABLE.handles("linalg_vecdot")
def vecdot(i: Builder, x: SSAValue, y: SSAValue, *, dim: int = -1) -> SSAValue:
    terms = i.call("mul", x, y, element=compute_type(i.element))
    return i.reduce(SumOp, terms, (i.axis(dim, rank_of(terms)),), keep=False, element=i.element)


@TABLE.handles("linalg_multi_dot")
def multi_dot(i: Builder, tensors: Sequence[SSAValue]) -> SSAValue:
    """From left to right; the numbers of torch, which takes the cheapest order, differ by rounding."""
    total, *others = tensors
    for other in others:
        total = matmul(i, total, other)
    return total


@TABLE.handles("kron")
def kron(i: Builder, self: SSAValue, other: SSAValue) -> SSAValue:
    """Every element of one times the whole other."""
    rank = max(rank_of(self), rank_of(other))
    left, right = ((const(1),) * (rank - rank_of(v)) + i.sizes(v) for v in (self, other))
    lhs = i.reshape(self, [n for size in left for n in (size, 1)])
    rhs = i.reshape(other, [n for size in right for n in (1, size)])
    return i.reshape(arithmetic(i, "mul", lhs, rhs), [mul(a, b) for a, b in zip(left, right, strict=True)])


# Convolutions


def convolution_op(
    i: Builder,
    self: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
    transpose: bool = False,
    output_padding: Any = 0,
) -> SSAValue:
    spatial = rank_of(weight) - 2
    if rank_of(self) == spatial + 1:
        batched = i.unsqueeze(self, 0)
        given = (stride, padding, dilation, groups, transpose, output_padding)
        result = convolution_op(i, batched, weight, bias, *given)
        return i.without_axis(result, 0)

    def numbers(value: Any) -> Any:
        return int_list(tuple(i.literal(n, "a convolution's numbers") for n in spread(value, spatial)))

    if isinstance(groups, Expr):
        if transpose:
            i.unsupported("a transposed convolution in a number of groups that depends on sizes")
        i.require("eq", i.sizes(self)[1], mul(i.sizes(weight)[1], groups), "input channels differ")
        groups = 0
    properties: dict[str, Attribute] = {
        "stride": numbers(stride),
        "padding": numbers(padding),
        "dilation": numbers(dilation),
        "groups": IntAttr(groups),
    }
    if transpose:
        properties |= {"transposed": UnitAttr(), "output_padding": numbers(output_padding)}
    operands = [self, weight] if bias is None else [self, weight, bias]
    return i.make(ConvolutionOp, operands, i.element, **properties)


@TABLE.handles("conv1d", "conv2d", "conv3d")
def conv(
    i: Builder,
    self: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
) -> SSAValue:
    if padding == "valid":
        padding = 0
    elif padding == "same":
        self, padding = _padded_alike(i, self, weight, spread(dilation, rank_of(weight) - 2))
    return convolution_op(i, self, weight, bias, stride, padding, dilation, groups)


def _padded_alike(i: Builder, self: SSAValue, weight: SSAValue, dilation: tuple[Any, ...]) -> tuple[SSAValue, Any]:
    """Padding that keeps the size. Where it is odd, the extra element goes to the end, as torch does."""
    totals = [mul(d, sub(k, 1)) for d, k in zip(dilation, i.sizes(weight)[2:], strict=True)]
    known = [total.value for total in totals if total.value is not None and total.value % 2 == 0]
    if len(known) == len(totals):
        return self, tuple(total // 2 for total in known)
    halves = [floordiv(total, 2) for total in totals]
    amounts = [
        n for total, half in zip(reversed(totals), reversed(halves), strict=True) for n in (half, sub(total, half))
    ]
    return padding.pad(i, self, [n if n.value is None else n.value for n in amounts]), 0


@TABLE.handles("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    i: Builder,
    self: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
) -> SSAValue:
    return convolution_op(i, self, weight, bias, stride, padding, dilation, groups, True, output_padding)


@TABLE.handles("convolution")
def convolution(
    i: Builder,
    self: SSAValue,
    weight: SSAValue,
    bias: SSAValue | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: Any,
) -> SSAValue:
    return convolution_op(i, self, weight, bias, stride, padding, dilation, groups, transposed, output_padding)


# Attention


@TABLE.handles("scaled_dot_product_attention")
def attention(
    i: Builder,
    self: SSAValue,
    key: SSAValue,
    value: SSAValue,
    attn_mask: SSAValue | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> SSAValue:
    if len({rank_of(v) for v in (self, key, value)}) > 1:
        i.unsupported("queries, keys and values of different ranks")
    *lead, _, width = i.sizes(self)
    if scale is None and width.value is None:
        self, scale = i.call("mul", self, i.call("rsqrt", width, element=compute_type(i.element))), 1.0
    elif isinstance(scale, (Expr, Real)):
        self, scale = i.call("mul", self, i.number(scale, compute_type(i.element))), 1.0
    heads = 0 if enable_gqa and len(lead) == 1 else 1
    if len(lead) == 1 and attn_mask is not None and rank_of(attn_mask) == 3:
        attn_mask = i.unsqueeze(attn_mask, heads)
    same = _with_equal_lead(i, (self, key, value), len(lead) - 1 if enable_gqa else len(lead))
    query, key, value = (_with_heads(i, v, len(lead), heads) for v in same)
    properties: dict[str, Attribute] = {"scale": FloatAttr(_scale(i, scale, width), f64)}
    if is_causal:
        properties["causal"] = UnitAttr()
    if enable_gqa:
        properties["grouped"] = UnitAttr()
    mask = () if attn_mask is None else (attn_mask,)
    result = i.make(AttentionOp, [query, key, value, *mask], i.element, **properties)
    found, start = i.sizes(result), 1 - heads if len(lead) == 1 else 0
    return i.reshape(result, (*found[start : start + len(lead)], *found[-2:]))


@TABLE.handles("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    i: Builder,
    self: SSAValue,
    key: SSAValue,
    value: SSAValue,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: SSAValue | None = None,
    scale: Any = None,
) -> tuple[SSAValue, None]:
    """What else it makes is for its backward."""
    if dropout_p:
        i.unsupported("random numbers")
    return attention(i, self, key, value, attn_mask, is_causal=is_causal, scale=scale), None


@TABLE.handles("_scaled_dot_product_efficient_attention")
def efficient_attention(
    i: Builder,
    self: SSAValue,
    key: SSAValue,
    value: SSAValue,
    attn_bias: SSAValue | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
) -> tuple[SSAValue | None, ...]:
    if dropout_p:
        i.unsupported("random numbers")
    result = attention(i, self, key, value, attn_bias, is_causal=is_causal, scale=scale)
    return result, *[None] * (len(i.dtypes) - 1)


def _scale(i: Builder, scale: Any, width: Expr) -> float:
    if scale is not None:
        return float(scale)
    return 1.0 / math.sqrt(max(width.value or 1, 1))


def _with_equal_lead(i: Builder, values: Sequence[SSAValue], lead: int) -> Sequence[SSAValue]:
    """The values with those dims of the first `lead` expanded that are 1 in the trace, where another has more."""
    wanted: list[Expr] = []
    for sizes in zip(*(i.sizes(value)[:lead] for value in values), strict=True):
        wanted.append(next((size for size in sizes if i.traced(size) != 1), sizes[0]))
    found: list[SSAValue] = []
    for value in values:
        sizes = i.sizes(value)
        larger = [a if i.traced(a) != 1 or i.traced(b) == 1 else b for a, b in zip(sizes, wanted, strict=False)]
        found.append(i.expand(value, (*larger, *sizes[lead:])))
    return found


def _with_heads(i: Builder, value: SSAValue, lead: int, missing: int) -> SSAValue:
    """[batch, heads, length, width]; of a single leading dim the other, whose place is `missing`, is 1."""
    sizes = i.sizes(value)
    if lead > 2:
        i.unsupported(f"queries of rank {lead + 2}")
    if lead == 0:
        return i.reshape(value, (1, 1, *sizes))
    return i.unsqueeze(value, missing) if lead == 1 else value
