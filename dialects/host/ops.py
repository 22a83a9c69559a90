"""The ops of `dlcb.host`: a program that runs once for each new combination of sizes and yields what a call has to do.

Integers are `index`, conditions `i1`, tensors `!dlcb.host.tensor`. Sizes and strides count elements, the offset of
a buffer bytes. The program's arguments are named in its header; ops refer to them by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import EqAttrConstraint, irdl_op_definition, prop_def, region_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.host.attributes import ATTRS, ArgumentAttr, parse_argument, print_argument
from dlcb.dialects.host.facts import (
    AlignedOp,
    ArgumentOp,
    ConstantOp,
    IntegerOp,
    NamesArgument,
    SizeOp,
    StrideOp,
    WeightOp,
)
from dlcb.dialects.host.integers import INTEGER_OPS, HostOp
from dlcb.dialects.host.memory import ArenaOp, BufferOp, OutputOp, ViewOp, memory_of
from dlcb.dialects.host.syntax import TENSOR
from dlcb.dialects.host.work import CheckOp, LaunchOp, LibraryOp
from dlcb.dialects.types import index


@irdl_op_definition
class ReturnOp(HostOp):
    """The results of the call: fresh outputs, results of library calls, arguments, views of these, and integers.
    Nothing in the arena, for the arena ends with the call."""

    name = "dlcb.host.return"
    traits = traits_def(IsTerminator())
    values = var_operand_def(EqAttrConstraint(TENSOR) | EqAttrConstraint(index))

    def verify_(self) -> None:
        for value in self.values:
            if isinstance(memory_of(value), BufferOp):
                raise VerifyException(f"{self.name}: a result must not lie in the arena")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.values, lambda value: _print_result(printer, value))

    @classmethod
    def parse(cls, parser: Parser) -> ReturnOp:
        values = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_result(parser))
        return cls.create(operands=values)


@irdl_op_definition
class ProgramOp(HostOp):
    """The launch-time program of one function.
    ```
    dlcb.host.program @main(input "x" f32 rank 2, int "k") -> ("y") { … dlcb.host.return (%y) }
    ```
    The results of `@weights` are named as the weights that `@main` takes; else names may be left out.
    """

    name = "dlcb.host.program"
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())
    sym_name = prop_def(SymbolNameConstraint())
    arguments = prop_def(ArrayAttr[Attribute])
    result_names = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")

    @property
    def argument_list(self) -> tuple[ArgumentAttr, ...]:
        return tuple(a for a in self.arguments.data if isinstance(a, ArgumentAttr))

    def verify_(self) -> None:
        names = self._verified_arguments()
        arenas = 0
        for op in self.body.block.ops:
            if not isinstance(op, HostOp):
                raise VerifyException(f"{self.name}: {op.name} is not an op of dlcb.host")
            if isinstance(op, NamesArgument):
                op.verify_against(names)
            arenas += isinstance(op, ArenaOp)
        if arenas > 1:
            raise VerifyException(f"{self.name}: at most one arena, got {arenas}")
        self._verify_results()

    def _verified_arguments(self) -> dict[str, ArgumentAttr]:
        names: dict[str, ArgumentAttr] = {}
        for argument in self.arguments.data:
            if not isinstance(argument, ArgumentAttr):
                raise VerifyException(f"{self.name}: an argument is an input, a weight or an int, got {argument}")
            if argument.argument_name in names:
                raise VerifyException(f"{self.name}: two arguments are called '{argument.argument_name}'")
            names[argument.argument_name] = argument
        return names

    def _verify_results(self) -> None:
        names, last = self.result_names, self.body.block.last_op
        if isinstance(last, ReturnOp) and names.data and len(names) != len(last.values):
            raise VerifyException(f"{self.name}: {len(names)} result names but {len(last.values)} results")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.argument_list, lambda argument: print_argument(printer, argument))
        if self.result_names.data:
            printer.print_string(" -> ")
            with printer.in_parens():
                printer.print_list(self.result_names.data, lambda name: printer.print_string_literal(name.data))
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name = parser.parse_symbol_name().data
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_argument(parser))
        results: list[str] = []
        if parser.parse_optional_punctuation("->"):
            results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_str_literal)
        return cls.make(name, arguments, results, parser.parse_region())

    @classmethod
    def make(cls, name: str, arguments: Sequence[ArgumentAttr], result_names: Sequence[str], body: Region) -> ProgramOp:
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "arguments": ArrayAttr(arguments),
            "result_names": ArrayAttr([StringAttr(n) for n in result_names]),
        }
        return cls.create(properties=properties, regions=[body])


def _print_result(printer: Printer, value: SSAValue) -> None:
    printer.print_ssa_value(value)
    if value.type == index:
        printer.print_string(" : index")


def _parse_result(parser: Parser) -> SSAValue:
    operand = parser.parse_unresolved_operand()
    if parser.parse_optional_punctuation(":") is None:
        return parser.resolve_operand(operand, TENSOR)
    return parser.resolve_operand(operand, parser.parse_type())


OPS: list[type[Operation]] = [
    ProgramOp, SizeOp, StrideOp, AlignedOp, IntegerOp, ArgumentOp, WeightOp, ConstantOp, CheckOp, ArenaOp, BufferOp,
    OutputOp, ViewOp, LaunchOp, LibraryOp, ReturnOp, *INTEGER_OPS,
]  # fmt: skip

__all__ = [
    "ATTRS",
    "OPS",
    "ProgramOp",
    "ReturnOp",
]
