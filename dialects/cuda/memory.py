"""Ops of `dlcb.cuda` that touch memory: global arrays, variables, arrays of a thread and of a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.cuda import syntax
from dlcb.dialects.cuda.base import CudaOp, IndexedOp, ValuesOp
from dlcb.dialects.cuda.types import LocalType, PtrType, SharedType, VarType
from dlcb.dialects.cuda.verify import verify_integer, verify_memory, verify_same
from dlcb.dialects.types import BYTES, i1

_WIDTHS = (2, 4, 8, 16)
_MAX_VECTOR_BYTES = 32


class _ElementReadOp(IndexedOp):
    """result = array[index]"""

    ARRAYS: ClassVar[tuple[type[Attribute], ...]]
    array = operand_def()
    index = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        verify_same("result", self.result.type, verify_memory(self.array, *self.ARRAYS))
        verify_integer("index", self.index)


class _ElementWriteOp(IndexedOp):
    """array[index] = value"""

    ARRAYS: ClassVar[tuple[type[Attribute], ...]]
    value = operand_def()
    array = operand_def()
    index = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        verify_same("value", self.value.type, verify_memory(self.array, *self.ARRAYS))
        verify_integer("index", self.index)


@irdl_op_definition
class LoadOp(_ElementReadOp):
    """result = array[index] in global memory"""

    name = "dlcb.cuda.load"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (PtrType,)


@irdl_op_definition
class StoreOp(_ElementWriteOp):
    """array[index] = value in global memory"""

    name = "dlcb.cuda.store"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (PtrType,)


@irdl_op_definition
class ReadOp(_ElementReadOp):
    """result = array[index], of the thread's or the block's array"""

    name = "dlcb.cuda.read"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (LocalType, SharedType)


@irdl_op_definition
class WriteOp(_ElementWriteOp):
    """array[index] = value, of the thread's or the block's array"""

    name = "dlcb.cuda.write"
    ARRAYS: ClassVar[tuple[type[Attribute], ...]] = (LocalType, SharedType)


@irdl_op_definition
class LoadIfOp(CudaOp):
    """result = array[index] where condition holds, else other; memory is not touched where it does not"""

    name = "dlcb.cuda.load_if"
    condition = operand_def(i1)
    array = operand_def()
    index = operand_def()
    other = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    @classmethod
    def parse(cls, parser: Parser) -> LoadIfOp:
        condition = syntax.parse_value(parser)
        parser.parse_punctuation(",")
        array, index = syntax.parse_element(parser)
        parser.parse_punctuation(",")
        return cls.create(
            operands=(condition, array, index, syntax.parse_value(parser)),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, (self.condition,))
        printer.print_string(", ")
        syntax.print_element(printer, self.array, self.index)
        printer.print_string(", ")
        printer.print_operand(self.other)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        element = verify_memory(self.array, PtrType)
        verify_same("result", self.result.type, element)
        verify_same("other", self.other.type, element)
        verify_integer("index", self.index)


def verify_vector(values: Sequence[SSAValue], array: SSAValue, index: SSAValue) -> None:
    element = verify_memory(array, PtrType)
    for value in values:
        verify_same("a vector's element", value.type, element)
    width = len(values)
    if width not in _WIDTHS or width * BYTES[element] > _MAX_VECTOR_BYTES:
        raise VerifyException(
            f"a vector of {width} {element} does not exist; 2, 4, 8 or 16 elements in {_MAX_VECTOR_BYTES} bytes do"
        )
    verify_integer("index", index)


@irdl_op_definition
class LoadVectorOp(IndexedOp):
    """values = array[index], array[index + 1], …

    The address is a multiple of the vector's bytes, of 16 where it is longer.
    """

    name = "dlcb.cuda.load_vector"
    array = operand_def()
    index = operand_def()
    values = var_result_def()
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        verify_vector(self.values, self.array, self.index)


@irdl_op_definition
class LoadVectorIfOp(IndexedOp):
    """values = array[index], array[index + 1], … where the condition holds, else zeros; memory is not touched where it
    does not. Aligned as for load_vector"""

    name = "dlcb.cuda.load_vector_if"
    condition = operand_def(i1)
    array = operand_def()
    index = operand_def()
    values = var_result_def()
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        verify_vector(self.values, self.array, self.index)


@irdl_op_definition
class StoreVectorOp(IndexedOp):
    """array[index], array[index + 1], … = values; aligned as for load_vector"""

    name = "dlcb.cuda.store_vector"
    values = var_operand_def()
    array = operand_def()
    index = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        verify_vector(self.values, self.array, self.index)


@irdl_op_definition
class VarOp(ValuesOp):
    """A mutable register, at first `initial`; inside one phase."""

    name = "dlcb.cuda.var"
    initial = operand_def()
    result = result_def(VarType)
    traits = traits_def(MemoryAllocEffect())

    def verify_(self) -> None:
        verify_same("initial", self.initial.type, self.result.type.element)


@irdl_op_definition
class GetOp(ValuesOp):
    """result = the variable's value at this point"""

    name = "dlcb.cuda.get"
    variable = operand_def(VarType)
    result = result_def()
    traits = traits_def(MemoryReadEffect())

    def verify_(self) -> None:
        verify_same("result", self.result.type, verify_memory(self.variable, VarType))


@irdl_op_definition
class SetOp(ValuesOp):
    """variable = value"""

    name = "dlcb.cuda.set"
    variable = operand_def(VarType)
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        verify_same("value", self.value.type, verify_memory(self.variable, VarType))


@irdl_op_definition
class LocalOp(CudaOp):
    """An array of each thread, undefined at first"""

    name = "dlcb.cuda.local"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    DECLARES: ClassVar[bool] = True
    result = result_def(LocalType)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class SharedOp(CudaOp):
    """An array of the block, undefined at first"""

    name = "dlcb.cuda.shared"
    AGREES_WITH_OPERANDS: ClassVar[bool] = True
    DECLARES: ClassVar[bool] = True
    result = result_def(SharedType)
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"
