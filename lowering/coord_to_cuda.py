"""Coordinate kernels → CUDA kernels, one for each schedule.

    dlcb.coord.kernel @k0 … schedules [s0, s1]   →   dlcb.cuda.kernel @k0_v4 …, dlcb.cuda.kernel @k0_v1 …

Reads the schedule and nothing else of how a kernel should run. What the host program must know to choose and to launch
stays on each kernel: `dlcb.integers` (its integer arguments), `dlcb.schedule`, and `dlcb.space` (sizes of outer and row
axes, what vectors demand, shifted ones too, in tiles those along either axis, whether rows are stored whole).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from dlcb.dialects.coord.crossing import crossing, facts_of
from dlcb.dialects.coord.levels import row_stores
from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.coord.shifted import along_rows
from dlcb.dialects.coord.vectors import VectorFacts, column_facts, vector_facts
from dlcb.dialects.cuda.ops import ForOp
from dlcb.dialects.cuda.ops import KernelOp as CudaKernelOp
from dlcb.dialects.graph.types import dims_attr
from dlcb.errors import InternalError
from dlcb.lowering.kernels.flat import lower_flat
from dlcb.lowering.kernels.row_plan import RowPlan
from dlcb.lowering.kernels.rows import lower_row
from dlcb.lowering.kernels.scan import lower_scan
from dlcb.lowering.kernels.tile import lower_tile
from dlcb.passes.stages import mark_stage

LARGE_BODY = 8
"""Ops of a loop that the compiler takes long for, if it unrolls it."""

FORM, SCHEDULE, SPACE = "dlcb.form", "dlcb.schedule", "dlcb.space"


def variant_name(kernel: str, schedule: ScheduleAttr) -> str:
    row = "" if schedule.row == "none" else f"_{schedule.row}{schedule.items or 'long'}"
    tile = schedule.transpose
    if tile is not None:
        row = f"_{tile.along}x{tile.across}_v{tile.vector}"
    step = "" if schedule.step is None else f"_step{schedule.step}"
    start = "_shifted" if schedule.shifted else ""
    return f"{kernel}{row}{step}_v{schedule.vector}{start}" + ("_i64" if schedule.index == 64 else "")


def lower_kernel(kernel: KernelOp) -> list[CudaKernelOp]:
    """The variants of a kernel, in the order of its schedules."""
    if kernel.schedules is None:
        raise InternalError(f"kernel {kernel.symbol} has no schedule")
    facts = vector_facts(kernel)
    space: dict[str, Attribute] = {
        "outer": kernel.outer,
        "row": kernel.row,
        "numbers": dims_attr(tuple(kernel.reached)),
        "vector": _demands(facts),
        "stored": IntAttr(int(bool(row_stores(kernel)))),
    }
    found = crossing(kernel) if any(s.transpose is not None for s in kernel.schedules.data) else None
    if found is not None:
        space |= zip(("across", "along"), map(_demands, facts_of(kernel, found)), strict=True)
    is_shifted = any(s.shifted for s in kernel.schedules.data)
    plan = RowPlan(along_rows(kernel)) if kernel.row.dims or is_shifted else None
    if is_shifted and plan is not None and (rows := plan.shifted) is not None:
        space["shifted"] = _demands(VectorFacts(rows.widest, rows.aligned, ()))
    if any(s.row == "column" and s.vector > 1 for s in kernel.schedules.data):
        space["columns"] = _demands(column_facts(kernel))
    lowered: list[CudaKernelOp] = []
    along_row = lower_scan if kernel.has_scans else lower_row
    for schedule in kernel.schedules.data:
        name = variant_name(kernel.symbol, schedule)
        if plan is not None and schedule.row != "none":
            variant = along_row(name, plan, schedule)
        else:
            variant = (lower_flat if schedule.transpose is None else lower_tile)(name, kernel, schedule)
        variant.attributes[FORM] = StringAttr(kernel.symbol)
        variant.attributes[SCHEDULE] = schedule
        variant.attributes[SPACE] = DictionaryAttr(space)
        variant.location = kernel.location
        if is_seldom(schedule, kernel.schedules.data, facts):
            keep_rolled(variant)
        lowered.append(variant)
    return lowered


def is_seldom(schedule: ScheduleAttr, others: Iterable[ScheduleAttr], facts: VectorFacts) -> bool:
    """Does it walk rows by single elements only where 32 bits do not reach them, or for nothing but an address that is
    not aligned?"""
    if schedule.row != "block" or schedule.items or schedule.vector > 1 or schedule.step is not None:
        return False
    return schedule.index == 64 or (not facts.divisible and any(other.vector > 1 for other in others))


def keep_rolled(kernel: CudaKernelOp) -> None:
    """Unrolling the large loops of kernels that seldom run is a third of the compiler's time."""
    for op in kernel.walk():
        if isinstance(op, ForOp) and op.unroll is None and len(op.body.block.ops) >= LARGE_BODY:
            op.properties["rolled"] = UnitAttr()


def _demands(facts: VectorFacts) -> DictionaryAttr:
    """What vectors demand of buffers and of sizes."""
    return DictionaryAttr({"aligned": ArrayAttr(map(IntAttr, facts.aligned)), "divisible": dims_attr(facts.divisible)})


@dataclass(frozen=True)
class CudaPass(ModulePass):
    """See the module's docstring."""

    name = "dlcb-cuda"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        block = op.body.block
        for kernel in list(block.ops):
            if isinstance(kernel, KernelOp):
                for variant in lower_kernel(kernel):
                    block.insert_op_before(variant, kernel)
                block.erase_op(kernel)
        mark_stage(op, "cuda")
