"""convolution(x, w, b) of pictures of one pixel -> sum over channels of x · w, + b, which a generated kernel computes.

    [n, c, 1, 1], [o, c, 1, 1]  →  x[n, 1, c, 1] · w[1, o, c, 1] summed over c

Sound: its definition; products are added in f32. Not worse: the gates of channels are a few rows by a small matrix, for
which the vendor's product takes longer than to read both; bias and activation are computed in the same kernel. Half
precision only, and few weights. Source: the squeeze and excitation blocks of MobileNetV3 and EfficientNet.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.reduce import SumOp
from dlcb.dialects.graph.types import dims_of, type_of
from dlcb.dialects.types import bf16, compute_type, f16
from dlcb.passes.graph_builder import GraphBuilder
from dlcb.passes.rule import Rule

MOST_WEIGHTS = 2**18
"""Above, reading the weights once for each row takes longer than the vendor's product."""

_HEAD = """dlcb.graph.func @f(%x: tensor<[n, 3, 1, 1], f16> input "x", %w: tensor<[4, 3, 1, 1], f16> weight "w", %b: tensor<[4], f16> weight "b") {"""
_ATTRIBUTES = "{stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1}"
_X, _W, _B, _Y = (
    "tensor<[n, 3, 1, 1], f16>",
    "tensor<[4, 3, 1, 1], f16>",
    "tensor<[4], f16>",
    "tensor<[n, 4, 1, 1], f16>",
)


def _program(body: str) -> str:
    return f"""{_HEAD}
        {body}
        dlcb.graph.return %c : !dlcb.graph.{_Y} }}"""


class GenerateGate(Rule):
    level = "graph"
    priority = 40  # before a relu is given to the vendor
    roots = (ConvolutionOp,)
    before = _program(f"%c = dlcb.graph.convolution %x, %w, %b {_ATTRIBUTES} : ({_X}, {_W}, {_B}) -> {_Y}")
    after = _program(
        f"""%r = dlcb.graph.reshape %x {{shape = #dlcb.graph.dims<[n, 1, 3, 1]>}} : ({_X}) -> tensor<[n, 1, 3, 1], f16>
        %e = dlcb.graph.expand %r {{shape = #dlcb.graph.dims<[n, 4, 3, 1]>}} : (tensor<[n, 1, 3, 1], f16>) -> tensor<[n, 4, 3, 1], f16>
        %k = dlcb.graph.reshape %w {{shape = #dlcb.graph.dims<[1, 4, 3, 1]>}} : ({_W}) -> tensor<[1, 4, 3, 1], f16>
        %m = dlcb.graph.mul %e, %k : (tensor<[n, 4, 3, 1], f16>, tensor<[1, 4, 3, 1], f16>) -> tensor<[n, 4, 3, 1], f32>
        %s = dlcb.graph.sum %m {{axes = [2], keep}} : (tensor<[n, 4, 3, 1], f32>) -> tensor<[n, 4, 1, 1], f32>
        %d = dlcb.graph.reshape %b {{shape = #dlcb.graph.dims<[4, 1, 1]>}} : ({_B}) -> tensor<[4, 1, 1], f16>
        %c = dlcb.graph.add %s, %d : (tensor<[n, 4, 1, 1], f32>, tensor<[4, 1, 1], f16>) -> {_Y}"""
    )
    refused: ClassVar = {
        "not half precision": before.replace("f16", "f32"),
        "pictures of more than one pixel": before.replace("[n, 3, 1, 1]", "[n, 3, m, m]").replace(
            "[n, 4, 1, 1]", "[n, 4, m, m]"
        ),
        "in groups, or a window": before.replace("groups = 1", "groups = 3")
        .replace("[4, 3, 1, 1]", "[3, 1, 1, 1]")
        .replace("tensor<[4], f16>", "tensor<[3], f16>")
        .replace("[n, 4, 1, 1]", "[n, 3, 1, 1]"),
        "many weights": before.replace("[n, 3, 1, 1]", "[n, 99999, 1, 1]").replace("[4, 3, 1, 1]", "[4, 99999, 1, 1]"),
    }

    def why_not(self, op: ConvolutionOp) -> str | None:
        if op.result_element not in (f16, bf16):
            return "not half precision"
        if set(dims_of(op.operands[0])[2:]) != {1}:
            return "pictures of more than one pixel"
        if not op.is_of_points:
            return "in groups, or a window"
        sizes = [size for size in dims_of(op.operands[1])[:2] if isinstance(size, int)]
        return None if len(sizes) == 2 and prod(sizes) <= MOST_WEIGHTS else "many weights"

    def rewrite(self, op: ConvolutionOp, rewriter: PatternRewriter) -> None:
        b, element = GraphBuilder(), op.result_element
        wide = compute_type(element)
        x, weight, *bias = op.operands
        outputs, channels = dims_of(weight)[:2]
        batch, rest = dims_of(x)[0], (1,) * (type_of(x).rank - 3)
        rows = b.reshape(x, (batch, 1, channels, *rest), type_of(x).element)
        spread = b.expand(rows, (batch, outputs, channels, *rest), type_of(x).element)
        columns = b.reshape(weight, (1, outputs, channels, *rest), type_of(weight).element)
        made = b.reduce(SumOp, b.call("mul", spread, columns, element=wide), (2,), wide)
        if bias:
            column = b.reshape(bias[0], (outputs, 1, *rest), type_of(bias[0]).element)
            made = b.call("add", made, column, element=element)
        else:
            made = b.call("cast", made, element=element)
        rewriter.replace(op, b.ops, [made])
