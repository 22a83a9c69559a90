"""Which values all threads of a block agree on, and which live in one phase only.

The block is in *uniform control flow* in a kernel's body and in the bodies of `uniform` `if` and `for` that stand in
it. A value is *agreed* if it is computed there, from parameters, constants, the block's index and other agreed values.
Agreed values may be used in every later phase; others only in the phase that defines them.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.cuda.base import CudaOp

WARP = 32


def agrees(op: CudaOp, agreed: set[SSAValue]) -> bool:
    """Do all threads get the same results, where `op` stands in uniform control flow?"""
    return op.AGREES_WITH_OPERANDS and agreed.issuperset(op.operands)


def is_uniform(op: Operation) -> bool:
    """Is it an `if` or `for` through which the whole block goes together?"""
    return "uniform" in op.properties


def _describe(value: SSAValue) -> str:
    owner = value.owner
    name = f"%{value.name_hint}" if value.name_hint else "a value"
    return f"{name} (of a block)" if isinstance(owner, Block) else f"{name} (of {owner.name})"


class _PhaseVerifier:
    """Walks a kernel in program order and numbers its phases."""

    def __init__(self, body: Block, threads: int):
        self.body = body
        self.threads = threads
        self.phase = 0
        self.agreed: set[SSAValue] = set()
        self.phase_of: dict[SSAValue, int] = {}

    def run(self) -> None:
        self.agreed.update(self.body.args)
        self.walk(self.body, uniform=True)

    def walk(self, block: Block, *, uniform: bool) -> None:
        for operation in block.ops:
            if not isinstance(operation, CudaOp):
                raise VerifyException(f"{operation.name} does not belong in a kernel")
            self.check_operands(operation)
            if operation.DECLARES and block is not self.body:
                raise VerifyException(f"{operation.name} stands inside an if or for, not in the kernel's own body")
            if operation.ENDS_PHASE or is_uniform(operation):
                self.check_uniform(operation, uniform)
            if operation.regions:
                self.enter(operation)
            elif operation.ENDS_PHASE:
                self.phase += 1
            elif uniform and agrees(operation, self.agreed):
                self.agreed.update(operation.results)
            else:
                self.define(*operation.results)

    def enter(self, op: CudaOp) -> None:
        body = op.regions[0].block
        if not is_uniform(op):
            self.define(*body.args)
            self.walk(body, uniform=False)
            return
        self.phase += 1
        self.agreed.update(body.args)
        self.walk(body, uniform=True)
        self.phase += 1

    def define(self, *values: SSAValue) -> None:
        for value in values:
            self.phase_of[value] = self.phase

    def check_operands(self, op: Operation) -> None:
        for operand in op.operands:
            if operand in self.agreed or self.phase_of.get(operand) == self.phase:
                continue
            if operand not in self.phase_of:
                raise VerifyException(f"{op.name} uses {_describe(operand)} before its definition")
            raise VerifyException(
                f"{op.name} uses {_describe(operand)} of an earlier phase; keep it in a local or compute it again"
            )

    def check_uniform(self, op: CudaOp, uniform: bool) -> None:
        if not uniform:
            raise VerifyException(f"{op.name} stands inside an if or for that is not uniform")
        for operand in op.operands:
            if operand not in self.agreed:
                raise VerifyException(f"{op.name} needs {_describe(operand)}, on which the block's threads may differ")
        if op.ENDS_PHASE and op.operands and self.threads % WARP:
            raise VerifyException(f"{op.name} needs whole warps, but threads is {self.threads}")


def verify_phases(body: Block, threads: int) -> None:
    """Raise a VerifyException if a barrier, shuffle or value stands where its phase does not allow."""
    _PhaseVerifier(body, threads).run()
