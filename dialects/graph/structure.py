"""Functions, returns, and what the graph is cut into: kernels, launches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntAttr, StringAttr, SymbolNameConstraint, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.failure import verify_failures
from dlcb.dialects.graph.base import parse_type, print_type
from dlcb.dialects.graph.types import DenseLayout, Dims, DimsAttr, Layout, StridedLayout, TensorType, dims_attr

KINDS = ("input", "weight", "int")


@irdl_op_definition
class FuncOp(QuickOp):
    """A tensor program. Arguments: `%x : tensor<…> {name = "x", kind = "input"}`; kinds are input, weight, int (an
    `index`)."""

    name = "dlcb.graph.func"
    sym_name = prop_def(SymbolNameConstraint())
    arg_names = prop_def(ArrayAttr[StringAttr])
    arg_kinds = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove())

    @staticmethod
    def build_from(name: str, block: Block, names: Sequence[str], kinds: Sequence[str]) -> FuncOp:
        return FuncOp.create(
            properties={
                "sym_name": StringAttr(name),
                "arg_names": ArrayAttr(map(StringAttr, names)),
                "arg_kinds": ArrayAttr(map(StringAttr, kinds)),
            },
            regions=[Region(block)],
        )

    @property
    def symbol(self) -> str:
        name = self.sym_name
        assert isinstance(name, StringAttr)
        return name.data

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.data for a in self.arg_names.data)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(a.data for a in self.arg_kinds.data)

    @property
    def returned(self) -> ReturnOp:
        last = self.body.block.last_op
        assert isinstance(last, ReturnOp)
        return last

    def verify_(self) -> None:
        count = len(self.body.block.args)
        if len(self.names) != count or len(self.kinds) != count:
            raise VerifyException(f"{self.name}: {count} arguments, {len(self.names)} names, {len(self.kinds)} kinds")
        for kind in self.kinds:
            if kind not in KINDS:
                raise VerifyException(f"{self.name}: argument kind {kind!r} is none of {', '.join(KINDS)}")
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException(f"{self.name}: the body does not end with dlcb.graph.return")

    def print(self, printer: Printer) -> None:
        printer.print_string(" @" + self.symbol + "(")
        for i, (argument, name, kind) in enumerate(zip(self.body.block.args, self.names, self.kinds, strict=True)):
            printer.print_string(",\n      " if i else "")
            printer.print_operand(argument)
            printer.print_string(": ")
            print_type(printer, argument.type)
            printer.print_string(f" {kind} ")
            printer.print_string_literal(name)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name()
        arguments: list[Parser.Argument] = []
        names: list[Attribute] = []
        kinds: list[Attribute] = []

        def one() -> None:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation(":")
            arguments.append(argument.resolve(parse_type(parser)))
            kinds.append(StringAttr(parser.parse_identifier("argument kind: input, weight or int")))
            names.append(StringAttr(parser.parse_str_literal()))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region(arguments)
        return FuncOp.create(
            properties={"sym_name": name, "arg_names": ArrayAttr(names), "arg_kinds": ArrayAttr(kinds)},
            attributes=dict(attributes.data) if attributes is not None else {},
            regions=[region],
        )


@irdl_op_definition
class ReturnOp(QuickOp):
    """What a function gives back. The first operands are the new values of the arguments in `updates`, written in
    place; the others are the results. `aliases = [[result, argument], …]`: these results lie in the memory of an
    argument; `shares = [[result, earlier result], …]`: these lie in the memory of another result. All others have
    memory of their own. `numbers` are results that are integers: dims.

    `layouts` says of each result how its memory lies: `dense` where it is its own, the argument's strides where it is
    an argument's. Without it, results lie as is best. `views` says of each result what the caller gets of its memory: a
    tensor type with strides and offset, or `unit` for all of it; the operand is all of it."""

    name = "dlcb.graph.return"
    args = var_operand_def()
    updates = opt_prop_def(ArrayAttr[IntAttr])
    aliases = opt_prop_def(ArrayAttr[ArrayAttr[IntAttr]])
    shares = opt_prop_def(ArrayAttr[ArrayAttr[IntAttr]])
    layouts = opt_prop_def(ArrayAttr)
    views = opt_prop_def(ArrayAttr)
    numbers = opt_prop_def(DimsAttr)
    traits = traits_def(IsTerminator())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "($args^ `:` type($args))? attr-dict"

    @staticmethod
    def make(
        values: Sequence[SSAValue],
        updates: Sequence[int] = (),
        aliases: Sequence[tuple[int, int]] = (),
        shares: Sequence[tuple[int, int]] = (),
        numbers: Dims = (),
        layouts: Sequence[Layout] = (),
        views: Sequence[TensorType | None] = (),
    ) -> ReturnOp:
        properties: dict[str, Attribute] = {}
        if updates:
            properties["updates"] = ArrayAttr(map(IntAttr, updates))
        if aliases:
            properties["aliases"] = _pairs(aliases)
        if shares:
            properties["shares"] = _pairs(shares)
        if layouts:
            properties["layouts"] = ArrayAttr(layouts)
        if any(view is not None for view in views):
            properties["views"] = ArrayAttr([UnitAttr() if view is None else view for view in views])
        if numbers:
            properties["numbers"] = dims_attr(numbers)
        return ReturnOp.create(operands=values, properties=properties)

    @property
    def updated(self) -> tuple[int, ...]:
        return tuple(a.data for a in self.updates.data) if self.updates is not None else ()

    @property
    def aliased(self) -> dict[int, int]:
        """Result (counted without the updates) → argument."""
        return _mapping(self.aliases)

    @property
    def shared(self) -> dict[int, int]:
        """Result → the earlier result whose memory it lies in."""
        return _mapping(self.shares)

    @property
    def results_returned(self) -> Sequence[SSAValue]:
        return self.operands[len(self.updated) :]

    def layout_of(self, result: int) -> Layout | None:
        """How the memory of a result lies."""
        layout = self.layouts.data[result] if self.layouts is not None else None
        return layout if isinstance(layout, (DenseLayout, StridedLayout)) else None

    def view_of(self, result: int) -> TensorType | None:
        """What the caller gets of the memory of a result; None: all of it."""
        view = self.views.data[result] if self.views is not None else None
        return view if isinstance(view, TensorType) else None

    def verify_(self) -> None:
        for what, given in (("layouts", self.layouts), ("views", self.views)):
            if given is not None and len(given.data) != len(self.results_returned):
                raise VerifyException(f"{self.name}: {len(self.results_returned)} results, {len(given.data)} {what}")
        for result, value in enumerate(self.results_returned):
            layout, view, memory = self.layout_of(result), self.view_of(result), value.type
            if not isinstance(memory, TensorType) or not memory.ranked:
                continue
            if layout is not None and len(layout.list.data) != memory.rank:
                raise VerifyException(f"{self.name}: result {result} has rank {memory.rank}, its layout is {layout}")
            if view is None:
                continue
            if not isinstance(view.layout, StridedLayout) or view.element != memory.element:
                raise VerifyException(f"{self.name}: result {result} is {memory}, {view} is no view of it")
            if layout is None:
                raise VerifyException(f"{self.name}: result {result} is a view of memory that has no layout")


def _pairs(pairs: Sequence[tuple[int, int]]) -> ArrayAttr[ArrayAttr[IntAttr]]:
    return ArrayAttr(ArrayAttr(map(IntAttr, pair)) for pair in pairs)


def _mapping(pairs: ArrayAttr[ArrayAttr[IntAttr]] | None) -> dict[int, int]:
    """The pairs as first → second."""
    return {} if pairs is None else {pair.data[0].data: pair.data[1].data for pair in pairs.data}


class Isolated(QuickOp):
    """An op with a region of graph ops, whose block arguments are its operands: `(%a = %x : tensor<…>) -> (tensor<…>)
    {…}`."""

    args = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        for i, (inner, outer) in enumerate(zip(self.body.block.args, self.operands, strict=True)):
            printer.print_string(", " if i else "")
            printer.print_operand(inner)
            printer.print_string(" = ")
            printer.print_operand(outer)
            printer.print_string(" : ")
            print_type(printer, outer.type)
        printer.print_string(") -> (")
        printer.print_list([r.type for r in self.results], lambda t: print_type(printer, t))
        printer.print_string(")")
        printer.print_op_attributes({**self.properties, **self.attributes}, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        inner: list[Parser.Argument] = []
        outer: list[SSAValue] = []

        def one() -> None:
            argument = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            operand = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            element = parse_type(parser)
            inner.append(argument.resolve(element))
            outer.append(parser.resolve_operand(operand, element))

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_type(parser))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region(inner)
        given = dict(attributes.data) if attributes is not None else {}
        names = cls.get_irdl_definition().properties
        return cls.create(
            operands=outer,
            result_types=results,
            regions=[region],
            properties={k: v for k, v in given.items() if k in names},
            attributes={k: v for k, v in given.items() if k not in names},
        )


@irdl_op_definition
class KernelOp(Isolated):
    """A group of ops that one generated kernel computes. `in_place = [[result, operand], …]`: the result is written
    into the operand's memory."""

    name = "dlcb.graph.kernel"
    in_place = opt_prop_def(ArrayAttr[ArrayAttr[IntAttr]])
    traits = traits_def(IsolatedFromAbove(), Pure())

    @property
    def written_over(self) -> dict[int, int]:
        """Result → operand whose memory it takes."""
        return _mapping(self.in_place)


