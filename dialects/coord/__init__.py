"""`dlcb.coord`: kernels as coordinate maps, with a schedule that says how they run."""

from dlcb.dialects.coord.ops import ATTRS, OPS

__all__ = ["ATTRS", "OPS"]
