"""All ops of `dlcb.cuda`: CUDA C as structured IR. See docs/architecture.md §6.

A kernel is a row of *phases*. `barrier`, `shuffle_xor` and the borders of uniform `if` and `for` end a phase; what a
thread keeps across them is in a `local`. What all threads of a block agree on (phases.py) may be used in every phase.
Half precision is loaded, stored and cast, never computed with.
"""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from dlcb.dialects.cuda.check import CheckOp
from dlcb.dialects.cuda.control import BarrierOp, ForOp, IfOp, KernelOp, ShuffleXorOp
from dlcb.dialects.cuda.memory import (
    GetOp,
    LoadIfOp,
    LoadOp,
    LoadVectorIfOp,
    LoadVectorOp,
    LocalOp,
    ReadOp,
    SetOp,
    SharedOp,
    StoreOp,
    StoreVectorOp,
    VarOp,
    WriteOp,
)
from dlcb.dialects.cuda.parts import LoadPartOp, LoadUnalignedPartOp, StorePartOp
from dlcb.dialects.cuda.types import LocalType, PtrType, SharedType, VarType
from dlcb.dialects.cuda.values import BlockIdxOp, ConstantOp, MagicDivOp, ScalarOp, ThreadIdxOp

OPS: list[type[Operation]] = [
    KernelOp,
    ThreadIdxOp,
    BlockIdxOp,
    ConstantOp,
    ScalarOp,
    MagicDivOp,
    IfOp,
    ForOp,
    LoadOp,
    LoadIfOp,
    LoadVectorIfOp,
    LoadVectorOp,
    StoreOp,
    StoreVectorOp,
    LoadPartOp,
    LoadUnalignedPartOp,
    StorePartOp,
    VarOp,
    GetOp,
    SetOp,
    LocalOp,
    SharedOp,
    ReadOp,
    WriteOp,
    BarrierOp,
    ShuffleXorOp,
    CheckOp,
]

ATTRS: list[type[Attribute]] = [PtrType, VarType, LocalType, SharedType]
