"""The one place that reaches past xDSL's public API; a new xDSL version is checked here first."""

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from functools import cache
from io import StringIO
from typing import Self, cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NameLoc,
    UnknownLoc,
)
from xdsl.ir import (
    Attribute,
    AttributeInvT,
    Block,
    BlockArgument,
    Operation,
    OpResult,
    Region,
    SSAValue,
    SSAValues,
    Use,
)
from xdsl.irdl import IRDLOperation, OptionalDef
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, UnregisteredConstructException, VerifyException
from xdsl.utils.lexer import Span

__all__ = [
    "UNKNOWN_LOC",
    "LocatedPrinter",
    "QuickOp",
    "SpanParser",
    "append_op",
    "append_operands",
    "entries",
    "has_location",
    "int_of",
    "keep_arguments",
    "op_text",
    "set_type",
    "source_line",
    "to_text",
]


@cache
def _defaults(kind: type[IRDLOperation]) -> tuple[tuple[str, Attribute], ...]:
    """The properties that an op of this class has unless given."""
    definition = kind.get_irdl_definition()
    if any(not isinstance(a, OptionalDef) and a.default_value is not None for a in definition.attributes.values()):
        raise TypeError(f"{kind.name}: attributes with default values are not supported; use properties")
    return tuple(
        (name, prop.default_value)
        for name, prop in definition.properties.items()
        if not isinstance(prop, OptionalDef) and prop.default_value is not None
    )


class _OpClass(ABCMeta):
    """The class of op classes: `isinstance` asks for no virtual subclasses, of which ops have none."""

    __instancecheck__ = type.__instancecheck__


class QuickOp(IRDLOperation, metaclass=_OpClass):
    """The base of all our ops: `create` means what it means for every op of xDSL, and takes a third of the time.

    A model becomes thousands of ops, and making them is most of what compiling it costs.
    """

    __hash__ = object.__hash__
    """By identity, as xDSL's own, but without a call of Python."""

    @classmethod
    def create(
        cls,
        *,
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = {},
        attributes: Mapping[str, Attribute] = {},
        location: LocationAttr | None = None,
        successors: Sequence[Block] = (),
        regions: Sequence[Region] = (),
    ) -> Self:
        op = cls.__new__(cls)
        if operands:
            uses: list[Use] = []
            for index, operand in enumerate(operands):
                use = Use(op, index, None, first := operand.first_use)
                if first is not None:
                    first._prev_use = use  # pyright: ignore[reportPrivateUsage]
                operand.first_use = use
                uses.append(use)
            op._operands = SSAValues(operands)  # pyright: ignore[reportPrivateUsage]
            op._operand_uses = tuple(uses)  # pyright: ignore[reportPrivateUsage]
        if result_types:
            op.results = SSAValues([OpResult(kind, op, index) for index, kind in enumerate(result_types)])
        op.properties = dict(properties)
        for name, value in _defaults(cls):
            op.properties.setdefault(name, value)
        op.attributes = dict(attributes)
        op.location = UNKNOWN_LOC if location is None else location
        if successors:
            op.successors = successors
        for region in regions:
            op.add_region(region)
        return op


def append_op(block: Block, op: Operation) -> None:
    """Adds an op just made, which is in no block and holds none that the block is in, at the block's end."""
    last = block.last_op
    op.parent = block
    if last is None:
        block._first_op = op  # pyright: ignore[reportPrivateUsage]
    else:
        last._next_op = op  # pyright: ignore[reportPrivateUsage]
        op._prev_op = last  # pyright: ignore[reportPrivateUsage]
    block._last_op = op  # pyright: ignore[reportPrivateUsage]


def has_location(node: Operation | BlockArgument) -> bool:
    return not isinstance(node.location, UnknownLoc)


def _location_text(location: Attribute) -> str | None:
    match location:
        case FileLineColLoc():
            return f"{location.filename.data}:{location.line.data}"
        case FusedLoc(locations=ArrayAttr(data=parts)):
            return next((text for part in parts if (text := _location_text(part))), None)
        case CallSiteLoc():
            return _location_text(location.callee)
        case NameLoc():
            return _location_text(location.location)
        case _:
            return None


