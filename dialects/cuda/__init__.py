"""`dlcb.cuda`: CUDA C as structured IR."""

from dlcb.dialects.cuda.ops import ATTRS, OPS

__all__ = ["ATTRS", "OPS"]
