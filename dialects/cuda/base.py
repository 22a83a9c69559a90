"""What every op of `dlcb.cuda` answers about phases."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import IRDLOperation


class CudaOp(IRDLOperation):
    """An op inside a kernel."""

    AGREES_WITH_OPERANDS: ClassVar[bool] = False
    """All threads of a block get the same result where they have the same operands."""
    ENDS_PHASE: ClassVar[bool] = False
    """The threads of a block (or warp) meet here."""
