"""Kernels as coordinate maps: what each output element is computed from.

A kernel has a space of coordinates, `outer × row`. Its one block computes, for any point of the space, the elements
stored there. A value is *row-varying* when it depends on a row coordinate; `reduce` makes a row-invariant value of a
row-varying one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.coord.schedule import ScheduleAttr
from dlcb.dialects.coord.transpose import TransposeAttr
from dlcb.dialects.graph.types import Dim, DimsAttr, dims_attr
from dlcb.dialects.scalar import FUNCTIONS
from dlcb.dialects.types import NAMES, TYPE_NAME, index

INDEX_FUNCTIONS = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "mod",
    "minimum",
    "maximum",
    "select",
    "eq",
    "ne",
    "lt",
    "le",
    "and",
)


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """Memory of elements: `!dlcb.coord.buffer<f32>`."""

    name = "dlcb.coord.buffer"
    element: Attribute

    def verify(self) -> None:
        if self.element not in TYPE_NAME:
            raise VerifyException(f"buffer: element type {self.element} is none of {', '.join(NAMES)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)


@irdl_op_definition
class KernelOp(QuickOp):
    """`kernel @k params [p0] outer [p0, 768] row [] (buffers) at (coordinates) {…}`. `params` are the integers it is
    launched with; sizes and strides are dims over them. The block's arguments are the buffers, then one coordinate for
    each outer and row axis. `numbers [p3]`: how far from 0 numbers get that are no coordinates. `schedules` lists its
    variants, best first."""

    name = "dlcb.coord.kernel"
    sym_name = prop_def(SymbolNameConstraint())
    params = prop_def(ArrayAttr[StringAttr])
    outer = prop_def(DimsAttr)
    row = prop_def(DimsAttr)
    buffer_count = prop_def(IntAttr)
    numbers = opt_prop_def(DimsAttr)
    schedules = opt_prop_def(ArrayAttr[ScheduleAttr])
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    @staticmethod
    def build_from(
        name: str, params: Sequence[str], outer: Sequence[Dim], row: Sequence[Dim], buffers: int, block: Block
    ) -> KernelOp:
        return KernelOp.create(
            properties={
                "sym_name": StringAttr(name),
                "params": ArrayAttr(map(StringAttr, params)),
                "outer": dims_attr(tuple(outer)),
                "row": dims_attr(tuple(row)),
                "buffer_count": IntAttr(buffers),
            },
            regions=[Region(block)],
        )

    @property
    def symbol(self) -> str:
        name = self.sym_name
        assert isinstance(name, StringAttr)
        return name.data

    @property
    def buffers(self) -> Sequence[SSAValue]:
        return self.body.block.args[: self.buffer_count.data]

    @property
    def reached(self) -> Sequence[Dim]:
        return self.numbers.dims if self.numbers is not None else ()

    @property
    def has_scans(self) -> bool:
        return any(isinstance(op, ScanOp) for op in self.body.block.ops)

    @property
    def axes(self) -> Sequence[SSAValue]:
        return self.body.block.args[self.buffer_count.data :]

    def verify_(self) -> None:
        known = {p.data for p in self.params.data}
        for dim in (*self.outer.dims, *self.row.dims, *self.reached):
            if isinstance(dim, str) and dim not in known:
                raise VerifyException(f"{self.name}: size {dim} is no parameter")
        if len(self.axes) != len(self.outer.dims) + len(self.row.dims):
            raise VerifyException(
                f"{self.name}: {len(self.axes)} coordinates for {len(self.outer.dims)} outer"
                f" and {len(self.row.dims)} row axes"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" @{self.symbol} params [{', '.join(p.data for p in self.params.data)}]")
        printer.print_string(f" outer [{_commas(self.outer.dims)}] row [{_commas(self.row.dims)}] (")
        printer.print_list(self.body.block.args[: self.buffer_count.data], printer.print_block_argument)
        printer.print_string(") at (")
        printer.print_list(self.axes, printer.print_operand)
        printer.print_string(")")
        if self.reached:
            printer.print_string(f" numbers [{_commas(self.reached)}]")
        if self.schedules is not None:
            printer.print_string(" schedules ")
            printer.print_attribute(self.schedules)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        name = parser.parse_symbol_name()
        parser.parse_keyword("params")
        params = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
        parser.parse_keyword("outer")
        outer = _parse_dims(parser)
        parser.parse_keyword("row")
        row = _parse_dims(parser)
        parser.parse_punctuation("(")
        buffers: list[Parser.Argument] = []
        axes: list[Parser.Argument] = []
        first = parser.parse_optional_argument()
        if first is not None:
            buffers.append(first)
            while parser.parse_optional_punctuation(",") is not None:
                buffers.append(parser.parse_argument())
        parser.parse_punctuation(")")
        parser.parse_keyword("at")
        parser.parse_punctuation("(")
        one = parser.parse_optional_argument(expect_type=False)
        while one is not None:
            axes.append(one.resolve(index))
            one = (
                parser.parse_argument(expect_type=False) if parser.parse_optional_punctuation(",") is not None else None
            )
        parser.parse_punctuation(")")
        properties: dict[str, Attribute] = {
            "sym_name": name,
            "params": ArrayAttr(map(StringAttr, params)),
            "outer": dims_attr(tuple(outer)),
            "row": dims_attr(tuple(row)),
            "buffer_count": IntAttr(len(buffers)),
        }
        if parser.parse_optional_keyword("numbers") is not None:
            properties["numbers"] = dims_attr(tuple(_parse_dims(parser)))
        if parser.parse_optional_keyword("schedules") is not None:
            properties["schedules"] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region([*buffers, *axes])
        return cls.create(
            properties=properties,
            attributes=dict(attributes.data) if attributes is not None else {},
            regions=[region],
        )


def _commas(dims: Sequence[Dim]) -> str:
    return ", ".join(map(str, dims))


def _parse_dims(parser: Parser) -> list[Dim]:
    def one() -> Dim:
        number = parser.parse_optional_integer(allow_boolean=False)
        return number if number is not None else parser.parse_identifier("a size: an integer or a parameter")

    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one)


class CoordOp(QuickOp):
    """Base of the ops in a kernel."""

    @classmethod
    def make(cls, operands: Sequence[SSAValue], results: Sequence[Attribute], **properties: Attribute) -> Self:
        return cls.create(operands=operands, result_types=results, properties=properties)


@irdl_op_definition
class ParamOp(CoordOp):
    """The value of a parameter as a coordinate number: `param p0`."""

    name = "dlcb.coord.param"
    param = prop_def(StringAttr)
    res = result_def(index)
    traits = traits_def(Pure())
    assembly_format = "$param attr-dict"


@irdl_op_definition
class ConstantOp(CoordOp):
    """A literal, a coordinate number or an element."""

    name = "dlcb.coord.constant"
    value = prop_def(Attribute)
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($res)"

    @property
    def number(self) -> float | int:
        value = self.value
        assert isinstance(value, (FloatAttr, IntegerAttr))
        return value.value.data


@irdl_op_definition
class IndexOp(CoordOp):
    """Arithmetic on coordinates; division rounds down; comparisons give 0 or 1."""

    name = "dlcb.coord.index"
    function = prop_def(StringAttr)
    args = var_operand_def(index)
    res = result_def(index)
    traits = traits_def(Pure())
    assembly_format = "$function $args attr-dict"

    def verify_(self) -> None:
        if self.function.data not in INDEX_FUNCTIONS:
            raise VerifyException(f"{self.name}: {self.function.data} is none of {', '.join(INDEX_FUNCTIONS)}")


@irdl_op_definition
class ScalarOp(CoordOp):
    """A function of elements (the table in dialects/scalar.py)."""

    name = "dlcb.coord.scalar"
    function = prop_def(StringAttr)
    args = var_operand_def()
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "$function $args attr-dict `:` functional-type($args, $res)"

    def verify_(self) -> None:
        known = FUNCTIONS.get(self.function.data)
        if known is None:
            raise VerifyException(f"{self.name}: no scalar function {self.function.data}")
        if len(self.args) != known.arity:
            raise VerifyException(f"{self.name}: {known.name} takes {known.arity} operands, got {len(self.args)}")


@irdl_op_definition
class ToElementOp(CoordOp):
    """A coordinate number as an element."""

    name = "dlcb.coord.to_element"
    src = operand_def(index)
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($res)"


@irdl_op_definition
class ToIndexOp(CoordOp):
    """An integer element as a coordinate number: a coordinate that depends on data."""

    name = "dlcb.coord.to_index"
    src = operand_def()
    res = result_def(index)
    traits = traits_def(Pure())
    assembly_format = "$src attr-dict `:` type($src)"


@irdl_op_definition
class AccessOp(CoordOp):
    """The element at offset Σ coordinate · stride (+ extra); with a guard, `other` where the guard is 0.

    `strides` has one dim an axis of the kernel (outer, then row); `extra` is the part of the offset that is not linear
    in the coordinates."""

    name = "dlcb.coord.access"
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    buffer = operand_def(BufferType)
    extra = opt_operand_def(index)
    guard = opt_operand_def(index)
    other = opt_operand_def()
    strides = prop_def(DimsAttr)
    res = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$buffer `at` $strides (`plus` $extra^)? (`if` $guard^ `else` $other `:` type($other))?"
        " attr-dict `:` type($buffer) `->` type($res)"
    )

    @staticmethod
    def build_from(
        buffer: SSAValue,
        strides: Sequence[Dim],
        element: Attribute,
        extra: SSAValue | None = None,
        guard: SSAValue | None = None,
        other: SSAValue | None = None,
    ) -> AccessOp:
        return AccessOp.create(
            operands=[v for v in (buffer, extra, guard, other) if v is not None],
            result_types=[element],
            properties={
                "strides": dims_attr(tuple(strides)),
                "operandSegmentSizes": _segments(
                    1, int(extra is not None), int(guard is not None), int(other is not None)
                ),
            },
        )


@cache
def _segments(*sizes: int) -> Attribute:
    return DenseArrayBase.from_list(i32, list(sizes))


@irdl_op_definition
class ReduceOp(CoordOp):
    """The row-varying operand reduced over the row, from `initial`; the result is row-invariant."""

    name = "dlcb.coord.reduce"
    T: ClassVar = VarConstraint("T", AnyAttr())
    function = prop_def(StringAttr)
    initial = prop_def(Attribute)
    src = operand_def(T)
    res = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$function $src `from` $initial attr-dict `:` type($res)"


@irdl_op_definition
class ScanOp(CoordOp):
    """The operand combined over the row up to and with this place, from `initial`; the row has one axis, the result is
    row-varying."""

    name = "dlcb.coord.scan"
    T: ClassVar = VarConstraint("T", AnyAttr())
    function = prop_def(StringAttr)
    initial = prop_def(Attribute)
    src = operand_def(T)
    res = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$function $src `from` $initial attr-dict `:` type($res)"

    def verify_(self) -> None:
        kernel = self.parent_op()
        if isinstance(kernel, KernelOp) and len(kernel.row.dims) != 1:
            raise VerifyException(f"{self.name}: the row has {len(kernel.row.dims)} axes, expected one")


@irdl_op_definition
class LoopOp(CoordOp):
    """Reductions over a small literal space, by one thread: the region has one coordinate for each of `extents` and
    yields an element for each result."""

    name = "dlcb.coord.loop"
    function = prop_def(StringAttr)
    extents = prop_def(DimsAttr)
    initial = prop_def(Attribute)
    totals = var_result_def()
    body = region_def("single_block")
    traits = traits_def(Pure())
    assembly_format = "$function $extents `from` $initial attr-dict `:` type($totals) $body"

    @property
    def elements(self) -> Sequence[SSAValue]:
        """What the region yields."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last.elements

    def verify_(self) -> None:
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException(f"{self.name}: the region must end in dlcb.coord.yield")
        yielded, wanted = [e.type for e in self.elements], list(self.result_types)
        if not wanted or yielded != wanted:
            raise VerifyException(f"{self.name}: yields {yielded}, its results are {wanted}")


