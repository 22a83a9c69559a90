"""What the tables of graphs are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from dlcb.tests.graphs import LAYOUTS, Case, Graph, Inputs

CASES: list[Case] = []
FLOATS = ("f32", "f16", "bf16", "f64")
SHAPES_2D = [(0, 5), (1, 1), (1, 7), (7, 1), (3, 5), (13, 17), (4099, 3), (3, 4096), (64, 64)]
given = Inputs(3)


def case(
    name: str, calls: Sequence[Sequence[Any]], witness: Callable[..., Any]
) -> Callable[[Callable[[Graph], None]], Callable[[Graph], None]]:
    """Adds the function below it, which builds a graph, to the table."""

    def add(build: Callable[[Graph], None]) -> Callable[[Graph], None]:
        CASES.append(Case(name, build, calls, witness))
        return build

    return add


def lying(*sizes: int, element: str = "f32") -> Iterator[Tensor]:
    """Tensors of these sizes in every memory layout."""
    for layout in LAYOUTS.values():
        yield layout(given(*sizes, element=element))
