"""`dlcb.coord`: kernels as coordinate maps, with a schedule that says how they run."""

from dlcb.dialects.coord.check import CheckOp
from dlcb.dialects.coord.ops import ATTRS
from dlcb.dialects.coord.ops import OPS as KERNEL_OPS

OPS = [*KERNEL_OPS, CheckOp]

__all__ = ["ATTRS", "OPS"]
