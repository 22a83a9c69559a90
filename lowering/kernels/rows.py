"""Kernels with a row, by the schedule."""

from __future__ import annotations

from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.lowering.kernels.column import ColumnRow
from dlcb.lowering.kernels.row import RowLowering, ThreadRow, WarpRow
from dlcb.lowering.kernels.row_plan import RowPlan
from dlcb.lowering.kernels.split import SplitBlock, SplitColumn

WHOLE: dict[str, type[RowLowering]] = {"block": RowLowering, "warp": WarpRow, "thread": ThreadRow, "column": ColumnRow}
SPLIT: dict[str, type[RowLowering]] = {"block": SplitBlock, "column": SplitColumn}


def lower_row(name: str, plan: RowPlan, schedule: ScheduleAttr) -> CudaKernelOp:
    """The kernel of a schedule: of whole rows, or one step over their parts."""
    return (WHOLE if schedule.step is None else SPLIT)[schedule.row](name, plan, schedule).build()
