"""relu(convolution(x, w, b)) -> convolution_relu(x, w, b), relu(convolution(x, w, b) + r) -> convolution_relu(x, w, b,
r).  Sound: the same sums, rounded less often.  Not worse: the routine writes the result once; half precision in 2-d
without groups only, where vendors have it.  Source: cuDNN's fused convolution-bias-activation."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from dlcb.dialects.graph.convolution import ConvolutionOp, ConvolutionReluOp
from dlcb.dialects.graph.elementwise import SIMPLE, ReluOp
from dlcb.dialects.graph.types import type_of
from dlcb.dialects.types import bf16, f16
from dlcb.passes.rule import Rule


def _function(body: str, returned: str, dtype: str = "f16") -> str:
    return f"""dlcb.graph.func @f(%x: tensor<[n, 3, m, m], {dtype}> input "x", %w: tensor<[4, 3, 1, 1], {dtype}> weight "w", %b: tensor<[4], {dtype}> weight "b", %r: tensor<[n, 4, m, m], {dtype}> input "r") {{
        {body}
        dlcb.graph.return {returned} : !dlcb.graph.tensor<[n, 4, m, m], {dtype}> }}"""


_ATTRIBUTES = "{stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1}"


def _types(dtype: str) -> str:
    return f"(tensor<[n, 3, m, m], {dtype}>, tensor<[4, 3, 1, 1], {dtype}>, tensor<[4], {dtype}>) -> tensor<[n, 4, m, m], {dtype}>"


def _plain(dtype: str) -> str:
    tensor = f"tensor<[n, 4, m, m], {dtype}>"
    return f"""%c = dlcb.graph.convolution %x, %w, %b {_ATTRIBUTES} : {_types(dtype)}
        %s = dlcb.graph.add %c, %r : ({tensor}, {tensor}) -> {tensor}
        %y = dlcb.graph.relu %s : ({tensor}) -> {tensor}"""


class FuseConvolutionRelu(Rule):
    level = "graph"
    roots = (ReluOp,)
    before = _function(_plain("f16"), "%y")
    after = _function(
        f"""%y = dlcb.graph.convolution_relu %x, %w, %b, %r {_ATTRIBUTES} : (tensor<[n, 3, m, m], f16>, tensor<[4, 3, 1, 1], f16>, tensor<[4], f16>, tensor<[n, 4, m, m], f16>) -> tensor<[n, 4, m, m], f16>""",
        "%y",
    )
    refused: ClassVar = {
        "not half precision": _function(_plain("f32"), "%y", "f32"),
        "no convolution of its own": _function(
            "%y = dlcb.graph.relu %r : (tensor<[n, 4, m, m], f16>) -> tensor<[n, 4, m, m], f16>", "%y"
        ),
    }

    def why_not(self, op: ReluOp) -> str | None:
        if op.result_element not in (f16, bf16):
            return "not half precision"
        return None if self._found(op) is not None else "no convolution of its own"

    def rewrite(self, op: ReluOp, rewriter: PatternRewriter) -> None:
        found = self._found(op)
        assert found is not None
        convolution, residual = found
        operands = [*convolution.operands, *([] if residual is None else [residual])]
        fused = ConvolutionReluOp.create(
            operands=operands, result_types=[op.results[0].type], properties=dict(convolution.properties)
        )
        rewriter.replace(op, [fused])

    def _found(self, op: ReluOp) -> tuple[ConvolutionOp, SSAValue | None] | None:
        """The convolution under the relu, and what is added to it."""
        source = op.operands[0]
        if _fusable(source, source):
            return source.owner, None  # pyright: ignore[reportReturnType]
        total = source.owner
        if not isinstance(total, SIMPLE["add"]) or not source.has_one_use():
            return None
        for one, other in (tuple(total.operands), tuple(reversed(total.operands))):
            if _fusable(one, source) and other.type == one.type and other is not one:
                return one.owner, other  # pyright: ignore[reportReturnType]
        return None


def _fusable(value: SSAValue, result: SSAValue) -> bool:
    """A plain 2-d convolution with a bias that only this relu needs, of the result's type."""
    op = value.owner
    return (
        type(op) is ConvolutionOp
        and op.bias is not None
        and op.groups.data == 1
        and op.transposed is None
        and type_of(value).rank == 4
        and value.type == result.type
        and value.has_one_use()
    )
