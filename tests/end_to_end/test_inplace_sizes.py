"""What is written has the sizes of what it is written into, also where sizes were equal in the example by chance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import dlcb

Program = Callable[[Tensor, Tensor], Tensor]


def assigned(a: Tensor, b: Tensor) -> Tensor:
    c = torch.zeros_like(a)
    c[:] = b
    return c


PROGRAMS: dict[str, Program] = {
    "assigned": assigned,
    "copied": lambda a, b: a.clone().copy_(b),
    "added": lambda a, b: a.clone().add_(b),
    "multiplied and added": lambda a, b: a.clone().mul_(b).add_(b, alpha=2),
    "maximum": lambda a, b: a.clone().clamp_(min=b),
    "out": lambda a, b: torch.add(a, b, out=torch.empty_like(a)),
}
SHAPES = [((7,), (1,)), ((5,), (3,)), ((1,), (7,)), ((6,), (6,)), ((0,), (1,)), ((1,), (0,))]


@pytest.mark.parametrize("rows", [(), (2,)])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_write_broadcasts_and_is_refused_as_in_eager(name: str, rows: tuple[int, ...]) -> None:
    program = PROGRAMS[name]
    compiled = dlcb.compile(program, (torch.randn(*rows, 4), torch.randn(*rows, 4)), target="cpu")
    for shape, other in SHAPES:
        a, b = torch.randn(*rows, *shape), torch.randn(*rows, *other)
        try:
            expected = program(a, b)
        except RuntimeError:
            expected = None
        if expected is None or (name == "out" and expected.shape != a.shape):  # eager resizes `out`, with a warning
            with pytest.raises(dlcb.UserError):
                compiled(a, b)
        else:
            torch.testing.assert_close(compiled(a, b), expected)
