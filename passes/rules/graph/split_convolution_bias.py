"""convolution(x, w, b) -> convolution(x, w) + b, b of size [c, 1, ..].  Sound: its definition; the sum is rounded once more, as
eager's is.  Not worse: in half precision torch adds the bias in a kernel of its own, here it is fused with what follows.
Where the vendor's routine takes bias and relu along it stays.  Source: torch.nn.functional.conv2d with cuDNN."""

from __future__ import annotations

from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.types import dims_of, type_of
from dlcb.dialects.types import bf16, f16
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule
from dlcb.passes.vendor import vendor_takes

_HEAD = """dlcb.graph.func @f(%x: tensor<[n, 3, m, m], f16> input "x", %w: tensor<[4, 3, 1, 1], f16> weight "w", %b: tensor<[4], f16> weight "b") {"""
_ATTRIBUTES = "{stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1}"
_Y = "tensor<[n, 4, m, m], f16>"
_CALL = f"%c = dlcb.graph.convolution %x, %w, %b {_ATTRIBUTES} : (tensor<[n, 3, m, m], f16>, tensor<[4, 3, 1, 1], f16>, tensor<[4], f16>) -> {_Y}"


class SplitConvolutionBias(Rule):
    level = "graph"
    roots = (ConvolutionOp,)
    before = f"""{_HEAD}
        {_CALL}
        dlcb.graph.return %c : !dlcb.graph.{_Y} }}"""
    after = f"""{_HEAD}
        %p = dlcb.graph.convolution %x, %w {_ATTRIBUTES} : (tensor<[n, 3, m, m], f16>, tensor<[4, 3, 1, 1], f16>) -> {_Y}
        %b1 = dlcb.graph.reshape %b {{shape = #dlcb.graph.dims<[4, 1, 1]>}} : (tensor<[4], f16>) -> tensor<[4, 1, 1], f16>
        %c = dlcb.graph.add %p, %b1 : ({_Y}, tensor<[4, 1, 1], f16>) -> {_Y}
        dlcb.graph.return %c : !dlcb.graph.{_Y} }}"""
    refused: ClassVar = {
        "not half precision": before.replace("f16", "f32"),
        "the vendor's routine takes it along": before.replace(
            "dlcb.graph.return %c", f"%y = dlcb.graph.relu %c : ({_Y}) -> {_Y}\n dlcb.graph.return %y"
        ),
        "no bias": before.replace("%x, %w, %b", "%x, %w").replace(", tensor<[4], f16>) ->", ") ->"),
    }

    def why_not(self, op: ConvolutionOp) -> str | None:
        if op.bias is None:
            return "no bias"
        if op.result_element not in (f16, bf16):
            return "not half precision"
        return "the vendor's routine takes it along" if vendor_takes(op, op.results[0]) else None

    def rewrite(self, op: ConvolutionOp, rewriter: PatternRewriter) -> None:
        b, result, bias = GraphBuilder(), op.results[0], op.bias
        assert bias is not None
        plain = ConvolutionOp.create(
            operands=op.operands[:2], result_types=[result.type], properties=dict(op.properties)
        )
        plain.location = op.location
        channels = (*dims_of(bias), *(1,) * (type_of(result).rank - 2))
        column = b.reshape(bias, channels, type_of(bias).element)
        total = b.call("add", plain.results[0], column, element=op.result_element)
        rewriter.replace(op, [plain, *b.ops], [total])
