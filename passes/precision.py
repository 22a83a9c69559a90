"""Which values of a kernel need not be exact to the last bits of single precision: those that only half precision sees.

A half has 11 bits (bfloat16: 8), so what is rounded to one before anything else looks at it may be off by 2⁻¹⁶. There
`exp` and `div`, which take some thirty instructions, become `fast_exp` and `fast_div`, which take about eight; a kernel
that moves two bytes an element has time for few more. A division by what is one number a row becomes a product with its
inverse. A comparison, a conversion to an integer or a store in single precision does look.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects.builtin import FloatAttr, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue, Use

from dlcb.dialects.coord.ops import BufferType, ConstantOp, KernelOp, LoopOp, ReduceOp, ScalarOp, StoreOp, YieldOp
from dlcb.dialects.types import bf16, f16, f32

_FAST: Final = {"exp": "fast_exp", "div": "fast_div"}
_SMOOTH: Final = frozenset(
    "add sub mul div fast_div neg abs maximum minimum exp fast_exp exp2 sqrt rsqrt tanh erf fma sin cos".split()
)
"""Functions through which such an error stays small beside that of rounding to halves, but for a sum that cancels:
there eager, which rounds after each operation, is farther off."""
_TOTALS: Final = frozenset(("add", "maximum", "minimum"))
_HALVES: Final = (f16, bf16)


def relax_precision(kernel: KernelOp) -> None:
    """Put the fast functions where they are good enough, in place."""
    known: dict[SSAValue, bool] = {}
    inverses: dict[SSAValue, SSAValue] = {}
    for op in reversed(list(kernel.body.walk())):
        for result in op.results:
            known[result] = _ends_in_halves(result, known)
        if isinstance(op, ScalarOp) and op.function.data in _FAST and known[op.res] and _is_single(op):
            op.properties["function"] = StringAttr(_FAST[op.function.data])
            if op.function.data == "fast_div" and isinstance(op.args[1].owner, ReduceOp) and op.res.type == f32:
                known |= dict.fromkeys(_multiply_instead(op, op.args[1].owner, inverses), True)


def _multiply_instead(op: ScalarOp, total: ReduceOp, inverses: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    """x / total as x · (1 / total); the values that this takes."""
    inverse = inverses.get(total.res)
    if inverse is None:
        one = ConstantOp.create(result_types=[f32], properties={"value": FloatAttr(1.0, f32)})
        made = _scalar("fast_div", one.res, total.res)
        block = total.parent_block()
        assert block is not None
        block.insert_ops_after([one, made], total)
        inverse = inverses[total.res] = made.res
    product = _scalar("mul", op.args[0], inverse)
    block = op.parent_block()
    assert block is not None
    block.insert_op_before(product, op)
    op.res.replace_all_uses_with(product.res)
    block.erase_op(op)
    return [inverse, product.res]


def _scalar(function: str, *operands: SSAValue) -> ScalarOp:
    return ScalarOp.create(operands=operands, result_types=[f32], properties={"function": StringAttr(function)})


def _is_single(op: ScalarOp) -> bool:
    """Is it computed in single precision?"""
    return all(operand.type in (f32, *_HALVES) for operand in op.args)


def _ends_in_halves(value: OpResult, known: dict[SSAValue, bool]) -> bool:
    if value.type in _HALVES:
        return True
    return value.type == f32 and bool(value.uses) and all(_is_blind(use, known) for use in value.uses)


def _is_blind(use: Use, known: dict[SSAValue, bool]) -> bool:
    """Does this use see halves only?"""
    op: Operation = use.operation
    match op:
        case StoreOp():
            buffer = op.buffer.type
            return use.index == 0 and isinstance(buffer, BufferType) and buffer.element in _HALVES
        case ScalarOp():
            function = op.function.data
            if function == "cast":
                return known.get(op.res, False)
            if function == "select":
                return use.index > 0 and known.get(op.res, False)
            return function in _SMOOTH and known.get(op.res, False)
        case ReduceOp():
            return op.function.data in _TOTALS and known.get(op.res, False)
        case YieldOp():
            loop = op.parent_op()
            assert isinstance(loop, LoopOp)
            return loop.function.data in _TOTALS and known.get(loop.results[use.index], False)
        case _:
            return False
