"""The launches of kernels: what is known of their sizes before any call, and what of it decides which variants a kernel
gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import SSAValue

from dlcb.dialects.coord.ops import KernelOp
from dlcb.dialects.coord.schedule import INDEX_LIMIT
from dlcb.dialects.coord.vectors import VectorFacts, memory_ops, shift_of
from dlcb.dialects.graph.roots import is_argument, root
from dlcb.dialects.graph.structure import LaunchOp
from dlcb.dialects.graph.types import Dim, StridedLayout, dim_of_attr, type_of
from dlcb.dialects.shape.expr import Expr, const, mul, sym
from dlcb.passes.functions import functions, system_of
from dlcb.passes.sizes import DefinedSizes


@dataclass(frozen=True)
class Use:
    """One launch of a kernel: what its parameters are bound to, and the elements of its largest buffer; None where only
    a call tells. `followed`: another form takes what no variant of this one does. `given`: the buffers in memory that
    the caller passes, which may start anywhere; None: all may."""

    bound: Mapping[str, Expr]
    elements: int | None
    followed: bool = False
    given: frozenset[int] | None = None

    def value(self, dim: Dim) -> int | None:
        if isinstance(dim, int):
            return dim
        expr = self.bound.get(dim)
        return None if expr is None else expr.value

    def product(self, dims: Sequence[Dim]) -> Expr:
        """Of sizes; one that no launch binds is a symbol."""
        return reduce(mul, [const(d) if isinstance(d, int) else self.bound.get(d, sym(d)) for d in dims], const(1))

    def is_multiple(self, dim: Dim, of: int) -> bool:
        """Is it a multiple whatever the sizes of a call are?"""
        expr = const(dim) if isinstance(dim, int) else self.bound.get(dim)
        return of == 1 or (expr is not None and all(coefficient % of == 0 for coefficient, _ in expr.terms))

    def may_start_anywhere(self, buffers: Iterable[int]) -> bool:
        return any(self.given is None or buffer in self.given for buffer in buffers)


UNKNOWN = Use({}, 0)
"""Stands for the launches of a kernel that no function here launches."""


def uses_of(module: ModuleOp) -> dict[str, list[Use]]:
    """The launches of each kernel."""
    found: dict[str, list[Use]] = {}
    for func in functions(module):
        sizes = DefinedSizes.from_system(system_of(func))
        for launch in func.body.block.ops:
            if isinstance(launch, LaunchOp):
                elements = _largest([*launch.operands, *launch.results])
                given = frozenset(i for i, value in enumerate(launch.operands) if is_argument(root(value), "input"))
                *_, last = launch.forms.data
                for form in launch.forms.data:
                    kernel, bindings = form.data["kernel"], form.data["bindings"]
                    assert isinstance(kernel, SymbolRefAttr)
                    assert isinstance(bindings, DictionaryAttr)
                    bound = {k: sizes.dim(dim_of_attr(v)) for k, v in bindings.data.items()}
                    found.setdefault(kernel.root_reference.data, []).append(
                        Use(bound, elements, form is not last, given)
                    )
    return found


def _largest(values: Iterable[SSAValue]) -> int | None:
    """Elements of the largest tensor; None unless all sizes are literal and no tensor has gaps."""
    most = 0
    for t in map(type_of, values):
        sizes = [d for d in t.dims if isinstance(d, int)]
        if len(sizes) != t.rank or isinstance(t.layout, StridedLayout):
            return None
        most = max(most, prod(sizes))
    return most


def widths(facts: VectorFacts, uses: Sequence[Use]) -> list[int]:
    """Vector widths worth having, widest first: those that the sizes of a launch may allow, and 1 where memory that the
    caller passes may forbid others. (A weight hardly ever does.)"""
    powers = [facts.widest >> i for i in range(facts.widest.bit_length())]
    wanted: set[int] = set()
    for use in uses or [UNKNOWN]:
        proved = next(v for v in powers if all(use.is_multiple(d, v) for d in facts.divisible))
        literal = all(use.value(d) is not None for d in facts.divisible)
        wanted.update((proved,) if literal else powers[: powers.index(proved) + 1])
        wanted.update((1,) if use.may_start_anywhere(facts.aligned) else ())
    return sorted(wanted, reverse=True)


def needs_wide(kernel: KernelOp, uses: Sequence[Use]) -> bool:
    """May some coordinate, offset or number of a launch need 64 bits?"""
    shifts = {shift_of(op): None for op in memory_ops(kernel)}
    axes = (*kernel.outer.dims, *kernel.row.dims)
    for use in uses or [UNKNOWN]:
        values = [None if d is None else use.value(d) for d in (*axes, *kernel.reached, *shifts)]
        known = [v for v in values if v is not None]
        if len(known) != len(values) or use.elements is None:
            return True
        if max(prod(known[: len(axes)]), use.elements, *map(abs, known[len(axes) :])) >= INDEX_LIMIT:
            return True
    return False
