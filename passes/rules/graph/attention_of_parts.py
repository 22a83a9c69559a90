"""matmul(softmax(matmul(q, kᵀ) · scale + masks), v) -> attention(q, k, v, mask), in half precision.

Sound: its definition, with scores that are not rounded on the way. A row without a finite score is NaN there and 0 in
`attention`, or anything where a mask is +infinity: in a mask that may hold infinities, such a row is made NaN, which stays.
(Infinite queries and keys stay infinite or NaN, or give 0.)  Not worse: no scores in memory; a mask is written once where
there are several, or where its rows are no multiple of eight elements, which the routine would else copy; masks that are
weights, in `@weights`.  Source: torch.nn.functional.scaled_dot_product_attention; Swin transformers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan
from typing import ClassVar, Final

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import SoftmaxOp
from dlcb.dialects.graph.contract import AttentionOp, MatmulOp
from dlcb.dialects.graph.creation import FullOp
from dlcb.dialects.graph.elementwise import SIMPLE, WhereOp
from dlcb.dialects.graph.reduce import AmaxOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, Dims, dims_attr, dims_of, type_of
from dlcb.dialects.graph.view import ExpandOp, PadOp, PermuteOp, ReshapeOp, SliceOp
from dlcb.dialects.types import bf16, f16, f64, i1
from dlcb.passes.graph_builder import GraphBuilder, int_list
from dlcb.passes.magnitudes import is_surely_finite
from dlcb.passes.rule import Rule
from dlcb.passes.weights import WeightFunction, is_own_weight, is_weight, weight_name, why_not_weights

MULTIPLE: Final = 8
"""Elements of a row that the routine's kernels load at once."""
WIDEST: Final = 128
_TRANSPOSED: Final = (0, 1, 3, 2)
_ADD, _MUL, _DIV = (SIMPLE[name] for name in ("add", "mul", "div"))

_Q, _K, _S = "tensor<[n, 2, 5, 8], f16>", "tensor<[n, 2, 8, 5], f16>", "tensor<[n, 2, 5, 5], f16>"
_ARGUMENTS = ", ".join(f'%{name}: {_Q} input "{name}"' for name in "qkv")
_RETURN = f"dlcb.graph.return %r : !dlcb.graph.{_Q} }}"


def _full(value: str, element: str = "f16") -> str:
    return f"dlcb.graph.full {{shape = #dlcb.graph.dims<[]>, value = {value} : f64}} : () -> tensor<[], {element}>"


