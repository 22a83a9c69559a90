"""The contract of a graph op: what it means, answered once, on its class.

| question | method |
|---|---|
| what are the sizes of the results, and what must hold? | `infer(scope)` |
| may the result be a view, with which strides? | `view(strides, sizes)` |
| which element of which operand does a result element need, and when is it in range? | `reads(coords, sizes)` |
| what is the result element? | `scalar(b, *elements)`, or `element(b, coords, result)` where both questions are one |

Coordinates are `Expr`s; sizes are `Expr`s over symbols. Elements are opaque values of a `ScalarBuilder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeGuard

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects._xdsl import QuickOp
from dlcb.dialects.failure import Failure
from dlcb.dialects.graph.assembly import parse_properties, print_properties
from dlcb.dialects.graph.types import Dim, DimsAttr, TensorType, dim_to_expr, type_of
from dlcb.dialects.scalar import ScalarBuilder
from dlcb.dialects.shape.expr import Expr, const, mul, ne
from dlcb.dialects.shape.requirement import REQUIREMENTS
from dlcb.dialects.types import compute_type

Coords = tuple[Expr, ...]
Guard = tuple[str, Expr, Expr]
"""A comparison of coordinates: ("le" | "lt" | "eq", lhs, rhs)."""


class Sizes:
    """Sizes as expressions. Here every symbol stands for itself; `passes` also expand symbols that are defined as
    polynomials."""

    def of(self, value: SSAValue) -> tuple[Expr, ...]:
        return tuple(map(self.dim, type_of(value).dims))

    def dim(self, dim: Dim) -> Expr:
        return dim_to_expr(dim)

    def list(self, attr: DimsAttr) -> tuple[Expr, ...]:
        return tuple(map(self.dim, attr.dims))


class ShapeScope(Sizes, ABC):
    """Where `infer` states what must hold between sizes."""

    @abstractmethod
    def require(self, kind: str, lhs: Expr, rhs: Expr, what: str) -> None:
        """`kind` is one of eq, ne, lt, le, divides, broadcastable, expandable (lhs is rhs or 1); `what` says it in
        words: "inner sizes"."""


@dataclass(frozen=True, slots=True)
class Strided:
    """How a view lies in its base: strides in elements, offset in elements from the base's start."""

    strides: tuple[Expr, ...]
    offset: Expr


@dataclass(frozen=True, slots=True)
class Read:
    """One operand element: its index among the operands, its coordinates, and when it is in range (None: always)."""

    operand: int
    coords: Coords
    guard: tuple[Guard, ...] = ()
    """They all hold when the element is in range."""


class ElementBuilder(Sizes, ScalarBuilder):
    """What `element` is written against: elements of operands, sizes as elements, loops."""

    @abstractmethod
    def read(self, operand: SSAValue, coords: Coords, guard: Sequence[Guard] = (), other: Any = None) -> Any:
        """The element of an operand; `other` where a guard fails (then the element is not touched)."""

    @abstractmethod
    def index(self, expr: Expr, element: Attribute) -> Any:
        """A size or coordinate as an element."""

    @abstractmethod
    def coordinate(self, value: Any, extent: Expr, op: GraphOp, from_end: bool) -> Expr:
        """An integer element as a coordinate in [0, extent); with `from_end` a negative one counts from the end. Out of
        range is the failure of `op`, if it has one; the coordinate is outside then."""

    @abstractmethod
    def nonzero(self, value: Any, op: GraphOp) -> Any:
        """The integer element itself; 0 is the failure of `op`."""

    @abstractmethod
    def holds(self, guard: Sequence[Guard]) -> Any:
        """A truth value: do all the comparisons hold?"""

    @abstractmethod
    def reduce(
        self,
        function: str,
        sizes: Sequence[Expr],
        axes: Sequence[int],
        body: Any,
        initial: float | int,
        element: Attribute,
    ) -> Any:
        """Reduce over `axes` of a space of `sizes`: `body(row)` gives the element at the coordinates `row`, one for
        each axis. These axes become the row of the kernel."""

    @abstractmethod
    def scan(self, function: str, extent: Expr, at: Expr, body: Any, initial: float | int, element: Attribute) -> Any:
        """Combine the elements `body(0)` to `body(at)` of an axis of `extent`. The axis becomes the row of the kernel,
        `at` must be its coordinate there."""

    @abstractmethod
    def loop(self, function: str, extents: Sequence[int], body: Any, initial: float | int, element: Attribute) -> Any:
        """Reduce over a small literal space in one thread: `body(position)` gives the element."""


