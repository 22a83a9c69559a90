"""Programs made for the example's pattern of broadcasting, with one for all patterns beside them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor

import dlcb
from dlcb.errors import UserError
from dlcb.runtime.patterned import PatternedProgram

Sizes = tuple[tuple[int, ...], ...]


def scaled(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    return torch.relu(x * row + column) + x


EXAMPLE: Sizes = ((6, 8), (8,), (6, 1))
PATTERN: list[Sizes] = [EXAMPLE, ((5, 7), (7,), (5, 1)), ((0, 3), (3,), (0, 1)), ((1, 1), (1,), (1, 1))]
OTHERS: list[Sizes] = [((6, 1), (8,), (1, 8)), ((1, 8), (1,), (6, 8)), ((4, 5), (1,), (1, 1)), ((4, 5), (5,), (4, 5))]
WRONG: list[Sizes] = [((6, 8), (7,), (6, 1)), ((6, 8), (8,), (5, 1))]


def draw(sizes: Sizes) -> list[Tensor]:
    return [torch.randn(size) for size in sizes]


def check(compiled: dlcb.CompiledModel, sizes: Sizes) -> None:
    given = draw(sizes)
    torch.testing.assert_close(compiled(*given), scaled(*given))


def test_the_examples_pattern_has_the_simpler_program() -> None:
    compiled = dlcb.compile(scaled, draw(EXAMPLE))
    assert isinstance(compiled.module, PatternedProgram)
    assert compiled.explain().count("kernel k") == 1
    for sizes in PATTERN:
        check(compiled, sizes)
    assert compiled.module._made is None  # pyright: ignore[reportPrivateUsage]
    assert compiled.dimensions()["column.shape[1]"].startswith("free as column_1")


def test_other_patterns_have_one_program_together() -> None:
    compiled = dlcb.compile(scaled, draw(EXAMPLE))
    for _ in range(2):
        for sizes in (*OTHERS, *PATTERN):
            check(compiled, sizes)


def test_what_does_not_broadcast_is_refused_as_without_patterns() -> None:
    compiled = dlcb.compile(scaled, draw(EXAMPLE))
    for sizes in WRONG:
        with pytest.raises(UserError, match="do not broadcast"):
            compiled(*draw(sizes))
    with pytest.raises(UserError, match="x has dtype"):
        compiled(*[t.double() for t in draw(EXAMPLE)])
    with pytest.raises(UserError, match="compiled for the arguments"):
        compiled(*draw(EXAMPLE)[:2])


def test_a_file_holds_both(tmp_path: Path) -> None:
    compiled = dlcb.compile(scaled, draw(EXAMPLE))
    compiled.save(tmp_path / "scaled.dlcb")
    loaded = dlcb.load(tmp_path / "scaled.dlcb")
    for sizes in (*OTHERS, *PATTERN):
        check(loaded, sizes)
    for sizes in WRONG:
        with pytest.raises(UserError, match="do not broadcast"):
            loaded(*draw(sizes))


def test_what_one_operand_must_be_does_not_bind_the_other() -> None:
    """y has an even number of rows; x may have one row, which is broadcast."""

    def program(x: Tensor, y: Tensor) -> Tensor:
        return y.reshape(-1, 2, y.shape[1]).sum(1).sum(0) + x * y

    compiled = dlcb.compile(program, (torch.randn(6, 4), torch.randn(6, 4)))
    for rows in (6, 1):
        x, y = torch.randn(rows, 4), torch.randn(6, 4)
        torch.testing.assert_close(compiled(x, y), program(x, y), rtol=1e-4, atol=1e-4)
    with pytest.raises(UserError, match=r"y\.shape\[0\]"):
        compiled(torch.randn(1, 4), torch.randn(5, 4))


def test_frozen_weights_are_refreshed_in_both() -> None:
    layer = torch.nn.Linear(4, 4).eval()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.layer(x) * y

    model = Model().eval()
    compiled = dlcb.compile(model, (torch.randn(3, 4), torch.randn(3, 4)), weights="frozen")
    calls = [(torch.randn(2, 4), torch.randn(2, 4)), (torch.randn(2, 4), torch.randn(1, 4))]
    for x, y in calls:
        torch.testing.assert_close(compiled(x, y), model(x, y))
    with torch.no_grad():
        layer.weight.mul_(2)
    compiled.refresh_weights()
    for x, y in calls:
        torch.testing.assert_close(compiled(x, y), model(x, y))


def test_threads_that_need_the_other_program_at_once_make_it_once() -> None:
    compiled = dlcb.compile(scaled, draw(EXAMPLE))
    errors: list[BaseException] = []

    def call() -> None:
        try:
            check(compiled, OTHERS[0])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
