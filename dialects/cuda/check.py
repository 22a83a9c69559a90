"""Conditions that must hold."""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.cuda import syntax
from dlcb.dialects.cuda.base import CudaOp
from dlcb.dialects.cuda.verify import verify_integer
from dlcb.dialects.types import INTEGERS, i1


@irdl_op_definition
class CheckOp(CudaOp):
    """Where the condition does not hold, the launch fails: `check 0 %holds, %value, %size`. On the CPU the number, the
    value and the size are kept for the caller, and the thread goes on; on the GPU an assertion fails, as in eager."""

    name = "dlcb.cuda.check"
    number = prop_def(IntAttr)
    holds = operand_def(i1)
    value = operand_def()
    size = operand_def()
    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> CheckOp:
        number = parser.parse_integer(allow_boolean=False)
        return cls.create(
            operands=syntax.parse_values(parser),
            properties={"number": IntAttr(number)},
            attributes=syntax.parse_attributes(parser),
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.number.data}")
        syntax.print_values(printer, self.operands)
        syntax.print_attributes(printer, self.attributes)

    def verify_(self) -> None:
        if self.number.data < 0:
            raise VerifyException(f"number is {self.number.data}, expected 0 or more")
        if self.value.type not in INTEGERS:
            raise VerifyException(f"value is {self.value.type}, expected an integer")
        verify_integer("size", self.size)