class AttentionOfParts(Rule):
    level = "graph"
    priority = 40  # before the softmax is decomposed
    roots = (SoftmaxOp,)
    before = f"""dlcb.graph.func @main({_ARGUMENTS}, %b: tensor<[2, 5, 5], f16> weight "bias") {{
        %h = {_full("0.5", "f32")}
        %p = dlcb.graph.mul %q, %h : ({_Q}, tensor<[], f32>) -> {_Q}
        %t = dlcb.graph.permute %k {{order = [0, 1, 3, 2]}} : ({_Q}) -> {_K}
        %s = dlcb.graph.matmul %p, %t : ({_Q}, {_K}) -> {_S}
        %a = dlcb.graph.add %s, %b : ({_S}, tensor<[2, 5, 5], f16>) -> {_S}
        %w = dlcb.graph.softmax %a {{axis = 3}} : ({_S}) -> {_S}
        %r = dlcb.graph.matmul %w, %v : ({_S}, {_Q}) -> {_Q}
        {_RETURN}"""
    after = f"""dlcb.graph.func @weights(%b: tensor<[2, 5, 5], f16> weight "bias") {{
        %m = dlcb.graph.amax %b {{axes = [2], empty, keep}} : (tensor<[2, 5, 5], f16>) -> tensor<[2, 5, 1], f16>
        %u = dlcb.graph.abs %m : (tensor<[2, 5, 1], f16>) -> tensor<[2, 5, 1], f16>
        %i = {_full("0x7FF0000000000000")}
        %e = dlcb.graph.eq %u, %i : (tensor<[2, 5, 1], f16>, tensor<[], f16>) -> tensor<[2, 5, 1], i1>
        %n = {_full("0x7FF8000000000000")}
        %w = dlcb.graph.where %e, %n, %b : (tensor<[2, 5, 1], i1>, tensor<[], f16>, tensor<[2, 5, 5], f16>) -> tensor<[2, 5, 5], f16>
        %f = dlcb.graph.reshape %w {{shape = [1, 2, 5, 5]}} : (tensor<[2, 5, 5], f16>) -> tensor<[1, 2, 5, 5], f16>
        %p = dlcb.graph.pad %f {{low = [0, 0, 0, 0], high = [0, 0, 0, 3], value = 0.0 : f64}} : (tensor<[1, 2, 5, 5], f16>) -> tensor<[1, 2, 5, 8], f16>
        dlcb.graph.return %p : !dlcb.graph.tensor<[1, 2, 5, 8], f16> }}
      dlcb.graph.func @main({_ARGUMENTS}, %old: tensor<[2, 5, 5], f16> weight "bias", %b: tensor<[1, 2, 5, 8], f16> weight "bias|mask")
          attributes {{dlcb.derived = {{"bias|mask" = 0 : i64}}}} {{
        %t = dlcb.graph.permute %k {{order = [0, 1, 3, 2]}} : ({_Q}) -> {_K}
        %y = dlcb.graph.permute %t {{order = [0, 1, 3, 2]}} : ({_K}) -> {_Q}
        %m = dlcb.graph.slice %b {{starts = [0, 0, 0, 0], shape = [1, 2, 5, 5], steps = [1, 1, 1, 1]}} : (tensor<[1, 2, 5, 8], f16>) -> tensor<[1, 2, 5, 5], f16>
        %r = dlcb.graph.attention %q, %y, %v, %m {{scale = 0.5 : f64}} : ({_Q}, {_Q}, {_Q}, tensor<[1, 2, 5, 5], f16>) -> {_Q}
        {_RETURN}"""
    refused: ClassVar = {
        "not half precision": before.replace("f16", "f32"),
        "no product alone reads it": before.replace("%w, %v : (", "%w, %w : (")
        .replace(f"({_S}, {_Q}) -> {_Q}", f"({_S}, {_S}) -> {_S}")
        .replace(_RETURN, f"dlcb.graph.return %r : !dlcb.graph.{_S} }}"),
        "it is not of scores": before.replace("order = [0, 1, 3, 2]", "order = [0, 1, 2, 3]")
        .replace(f'%k: {_Q} input "k"', f'%k: {_K} input "k"')
        .replace(f"3]}} : ({_Q})", f"3]}} : ({_K})"),
        "the sizes are not those of attention": before.replace("axis = 3", "axis = 2"),
        "heads are not a multiple of 8 wide, up to 128": before.replace("5, 8]", "5, 9]").replace("8, 5]", "9, 5]"),
        "the mask is not as long as the keys": before.replace("tensor<[2, 5, 5], f16>", "tensor<[2, 5, 1], f16>"),
    }

    def why_not(self, op: SoftmaxOp) -> str | None:
        parts = _parts(op)
        return parts if isinstance(parts, str) else None

    def rewrite(self, op: SoftmaxOp, rewriter: PatternRewriter) -> None:
        parts = _parts(op)
        assert isinstance(parts, _Parts)
        q, transposed = parts.scores.operands
        b, (*lead, width, length) = GraphBuilder(), dims_of(transposed)
        order, element = int_list(_TRANSPOSED), type_of(transposed).element
        k = b.make(PermuteOp, [transposed], (*lead, length, width), element, order=order)
        q, factor = _unscaled(q)
        mask = _mask(parts, b, rewriter)
        operands = [q, k, parts.product.operands[1], *([] if mask is None else [mask])]
        attention = AttentionOp.create(
            operands=operands,
            result_types=parts.product.result_types,
            properties={"scale": FloatAttr(parts.scale * factor, f64)},
        )
        attention.location = parts.product.location
        rewriter.replace(parts.product, [*b.ops, attention])


@dataclass(frozen=True)
class _Step:
    """What is done to the scores: a mask is added, or None where they are reshaped; the sizes that they have then."""

    mask: SSAValue | None
    dims: Dims


