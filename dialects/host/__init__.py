"""`dlcb.host`: the launch-time program."""

from dlcb.dialects.host.ops import ATTRS, OPS

__all__ = ["ATTRS", "OPS"]