def read_rounded(b: ElementBuilder, value: SSAValue, coords: Coords, guard: Sequence[Guard] = ()) -> Any:
    """An element as its tensor's type holds it, in the compute type: half precision that stays in a kernel is not
    rounded, and which elements are equal, and on which side of a jump they lie, depends on that."""
    element = type_of(value).element
    return b.cast(b.cast(b.read(value, coords, guard), element), compute_type(element))


class GraphOp(QuickOp, ABC):
    """Base of all tensor ops: see the module's docstring for the questions it answers."""

    FAMILY: ClassVar[str] = "other"
    LIBRARY: ClassVar[str | None] = None
    """The library routine that computes it, for ops that generated kernels do not compute."""
    GUARDED: ClassVar[bool] = False
    """Does its element touch nothing out of range, even at coordinates beyond the result's last dim?"""

    @classmethod
    def make(
        cls,
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        line: str | None = None,
        **properties: Attribute,
    ) -> Self:
        op = cls.create(operands=operands, result_types=results, properties=properties)
        if line is not None:
            op.location = location(line)
        return op

    @property
    def line(self) -> str:
        """The source line the op comes from, `model.py:12`, or the op's name where none is known."""
        loc = self.location
        return f"{loc.filename.data}:{loc.line.data}" if isinstance(loc, FileLineColLoc) else "?"

    @property
    def title(self) -> str:
        """How errors name the op: `linear: model.py:12`."""
        return f"{self.name.rpartition('.')[2]}: {self.line}"

    def failure(self) -> Failure | None:
        """What the program says where an element that the op reads is wrong; None where none can be."""
        return None

    @abstractmethod
    def infer(self, scope: ShapeScope) -> tuple[tuple[Expr, ...], ...]:
        """The sizes of each result from those of the operands; what else must hold goes to `scope`."""

    def view(self, strides: Sequence[Expr], sizes: Sizes) -> Strided | None:
        """How the result lies in the first operand, whose strides are given; None where it can't be a view."""
        return None

    def reads(self, coords: Coords, sizes: Sizes) -> Sequence[Read]:
        """Which operand elements the result element at `coords` needs."""
        raise NotImplementedError(f"{self.name} has no coordinate rule")

    def scalar(self, b: ScalarBuilder, *elements: Any) -> Any:
        """The result element from the operand elements that `reads` lists."""
        raise NotImplementedError(f"{self.name} has no element rule")

    def element(self, b: ElementBuilder, coords: Coords, result: int = 0) -> Any:
        """The element of a result at `coords`."""
        return self.scalar(b, *(b.read(self.operands[r.operand], r.coords, r.guard) for r in self.reads(coords, b)))

    def result_order(self) -> tuple[int, ...] | None:
        """The dims from outermost to innermost as the op's library routine lays its result; None where that is
        row-major."""
        return None

    def library_options(self) -> dict[str, Any]:
        """The options of the library call that computes it."""
        return {}

    @property
    def result_element(self) -> Attribute:
        return type_of(self.results[0]).element

    @property
    def compute_element(self) -> Attribute:
        """The type in which the result element is computed."""
        return compute_type(self.result_element)

    def verify_(self) -> None:
        types = [v.type for v in (*self.operands, *self.results)]
        if not all(isinstance(t, TensorType) and t.ranked for t in types):
            return
        wrong = _Wrong()
        for result, sizes in zip(self.results, self.infer(wrong), strict=True):
            actual = wrong.of(result)
            if len(sizes) != len(actual):
                raise VerifyException(f"{self.name}: the result has rank {len(actual)}, the operands give {len(sizes)}")
            for axis, (have, want) in enumerate(zip(actual, sizes, strict=True)):
                if have.is_const and want.is_const and have is not want:
                    raise VerifyException(f"{self.name}: dim {axis} of the result is {have}, the operands give {want}")

    # One assembly for all, with `tensor<` short for `!dlcb.graph.tensor<`:
    # `%r = dlcb.graph.add %a, %b {axis = 1, shape = [n, 3]} : (tensor<…>, tensor<…>) -> tensor<…>`
    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_operand)
        print_properties(printer, self.properties, self.attributes)
        printer.print_string(" : (")
        printer.print_list([v.type for v in self.operands], lambda t: print_type(printer, t))
        printer.print_string(") -> ")
        if len(self.results) != 1:
            printer.print_string("(")
        printer.print_list([v.type for v in self.results], lambda t: print_type(printer, t))
        if len(self.results) != 1:
            printer.print_string(")")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        properties, attributes = parse_properties(parser, cls)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_type(parser))
        parser.parse_punctuation("->")
        single = parser.parse_optional_punctuation("(")
        if single is None:
            results = [parse_type(parser)]
        else:
            results = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_type(parser))
            parser.parse_punctuation(")")
        operands = parser.resolve_operands(unresolved or [], types, parser.pos)
        return cls.create(operands=operands, result_types=results, properties=properties, attributes=attributes)