@dataclass(frozen=True)
class _Parts:
    """`scores` are multiplied by `scale`, then come the steps, softmax and `product`."""

    scores: MatmulOp
    product: MatmulOp
    scale: float = 1.0
    steps: tuple[_Step, ...] = ()

    def then(self, mask: SSAValue | None, dims: Dims) -> _Parts:
        return replace(self, steps=(*self.steps, _Step(mask, dims)))

    @property
    def only_mask(self) -> SSAValue | None:
        """The mask, if there is one alone and it is added last."""
        *others, last = self.steps or (_Step(None, ()),)
        return None if any(step.mask is not None for step in others) else last.mask


def _parts(op: SoftmaxOp) -> _Parts | str:
    """What attention is made of, or why this is none."""
    if op.result_element not in (f16, bf16):
        return "not half precision"
    read = op.res
    while isinstance(same := read.get_user_of_unique_use(), ExpandOp) and same.res.type == op.res.type:
        read = same.res
    product = read.get_user_of_unique_use()
    if not isinstance(product, MatmulOp) or product.operands[0] is not read or product.extra is not None:
        return "no product alone reads it"
    parts = _before_softmax(op.src, op.result_element, product)
    if parts is None:
        return "it is not of scores"
    (q, k), v = (dims_of(operand) for operand in parts.scores.operands), dims_of(product.operands[1])
    scores = dims_of(op.src)
    if len(scores) != 4 or op.axis.data != 3 or scores[3] == 0 or not q[:2] == k[:2] == v[:2] == scores[:2]:
        return "the sizes are not those of attention"
    if (*q[:3], k[3]) != scores or v[2] != k[3] or dims_of(product.results[0]) != (*q[:3], v[3]):
        return "the sizes are not those of attention"
    if not all(isinstance(width, int) and width in range(MULTIPLE, WIDEST + 1, MULTIPLE) for width in (q[3], v[3])):
        return "heads are not a multiple of 8 wide, up to 128"
    mask = parts.only_mask
    if mask is not None and not _spans(dims_of(mask), scores):
        return "the mask is not as long as the keys"
    return parts


def _spans(mask: Dims, scores: Dims) -> bool:
    """Is the mask broadcast over rows at most?"""
    aligned = (*[1] * (len(scores) - len(mask)), *mask)
    return aligned[-1] == scores[-1] and all(m in (1, s) for m, s in zip(aligned, scores, strict=True))


def _before_softmax(value: SSAValue, element: Attribute, product: MatmulOp) -> _Parts | None:
    """How a value that is read once is made of scores; None where it is not."""
    op = value.owner
    if type_of(value).element != element or not value.has_one_use():
        return None
    if isinstance(op, MatmulOp):
        return _Parts(op, product) if _are_turned(op.operands[1]) and op.extra is None else None
    if isinstance(op, ReshapeOp):
        parts = _before_softmax(op.src, element, product)
        return parts and parts.then(None, dims_of(value))
    if isinstance(op, _ADD):
        for scores, mask in (tuple(op.operands), tuple(reversed(op.operands))):
            parts = _before_softmax(scores, element, product)
            if parts is not None and dims_of(scores) == dims_of(value) and type_of(mask).element == element:
                return parts.then(mask, dims_of(value))
    factor = _factor(value)
    if factor is not None:
        parts = _before_softmax(factor[0], element, product)
        if parts is not None and not parts.steps:
            return replace(parts, scale=parts.scale * factor[1])
    return None


def _are_turned(keys: SSAValue) -> bool:
    """Do the elements of a key lie in a column that was the last dim?"""
    op = keys.owner
    if isinstance(op, ExpandOp) and type_of(op.src).rank == 4:
        op = op.src.owner
    return isinstance(op, PermuteOp) and len(op.axes) == 4 and op.axes[2] == 3


def _factor(value: SSAValue) -> tuple[SSAValue, float] | None:
    """What the value is a multiple of, and the factor: a positive number that the program names."""
    op = value.owner
    if not isinstance(op, (_MUL, _DIV)):
        return None
    lhs, rhs = op.operands
    for number, other in ((rhs, lhs), (lhs, rhs)):
        of = number.owner
        if isinstance(of, FullOp) and type_of(number).rank == 0 and 0 < of.number < inf and other.type == value.type:
            if isinstance(op, _MUL):
                return other, of.number
            return (other, 1 / of.number) if number is rhs else None
    return None