@irdl_op_definition
class YieldOp(CoordOp):
    """The elements that a loop's region computes."""

    name = "dlcb.coord.yield"
    elements = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$elements attr-dict `:` type($elements)"


@irdl_op_definition
class StoreOp(CoordOp):
    """Write the element at offset Σ coordinate · stride (+ extra), where the guard is not 0. Strides as in `access`; a
    row-invariant store happens once a row."""

    name = "dlcb.coord.store"
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    value = operand_def()
    buffer = operand_def(BufferType)
    extra = opt_operand_def(index)
    guard = opt_operand_def(index)
    strides = prop_def(DimsAttr)
    assembly_format = (
        "$value `,` $buffer `at` $strides (`plus` $extra^)? (`if` $guard^)?"
        " attr-dict `:` type($value) `,` type($buffer)"
    )

    @staticmethod
    def build_from(
        value: SSAValue,
        buffer: SSAValue,
        strides: Sequence[Dim],
        extra: SSAValue | None = None,
        guard: SSAValue | None = None,
    ) -> StoreOp:
        return StoreOp.create(
            operands=[v for v in (value, buffer, extra, guard) if v is not None],
            properties={
                "strides": dims_attr(tuple(strides)),
                "operandSegmentSizes": _segments(1, 1, int(extra is not None), int(guard is not None)),
            },
        )


OPS: list[type[Operation]] = [
    KernelOp,
    ParamOp,
    ConstantOp,
    IndexOp,
    ScalarOp,
    ToElementOp,
    ToIndexOp,
    AccessOp,
    ReduceOp,
    ScanOp,
    LoopOp,
    YieldOp,
    StoreOp,
]
ATTRS: list[type[Attribute]] = [BufferType, ScheduleAttr, TransposeAttr]
