"""A kernel as rows of plain values: what `build` makes IR of, and the key by which equal kernels are found.

Expressions of sizes alone become parameters `p0, p1, …` in order of first use, so kernels that differ only in what
their sizes are called, or are made of, are equal. A row is `(kind, …)`; values are numbered in order; a loop holds its
own rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dlcb.dialects.graph.base import Guard
from dlcb.dialects.graph.types import Dim
from dlcb.dialects.graph.view import product
from dlcb.dialects.shape.expr import Expr, add, const, from_terms
from dlcb.dialects.types import TYPE_NAME
from dlcb.lowering.coordinates.axes import Axis, linear_form, merge
from dlcb.lowering.coordinates.elements import Elements, Node

Row = tuple[Any, ...]
ONE = const(1)
LARGE = 2**30
"""Literal numbers below this need no look."""


@dataclass(frozen=True, slots=True)
class Output:
    """One store: the element, the buffer it goes to, where, and when."""

    node: Node
    buffer: int
    offset: Expr
    guard: tuple[Guard, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelRows:
    """`bindings[i]` is the value of parameter p_i; all else is the key."""

    outer: tuple[Dim, ...]
    row: tuple[Dim, ...]
    buffers: tuple[str, ...]
    rows: tuple[Row, ...]
    bindings: tuple[Expr, ...]
    numbers: tuple[Dim, ...]
    """What numbers that are no coordinates reach, to either side of 0: 32-bit arithmetic must hold these too."""

    @property
    def key(self) -> tuple[Any, ...]:
        return self.outer, self.row, self.buffers, self.rows, self.numbers


class Numbering:
    """Turns nodes into rows. In a `general` kernel literal sizes and strides are parameters too: one serves many."""

    def __init__(
        self,
        elements: Elements,
        outer: Sequence[Axis],
        row: Sequence[Axis],
        outputs: Sequence[Output],
        buffers: Sequence[str],
        general: bool = False,
    ):
        self.elements = elements
        self.general = general
        self.buffers = tuple(buffers)
        self.outputs = outputs
        self.parameters: dict[Expr, int] = {}
        self.rows: list[Row] = []
        self.count = 0
        self.numbers: dict[Any, int] = {}
        self.reached: dict[Dim, None] = {}
        names = frozenset(a.name for a in (*outer, *row))
        self.forms = {offset: linear_form(offset, names) for offset in self._offsets()}
        fixed = self._used_otherwise(names)
        self.outer = merge(outer, self.forms.values(), fixed)
        self.row = merge(row, self.forms.values(), fixed)
        self.axes = [a.name for a in (*self.outer, *self.row)]
        self._looked_at: set[Expr] = set()
        self._beyond = add(product([a.size for a in (*self.outer, *self.row)]), 1)

    def finish(self) -> KernelRows:
        outer = tuple(self.dim(a.size) for a in self.outer)
        row = tuple(self.dim(a.size) for a in self.row)
        for output in self.outputs:
            value = self.node(output.node)
            strides, extra = self.place(output.offset)
            guard = self.guard(output.guard) if output.guard else None
            self.add("store", value, output.buffer, strides, extra, guard)
        rows, reached = tuple(self.rows), tuple(self.reached)
        return KernelRows(outer, row, self.buffers, rows, tuple(self.parameters), reached)

    @cached_property
    def _nodes(self) -> list[Node]:
        """Those that the outputs need, and those that are coordinates."""
        found: dict[int, Node] = {}
        todo = [o.node for o in self.outputs] + list(self.elements.data.values())
        while todo:
            node = todo.pop()
            if id(node) not in found:
                found[id(node)] = node
                todo.extend(node.args)
        return list(found.values())

    def _offsets(self) -> list[Expr]:
        return [n.attr[1] for n in self._nodes if n.op == "access"] + [o.offset for o in self.outputs]

    def _used_otherwise(self, axes: frozenset[str]) -> frozenset[str]:
        """Axes that something but the linear part of an offset uses."""
        exprs = [f.extra for f in self.forms.values()]
        for output in self.outputs:
            exprs += [e for _, a, b in output.guard for e in (a, b)]
        for node in self._nodes:
            if node.op == "access":
                exprs += [e for _, a, b in node.attr[2] for e in (a, b)]
            elif node.op == "holds":
                exprs += [e for _, a, b in node.attr for e in (a, b)]
            elif node.op == "index":
                exprs.append(node.attr)
        used = frozenset[str]().union(*(e.free for e in exprs))
        return used & axes

    # Numbering

    def add(self, *row: Any) -> int:
        self.rows.append(row)
        self.count += 1
        return self.count - 1

    def shared(self, *row: Any) -> int:
        """A row without effect: one for all equal ones in scope."""
        known = self.numbers.get(row)
        if known is None:
            known = self.numbers[row] = self.add(*row)
        return known

    def parameter(self, expr: Expr) -> str:
        return f"p{self.parameters.setdefault(expr, len(self.parameters))}"

    def dim(self, expr: Expr) -> Dim:
        if expr.value is None or (self.general and expr.value > 1):
            return self.parameter(expr)
        return expr.value

    def place(self, offset: Expr) -> tuple[tuple[Dim, ...], int | None]:
        form = self.forms[offset]
        strides = tuple(self.dim(form.strides.get(a, const(0))) for a in self.axes)
        return strides, self._extra(form.extra)

    def _extra(self, e: Expr) -> int | None:
        """What of an offset is not linear in the axes."""
        if any(n.startswith("$") for n in e.free):
            return self.expr(e)
        return None if e.value == 0 else self.shared("shift", self.dim(e))

    def expr(self, e: Expr) -> int:
        """A coordinate expression."""
        if e.value is not None and not (self.general and e.value > 1):
            return self.shared("number", e.value)
        if not any(n.startswith("$") for n in e.free):
            return self.shared("param", self.parameter(e))
        if e.op == "symbol":
            return self._coordinate(e.name)
        if len(e.terms) == 1 and e.terms[0][0] == 1 and len(e.terms[0][1]) == 1:
            for a in e.args:
                self._note_reach(a)
            return self.shared("index", e.op, *(self.expr(a) for a in e.args))
        total: int | None = None
        for monomial, factor in _by_coordinates(e).items():
            value = self._product(monomial, factor)
            total = value if total is None else self.shared("index", "add", total, value)
        assert total is not None
        return total

    def _product(self, monomial: tuple[Expr, ...], factor: Expr) -> int:
        if not monomial:
            return self.expr(factor)
        value = self.expr(monomial[0])
        for atom in monomial[1:]:
            value = self.shared("index", "mul", value, self.expr(atom))
        return value if factor is ONE else self.shared("index", "mul", value, self.expr(factor))

    def _coordinate(self, name: str) -> int:
        if name in self.elements.data:
            return self.shared("to_index", self.node(self.elements.data[name]))
        if name.startswith("$l"):
            return self.numbers[("loop", name)]
        return self.shared("axis", self.axes.index(name))

    def guard(self, guards: Sequence[Guard]) -> int:
        total: int | None = None
        for kind, lhs, rhs in guards:
            self._note_reach(lhs)
            self._note_reach(rhs)
            value = self.shared("index", kind, self.expr(lhs), self.expr(rhs))
            total = value if total is None else self.shared("index", "and", total, value)
        assert total is not None
        return total

    def node(self, node: Node) -> int:
        """The number of a node; those of its operands first, without recursion into long chains."""
        pending = [node]
        while pending:
            top = pending[-1]
            missing = [] if top.op == "loop" else [a for a in top.args if a not in self.numbers]
            if top not in self.numbers and missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if top not in self.numbers:
                self.numbers[top] = self._number(top)
        return self.numbers[node]

    def _number(self, node: Node) -> int:
        element = TYPE_NAME[node.element]
        if node.op == "constant":
            return self.shared("constant", node.attr, element)
        if node.op == "scalar":
            return self.shared("scalar", node.attr, tuple(self.node(a) for a in node.args), element)
        if node.op == "index":
            self._note_reach(node.attr)
            return self.shared("to_element", self.expr(node.attr), element)
        if node.op == "holds":
            return self.shared("to_element", self.guard(node.attr), element)
        if node.op == "check":
            number, size = node.attr
            self._note_reach(size)
            return self.shared("check", number, *map(self.node, node.args), self.expr(size), element)
        if node.op == "access":
            buffer, offset, guards = node.attr
            guard = self.guard(guards) if guards else None
            strides, extra = self.place(offset)
            return self.shared("access", buffer, strides, extra, guard, element)
        if node.op in ("reduce", "scan"):
            return self._combine(node, element)
        return self._loop(node, element)

    def _note_reach(self, number: Expr) -> None:
        """Note how far from 0 a number gets, unless it stays within the number of points of the kernel. Of one whose
        range depends on data: how far its sizes get."""
        if number.value is not None or number in self._looked_at:
            return
        self._looked_at.add(number)
        ranges = self.elements.ranges
        if ranges.within(number, self._beyond):
            return
        ends = ranges.ends(number)
        if None in ends and number.op != "symbol":
            ends = tuple(f for m, f in _by_coordinates(number).items() if f.value is None or not m)
        for end in ends:
            if end is not None and (end.value is None or abs(end.value) >= LARGE):
                self.reached[self.dim(end)] = None

    def _combine(self, node: Node, element: str) -> int:
        """A reduction or a scan; of a row of one element, that element combined with the initial value."""
        function, initial = node.attr
        source = self.node(node.args[0])
        if self.row:
            return self.shared(node.op, function, initial, source, element)
        return self.shared("scalar", function, (self.shared("constant", initial, element), source), element)

    def _loop(self, node: Node, element: str) -> int:
        """The loop, with all that walk alike beside it."""
        function, initial, extents, names = node.attr
        together = self._beside(node)
        for one in together:
            self._hoist(one.args[0], frozenset(names))
        outer_rows, outer_numbers = self.rows, self.numbers
        self.rows, self.numbers = [], dict(outer_numbers)
        for name in names:
            self.numbers[("loop", name)] = self.count
            self.count += 1
        sources = tuple([self.node(one.args[0]) for one in together])
        body, self.rows, self.numbers = tuple(self.rows), outer_rows, outer_numbers
        loop = self.add("loop", function, initial, extents, body, sources, element)
        for place, one in enumerate(together):
            self.numbers[one] = self.add("total", loop, place)
        return self.numbers[node]

    def _beside(self, node: Node) -> list[Node]:
        """The loop and the others that may run with it: they combine alike, over the same coordinates, in this scope,
        and none of them waits for a loop."""
        alike = self._loops.get((node.element, node.attr), [])
        if node not in alike:
            return [node]
        return [one for one in alike if one is node or (one not in self.numbers and self._in_scope(one))]

    def _in_scope(self, node: Node) -> bool:
        return all(("loop", name) in self.numbers for name in node.free if name.startswith("$l"))

    @cached_property
    def _loops(self) -> dict[Hashable, list[Node]]:
        """The loops that wait for no other, those that combine alike over the same coordinates together."""
        found: dict[Hashable, list[Node]] = {}
        nodes = self._nodes
        waits: dict[Node, bool] = {}
        for node in _operands_first(nodes):
            waits[node] = any(arg.op == "loop" or waits[arg] for arg in node.args)
        for node in nodes:
            if node.op == "loop" and not waits[node]:
                found.setdefault((node.element, node.attr), []).append(node)
        return found

    def _hoist(self, node: Node, variables: frozenset[str]) -> None:
        """Number what does not depend on the loop's variables before the loop."""
        pending, seen = [node], set[Node]()
        while pending:
            top = pending.pop()
            if top in seen:
                continue
            seen.add(top)
            if top.free.isdisjoint(variables):
                self.node(top)
            else:
                pending += reversed(top.args)


def _operands_first(nodes: Sequence[Node]) -> list[Node]:
    """All of them, each after its operands, without recursion into long chains."""
    done: dict[Node, None] = {}
    pending = list(nodes)
    while pending:
        missing = [arg for arg in pending[-1].args if arg not in done]
        if missing:
            pending += missing
        else:
            done[pending.pop()] = None
    return list(done)


def _by_coordinates(e: Expr) -> dict[tuple[Expr, ...], Expr]:
    """A polynomial as {product of coordinates: factor of sizes}."""
    sums: dict[tuple[Expr, ...], list[tuple[int, tuple[Expr, ...]]]] = {}
    for coefficient, atoms in e.terms:
        moving = tuple(a for a in atoms if any(n.startswith("$") for n in a.free))
        sums.setdefault(moving, []).append((coefficient, tuple(a for a in atoms if a not in moving)))
    return {moving: from_terms(factors) for moving, factors in sums.items()}
