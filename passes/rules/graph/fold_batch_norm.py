"""batch_norm(convolution(x, w, b)) -> convolution(x, w', b'), w' = w · s, b' = (b - mean) · s + bias, s = weight / √(var + eps).

Sound: both are affine in each output channel.  Not worse: one op fewer on activations; the arithmetic on weights moves into
the function `@weights` of the module, whose results `@main` takes as weights (`dlcb.derived`).  Computed in f32 or wider and
rounded to the type of the convolution's weight.  In half precision that costs accuracy, and torch adds the bias in a kernel
of its own: there it is done only where the vendor's routine takes bias and relu along; else a kernel scales in f32.  Source: Jacob et al. 2018, "Quantization and Training", §3.2.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.composite import BatchNormOp
from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, dims_of, type_of
from dlcb.dialects.types import bf16, compute_type, f16
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule
from dlcb.passes.vendor import vendor_takes
from dlcb.passes.weights import WeightFunction, weight_name, why_not_weights

_STRIDES = (
    "{dilation = [#builtin.int<1>], groups = #builtin.int<1>, padding = [#builtin.int<0>], stride = [#builtin.int<1>]}"
)
_X = '%x: tensor<[n, 3, 9], f32> input "x"'
_NORM = '%m: tensor<[8], f32> weight "bn.running_mean", %v: tensor<[8], f32> weight "bn.running_var"'
_TAIL = "dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8, 9], f32> }"


class FoldBatchNorm(Rule):
    level = "graph"
    priority = 40  # before it is decomposed
    roots = (BatchNormOp,)
    before = f"""dlcb.graph.func @main({_X}, %w: tensor<[8, 3, 1], f32> weight "conv.weight", {_NORM}) {{
        %c = dlcb.graph.convolution %x, %w {_STRIDES} : (tensor<[n, 3, 9], f32>, tensor<[8, 3, 1], f32>) -> tensor<[n, 8, 9], f32>
        %r = dlcb.graph.batch_norm %c, %m, %v {{eps = 1.0e-05 : f64}} : (tensor<[n, 8, 9], f32>, tensor<[8], f32>, tensor<[8], f32>) -> tensor<[n, 8, 9], f32>
        {_TAIL}"""
    after = f"""dlcb.graph.func @weights(%w: tensor<[8, 3, 1], f32> weight "conv.weight", {_NORM}) {{
        %e = dlcb.graph.full {{shape = #dlcb.graph.dims<[]>, value = 1.0e-05 : f64}} : () -> tensor<[], f32>
        %a = dlcb.graph.add %v, %e : (tensor<[8], f32>, tensor<[], f32>) -> tensor<[8], f32>
        %s = dlcb.graph.rsqrt %a : (tensor<[8], f32>) -> tensor<[8], f32>
        %s3 = dlcb.graph.reshape %s {{shape = #dlcb.graph.dims<[8, 1, 1]>}} : (tensor<[8], f32>) -> tensor<[8, 1, 1], f32>
        %w2 = dlcb.graph.mul %w, %s3 : (tensor<[8, 3, 1], f32>, tensor<[8, 1, 1], f32>) -> tensor<[8, 3, 1], f32>
        %d = dlcb.graph.neg %m : (tensor<[8], f32>) -> tensor<[8], f32>
        %b2 = dlcb.graph.mul %d, %s : (tensor<[8], f32>, tensor<[8], f32>) -> tensor<[8], f32>
        dlcb.graph.return %w2, %b2 : !dlcb.graph.tensor<[8, 3, 1], f32>, !dlcb.graph.tensor<[8], f32> }}
      dlcb.graph.func @main({_X}, %old: tensor<[8, 3, 1], f32> weight "conv.weight", {_NORM},
          %w: tensor<[8, 3, 1], f32> weight "conv.weight|bn", %b: tensor<[8], f32> weight "conv.bias|bn")
          attributes {{dlcb.derived = {{"conv.weight|bn" = 0 : i64, "conv.bias|bn" = 1 : i64}}}} {{
        %r = dlcb.graph.convolution %x, %w, %b {_STRIDES} : (tensor<[n, 3, 9], f32>, tensor<[8, 3, 1], f32>, tensor<[8], f32>) -> tensor<[n, 8, 9], f32>
        {_TAIL}"""
    refused: ClassVar = {
        "the source is no convolution": before.replace("%c, %m", "%h, %m").replace(
            "%r = ", "%h = dlcb.graph.exp %c : (tensor<[n, 8, 9], f32>) -> tensor<[n, 8, 9], f32>\n %r = "
        ),
        "the convolution has other uses": before.replace(
            "dlcb.graph.return %r : ", "dlcb.graph.return %r, %c : !dlcb.graph.tensor<[n, 8, 9], f32>, "
        ),
        "in half precision, no relu follows that the vendor takes along": before.replace("f32", "f16"),
        "an operand is no weight": before.replace('weight "conv.weight"', 'input "conv.weight"'),
        "the program updates a weight": before.replace(
            "%r : !dlcb.graph.tensor<[n, 8, 9], f32>", "%m : !dlcb.graph.tensor<[8], f32> {updates = [#builtin.int<2>]}"
        ),
        "the types differ": before.replace(
            "-> tensor<[n, 8, 9], f32>\n        dlcb.graph.return",
            "-> tensor<[n, 8, 9], f64>\n        dlcb.graph.return",
        ).replace("%r : !dlcb.graph.tensor<[n, 8, 9], f32>", "%r : !dlcb.graph.tensor<[n, 8, 9], f64>"),
        "transposed in groups": before.replace("{dilation", "{transposed, dilation")
        .replace("groups = #builtin.int<1>", "groups = #builtin.int<2>")
        .replace("[8, 3, 1]", "[3, 4, 1]"),
    }

    def why_not(self, op: BatchNormOp) -> str | None:
        conv = op.operands[0].owner
        if not isinstance(conv, ConvolutionOp):
            return "the source is no convolution"
        if not conv.results[0].has_one_use():
            return "the convolution has other uses"
        if conv.result_element != op.result_element:
            return "the types differ"
        if conv.transposed is not None and conv.groups.data != 1:
            return "transposed in groups"
        if op.result_element in (f16, bf16) and not vendor_takes(conv, op.results[0]):
            return "in half precision, no relu follows that the vendor takes along"
        return why_not_weights(op.parent_op(), [*conv.operands[1:], *op.operands[1:]])

    def rewrite(self, op: BatchNormOp, rewriter: PatternRewriter) -> None:
        conv, func = op.operands[0].owner, op.parent_op()
        assert isinstance(conv, ConvolutionOp)
        assert isinstance(func, FuncOp)
        weight, suffix = weight_name(conv.operands[1]), weight_name(op.operands[2]).rpartition(".")[0]
        bias = weight_name(conv.extra) if conv.extra is not None else f"{weight.rpartition('.')[0]}.bias"
        weights, b = WeightFunction.of(func, rewriter), GraphBuilder()
        new_weight, new_bias = _folded(conv, op, weights, b)
        weights.append(b.ops)
        derived = weights.derive({f"{weight}|{suffix}": new_weight, f"{bias}|{suffix}": new_bias})
        folded = ConvolutionOp.create(
            operands=[conv.operands[0], *derived], result_types=[op.results[0].type], properties=dict(conv.properties)
        )
        folded.location = conv.location
        rewriter.replace(op, [folded])
        rewriter.erase(conv)


def _folded(
    conv: ConvolutionOp, norm: BatchNormOp, weights: WeightFunction, b: GraphBuilder
) -> tuple[SSAValue, SSAValue]:
    """The new weight and bias, computed from the old ones in `@weights`."""
    narrow = type_of(conv.operands[1]).element
    wide = compute_type(narrow)
    weight, *bias = weights.arguments(conv.operands[1:])
    mean, variance, *affine = weights.arguments(norm.operands[1:])
    lifted = b.call("add", variance, b.constant(norm.eps.value.data, wide), element=wide)
    if affine:
        scale = b.call("div", affine[0], b.call("sqrt", lifted, element=wide), element=wide)
    else:
        scale = b.call("rsqrt", lifted, element=wide)
    channel_axis = 0 if conv.transposed is None else 1
    dims: list[Dim] = [1] * type_of(weight).rank
    dims[channel_axis] = dims_of(scale)[0]
    new_weight = b.call("mul", weight, b.reshape(scale, tuple(dims), wide), element=narrow)
    centred = b.call("sub", bias[0], mean, element=wide) if bias else b.call("neg", mean, element=wide)
    new_bias = b.call("mul", centred, scale, element=wide if affine[1:] else narrow)
    if affine[1:]:
        new_bias = b.call("add", new_bias, affine[1], element=narrow)
    return new_weight, new_bias
