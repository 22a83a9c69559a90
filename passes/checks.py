"""What must hold after every pass: each op verifies, and each value is defined before its use.

xDSL verifies ops one by one and does not look at the order of definitions; `check_dominance` does, in one walk.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import op_text, source_line


class OpVerifyException(VerifyException):
    """A check that failed at one op; the text names the op's source line where it is known."""

    def __init__(self, message: str, op: Operation) -> None:
        line = source_line(op)
        super().__init__(f"{message} ({line})" if line else message)
        self.op = op


def check_module(module: ModuleOp) -> None:
    """Every op's own verifier, then the order of definitions; raises `OpVerifyException` at the first op that fails."""
    try:
        module.verify()
    except VerifyException as error:
        op = next((op for op in module.walk() if not _verifies(op)), module)
        text = str(error)
        raise OpVerifyException(text if op.name in text else f"{op.name}: {text}", op) from error
    check_dominance(module)


def _verifies(op: Operation) -> bool:
    try:
        op.verify(verify_nested_ops=False)
    except VerifyException:
        return False
    return True


def check_dominance(module: ModuleOp) -> None:
    """Raises `OpVerifyException` at the first op that uses a value whose definition does not come before it."""
    for region in module.regions:
        _check_region(region, set())


def _check_region(region: Region, visible: set[Operation | Block]) -> None:
    if len(region.blocks) < 2:
        for block in region.blocks:
            _check_block(block, visible)
        return
    dominance = DominanceInfo(region)
    for block in region.blocks:
        before = [other for other in region.blocks if dominance.strictly_dominates(other, block)]
        _check_block(block, visible.union(before, *(other.ops for other in before)))


def _check_block(block: Block, visible: set[Operation | Block]) -> None:
    added: list[Operation | Block] = [block]
    visible.add(block)
    for op in block.ops:
        for operand in op.operands:
            if operand.owner not in visible:
                raise _use_before_definition(op, operand)
        if op.regions:
            isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
            for region in op.regions:
                _check_region(region, set() if isolated else visible)
        visible.add(op)
        added.append(op)
    visible.difference_update(added)


def _use_before_definition(op: Operation, operand: SSAValue) -> OpVerifyException:
    owner = operand.owner
    place = "a block that does not enclose it" if isinstance(owner, Block) else f"`{op_text(owner)}`"
    index = op.operands.index(operand)
    return OpVerifyException(f"{op.name}: operand {index} is used before its definition by {place}", op)
