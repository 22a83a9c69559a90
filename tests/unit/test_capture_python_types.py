"""What `int`, `float`, `type`, `min` and `max` make of a size, in a module of the program's own."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from dlcb.frontend.capture import capture


def program_of(source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> nn.Module:
    """`Program` of a module of this text, that lies in a file as a user's does."""
    file = tmp_path / "users_program.py"
    file.write_text(f"import torch\nfrom torch import nn\n\n{source}")
    module = ModuleType("users_program")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "users_program", module)
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    return module.Program().eval()


CONVERTING = """
class Program(nn.Module):
    def forward(self, x):
        h, w = int(x.shape[0]), x.shape[1]
        half: int = int(w / 2)
        assert isinstance(h, int) and isinstance(half, (int, float)) and int("7") == 7
        return x[: int(float(h) * 0.5), : min(half, 3)] * max(h, half)
"""


def test_conversions_of_sizes_stay_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    program = program_of(CONVERTING, monkeypatch, tmp_path)
    found = capture(program, (torch.randn(6, 8),))
    assert not found.pins
    assert not found.checks
    rows, columns, product = map(str, found.records)
    assert "slice(%1, 0, 0, x_0 // 2, 1)" in rows
    assert "slice(%2, 1, 0, minimum(x_1 // 2, 3), 1)" in columns
    assert "mul(%3, maximum(x_0, x_1 // 2))" in product


@pytest.mark.parametrize(
    "use",
    ["type(n) is int", "torch.zeros(1, dtype=int) is None", "(lambda int: int)(n) is None", "{int: 1}[type(n)]"],
)
def test_types_are_those_of_python(use: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    source = f"""
class Program(nn.Module):
    def forward(self, x):
        n = int(x.shape[0])
        return x * 2 if {use} else x * 3
"""
    program = program_of(source, monkeypatch, tmp_path)
    found = capture(program, (torch.ones(6, 8),))
    assert not found.pins
    (record,) = [record for record in found.records if record.op == "mul"]
    assert record.args[1] == float(program(torch.ones(()).expand(6, 8))[0, 0])
