"""What the routines of vendors do beside a convolution, so that rules leave it to them."""

from __future__ import annotations

from xdsl.ir import SSAValue

from dlcb.dialects.graph.convolution import ConvolutionOp
from dlcb.dialects.graph.elementwise import SIMPLE, ReluOp
from dlcb.dialects.graph.types import type_of


def vendor_takes(convolution: ConvolutionOp, result: SSAValue) -> bool:
    """Whether the vendor's routine would take along all that reads this result of a convolution with a bias."""
    if convolution.groups.data != 1 or convolution.transposed is not None or type_of(result).rank != 4:
        return False
    user = next(iter(result.uses)).operation if result.has_one_use() else None
    if isinstance(user, SIMPLE["add"]) and user.results[0].has_one_use():
        user = next(iter(user.results[0].uses)).operation
    return isinstance(user, ReluOp)
