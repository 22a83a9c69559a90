"""What every op of `dlcb.cuda` answers about phases, and the two shapes of assembly that most ops have."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.parser import Parser
from xdsl.printer import Printer

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.cuda import syntax


class CudaOp(QuickOp):
    """An op inside a kernel."""

    AGREES_WITH_OPERANDS: ClassVar[bool] = False
    """All threads of a block get the same result where they have the same operands."""
    ENDS_PHASE: ClassVar[bool] = False
    """The threads of a block (or warp) meet here."""
    DECLARES: ClassVar[bool] = False
    """It names an array for the whole kernel, so it stands in the kernel's own body."""


class ValuesOp(CudaOp):
    """Written as `%a, %b : i32`: the operands, then the types of the results if there are any."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.create(
            operands=syntax.parse_values(parser),
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        syntax.print_values(printer, self.operands)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_result_types(printer, self.result_types)


class IndexedOp(CudaOp):
    """Written as `%value, %array[%index] : f32`: the last operand is the index, the one before it the array."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = syntax.parse_values(parser)
        operands.append(syntax.parse_index(parser))
        return cls.create(
            operands=operands,
            attributes=syntax.parse_attributes(parser),
            result_types=syntax.parse_result_types(parser),
        )

    def print(self, printer: Printer) -> None:
        *values, index = self.operands
        syntax.print_values(printer, values)
        syntax.print_index(printer, index)
        syntax.print_attributes(printer, self.attributes)
        syntax.print_result_types(printer, self.result_types)
