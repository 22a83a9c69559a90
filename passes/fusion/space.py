"""The space that a group of ops iterates over, and where in it each value stands.

A group has the coordinates `$d0 … $dn` of its domain. A group with reductions also has `axes`, the domain's reduced
dims. Each value of the group that is read elsewhere in it stands at fixed coordinates: those of the domain, or those
outside `axes` for what was reduced. An op may join if it reads the group's values at just these coordinates, which is
found by asking the op.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from dlcb.dialects.graph.base import Coords, GraphOp, Sizes
from dlcb.dialects.graph.row import AlongRow
from dlcb.dialects.shape.expr import Expr, const, sym

AXES = tuple(sym(f"$d{i}") for i in range(16))
ZERO = const(0)


@dataclass
class Space:
    """A domain with the places of values in it."""

    domain: tuple[Expr, ...]
    axes: tuple[int, ...] = ()
    places: dict[SSAValue, Coords] = field(default_factory=dict[SSAValue, Coords])

    @property
    def coords(self) -> Coords:
        return AXES[: len(self.domain)]

    @property
    def reduced_places(self) -> list[tuple[tuple[Expr, ...], Coords]]:
        """(sizes, coordinates) of a reduced value, with reduced dims kept and without."""
        gone = set(self.axes)
        kept = tuple(const(1) if i in gone else s for i, s in enumerate(self.domain))
        kept_coords = tuple(ZERO if i in gone else c for i, c in enumerate(self.coords))
        dropped = tuple(s for i, s in enumerate(self.domain) if i not in gone)
        dropped_coords = tuple(c for i, c in enumerate(self.coords) if i not in gone)
        return [(kept, kept_coords), (dropped, dropped_coords)]

    def place_for(self, sizes: tuple[Expr, ...]) -> Coords | None:
        """Where a value of these sizes would stand."""
        if sizes == self.domain:
            return self.coords
        if self.axes:
            for shape, coords in self.reduced_places:
                if sizes == shape:
                    return coords
        return None


def merged_space(a: Space, b: Space) -> Space:
    """Two spaces over one domain, of which at most one has axes or both the same, as one."""
    return Space(b.domain, b.axes or a.axes, {**a.places, **b.places})


ReadAt = tuple[SSAValue, Coords]


def reads_at(
    op: GraphOp, coords: Coords, sizes: Sizes, through: Callable[[SSAValue], GraphOp | None]
) -> list[ReadAt] | None:
    """The values that `op` reads for its result at `coords`, with the coordinates there, looking through free ops
    (`through` gives the free op that makes a value); None where coordinates depend on data or on a loop."""
    if isinstance(op, AlongRow):
        pairs = op.row_reads(coords, tuple(AXES[axis] for axis in op.row_axes))
    else:
        try:
            pairs = [(op.operands[r.operand], r.coords) for r in op.reads(coords, sizes)]
        except NotImplementedError:
            return None
    found: list[ReadAt] = []
    for value, at in pairs:
        maker = through(value)
        if maker is None:
            found.append((value, at))
            continue
        if not maker.operands:
            continue
        inner = reads_at(maker, at, sizes, through)
        if inner is None:
            return None
        found.extend(inner)
    return found
