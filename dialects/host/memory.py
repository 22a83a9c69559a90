"""Where tensors of a call live: the arena, buffers in it, fresh outputs, views. Sizes and strides count elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.host.attributes import check_dtype, parse_dtype, print_dtype
from dlcb.dialects.host.integers import HostOp
from dlcb.dialects.host.syntax import (
    ARENA,
    TENSOR,
    parse_layout,
    parse_operand,
    print_layout,
    segments,
)
from dlcb.dialects.types import index


@irdl_op_definition
class ArenaOp(HostOp):
    """result = one allocation of that many bytes; a program has at most one."""

    name = "dlcb.host.arena"
    traits = traits_def(MemoryAllocEffect())
    bytes = operand_def(index)
    result = result_def(ARENA)
    assembly_format = "$bytes attr-dict"


class _LayoutOp(HostOp):
    """An op that names the sizes and strides of its result."""

    def verify_layout(self, sizes: Sequence[SSAValue], strides: Sequence[SSAValue]) -> None:
        if len(sizes) != len(strides):
            raise VerifyException(f"{self.name}: {len(sizes)} sizes but {len(strides)} strides")


@irdl_op_definition
class BufferOp(_LayoutOp):
    """result = a tensor in the arena, `offset` bytes from its start. Its value lives only inside the call."""

    name = "dlcb.host.buffer"
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    arena = operand_def(ARENA)
    offset = operand_def(index)
    sizes = var_operand_def(index)
    strides = var_operand_def(index)
    dtype = prop_def()
    result = result_def(TENSOR)

    def verify_(self) -> None:
        self.verify_layout(self.sizes, self.strides)
        check_dtype(self.dtype, self.name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.arena)
        printer.print_string(", ")
        printer.print_ssa_value(self.offset)
        printer.print_string(" ")
        print_layout(printer, self.sizes, self.strides)
        printer.print_string(" : ")
        print_dtype(printer, self.dtype)

    @classmethod
    def parse(cls, parser: Parser) -> BufferOp:
        arena = parse_operand(parser, ARENA)
        parser.parse_punctuation(",")
        offset = parse_operand(parser, index)
        sizes, strides = parse_layout(parser)
        parser.parse_punctuation(":")
        return cls.make(arena, offset, sizes, strides, parse_dtype(parser))

    @classmethod
    def make(
        cls, arena: SSAValue, offset: SSAValue, sizes: Sequence[SSAValue], strides: Sequence[SSAValue], dtype: Attribute
    ) -> BufferOp:
        return cls.create(
            operands=[arena, offset, *sizes, *strides],
            result_types=[TENSOR],
            properties={"dtype": dtype, "operandSegmentSizes": segments(1, 1, len(sizes), len(strides))},
        )


@irdl_op_definition
class OutputOp(_LayoutOp):
    """result = a fresh tensor of the caller's allocator, which no later call writes."""

    name = "dlcb.host.output"
    traits = traits_def(MemoryAllocEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    sizes = var_operand_def(index)
    strides = var_operand_def(index)
    dtype = prop_def()
    result = result_def(TENSOR)

    def verify_(self) -> None:
        self.verify_layout(self.sizes, self.strides)
        check_dtype(self.dtype, self.name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_layout(printer, self.sizes, self.strides)
        printer.print_string(" : ")
        print_dtype(printer, self.dtype)

    @classmethod
    def parse(cls, parser: Parser) -> OutputOp:
        sizes, strides = parse_layout(parser)
        parser.parse_punctuation(":")
        return cls.make(sizes, strides, parse_dtype(parser))

    @classmethod
    def make(cls, sizes: Sequence[SSAValue], strides: Sequence[SSAValue], dtype: Attribute) -> OutputOp:
        return cls.create(
            operands=[*sizes, *strides],
            result_types=[TENSOR],
            properties={"dtype": dtype, "operandSegmentSizes": segments(len(sizes), len(strides))},
        )


@irdl_op_definition
class ViewOp(_LayoutOp):
    """result = the memory of the source with other sizes and strides, `offset` elements after its first."""

    name = "dlcb.host.view"
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    source = operand_def(TENSOR)
    offset = operand_def(index)
    sizes = var_operand_def(index)
    strides = var_operand_def(index)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        self.verify_layout(self.sizes, self.strides)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        printer.print_string(", ")
        printer.print_ssa_value(self.offset)
        printer.print_string(" ")
        print_layout(printer, self.sizes, self.strides)

    @classmethod
    def parse(cls, parser: Parser) -> ViewOp:
        source = parse_operand(parser, TENSOR)
        parser.parse_punctuation(",")
        offset = parse_operand(parser, index)
        return cls.make(source, offset, *parse_layout(parser))

    @classmethod
    def make(cls, source: SSAValue, offset: SSAValue, sizes: Sequence[SSAValue], strides: Sequence[SSAValue]) -> ViewOp:
        return cls.create(
            operands=[source, offset, *sizes, *strides],
            result_types=[TENSOR],
            properties={"operandSegmentSizes": segments(1, 1, len(sizes), len(strides))},
        )


def memory_of(value: SSAValue) -> Operation | Block:
    """The owner of the memory that a tensor lies in: views looked through."""
    owner = value.owner
    while isinstance(owner, ViewOp):
        owner = owner.source.owner
    return owner
