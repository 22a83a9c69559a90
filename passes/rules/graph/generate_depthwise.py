"""convolution(x, w, b), in as many groups as channels -> depthwise(x, w) + b, which a generated kernel computes.

Sound: its definition.  Not worse: it is bound by memory, and what follows elementwise is computed in the same kernel; half
precision in 2-d only, where pictures lie channels-last, and windows that a thread can hold a line of.  Source: the
convolutions of MobileNets, whose vendor's routine takes two to four times as long as their memory needs.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import IntAttr
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.convolution import ConvolutionOp, DepthwiseOp
from dlcb.dialects.graph.types import dims_of, type_of
from dlcb.dialects.types import bf16, f16
from dlcb.passes.graph_builder import GraphBuilder, int_list
from dlcb.passes.rule import Rule

LONGEST_LINE = 9
LARGEST_WINDOW = 81

_HEAD = """dlcb.graph.func @f(%x: tensor<[n, 4, m, m], f16> input "x", %w: tensor<[4, 1, 3, 3], f16> weight "w", %b: tensor<[4], f16> weight "b") {"""
_ATTRIBUTES = "{stride = [1, 1], padding = [1, 1], dilation = [1, 1], groups = 4}"
_DEPTHWISE = "{stride = [1, 1], padding = [1, 1], dilation = [1, 1], groups = 0, kernel = [3, 3]}"
_Y = "tensor<[n, 4, m, m], f16>"
_W = "tensor<[4, 1, 3, 3], f16>"


def _program(body: str) -> str:
    return f"""{_HEAD}
        {body}
        dlcb.graph.return %c : !dlcb.graph.{_Y} }}"""


class GenerateDepthwise(Rule):
    level = "graph"
    priority = 40
    roots = (ConvolutionOp,)
    before = _program(f"%c = dlcb.graph.convolution %x, %w, %b {_ATTRIBUTES} : ({_Y}, {_W}, tensor<[4], f16>) -> {_Y}")
    after = _program(
        f"""%p = dlcb.graph.depthwise %x, %w {_DEPTHWISE} : ({_Y}, {_W}) -> {_Y}
        %b1 = dlcb.graph.reshape %b {{shape = #dlcb.graph.dims<[4, 1, 1]>}} : (tensor<[4], f16>) -> tensor<[4, 1, 1], f16>
        %c = dlcb.graph.add %p, %b1 : ({_Y}, tensor<[4, 1, 1], f16>) -> {_Y}"""
    )
    refused: ClassVar = {
        "not half precision in 2-d": before.replace("f16", "f32"),
        "it sums over channels": before.replace("groups = 4", "groups = 2").replace("[4, 1, 3, 3]", "[4, 2, 3, 3]"),
        "its windows are large": before.replace("[4, 1, 3, 3]", "[4, 1, 11, 11]").replace(
            "padding = [1, 1]", "padding = [5, 5]"
        ),
    }

    def why_not(self, op: ConvolutionOp) -> str | None:
        if op.result_element not in (f16, bf16) or type_of(op.results[0]).rank != 4:
            return "not half precision in 2-d"
        out, inner, *kernel = dims_of(op.operands[1])
        if op.transposed is not None or inner != 1 or out != op.groups.data or out == 1:
            return "it sums over channels"
        sizes = [size for size in kernel if isinstance(size, int)]
        if len(sizes) < len(kernel) or sizes[-1] > LONGEST_LINE or prod(sizes) > LARGEST_WINDOW:
            return "its windows are large"
        return None

    def rewrite(self, op: ConvolutionOp, rewriter: PatternRewriter) -> None:
        b, result, bias = GraphBuilder(), op.results[0], op.bias
        kernel = int_list(tuple(dim for dim in dims_of(op.operands[1])[2:] if isinstance(dim, int)))
        about = dict(op.properties) | {"kernel": kernel, "groups": IntAttr(0)}
        depthwise = DepthwiseOp.create(operands=op.operands[:2], result_types=[result.type], properties=about)
        depthwise.location = op.location
        if bias is None:
            rewriter.replace(op, [depthwise])
            return
        column = b.reshape(bias, (*dims_of(bias), 1, 1), type_of(bias).element)
        total = b.call("add", depthwise.results[0], column, element=op.result_element)
        rewriter.replace(op, [depthwise, *b.ops], [total])
