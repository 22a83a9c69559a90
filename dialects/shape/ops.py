"""Ops of `dlcb.shape`: the sizes of one function, what defines them, and what must hold between them.

A `system` has one block of SSA values of type `index`. Passes work on its content as plain Python, `system.System`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Literal, Self, cast

from xdsl.dialects.builtin import DictionaryAttr, IntAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.shape.expr import FUNCTIONS
from dlcb.dialects.shape.requirement import REQUIREMENTS
from dlcb.dialects.shape.types import ListType
from dlcb.dialects.types import index

SourceKind = Literal["size", "stride", "int"]
_SOURCES: tuple[SourceKind, ...] = ("size", "stride", "int")


def parse_value(parser: Parser) -> SSAValue:
    """A value of its type; one that is not defined before is taken for a number."""
    operand = parser.parse_unresolved_operand()
    defined = parser.ssa_values.get(operand.operand_name)
    return parser.resolve_operand(operand, index if defined is None else defined[operand.index].type)


def parse_values(parser: Parser) -> list[SSAValue]:
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_value(parser))


def print_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    printer.print_list(values, printer.print_ssa_value)


def _print_string(printer: Printer, text: str) -> None:
    printer.print_string(" ")
    printer.print_string_literal(text)


@irdl_op_definition
class SystemOp(QuickOp):
    """All that is known of the sizes of the function of the same name.

    `traced` gives the value of each input symbol when the program was traced."""

    name = "dlcb.shape.system"

    function_name = prop_def(SymbolNameConstraint())
    traced = prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator())

    @classmethod
    def make(cls, name: str, traced: Mapping[str, int], ops: Sequence[Operation]) -> Self:
        sizes: dict[str, Attribute] = {symbol: IntAttr(value) for symbol, value in traced.items()}
        return cls.create(
            properties={"function_name": StringAttr(name), "traced": DictionaryAttr(sizes)},
            regions=[Region(Block(ops))],
        )

    @property
    def function(self) -> str:
        return self.function_name.data

    @property
    def traced_sizes(self) -> dict[str, int]:
        return {symbol: cast(IntAttr, value).data for symbol, value in self.traced.data.items()}

    def verify_(self) -> None:
        defined: set[str] = set()
        for op in self.body.block.ops:
            if not isinstance(op, SymbolOp | DefineOp | CalculationOp | ConstantOp | RequireOp):
                raise VerifyException(f"{op.name} can not stand in a {self.name}")
            if isinstance(op, SymbolOp | DefineOp):
                if op.symbol in defined:
                    raise VerifyException(f"symbol '{op.symbol}' is defined twice")
                defined.add(op.symbol)
        for symbol, value in self.traced.data.items():
            if symbol not in defined:
                raise VerifyException(f"a traced value for '{symbol}', which is no symbol of the system")
            if not isinstance(value, IntAttr):
                raise VerifyException(f"the traced value of '{symbol}' is {value}, expected an integer")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        traced: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("traced"):
            traced = dict(parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: _parse_traced(parser)))
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        return cls.create(properties={"function_name": name, "traced": DictionaryAttr(traced)}, regions=[region])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.function)
        if self.traced.data:
            printer.print_string(" traced {")
            printer.print_string(", ".join(f"{symbol} = {value}" for symbol, value in self.traced_sizes.items()))
            printer.print_string("}")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _parse_traced(parser: Parser) -> tuple[str, Attribute]:
    symbol = parser.parse_identifier()
    parser.parse_punctuation("=")
    return symbol, IntAttr(parser.parse_integer())


@irdl_op_definition
class SymbolOp(QuickOp):
    """A symbol whose value an input brings: `size ARG DIM`, `stride ARG DIM` (in elements) or `int ARG`."""

    name = "dlcb.shape.symbol"

    symbol_name = prop_def(StringAttr)
    kind = prop_def(StringAttr)
    argument = prop_def(StringAttr)
    dim = opt_prop_def(IntAttr)
    result = result_def(index)
    traits = traits_def(HasParent(SystemOp))

    @classmethod
    def make(cls, symbol: str, kind: str, argument: str, dim: int | None) -> Self:
        properties: dict[str, Attribute] = {
            "symbol_name": StringAttr(symbol),
            "kind": StringAttr(kind),
            "argument": StringAttr(argument),
        }
        if dim is not None:
            properties["dim"] = IntAttr(dim)
        return cls.create(properties=properties, result_types=[index])

    @property
    def symbol(self) -> str:
        return self.symbol_name.data

    @property
    def source(self) -> tuple[SourceKind, str, int | None]:
        dim = None if self.dim is None else self.dim.data
        return cast(SourceKind, self.kind.data), self.argument.data, dim

    def verify_(self) -> None:
        kind, _, dim = self.source
        if kind not in _SOURCES:
            raise VerifyException(f"symbol '{self.symbol}' comes from a '{kind}', expected {', '.join(_SOURCES)}")
        if (dim is None) != (kind == "int"):
            raise VerifyException(f"symbol '{self.symbol}': {kind} with {'no dim' if dim is None else f'dim {dim}'}")
        if dim is not None and dim < 0:
            raise VerifyException(f"symbol '{self.symbol}': dim {dim} is negative")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        symbol = parser.parse_str_literal()
        kind = parser.parse_identifier()
        argument = parser.parse_str_literal()
        return cls.make(symbol, kind, argument, parser.parse_optional_integer(allow_boolean=False))

    def print(self, printer: Printer) -> None:
        kind, argument, dim = self.source
        _print_string(printer, self.symbol)
        printer.print_string(f" {kind}")
        _print_string(printer, argument)
        if dim is not None:
            printer.print_string(f" {dim}")


@irdl_op_definition
class ConstantOp(QuickOp):
    """An integer literal."""

    name = "dlcb.shape.constant"

    value = prop_def(IntAttr)
    result = result_def(index)
    traits = traits_def(Pure(), HasParent(SystemOp))

    @classmethod
    def make(cls, value: int) -> Self:
        return cls.create(properties={"value": IntAttr(value)}, result_types=[index])

    @property
    def number(self) -> int:
        return self.value.data

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.make(parser.parse_integer())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.number}")


@irdl_op_definition
class DefineOp(QuickOp):
    """The result is the symbol, whose value is that of the operand."""

    name = "dlcb.shape.define"

    symbol_name = prop_def(StringAttr)
    value = operand_def(index)
    result = result_def(index)
    traits = traits_def(HasParent(SystemOp))

    @classmethod
    def make(cls, symbol: str, value: SSAValue) -> Self:
        return cls.create(operands=[value], properties={"symbol_name": StringAttr(symbol)}, result_types=[index])

    @property
    def symbol(self) -> str:
        return self.symbol_name.data

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        symbol = parser.parse_str_literal()
        parser.parse_punctuation("=")
        return cls.make(symbol, parse_value(parser))

    def print(self, printer: Printer) -> None:
        _print_string(printer, self.symbol)
        printer.print_string(" = ")
        printer.print_ssa_value(self.operands[0])


@irdl_op_definition
class RequireOp(QuickOp):
    """What must hold when the program runs; `text` says who needs it: `linear: model.py:12`.

    Kinds: `eq ne lt le`, `divides` (the first divides the second), `broadcastable` (equal, or one is 1), `expandable`
    (equal, or the first is 1) have two operands, which for `eq` may be lists; `any_of` has any number of conditions, of
    which one must hold."""

    name = "dlcb.shape.require"

    kind_name = prop_def(StringAttr)
    message = prop_def(StringAttr)
    values = var_operand_def()
    traits = traits_def(HasParent(SystemOp))

    @classmethod
    def make(cls, kind: str, values: Sequence[SSAValue], text: str) -> Self:
        return cls.create(operands=values, properties={"kind_name": StringAttr(kind), "message": StringAttr(text)})

    @property
    def kind(self) -> str:
        return self.kind_name.data

    @property
    def text(self) -> str:
        return self.message.data

    def verify_(self) -> None:
        if self.kind not in REQUIREMENTS:
            raise VerifyException(f"a requirement '{self.kind}', expected one of {', '.join(REQUIREMENTS)}")
        count = len(self.operands)
        if self.kind != "any_of" and count != 2:
            raise VerifyException(f"{self.kind} has {count} operands, expected 2")
        if not count:
            raise VerifyException("any_of has no operands, expected at least 1")
        lists = [isinstance(value.type, ListType) for value in self.operands]
        if any(lists) and not (self.kind == "eq" and all(lists)):
            raise VerifyException(f"{self.kind} of a list; two lists can be eq, and nothing else")
        if any(not is_list and value.type != index for is_list, value in zip(lists, self.operands, strict=True)):
            raise VerifyException(f"{self.kind} of what is neither a size nor a list of sizes")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kind = parser.parse_identifier()
        return cls.make(kind, parse_values(parser), parser.parse_optional_str_literal() or "")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind} ")
        print_values(printer, self.operands)
        if self.text:
            _print_string(printer, self.text)


_ARITY: dict[str, int | None] = {
    "add": None,
    "mul": None,
    "minimum": None,
    "maximum": None,
    "logical_and": None,
    "logical_or": None,
    "logical_not": 1,
    "isqrt": 1,
    "select": 3,
    "scaled": 3,
}
"""The number of operands where it is not 2; None for two or more."""


class CalculationOp(QuickOp, ABC):
    """The one result is a number, or a list of them, that follows from the operands."""

    @classmethod
    def make(cls, values: Sequence[SSAValue]) -> Self:
        raise NotImplementedError(f"{cls.name} is not made of operands alone")

    @property
    def function(self) -> str:
        """The name in `expr.CALLS`, or `add`, `mul`."""
        return self.name.rpartition(".")[2]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.make(parse_values(parser))

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self.operands)


class FunctionOp(CalculationOp):
    """result = function(operands), on integers; `expr.FUNCTIONS` says what each computes. A condition is 0 or 1."""

    values = var_operand_def(index)
    result = result_def(index)
    traits = traits_def(Pure(), HasParent(SystemOp))

    @classmethod
    def make(cls, values: Sequence[SSAValue]) -> Self:
        return cls.create(operands=values, result_types=[index])

    def verify_(self) -> None:
        count, arity = len(self.operands), _ARITY.get(self.function, 2)
        if count != arity and (arity is not None or count < 2):
            raise VerifyException(f"{self.function} has {count} operands, expected {arity or 'two or more'}")


@irdl_op_definition
class ScaledOp(FunctionOp):
    """⌊x · f⌋ of x and the float f = num / den, the product in double precision; num and den are constants, den is
    positive."""

    name = "dlcb.shape.scaled"

    def verify_(self) -> None:
        super().verify_()
        for what, value in zip(("numerator", "denominator"), self.operands[1:], strict=True):
            if not isinstance(value.owner, ConstantOp):
                raise VerifyException(f"the {what} of scaled is not a constant")
            if what == "denominator" and value.owner.number <= 0:
                raise VerifyException(f"the denominator of scaled is {value.owner.number}, expected a positive one")


def _function_op(function: str) -> type[FunctionOp]:
    """The op class of a function that has no more to say than its name."""
    body: dict[str, object] = {"name": f"dlcb.shape.{function}", "__module__": __name__}
    return irdl_op_definition(type(f"{function.title().replace('_', '')}Op", (FunctionOp,), body))


FUNCTION_OPS: dict[str, type[FunctionOp]] = {
    function: ScaledOp if function == "scaled" else _function_op(function) for function in ("add", "mul", *FUNCTIONS)
}
"""The op of each function by its name in `Expr.op`."""
