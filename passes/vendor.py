"""What the routines of vendors do beside a convolution, so that rules leave it to them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import calls_library
from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.elementwise import SIMPLE, ReluOp
from dlcb.dialects.graph.types import type_of


def vendor_takes(convolution: ConvolutionOp, result: SSAValue) -> bool:
    """Whether the vendor's routine would take along the bias of a convolution with this result, and all that reads it
    but what needs it in memory."""
    if convolution.groups.data != 1 or convolution.transposed is not None or type_of(result).rank != 4:
        return False
    if convolution.is_of_points and any(calls_library(use.operation) for use in result.uses):
        return True
    user = next(iter(result.uses)).operation if result.has_one_use() else None
    if isinstance(user, SIMPLE["add"]) and user.results[0].has_one_use():
        user = next(iter(user.results[0].uses)).operation
    return isinstance(user, ReluOp)