def _unscaled(q: SSAValue) -> tuple[SSAValue, float]:
    """Queries without the factor that only these are multiplied by."""
    return (q.has_one_use() and _factor(q)) or (q, 1.0)


def _mask(parts: _Parts, b: GraphBuilder, rewriter: PatternRewriter) -> SSAValue | None:
    """The sum of all masks as one that broadcasts over the scores. Its rows are infinite where those of the one mask are
    that may be: of a bias that is a weight, this is seen to in `@weights`."""
    element = type_of(parts.product.operands[1]).element
    weight = _weight(parts)
    total, dims = None, dims_of(parts.scores.results[0])
    length = dims[-1]
    for step in parts.steps:
        wide = None if total is None else b.expand(total, dims, element)
        mask, dims = step.mask, step.dims
        if mask is None:
            total = None if wide is None else b.reshape(wide, dims, element)
            continue
        if mask is weight:
            mask = _derived(mask, parts, rewriter)
        total = mask if wide is None else b.call("add", wide, mask, element=element)
    if total is None:
        return None
    if weight is None:
        total = _with_nan_rows(total, b)
    return _without_padding(_padded(total, b), length, b)


def _weight(parts: _Parts) -> SSAValue | None:
    """The mask that may hold infinities, if it is one alone and can be changed in `@weights`."""
    doubtful = [step.mask for step in parts.steps if step.mask is not None and not is_surely_finite(step.mask)]
    if len(doubtful) != 1 or not is_weight(doubtful[0]) or not doubtful[0].has_one_use():
        return None
    own = is_own_weight(doubtful[0])
    return None if own and why_not_weights(parts.product.parent_op(), doubtful) is not None else doubtful[0]


def _derived(weight: SSAValue, parts: _Parts, rewriter: PatternRewriter) -> SSAValue:
    """The mask that this weight is, computed in `@weights`."""
    func = parts.product.parent_op()
    assert isinstance(func, FuncOp)
    weights, b = WeightFunction.of(func, rewriter), GraphBuilder()
    made = weights.result_of(weight)
    (source,) = weights.arguments([weight]) if made is None else [made]
    alone = parts.only_mask is weight
    mask = _with_nan_rows(source, b)
    mask = _padded(mask, b) if alone else mask
    weights.append(b.ops)
    if made is not None:
        weights.revise(weight, mask)
        return weight
    (derived,) = weights.derive({f"{weight_name(weight)}|mask": mask})
    return derived


def _with_nan_rows(mask: SSAValue, b: GraphBuilder) -> SSAValue:
    """The mask, with NaN in the rows whose largest element is infinite."""
    if is_surely_finite(mask):
        return mask
    element = type_of(mask).element
    largest = b.reduce(AmaxOp, mask, (type_of(mask).rank - 1,), element)
    infinite = b.call("eq", b.call("abs", largest, element=element), b.constant(inf, element), element=i1)
    return b.make(WhereOp, [infinite, b.constant(nan, element), mask], dims_of(mask), element)


def _padded(mask: SSAValue, b: GraphBuilder) -> SSAValue:
    """The mask as one of rank 4, with rows of a multiple of what is loaded at once, where their length is known."""
    dims, element = dims_of(mask), type_of(mask).element
    if len(dims) < 4:
        dims = (*[1] * (4 - len(dims)), *dims)
        mask = b.reshape(mask, dims, element)
    length = dims[-1]
    if not isinstance(length, int) or length % MULTIPLE == 0:
        return mask
    missing = -length % MULTIPLE
    nothing, after = dims_attr((0, 0, 0, 0)), dims_attr((0, 0, 0, missing))
    filled = (*dims[:-1], length + missing)
    return b.make(PadOp, [mask], filled, element, low=nothing, high=after, value=FloatAttr(0.0, f64))


def _without_padding(mask: SSAValue, length: Dim, b: GraphBuilder) -> SSAValue:
    dims, element = dims_of(mask), type_of(mask).element
    if dims[-1] == length:
        return mask
    shape, nothing, each = (*dims[:-1], length), dims_attr((0, 0, 0, 0)), dims_attr((1, 1, 1, 1))
    return b.make(SliceOp, [mask], shape, element, starts=nothing, shape=dims_attr(shape), steps=each)
