"""Sizes as the stages after `solve` compare them: equal sizes are the same expression wherever that can be told.

The function's system names sizes (`d1`); two of them are related only through what they stand for. `DefinedSizes`
writes a symbol as a polynomial over other symbols where it is one, so that `d1 * 64` and the `d4` that is defined as it
are one object.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import Sizes
from dlcb.dialects.graph.strides import layout_strides
from dlcb.dialects.graph.types import Dim, Dims, DimsAttr, TensorType, dim_to_expr, type_of
from dlcb.dialects.shape.expr import Expr, add, from_terms, mul, sub, substitute, sym
from dlcb.dialects.shape.system import System


class DefinedSizes(Sizes):
    """Sizes in which a symbol that is a polynomial over symbols is that polynomial; every other symbol stands for
    itself."""

    def __init__(self, system: System, assumed: Mapping[str, Expr]) -> None:
        self._system = system
        self._assumed = assumed
        self._defined = 0
        """How many of the system's defines are in `_values`."""
        self._values: dict[str, Expr] = dict(assumed)
        """The defined symbols that are polynomials over symbols, with that polynomial, and those that are assumed."""
        self._atoms: dict[Expr, Expr] = {}
        """What stands for a value like `h // 2` in symbols that are defined later."""
        self._lists: dict[Dims, tuple[Expr, ...]] = {}
        self._laid: dict[int, tuple[TensorType, tuple[tuple[Expr, ...], Expr]]] = {}
        self.catch_up()

    @classmethod
    def from_system(cls, system: System, assumed: Mapping[str, Expr] | None = None) -> DefinedSizes:
        """`assumed`: symbols of inputs that are taken for these expressions."""
        return cls(system, assumed or {})

    def catch_up(self) -> None:
        """Take in what the system defines since the last look.

        The first symbol that holds a value like `h // 2 + 1` stands for it in later ones: after `d0 = h // 2 + 1`,
        `d1 = 4 * (h // 2)` is `4 * d0 - 4`.
        """
        for name in islice(self._system.defines, self._defined, None):
            value = _rewrite_atoms(substitute(self._system.value(name), self._assumed), self._atoms)
            opaque = [(c, atoms) for c, atoms in value.terms if any(a.op != "symbol" for a in atoms)]
            if not opaque:
                self._values[name] = value
            elif len(opaque) == 1 and len(opaque[0][1]) == 1 and abs(opaque[0][0]) == 1:
                sign, (atom,) = opaque[0]
                self._atoms[atom] = mul(sign, sub(sym(name), add(value, mul(-sign, atom))))
        self._defined = len(self._system.defines)

    def laid(self, t: TensorType) -> tuple[tuple[Expr, ...], Expr]:
        """Strides and offset, in elements, of a tensor of this type."""
        known = self._laid.get(id(t))
        if known is None:
            known = self._laid[id(t)] = t, layout_strides(t.layout, self.dims(t.dims), self.dim)
        return known[1]

    def of(self, value: SSAValue) -> tuple[Expr, ...]:
        return self.dims(type_of(value).dims)

    def dim(self, dim: Dim) -> Expr:
        return dim_to_expr(dim) if isinstance(dim, int) else self._values.get(dim) or sym(dim)

    def list(self, attr: DimsAttr) -> tuple[Expr, ...]:
        return self.dims(attr.dims)

    def dims(self, dims: Dims) -> tuple[Expr, ...]:
        known = self._lists.get(dims)
        if known is None:
            known = self._lists[dims] = tuple(map(self.dim, dims))
        return known


def _rewrite_atoms(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    if not any(atom in known for _, atoms in expr.terms for atom in atoms):
        return expr
    return from_terms([(c, [known.get(atom, atom) for atom in atoms]) for c, atoms in expr.terms])
