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
from dlcb.dialects.shape.expr import Expr, broadcast
from dlcb.dialects.types import compute_type, f64
from dlcb.frontend.aten import views
from dlcb.frontend.aten.arithmetic import arithmetic, scaled
from dlcb.frontend.aten.builder import Builder
from dlcb.frontend.aten.table import Table, listed, spread
from dlcb.frontend.tracker import Ratio
from dlcb.passes.graph_builder import int_list

TABLE = Table()


def rank_of(value: SSAValue) -> int:
    return type_of(value).rank


def transposed(i: Builder, value: SSAValue) -> SSAValue:
    order = list(range(rank_of(value)))
    order[-2:] = reversed(order[-2:])
    return i.permute(value, order)


# Matrix products


@TABLE.handles("matmul", "mm", "bmm", "mv", "dot", "inner")
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
    if beta == 0:
        return i.cast(i.call("mul", result, alpha, element=wide), i.element)
    return arithmetic(i, "add", scaled(i, self, beta), scaled(i, result, alpha))


@TABLE.handles("einsum")
def einsum(i: Builder, equation: str, *operands: Any) -> SSAValue:
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms, values = inputs.split(","), list(listed(operands))
    if "." in equation or len(terms) != len(values) or any(len(set(t)) != len(t) for t in terms):
        i.unsupported(f"einsum of '{equation}'")
    if not arrow:
        output = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1))
    term, value = terms[0], values[0]
    for at, (other, operand) in enumerate(zip(terms[1:], values[1:], strict=True), 2):
        kept = set(output).union(*terms[at:])
        term, value = _contracted(i, term, value, other, operand, kept)
    term, value = _summed(i, term, value, set(output))
    return i.permute(value, [term.index(c) for c in output])


def _summed(i: Builder, term: str, value: SSAValue, kept: set[str]) -> tuple[str, SSAValue]:
    """Sum over the letters that nothing else has."""
    gone = [axis for axis, letter in enumerate(term) if letter not in kept]
    if not gone:
        return term, value
    return "".join(c for c in term if c in kept), i.reduce(SumOp, value, gone, keep=False)


def _contracted(i: Builder, a: str, lhs: SSAValue, b: str, rhs: SSAValue, kept: set[str]) -> tuple[str, SSAValue]:
    """The product of two terms as one matrix product over leading dims."""
    a, lhs = _summed(i, a, lhs, kept | set(b))
    b, rhs = _summed(i, b, rhs, kept | set(a))
    lead = [c for c in a if c in b and c in kept]
    inner = [c for c in a if c in b and c not in kept]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    size = dict(zip(b, i.sizes(rhs), strict=True)) | dict(zip(a, i.sizes(lhs), strict=True))

    def sizes(letters: Sequence[str]) -> list[Expr]:
        return [size[c] for c in letters]

    def matrix(value: SSAValue, term: str, first: Sequence[str], second: Sequence[str]) -> SSAValue:
        moved = i.permute(value, [term.index(c) for c in (*lead, *first, *second)])
        return i.reshape(moved, (*sizes(lead), product(sizes(first)), product(sizes(second))))

    result = i.matmul(matrix(lhs, a, rows, inner), matrix(rhs, b, inner, columns))
    letters = [*lead, *rows, *columns]
    return "".join(letters), i.reshape(result, sizes(letters))


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

    properties: dict[str, Attribute] = {
        "stride": numbers(stride),
        "padding": numbers(padding),
        "dilation": numbers(dilation),
        "groups": IntAttr(i.literal(groups, "groups")),
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
    totals = [d * (i.traced(k) - 1) for d, k in zip(dilation, i.sizes(weight)[2:], strict=True)]
    if all(total % 2 == 0 for total in totals):
        return self, tuple(total // 2 for total in totals)
    amounts = [n for total in reversed(totals) for n in (total // 2, total - total // 2)]
    return views.pad(i, self, amounts), 0


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
    *lead, _, width = i.sizes(self)
    if scale is None and width.value is None:
        self, scale = i.call("mul", self, i.call("rsqrt", width, element=compute_type(i.element))), 1.0
    if len(lead) == 1 and attn_mask is not None and rank_of(attn_mask) == 3:
        attn_mask = i.unsqueeze(attn_mask, 1)
    query, key, value = (_with_heads(i, v, len(lead)) for v in (self, key, value))
    properties: dict[str, Attribute] = {"scale": FloatAttr(_scale(i, scale, width), f64)}
    if is_causal:
        properties["causal"] = UnitAttr()
    if enable_gqa:
        properties["grouped"] = UnitAttr()
    mask = () if attn_mask is None else (attn_mask,)
    result = i.make(AttentionOp, [query, key, value, *mask], i.element, **properties)
    return i.reshape(result, (*lead, *i.sizes(result)[-2:]))


def _scale(i: Builder, scale: Any, width: Expr) -> float:
    if isinstance(scale, (Expr, Ratio)):
        i.unsupported("a scale that depends on sizes")
    if scale is not None:
        return float(scale)
    return 1.0 / math.sqrt(max(width.value or 1, 1))


def _with_heads(i: Builder, value: SSAValue, lead: int) -> SSAValue:
    """[batch, heads, length, width]; a single leading dim is the batch."""
    sizes = i.sizes(value)
    if lead > 2:
        i.unsupported(f"queries of rank {lead + 2}")
    wanted = (*sizes[:lead], *[1] * (2 - lead), *sizes[lead:])
    return i.reshape(value, wanted)
