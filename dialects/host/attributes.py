"""Types of `dlcb.host`, and the attributes that describe a program's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.types import NAMES, TYPE_NAME


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """A tensor at launch time: an address with sizes, strides and a dtype that only the host program's run knows."""

    name = "dlcb.host.tensor"


@irdl_attr_definition
class ArenaType(ParametrizedAttribute, TypeAttribute):
    """The one allocation of a call, which buffers are cut from."""

    name = "dlcb.host.arena"


def print_dtype(printer: Printer, dtype: Attribute) -> None:
    printer.print_string(TYPE_NAME[dtype])


def parse_dtype(parser: AttrParser) -> Attribute:
    start = parser.pos
    name = parser.parse_identifier("an element type")
    if name not in NAMES:
        parser.raise_error(f"expected an element type, one of {', '.join(NAMES)}; got {name}", start, parser.pos)
    return NAMES[name]


def check_dtype(dtype: Attribute, owner: str) -> None:
    if dtype not in TYPE_NAME:
        raise VerifyException(f"{owner}: element type must be one of {', '.join(NAMES)}, got {dtype}")


def parse_integers(parser: AttrParser) -> ArrayAttr[IntAttr]:
    integers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr([IntAttr(i) for i in integers])


@lru_cache(maxsize=4096)
def integers_attr(values: tuple[int, ...]) -> ArrayAttr[IntAttr]:
    return ArrayAttr(map(IntAttr, values))


def integers_of(attributes: Iterable[Attribute]) -> tuple[int, ...]:
    return tuple([cast(IntAttr, a).data for a in attributes])


class _ArgumentAttr(ParametrizedAttribute):
    """One argument of a program. Inside the program's header it is printed without the attribute's name."""

    KEYWORD: ClassVar[str]

    @property
    def argument_name(self) -> str:
        raise NotImplementedError

    def print_body(self, printer: Printer) -> None:
        raise NotImplementedError

    @classmethod
    def parse_body(cls, parser: AttrParser) -> Sequence[Attribute]:
        raise NotImplementedError

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return cls.parse_body(parser)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            self.print_body(printer)


@irdl_attr_definition
class InputAttr(_ArgumentAttr):
    """A tensor that the caller passes: `input "x" f32 rank 3`; `updated` when the program writes it in place."""

    name = "dlcb.host.input"
    KEYWORD: ClassVar[str] = "input"
    label: StringAttr
    dtype: Attribute
    rank: IntAttr
    updated: IntAttr

    @staticmethod
    def make(name: str, dtype: Attribute, rank: int, updated: bool = False) -> InputAttr:
        return InputAttr(StringAttr(name), dtype, IntAttr(rank), IntAttr(int(updated)))

    @property
    def argument_name(self) -> str:
        return self.label.data

    @property
    def is_updated(self) -> bool:
        return bool(self.updated.data)

    def verify(self) -> None:
        check_dtype(self.dtype, f"input {self.label.data}")
        if self.rank.data < 0:
            raise VerifyException(f"input {self.label.data}: rank must not be negative, got {self.rank.data}")

    def print_body(self, printer: Printer) -> None:
        printer.print_string_literal(self.label.data)
        printer.print_string(f" {TYPE_NAME[self.dtype]} rank {self.rank.data}")
        if self.is_updated:
            printer.print_string(" updated")

    @classmethod
    def parse_body(cls, parser: AttrParser) -> Sequence[Attribute]:
        label = StringAttr(parser.parse_str_literal())
        dtype = parse_dtype(parser)
        parser.parse_keyword("rank")
        rank = IntAttr(parser.parse_integer())
        updated = parser.parse_optional_keyword("updated") is not None
        return [label, dtype, rank, IntAttr(int(updated))]


@irdl_attr_definition
class WeightAttr(_ArgumentAttr):
    """A tensor bound once by its name: `weight "w" f32 [8, 4] strides [4, 1]`. Its layout is part of the program."""

    name = "dlcb.host.weight_argument"
    KEYWORD: ClassVar[str] = "weight"
    label: StringAttr
    dtype: Attribute
    shape: ArrayAttr[IntAttr]
    strides: ArrayAttr[IntAttr]

    @staticmethod
    def make(name: str, dtype: Attribute, shape: Sequence[int], strides: Sequence[int]) -> WeightAttr:
        return WeightAttr(StringAttr(name), dtype, integers_attr(tuple(shape)), integers_attr(tuple(strides)))

    @property
    def argument_name(self) -> str:
        return self.label.data

    def verify(self) -> None:
        check_dtype(self.dtype, f"weight {self.label.data}")
        if len(self.shape) != len(self.strides):
            raise VerifyException(f"weight {self.label.data}: {len(self.shape)} sizes but {len(self.strides)} strides")
        if any(s.data < 0 for s in (*self.shape.data, *self.strides.data)):
            raise VerifyException(f"weight {self.label.data}: sizes and strides must not be negative")

    def print_body(self, printer: Printer) -> None:
        printer.print_string_literal(self.label.data)
        sizes, strides = list(integers_of(self.shape)), list(integers_of(self.strides))
        printer.print_string(f" {TYPE_NAME[self.dtype]} {sizes} strides {strides}")

    @classmethod
    def parse_body(cls, parser: AttrParser) -> Sequence[Attribute]:
        label = StringAttr(parser.parse_str_literal())
        dtype = parse_dtype(parser)
        shape = parse_integers(parser)
        parser.parse_keyword("strides")
        return [label, dtype, shape, parse_integers(parser)]


@irdl_attr_definition
class IntegerArgumentAttr(_ArgumentAttr):
    """An integer that the caller passes: `int "k"`."""

    name = "dlcb.host.integer_argument"
    KEYWORD: ClassVar[str] = "int"
    label: StringAttr

    @staticmethod
    def make(name: str) -> IntegerArgumentAttr:
        return IntegerArgumentAttr(StringAttr(name))

    @property
    def argument_name(self) -> str:
        return self.label.data

    def print_body(self, printer: Printer) -> None:
        printer.print_string_literal(self.label.data)

    @classmethod
    def parse_body(cls, parser: AttrParser) -> Sequence[Attribute]:
        return [StringAttr(parser.parse_str_literal())]


ArgumentAttr: TypeAlias = InputAttr | WeightAttr | IntegerArgumentAttr
ARGUMENTS: dict[str, type[ArgumentAttr]] = {a.KEYWORD: a for a in (InputAttr, WeightAttr, IntegerArgumentAttr)}


def print_argument(printer: Printer, argument: ArgumentAttr) -> None:
    printer.print_string(f"{argument.KEYWORD} ")
    argument.print_body(printer)


def parse_argument(parser: AttrParser) -> ArgumentAttr:
    start = parser.pos
    keyword = parser.parse_identifier("an argument: input, weight or int")
    if keyword not in ARGUMENTS:
        parser.raise_error(f"expected input, weight or int; got {keyword}", start, parser.pos)
    return ARGUMENTS[keyword].new(ARGUMENTS[keyword].parse_body(parser))


ATTRS: list[type[Attribute]] = [TensorType, ArenaType, InputAttr, WeightAttr, IntegerArgumentAttr]
