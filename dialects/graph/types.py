"""The tensor type of `dlcb.graph`, its layouts, and the list of dims as an attribute.

A dim is an integer or the name of a symbol; never an expression. Python sees dims as `int | str`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import entries
from dlcb.dialects.shape.expr import Expr, const, sym
from dlcb.dialects.types import NAMES, TYPE_NAME

Dim: TypeAlias = int | str
Dims: TypeAlias = tuple[Dim, ...]


def dim_to_expr(dim: Dim) -> Expr:
    return const(dim) if isinstance(dim, int) else sym(dim)


def _parse_dim(parser: AttrParser) -> Dim:
    value = parser.parse_optional_integer(allow_boolean=False)
    if value is not None:
        return value
    name = parser.parse_optional_identifier()
    if name is None:
        parser.raise_error("expected a dim: an integer or the name of a symbol")
    return name


def _parse_dims(parser: AttrParser) -> list[Dim]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_dim(parser))


def _print_dims(printer: Printer, dims: Sequence[Dim]) -> None:
    printer.print_string("[" + ", ".join(map(str, dims)) + "]")


def _to_attr(dims: Sequence[Dim]) -> ArrayAttr[Attribute]:
    return ArrayAttr([IntAttr(d) if isinstance(d, int) else StringAttr(d) for d in dims])


def _from_attr(attr: Attribute) -> Dims:
    return tuple(map(dim_of_attr, entries(attr)))


def _dims_of_list(attr: Attribute) -> Dims:
    """The dims of a list, kept on the attribute: they are asked for at every turn, and hashing an attribute is slow."""
    kept = vars(attr)
    known = kept.get("_dims")
    if known is None:
        known = kept["_dims"] = _from_attr(attr)
    return known


def dim_of_attr(attr: Attribute) -> Dim:
    if isinstance(attr, StringAttr):
        return attr.data
    if not isinstance(attr, IntAttr):
        raise VerifyException(f"a dim is an integer or the name of a symbol, got {attr}")
    return cast("IntAttr", attr).data


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """A list of dims: `#dlcb.graph.dims<[x_0, 3]>`."""

    name = "dlcb.graph.dims"
    list: ArrayAttr[Attribute]

    @property
    def dims(self) -> Dims:
        return _dims_of_list(self.list)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [_to_attr(_parse_dims(parser))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_dims(printer, self.dims)


@irdl_attr_definition
class DenseLayout(ParametrizedAttribute):
    """No gaps; `order` lists the dims from outermost to innermost: `dense<[0, 2, 3, 1]>` is channels-last."""

    name = "dlcb.graph.dense"
    list: ArrayAttr[Attribute]

    @property
    def order(self) -> tuple[int, ...]:
        return tuple(d for d in _dims_of_list(self.list) if isinstance(d, int))

    def verify(self) -> None:
        if sorted(self.order) != list(range(len(self.list.data))):
            raise VerifyException(f"dense layout: [{', '.join(map(str, self.order))}] is no order of the dims")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [_to_attr(_parse_dims(parser))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_dims(printer, self.order)


@irdl_attr_definition
class StridedLayout(ParametrizedAttribute):
    """Any strides, in elements, and an offset: `strided<[x_s0, 1], 0>`."""

    name = "dlcb.graph.strided"
    list: ArrayAttr[Attribute]
    start: ArrayAttr[Attribute]

    @property
    def strides(self) -> Dims:
        return _dims_of_list(self.list)

    @property
    def offset(self) -> Dim:
        return _dims_of_list(self.start)[0]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            strides = _parse_dims(parser)
            start = _parse_dim(parser) if parser.parse_optional_punctuation(",") is not None else 0
        return [_to_attr(strides), _to_attr([start])]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_dims(printer, self.strides)
            if self.offset != 0:
                printer.print_string(f", {self.offset}")


Layout: TypeAlias = DenseLayout | StridedLayout


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """`tensor<[x_0, 3], f16>`, unranked `tensor<*, f16>`, with a layout `tensor<[x_0, 3], f16, dense<[0, 1]>>`."""

    name = "dlcb.graph.tensor"
    shape: Attribute
    element: Attribute
    layout_attr: Attribute

    @property
    def ranked(self) -> bool:
        return not isinstance(self.shape, NoneAttr)

    @property
    def dims(self) -> Dims:
        return _dims_of_list(self.shape)

    @property
    def rank(self) -> int:
        return len(entries(self.shape))

    @property
    def layout(self) -> Layout | None:
        return self.layout_attr if isinstance(self.layout_attr, (DenseLayout, StridedLayout)) else None

    def verify(self) -> None:
        if self.element not in TYPE_NAME:
            raise VerifyException(f"tensor: element type {self.element} is none of {', '.join(NAMES)}")
        if not self.ranked:
            return
        dims = _from_attr(self.shape)
        if any(isinstance(d, int) and d < 0 for d in dims):
            raise VerifyException(f"tensor: negative size in [{', '.join(map(str, dims))}]")
        layout = self.layout
        if layout is not None and len(layout.list.data) != len(dims):
            raise VerifyException(f"tensor: the layout has {len(layout.list.data)} dims, the shape {len(dims)}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape: Attribute = (
                NoneAttr() if parser.parse_optional_characters("*") is not None else _to_attr(_parse_dims(parser))
            )
            parser.parse_punctuation(",")
            element = parser.parse_type()
            layout: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(",") is not None:
                layout = _parse_layout(parser)
        return [shape, element, layout]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            if self.ranked:
                _print_dims(printer, self.dims)
            else:
                printer.print_string("*")
            printer.print_string(", ")
            printer.print_attribute(self.element)
            layout = self.layout
            if layout is not None:
                printer.print_string(", ")
                _print_layout(printer, layout)


def _parse_layout(parser: AttrParser) -> Layout:
    for kind, word in ((DenseLayout, "dense"), (StridedLayout, "strided")):
        if parser.parse_optional_keyword(word) is not None:
            return kind.new(kind.parse_parameters(parser))
    parser.raise_error("expected a layout: dense<[...]> or strided<[...], offset>")


def _print_layout(printer: Printer, layout: Layout) -> None:
    printer.print_string("dense" if isinstance(layout, DenseLayout) else "strided")
    layout.print_parameters(printer)


@lru_cache(maxsize=8192)
def tensor(dims: Dims, element: Attribute, layout: Layout | None = None) -> TensorType:
    return TensorType(_to_attr(dims), element, layout if layout is not None else NoneAttr())


@lru_cache(maxsize=1024)
def dense(order: tuple[int, ...]) -> DenseLayout:
    return DenseLayout(_to_attr(order))


def contiguous(rank: int) -> DenseLayout:
    return dense(tuple(range(rank)))


@lru_cache(maxsize=4096)
def strided(strides: Dims, offset: Dim = 0) -> StridedLayout:
    return StridedLayout(_to_attr(strides), _to_attr([offset]))


@lru_cache(maxsize=8192)
def dims_attr(dims: Dims) -> DimsAttr:
    return DimsAttr(_to_attr(dims))


def type_of(value: SSAValue) -> TensorType:
    """The tensor type of a value of a graph op."""
    t = value.type
    assert isinstance(t, TensorType)
    return t


def dims_of(value: SSAValue) -> Dims:
    return type_of(value).dims