@irdl_op_definition
class YieldOp(QuickOp):
    """What a kernel's region gives back."""

    name = "dlcb.graph.yield"
    args = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$args `:` type($args) attr-dict"


@irdl_op_definition
class LaunchOp(QuickOp):
    """Run a generated kernel. `forms` lists its forms, best first: `{kernel = @k0, when = "d3" | 1, bindings = {p0 =
    "x_0", p1 = 64}}`; the first whose `when` (a dim: a symbol or a literal) is not 0 runs. Results are fresh unless
    `in_place` gives them an operand's memory. `failures`: what the kernel's checks say (`dialects/failure.py`), by
    their numbers."""

    name = "dlcb.graph.launch"
    args = var_operand_def()
    res = var_result_def()
    forms = prop_def(ArrayAttr[DictionaryAttr])
    in_place = opt_prop_def(ArrayAttr[ArrayAttr[IntAttr]])
    failures = opt_prop_def(ArrayAttr[ArrayAttr[StringAttr]])
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`(` $args `)` attr-dict `:` functional-type($args, $res)"

    @property
    def written_over(self) -> dict[int, int]:
        return _mapping(self.in_place)

    def verify_(self) -> None:
        verify_failures(self.name, self.failures)


OPS: list[type[Operation]] = [FuncOp, ReturnOp, KernelOp, YieldOp, LaunchOp]
