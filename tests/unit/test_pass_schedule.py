"""Which variants kernels get: those that the sizes of their launches may need, and no more."""

from __future__ import annotations

import torch
from xdsl.dialects.builtin import ModuleOp

from dlcb.dialects.coord.ops import KernelOp
from dlcb.frontend.capture import capture
from dlcb.frontend.importer import import_captured
from dlcb.lowering.lower import context
from dlcb.lowering.pipeline import run


def scheduled(program: torch.nn.Module, *inputs: torch.Tensor) -> ModuleOp:
    module = import_captured(capture(program.eval(), inputs, {})).module
    run(module, context(), until="schedule")
    return module


def variants(module: ModuleOp) -> dict[str, list[tuple[str, int, int]]]:
    """How rows are walked, the vector width and the index bits of each variant of each kernel."""
    found: dict[str, list[tuple[str, int, int]]] = {}
    for op in module.body.block.ops:
        if isinstance(op, KernelOp):
            assert op.schedules is not None
            found[op.symbol] = [(s.row, s.vector, s.index) for s in op.schedules.data]
    return found


def named(found: dict[str, list[tuple[str, int, int]]], part: str) -> list[list[tuple[str, int, int]]]:
    return [chosen for name, chosen in found.items() if part in name]


class Folded(torch.nn.Module):
    """Three convolutions whose batch norms fold into weights of three sizes."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        for inside, outside in ((4, 8), (8, 16), (16, 8)):
            layers += [torch.nn.Conv2d(inside, outside, 3), torch.nn.BatchNorm2d(outside)]
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_one_kernel_serves_weights_of_all_sizes() -> None:
    found = variants(scheduled(Folded(), torch.randn(2, 4, 12, 14)))
    assert named(found, "_mul") == [[("none", 4, 32), ("none", 1, 32)]]


class Norm(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.relu())


def test_a_row_of_literal_length_needs_one_variant_and_one_that_serves_all() -> None:
    found = named(variants(scheduled(Norm(768), torch.randn(3, 5, 768))), "mean")
    assert [("warp", 4, 32), ("block", 1, 64)] in found


def test_a_row_that_no_vector_divides_is_walked_in_vectors_if_it_is_long() -> None:
    found = named(variants(scheduled(Norm(767), torch.randn(3, 5, 767))), "mean")
    assert [("warp", 4, 32), ("block", 1, 64)] in found
    found = named(variants(scheduled(Norm(63), torch.randn(3, 5, 63))), "mean")
    assert found
    assert all(vector == 1 for chosen in found for _, vector, _ in chosen)


class Softmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu().softmax(-1)


def test_a_row_of_unknown_length_has_all_classes() -> None:
    chosen, _any_strides = named(variants(scheduled(Softmax(), torch.randn(3, 7))), "relu")
    assert {row for row, _, _ in chosen} == {"warp", "block"}
    assert {vector for _, vector, _ in chosen} == {4, 1}
    assert chosen[-1] == ("block", 1, 64)


class Gather(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(50, 64)
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.table(x))


def test_a_row_that_reads_one_element_of_an_input_has_one_form() -> None:
    found = variants(scheduled(Gather(), torch.randint(0, 50, (3, 7))))
    assert len(found) == 1
