"""Ops of `dlcb.cuda` that say what runs and when: kernels, branches, loops, and where threads meet."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntAttr, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Block, Region
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.cuda import syntax
from dlcb.dialects.cuda.base import CudaOp
from dlcb.dialects.cuda.memory import SharedOp
from dlcb.dialects.cuda.phases import WARP, verify_phases
from dlcb.dialects.cuda.types import LocalType, PtrType
from dlcb.dialects.cuda.verify import verify_integer, verify_memory, verify_same
from dlcb.dialects.types import BYTES, i1

MAX_THREADS = 1024
MAX_SHARED_BYTES = 48 * 1024


@irdl_op_definition
class KernelOp(QuickOp):
    """One kernel: runs its body for each thread of each block. Parameters are `ptr`s and numbers."""

    name = "dlcb.cuda.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    threads = prop_def(IntAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), NoTerminator(), IsolatedFromAbove())

    @staticmethod
    def build_from(name: str, threads: int, body: Region) -> KernelOp:
        return KernelOp.create(properties={"sym_name": StringAttr(name), "threads": IntAttr(threads)}, regions=(body,))

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name().data
        arguments = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
        parser.parse_keyword("threads")
        threads = parser.parse_integer(allow_boolean=False, allow_negative=False)
        attributes = syntax.parse_attributes(parser)
        kernel = cls.build_from(name, threads, syntax.parse_body(parser, arguments))
        kernel.attributes |= attributes
        return kernel

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(f" threads {self.threads.data}")
        syntax.print_attributes(printer, self.attributes)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        name, threads = self.sym_name.data, self.threads.data
        if not (name.isidentifier() and name.isascii()):
            raise VerifyException(f"kernel name {name} is no name in C")
        if not 1 <= threads <= MAX_THREADS:
            raise VerifyException(f"threads is {threads}, expected 1 to {MAX_THREADS}")
        body = self.body.block
        _verify_parameters(body)
        _verify_shared_bytes(body)
        verify_phases(body, threads)


def _verify_parameters(body: Block) -> None:
    if not body.args:
        raise VerifyException("a kernel has at least one parameter")
    for argument in body.args:
        if not isinstance(argument.type, PtrType) and argument.type not in BYTES:
            raise VerifyException(
                f"parameter {argument.index} is {argument.type}, expected !dlcb.cuda.ptr or an element type"
            )


def _verify_shared_bytes(body: Block) -> None:
    used = sum(op.result.type.bytes for op in body.ops if isinstance(op, SharedOp))
    if used > MAX_SHARED_BYTES:
        raise VerifyException(f"shared arrays take {used} bytes, the limit is {MAX_SHARED_BYTES}")


@irdl_op_definition
class IfOp(CudaOp):
    """Runs the body where condition holds. `uniform`: all threads of the block agree, so the body may hold barriers."""

    name = "dlcb.cuda.if"
    condition = operand_def(i1)
    uniform = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        return cls.create(
            operands=(syntax.parse_value(parser),),
            properties=syntax.parse_flags(parser, ("uniform",)),
            attributes=syntax.parse_attributes(parser),
            regions=(syntax.parse_body(parser),),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_flags(printer, {"uniform": self.uniform is not None})
        syntax.print_attributes(printer, self.attributes)
        syntax.print_body(printer, self.body)


_FLAGS = ("uniform", "unroll", "rolled")


@irdl_op_definition
class ForOp(CudaOp):
    """Runs the body for induction = lower, lower + step, … below upper; step > 0.

    `uniform`: all threads of the block agree on the bounds, so the body may hold barriers.
    `unroll`: the compiler unrolls it, so arrays that it indexes stay in registers.
    `rolled`: it does not, which takes it less time.
    """

    name = "dlcb.cuda.for"
    lower = operand_def()
    upper = operand_def()
    step = operand_def()
    uniform = opt_prop_def(UnitAttr)
    unroll = opt_prop_def(UnitAttr)
    rolled = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        induction = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        lower = syntax.parse_value(parser)
        parser.parse_keyword("to")
        upper = syntax.parse_value(parser)
        parser.parse_keyword("step")
        step = syntax.parse_value(parser)
        return cls.create(
            operands=(lower, upper, step),
            properties=syntax.parse_flags(parser, _FLAGS),
            attributes=syntax.parse_attributes(parser),
            regions=(syntax.parse_body(parser, (induction.resolve(lower.type),)),),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.body.block.args[0])
        for word, value in ((" = ", self.lower), (" to ", self.upper), (" step ", self.step)):
            printer.print_string(word)
            printer.print_operand(value)
        syntax.print_flags(printer, {flag: flag in self.properties for flag in _FLAGS})
        syntax.print_attributes(printer, self.attributes)
        syntax.print_body(printer, self.body)

    def verify_(self) -> None:
        if self.unroll is not None and self.rolled is not None:
            raise VerifyException("a loop is unrolled or stays rolled, not both")
        verify_integer("lower", self.lower)
        verify_same("upper", self.upper.type, self.lower.type)
        verify_same("step", self.step.type, self.lower.type)
        arguments = self.body.block.args
        if len(arguments) != 1:
            raise VerifyException(f"the body takes one value, the induction; it has {len(arguments)}")
        verify_same("induction", arguments[0].type, self.lower.type)


@irdl_op_definition
class BarrierOp(CudaOp):
    """No thread of the block goes on before all are here; what they wrote before it is seen after it."""

    name = "dlcb.cuda.barrier"
    ENDS_PHASE: ClassVar[bool] = True
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleXorOp(CudaOp):
    """target[target_index] = source[source_index] of the thread whose number differs in the bits of mask, 1 … 31.

    Both are locals; the indices are uniform; the kernel's threads are whole warps. It orders a warp, not the block.
    """

    name = "dlcb.cuda.shuffle_xor"
    ENDS_PHASE: ClassVar[bool] = True
    source = operand_def(LocalType)
    source_index = operand_def()
    target = operand_def(LocalType)
    target_index = operand_def()
    mask = prop_def(IntAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleXorOp:
        source = syntax.parse_element(parser)
        parser.parse_punctuation(",")
        target = syntax.parse_element(parser)
        parser.parse_punctuation(",")
        mask = parser.parse_integer(allow_boolean=False)
        return cls.create(
            operands=(*source, *target),
            properties={"mask": IntAttr(mask)},
            attributes=syntax.parse_attributes(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        syntax.print_element(printer, self.source, self.source_index)
        printer.print_string(", ")
        syntax.print_element(printer, self.target, self.target_index)
        printer.print_string(f", {self.mask.data}")
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        verify_same("target", verify_memory(self.target, LocalType), verify_memory(self.source, LocalType))
        verify_integer("source index", self.source_index)
        verify_integer("target index", self.target_index)
        if not 0 < self.mask.data < WARP:
            raise VerifyException(f"mask is {self.mask.data}, expected 1 to {WARP - 1}")