def print_type(printer: Printer, attribute: Attribute) -> None:
    if isinstance(attribute, TensorType):
        printer.print_string("tensor")
        attribute.print_parameters(printer)
    else:
        printer.print_attribute(attribute)


def parse_type(parser: Parser) -> Attribute:
    if parser.parse_optional_keyword("tensor") is not None:
        return TensorType.new(TensorType.parse_parameters(parser))
    return parser.parse_type()


class SizesOnly(ShapeScope):
    """For those who infer sizes, and leave it to the pass `collect` to state what ops require of them."""

    def require(self, kind: str, lhs: Expr, rhs: Expr, what: str) -> None:
        pass


class _Wrong(ShapeScope):
    """The verifier's scope: a requirement that two literals break is an error of the IR."""

    def require(self, kind: str, lhs: Expr, rhs: Expr, what: str) -> None:
        if REQUIREMENTS[kind](lhs, rhs).value == 0:
            raise VerifyException(f"{what}: {lhs} and {rhs}")


_LOCATIONS: dict[str, FileLineColLoc] = {}


def location(line: str) -> FileLineColLoc:
    """`model.py:12` as a location attribute."""
    known = _LOCATIONS.get(line)
    if known is None:
        name, _, number = line.rpartition(":")
        known = _LOCATIONS[line] = FileLineColLoc(StringAttr(name), IntAttr(int(number)), IntAttr(0))
    return known


def broadcast_coords(coords: Coords, operand_sizes: Sequence[Expr], result_sizes: Sequence[Expr]) -> Coords:
    """The operand's coordinates of a result element under broadcasting: size 1 → 0; a size that may be 1 at run time
    multiplies the coordinate by a number that is 0 then, else 1."""
    from_end = len(coords) - len(operand_sizes)
    return tuple(
        broadcast_coord(c, size, r)
        for c, size, r in zip(coords[from_end:], operand_sizes, result_sizes[from_end:], strict=True)
    )


def broadcast_coord(coord: Expr, size: Expr, result_size: Expr) -> Expr:
    if size is result_size:
        return coord
    if size.is_const:
        return const(0) if size.value == 1 else coord
    return mul(coord, ne(size, 1))


def calls_library(op: Operation | Block) -> TypeGuard[GraphOp]:
    """Does a library routine compute it?"""
    return isinstance(op, GraphOp) and op.LIBRARY is not None


def block_ops(op: Operation) -> list[GraphOp]:
    """The graph ops of the op's single block, in order."""
    return [o for o in op.regions[0].block.ops if isinstance(o, GraphOp)]