def source_line(node: Operation | BlockArgument) -> str | None:
    """`model.py:12`, the innermost place that the node's location names; None where it names none."""
    return _location_text(node.location)


def entries(attribute: Attribute) -> tuple[Attribute, ...]:
    """What an array attribute holds; `isinstance` alone would leave its type unknown."""
    assert isinstance(attribute, ArrayAttr)
    return cast("ArrayAttr[Attribute]", attribute).data


def int_of(attribute: Attribute) -> int:
    """The integer of an `IntAttr`; as for `entries`."""
    assert isinstance(attribute, IntAttr)
    return cast("IntAttr", attribute).data


def set_type(value: SSAValue, type: Attribute) -> None:
    """Gives the value another type in place; xDSL's rewriter makes a new value and visits all uses."""
    value._type = type  # pyright: ignore[reportPrivateUsage]


def append_operands(op: Operation, values: Sequence[SSAValue]) -> None:
    """Adds operands at the end; setting `op.operands` would remove and add every use again."""
    known = op._operands  # pyright: ignore[reportPrivateUsage]
    uses = [Use(op, len(known) + i) for i in range(len(values))]
    for value, use in zip(values, uses, strict=True):
        value.add_use(use)
    op._operands = type(known)((*known, *values))  # pyright: ignore[reportPrivateUsage]
    op._operand_uses = (*op._operand_uses, *uses)  # pyright: ignore[reportPrivateUsage]


def keep_arguments(block: Block, kept: Sequence[int]) -> None:
    """Drops all other arguments of the block, which must have no uses, in one step."""
    arguments = tuple([block.args[i] for i in kept])
    for index, argument in enumerate(arguments):
        argument.index = index
    block._args = arguments  # pyright: ignore[reportPrivateUsage]


class LocatedPrinter(Printer):
    """Prints the locations that are known, and nothing where xDSL would print `loc(unknown)`."""

    def print_op(self, op: Operation) -> None:
        outer = self.print_debuginfo
        self.print_debuginfo = has_location(op)
        super().print_op(op)
        self.print_debuginfo = outer

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        outer = self.print_debuginfo
        self.print_debuginfo = has_location(arg)
        super().print_block_argument(arg, print_type)
        self.print_debuginfo = outer


def to_text(op: Operation, *, locations: bool = True) -> str:
    """The IR as text that parses back; with `locations`, source lines too."""
    stream = StringIO()
    (LocatedPrinter if locations else Printer)(stream=stream).print_op(op)
    return stream.getvalue() + "\n"


def op_text(op: Operation) -> str:
    """The op's first line, without the bodies of its regions."""
    return str(op).split("\n", 1)[0]


class SpanParser(Parser):
    """A parser that knows where each op stands in the text, and gives every error a place in it."""

    starts: dict[Operation, int]
    first_uses: dict[str, Span]

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        self.starts = {}
        self.first_uses = {}
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError as error:
            undefined = [name for name in self.forward_ssa_references if name in self.first_uses]
            if undefined and error.msg.startswith("values used but not defined"):
                name = undefined[0]
                raise ParseError(self.first_uses[name], f"%{name} is used, but nothing defines it") from error
            raise

    def parse_operation(self) -> Operation:
        start = self.pos
        try:
            op = super().parse_operation()
        except (VerifyException, UnregisteredConstructException, ValueError) as error:
            raise ParseError(self.line_span(start), str(error)) from error
        self.starts[op] = start
        return op

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        if operand.operand_name not in self.ssa_values:
            self.first_uses.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:
            start = self.lexer.input.content.rfind(name, 0, self.pos)
            raise ParseError(Span(start, start + len(name), self.lexer.input), f"unknown op '{name}'") from error

    def line_span(self, start: int) -> Span:
        """The text from `start` to the end of its line."""
        return Span(start, self.lexer.input.get_end_of_line(start), self.lexer.input)

    def span_of(self, op: Operation) -> Span | None:
        """Where the op, or the nearest op around it that was parsed, stands; None for an op of a pass's making."""
        start = self.starts.get(op)
        return None if start is None else self.line_span(start)
