"""What a call does: checks of its input, kernel launches, library calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.failure import FailuresAttr, verify_failures
from dlcb.dialects.host.attributes import check_dtype, integers_attr, integers_of, parse_dtype, print_dtype
from dlcb.dialects.host.integers import HostOp
from dlcb.dialects.host.syntax import TENSOR, parse_operand, parse_operands, print_operands, segments
from dlcb.dialects.types import i1, i32, i64, index

MAX_THREADS = 1024
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


@irdl_op_definition
class CheckOp(HostOp):
    """Before any launch: the condition holds, or the call fails with the text. `{0}`, `{1}` … are the operands."""

    name = "dlcb.host.check"
    condition = operand_def(i1)
    values = var_operand_def(index)
    text = prop_def(StringAttr)

    def verify_(self) -> None:
        for number in _PLACEHOLDER.findall(self.text.data):
            if int(number) >= len(self.values):
                raise VerifyException(
                    f"{self.name}: the text uses {{{number}}}, but there are {len(self.values)} operands"
                )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(", ")
        printer.print_string_literal(self.text.data)
        printer.print_string(" ")
        print_operands(printer, self.values, "()")

    @classmethod
    def parse(cls, parser: Parser) -> CheckOp:
        condition = parse_operand(parser, i1)
        parser.parse_punctuation(",")
        text = StringAttr(parser.parse_str_literal())
        values = parse_operands(parser, index, parser.Delimiter.PAREN)
        return cls.create(operands=[condition, *values], properties={"text": text})


@dataclass(frozen=True)
class Variant:
    """One compiled form of a kernel: its symbol, threads a block, when it fits, how many blocks, and its integers
    with their kernel types (i32 or i64)."""

    kernel: str
    threads: int
    condition: SSAValue
    blocks: SSAValue
    integers: Sequence[tuple[SSAValue, Attribute]]


@irdl_op_definition
class LaunchOp(HostOp):
    """Launch the first variant whose condition holds; nothing when its number of blocks is 0.

    A kernel's parameters are all its tensors (as addresses), then all its integers. The tensors are shared by the
    variants; each brings its own integers, because index width and division constants differ between them.
    ```
    dlcb.host.launch (%x, %o) [
      @k3_v4 threads 256 if %c0 blocks %b0 (%n : i32, %m : i32),
      @k3 threads 256 if %true blocks %b1 (%n : i64)]
    ```
    `failures [["IndexError", "index {0} …"], …]` at the end: what the kernel's checks say, by their numbers.
    """

    name = "dlcb.host.launch"
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    tensors = var_operand_def(TENSOR)
    conditions = var_operand_def(i1)
    blocks = var_operand_def(index)
    integers = var_operand_def(index)
    kernels = prop_def(ArrayAttr[SymbolRefAttr].constr(FlatSymbolRefAttrConstr))
    threads = prop_def(ArrayAttr[IntAttr])
    integer_types = prop_def(ArrayAttr[ArrayAttr[Attribute]])
    failures = opt_prop_def(ArrayAttr[ArrayAttr[StringAttr]])

    def variants(self) -> Iterator[Variant]:
        start = 0
        integers = tuple(self.integers)
        for kernel, threads, condition, blocks, types in zip(
            self.kernels.data, self.threads.data, self.conditions, self.blocks, self.integer_types.data, strict=True
        ):
            mine = integers[start : start + len(types)]
            start += len(types)
            yield Variant(
                kernel.root_reference.data, threads.data, condition, blocks, tuple(zip(mine, types.data, strict=True))
            )

    def verify_(self) -> None:
        count = len(self.kernels)
        if not count:
            raise VerifyException(f"{self.name}: a launch has at least one variant")
        for what, found in (
            ("threads", self.threads), ("conditions", self.conditions), ("blocks", self.blocks),
            ("integer types", self.integer_types),
        ):  # fmt: skip
            if len(found) != count:
                raise VerifyException(f"{self.name}: {count} variants but {len(found)} {what}")
        types = [t for own in self.integer_types.data for t in own.data]
        if len(types) != len(self.integers):
            raise VerifyException(f"{self.name}: {len(self.integers)} integers but {len(types)} integer types")
        for type in types:
            if type not in (i32, i64):
                raise VerifyException(f"{self.name}: an integer is passed as i32 or i64, got {type}")
        for threads in integers_of(self.threads):
            if not 1 <= threads <= MAX_THREADS:
                raise VerifyException(f"{self.name}: threads must be between 1 and {MAX_THREADS}, got {threads}")
        verify_failures(self.name, self.failures)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_operands(printer, self.tensors, "()")
        printer.print_string(" [")
        with printer.indented():
            for number, variant in enumerate(self.variants()):
                if number:
                    printer.print_string(",")
                printer.print_string("\n")
                _print_variant(printer, variant)
        printer.print_string("]")
        if self.failures is not None:
            printer.print_string(" failures ")
            printer.print_attribute(self.failures)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        tensors = parse_operands(parser, TENSOR, parser.Delimiter.PAREN)
        variants = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_variant(parser))
        launch = cls.make(tensors, variants)
        if parser.parse_optional_keyword("failures") is not None:
            launch.properties["failures"] = parser.parse_attribute()
        return launch

    @classmethod
    def make(
        cls, tensors: Sequence[SSAValue], variants: Sequence[Variant], failures: FailuresAttr | None = None
    ) -> LaunchOp:
        integers = [value for v in variants for value, _ in v.integers]
        properties: dict[str, Attribute] = {
            "kernels": _kernels(tuple([v.kernel for v in variants])),
            "threads": integers_attr(tuple([v.threads for v in variants])),
            "integer_types": ArrayAttr([ArrayAttr([type for _, type in v.integers]) for v in variants]),
            "operandSegmentSizes": segments(len(tensors), len(variants), len(variants), len(integers)),
        }
        if failures is not None:
            properties["failures"] = failures
        conditions, blocks = [v.condition for v in variants], [v.blocks for v in variants]
        return cls.create(operands=[*tensors, *conditions, *blocks, *integers], properties=properties)


@lru_cache(maxsize=1024)
def _kernels(names: tuple[str, ...]) -> ArrayAttr[SymbolRefAttr]:
    return ArrayAttr(map(SymbolRefAttr, names))


def _print_variant(printer: Printer, variant: Variant) -> None:
    printer.print_symbol_name(variant.kernel)
    printer.print_string(f" threads {variant.threads} if ")
    printer.print_ssa_value(variant.condition)
    printer.print_string(" blocks ")
    printer.print_ssa_value(variant.blocks)
    printer.print_string(" (")
    printer.print_list(variant.integers, lambda pair: _print_integer(printer, *pair))
    printer.print_string(")")


def _print_integer(printer: Printer, value: SSAValue, type: Attribute) -> None:
    printer.print_ssa_value(value)
    printer.print_string(" : ")
    printer.print_attribute(type)


def _parse_variant(parser: Parser) -> Variant:
    kernel = parser.parse_symbol_name().data
    parser.parse_keyword("threads")
    threads = parser.parse_integer()
    parser.parse_keyword("if")
    condition = parse_operand(parser, i1)
    parser.parse_keyword("blocks")
    blocks = parse_operand(parser, index)
    integers = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_integer(parser))
    return Variant(kernel, threads, condition, blocks, integers)


def _parse_integer(parser: Parser) -> tuple[SSAValue, Attribute]:
    value = parse_operand(parser, index)
    parser.parse_punctuation(":")
    return value, parser.parse_type()


@irdl_op_definition
class LibraryOp(HostOp):
    """Call a library function of the runtime's closed table: `%r = library "convolution" (%x, %w) {groups = 4 : i64} :
    f32`.

    With `into` the function writes that tensor and the op has no result; else the function allocates the result, of the
    dtype after the colon. Options are integers, floats, truth values, strings and lists of them.
    """

    name = "dlcb.host.library"
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    function = prop_def(StringAttr)
    options = prop_def(DictionaryAttr)
    dtype = opt_prop_def()
    tensors = var_operand_def(TENSOR)
    out = opt_operand_def(TENSOR)
    result = opt_result_def(TENSOR)

    def verify_(self) -> None:
        if (self.out is None) == (self.result is None):
            raise VerifyException(f"{self.name} {self.function}: either writes into a tensor or has a result")
        if (self.dtype is None) != (self.result is None):
            raise VerifyException(f"{self.name} {self.function}: a result has a dtype, and only a result")
        if self.dtype is not None:
            check_dtype(self.dtype, self.name)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.function.data)
        printer.print_string(" ")
        print_operands(printer, self.tensors, "()")
        if self.out is not None:
            printer.print_string(" into ")
            printer.print_ssa_value(self.out)
        if self.options.data:
            printer.print_string(" ")
            printer.print_attr_dict(self.options.data)
        if self.dtype is not None:
            printer.print_string(" : ")
            print_dtype(printer, self.dtype)

    @classmethod
    def parse(cls, parser: Parser) -> LibraryOp:
        function = parser.parse_str_literal()
        tensors = parse_operands(parser, TENSOR, parser.Delimiter.PAREN)
        out = parse_operand(parser, TENSOR) if parser.parse_optional_keyword("into") else None
        options = DictionaryAttr(parser.parse_optional_attr_dict())
        dtype = parse_dtype(parser) if parser.parse_optional_punctuation(":") else None
        return cls.make(function, tensors, options, out, dtype)

    @classmethod
    def make(
        cls,
        function: str,
        tensors: Sequence[SSAValue],
        options: DictionaryAttr,
        out: SSAValue | None,
        dtype: Attribute | None,
    ) -> LibraryOp:
        """Either `out` or `dtype`."""
        properties: dict[str, Attribute] = {
            "function": StringAttr(function),
            "options": options,
            "operandSegmentSizes": segments(len(tensors), 0 if out is None else 1),
        }
        if dtype is not None:
            properties["dtype"] = dtype
        return cls.create(
            operands=[*tensors] if out is None else [*tensors, out],
            result_types=[TENSOR] if out is None else [],
            properties=properties,
        )
