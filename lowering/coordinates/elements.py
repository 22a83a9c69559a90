"""Backward inference: ask each op of a group for the element at a coordinate, until only the group's inputs are read.

The answer is a graph of `Node`s, shared where structurally equal. Coordinates are `Expr`s over `$o…` (outer), `$r…`
(row), `$l…` (loop) and `$v…` (an index that is data; `Elements.data` has its node).

What an op says of elements that are wrong becomes a `check`: the element, if something holds. It is made where its
value is needed, so nothing is checked under a guard that does not hold, nor what is computed nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, OpResult, SSAValue

from dlcb.dialects.graph.base import Coords, ElementBuilder, GraphOp, Guard, Sizes
from dlcb.dialects.graph.strides import layout_strides
from dlcb.dialects.graph.structure import KernelOp
from dlcb.dialects.graph.types import DenseLayout, Dim, Layout, type_of
from dlcb.dialects.scalar import FUNCTIONS
from dlcb.dialects.shape.expr import Expr, add, const, lt, mul, select, sym
from dlcb.dialects.types import i1, is_float, rounded, wrapped
from dlcb.errors import InternalError
from dlcb.passes.solver.ranges import Ranges


def of_element(function: str, element: Attribute) -> str:
    """The function that is meant: the larger of two truth values is their `or`."""
    return {"maximum": "or", "minimum": "and"}.get(function, function) if element == i1 else function


class Node:
    """One element value. `op` is access, scalar, constant, index, holds, check, reduce, scan or loop; `attr` is what
    tells it apart beside its operands."""

    __slots__ = ("args", "attr", "element", "free", "op")

    def __init__(self, op: str, element: Attribute, args: tuple[Node, ...], attr: Any, free: frozenset[str]):
        self.op = op
        self.element = element
        self.args = args
        self.attr = attr
        self.free = free
        """The coordinates it depends on."""


class Elements(ElementBuilder):
    """Builds the nodes of one kernel. `failing` lists the ops that have a failure: a check says which one by number."""

    def __init__(
        self,
        sizes: Sizes,
        buffers: Sequence[SSAValue],
        layouts: Sequence[Layout | None],
        row: Coords,
        failing: Sequence[GraphOp] = (),
    ):
        self.sizes = sizes
        self.row = row
        self._row_names = frozenset[str]().union(*(r.free for r in row))
        self.ranges = Ranges()
        self.data: dict[str, Node] = {}
        self._failing = {op: number for number, op in enumerate(failing)}
        self._checks: dict[tuple[Node, Node, Expr], Node] = {}
        self._buffers = list(buffers)
        self._buffer_of = {value: i for i, value in enumerate(buffers)}
        self._layouts = layouts
        self._strides: dict[int, tuple[tuple[Expr, ...], Expr]] = {}
        self._nodes: dict[tuple[Any, ...], Node] = {}
        self._elements: dict[tuple[Any, ...], Node] = {}
        self._guards: tuple[Guard, ...] = ()
        self._beyond: tuple[Guard, ...] = ()
        self._depth = 0

    # Sizes

    def of(self, value: SSAValue) -> tuple[Expr, ...]:
        return self.sizes.of(value)

    def dim(self, dim: Dim) -> Expr:
        return self.sizes.dim(dim)

    # Scalars

    def type_of(self, value: Node) -> Attribute:
        return value.element

    def constant(self, value: float | int | bool, element: Attribute) -> Node:
        attr = rounded(float(value), element).hex() if is_float(element) else wrapped(int(value), element)
        return self._node("constant", element, (), attr)

    def call(self, function: str, *operands: Node) -> Node:
        function = of_element(function, operands[-1].element)
        result = i1 if FUNCTIONS[function].result == "bool" else operands[-1].element
        return self._node("scalar", result, operands, function)

    def cast(self, value: Node, element: Attribute) -> Node:
        if value.element == element:
            return value
        if value.op == "constant":
            number = float.fromhex(value.attr) if isinstance(value.attr, str) else value.attr
            if is_float(element) or (isinstance(number, int) and element != i1):
                return self.constant(number, element)
        return self._node("scalar", element, (value,), "cast")

    def index(self, expr: Expr, element: Attribute) -> Node:
        expr = self.ranges.simplify(expr)
        if expr.is_const:
            return self.constant(expr.value or 0, element)
        return self._node("index", element, (), expr, self._free_of(expr))

    # Elements

    def value(self, value: SSAValue, coords: Coords) -> Node:
        """The element of a value of the group at `coords`."""
        if value in self._buffer_of:
            return self._access(self._buffer_of[value], coords)
        if not isinstance(value, OpResult) or not isinstance(value.op, GraphOp):
            raise InternalError(f"coordinates: {value} is neither a graph op's result nor an input of the kernel")
        guards, beyond = self._guards, self._beyond
        if value.op.GUARDED:
            self._guards, self._beyond = (), ()
        key = (value, coords, self._guards)
        known = self._elements.get(key)
        if known is None:
            outer, self.ranges.op = self.ranges.op, value.op
            known = self._elements[key] = value.op.element(self, coords, value.index)
            self.ranges.op = outer
        self._guards, self._beyond = guards, beyond
        return known

    def within(self, value: SSAValue, coords: Coords, guard: Sequence[Guard]) -> Node:
        """The element where the guard holds; anything where it does not. What lies at coordinates that the guard speaks
        of is not touched there."""
        self._beyond = tuple(guard)
        found = self.value(value, coords)
        self._beyond = ()
        return found

    def read(self, operand: SSAValue, coords: Coords, guard: Sequence[Guard] = (), other: Node | None = None) -> Node:
        needed = self.ranges.guard(guard)
        if needed is not None:
            coords = tuple(map(self.ranges.simplify, coords))
            if not needed:
                return self.value(operand, coords)
        if other is None:
            other = self.constant(0, type_of(operand).element)
        if needed is None:
            return other
        outer = self._guards
        self._guards = tuple(dict.fromkeys((*outer, *needed)))
        try:
            value = self.value(operand, coords)
        finally:
            self._guards = outer
        common = other.element
        if value.op == "access" and other.op == "constant" and other.attr in (0, (0.0).hex()):
            return self.cast(value, common)  # which is 0 where a guard does not hold
        return self.call("select", self.holds(needed), self.cast(value, common), other)

    def holds(self, guard: Sequence[Guard]) -> Node:
        free = frozenset[str]().union(*(self._free_of(e) for _, a, b in guard for e in (a, b)))
        return self._node("holds", i1, (), tuple(guard), free)

    def _access(self, buffer: int, coords: Coords) -> Node:
        strides, offset = self._strides_of(buffer)
        for coord, stride in zip(coords, strides, strict=True):
            offset = add(offset, mul(coord, stride))
        free, guards = self._free_of(offset), self._guards
        for guard in self._beyond:
            if not free.isdisjoint(guard[1].free):
                guards = (*guards, guard)
        for _, a, b in guards:
            free = free | self._free_of(a) | self._free_of(b)
        element = type_of(self._buffers[buffer]).element
        return self._node("access", element, (), (buffer, offset, guards), free)

    def _strides_of(self, buffer: int) -> tuple[tuple[Expr, ...], Expr]:
        known = self._strides.get(buffer)
        if known is None:
            value = self._buffers[buffer]
            known = self._strides[buffer] = layout_strides(self._layouts[buffer], self.of(value), self.dim)
        return known

    def coordinate(self, value: Node, extent: Expr, op: GraphOp, from_end: bool) -> Expr:
        at = self._placed(value, extent, from_end)
        if op in self._failing:
            holds = self.holds([("le", const(0), at), ("lt", at, extent)])
            at = self._placed(self._check(value, holds, op, extent), extent, from_end)
        return at

    def _placed(self, value: Node, extent: Expr, from_end: bool) -> Expr:
        """The element as a coordinate, wherever it lies."""
        name = f"$v{len(self.data)}"
        for known, node in self.data.items():
            if node is value:
                name = known
        self.data[name] = value
        at = sym(name)
        return select(lt(at, 0), add(at, extent), at) if from_end else at

    def nonzero(self, value: Node, op: GraphOp) -> Node:
        if value.op == "constant" and value.attr != 0:
            return value
        return self._check(value, self.ne(value, 0), op, const(0))

    def _check(self, value: Node, holds: Node, op: GraphOp, size: Expr) -> Node:
        """Equal checks are one, which says what the first of them says. Where a guard does not hold, all does."""
        if self._guards:
            holds = self.call("or", self.call("not", self.holds(self._guards)), holds)
        key = (value, holds, size)
        known = self._checks.get(key)
        if known is None:
            attr = (self._failing[op], size)
            known = self._checks[key] = self._node("check", value.element, (value, holds), attr)
        return known

    # Reductions

    def reduce(
        self,
        function: str,
        sizes: Sequence[Expr],
        axes: Sequence[int],
        body: Callable[[Coords], Node],
        initial: float | int,
        element: Attribute,
    ) -> Node:
        if len(axes) != len(self.row):
            raise InternalError(
                f"coordinates: a reduction over {len(axes)} axes in a kernel whose row has {len(self.row)}"
            )
        source = self.cast(self._along_row(lambda: body(self.row)), element)
        start = self.constant(initial, element)
        function = of_element(function, element)
        free = source.free - self._row_names
        return self._node("reduce", element, (source,), (function, start.attr), free)

    def scan(
        self,
        function: str,
        extent: Expr,
        at: Expr,
        body: Callable[[Expr], Node],
        initial: float | int,
        element: Attribute,
    ) -> Node:
        if self.row != (at,):
            raise InternalError(f"coordinates: a scan to {at} in a row {self.row}")
        source = self.cast(self._along_row(lambda: body(at)), element)
        attr = (of_element(function, element), self.constant(initial, element).attr)
        return self._node("scan", element, (source,), attr, source.free | at.free)

    def _along_row(self, body: Callable[[], Node]) -> Node:
        """The element at every place of the row, though its combination may be needed at some places only: guards that
        tell the places of a row apart do not hold it back."""
        outer = self._guards
        self._guards = tuple(
            guard for guard in outer if self._row_names.isdisjoint(self._free_of(guard[1]) | self._free_of(guard[2]))
        )
        try:
            return body()
        finally:
            self._guards = outer

    def loop(
        self,
        function: str,
        extents: Sequence[int],
        body: Callable[[Coords], Node],
        initial: float | int,
        element: Attribute,
    ) -> Node:
        """Loops that lie side by side have the same coordinates, so that what they read alike is one node."""
        position: list[Expr] = []
        names: list[str] = []
        for extent in extents:
            if extent == 1:
                position.append(const(0))
                continue
            names.append(f"$l{self._depth + len(names)}_{extent}")
            position.append(sym(names[-1]))
            self.ranges.axis(position[-1], const(extent))
        self._depth += len(names)
        source = self.cast(body(tuple(position)), element)
        self._depth -= len(names)
        start = self.constant(initial, element)
        function = of_element(function, element)
        if not names:
            return self.call(function, start, source)
        wide = tuple(e for e in extents if e != 1)
        return self._node(
            "loop", element, (source,), (function, start.attr, wide, tuple(names)), source.free - set(names)
        )

    def _free_of(self, expr: Expr) -> frozenset[str]:
        free = frozenset(n for n in expr.free if n.startswith("$"))
        for name in free:
            node = self.data.get(name)
            if node is not None:
                free = free | node.free
        return free

    def _node(
        self, op: str, element: Attribute, args: tuple[Node, ...], attr: Any, free: frozenset[str] | None = None
    ) -> Node:
        key = (op, element, args, attr)
        known = self._nodes.get(key)
        if known is None:
            if free is None:
                free = frozenset[str]().union(*(a.free for a in args))
            known = self._nodes[key] = Node(op, element, args, attr, free)
        return known


def failing_ops(kernel: KernelOp) -> list[GraphOp]:
    """The ops that have a failure, in the order of its numbers."""
    return [op for op in kernel.body.block.ops if isinstance(op, GraphOp) and op.failure() is not None]


def offset_of(coords: Sequence[Expr], layout: Layout | None, shape: tuple[Expr, ...], elements: Elements) -> Expr:
    strides, offset = layout_strides(layout, shape, elements.dim)
    for coord, stride in zip(coords, strides, strict=True):
        offset = add(offset, mul(coord, stride))
    return elements.ranges.simplify(offset)


def memory_order(value: SSAValue, rank: int, axes: set[int]) -> list[int]:
    """The domain's dims from outermost to innermost in the first result's memory."""
    layout = type_of(value).layout
    if isinstance(layout, DenseLayout) and len(layout.order) == rank:
        return list(layout.order)
    return list(range(rank))
