"""Small PyTorch programs as data, and as the text of a Python module that holds one: what is run is what is stored."""

from __future__ import annotations

import hashlib
import linecache
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dlcb.tests.graphs import LAYOUTS

Sizes = Mapping[str, int]
"""What each size that inputs name is in one call."""


@dataclass(frozen=True)
class Given:
    """An input: a tensor, or the integer named by `dims` where there is no dtype. Dims are expressions of names."""

    dims: tuple[str, ...]
    dtype: str = ""
    layout: str = "contiguous"

    def make(self, sizes: Sizes, generator: torch.Generator) -> Any:
        """Numbers that floats hold exactly, many of them equal, so that ties and signs of zero matter."""
        values = [_size(dim, sizes) for dim in self.dims]
        if not self.dtype:
            return values[0]
        dtype: torch.dtype = getattr(torch, self.dtype)
        whole = torch.randint(0 if dtype == torch.uint8 else -8, 9, values, generator=generator)
        if dtype == torch.bool:
            tensor = whole > 0
        else:
            tensor = (whole / 4 if dtype.is_floating_point else whole).to(dtype)
        return LAYOUTS[self.layout](tensor)

    def text(self) -> str:
        return f"Given({_tuple([*map(_quoted, self.dims)])}, {_quoted(self.dtype)}, {_quoted(self.layout)})"

    def count(self, sizes: Sizes) -> int:
        """How many elements it has."""
        return math.prod(_size(dim, sizes) for dim in self.dims) if self.dtype else 1


def _size(dim: str, sizes: Sizes) -> int:
    return int(eval(dim, {"__builtins__": {}}, dict(sizes)))


@dataclass(frozen=True)
class Step:
    """One line: what its results are called, none for a statement, and an expression or a statement over earlier
    names."""

    names: tuple[str, ...]
    code: str

    def __str__(self) -> str:
        return f"{', '.join(self.names)} = {self.code}" if self.names else self.code

    @property
    def uses(self) -> frozenset[str]:
        return frozenset(NAME.findall(self.code))


NAME = re.compile(r"\b[xvk]\d+\b")
"""Inputs are x0, x1, …, integers k0, k1, …, computed values v0, v1, …"""


@dataclass(frozen=True)
class Program:
    """A straight line of torch calls, and the calls to try: the first one is what it is compiled for."""

    inputs: Mapping[str, Given]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    calls: tuple[Sizes, ...]

    def text(self, title: str = "A random program.") -> str:
        """The module that holds it."""
        body = [*(f"    {step}" for step in self.steps), f"    return {_tuple(self.results)}"]
        used = [line for word, line in _IMPORTS.items() if any(word in line for line in body)]
        inputs = [f"    {_quoted(name)}: {given.text()}," for name, given in self.inputs.items()]
        calls = [f"    {{{', '.join(f'{_quoted(n)}: {size}' for n, size in call.items())}}}," for call in self.calls]
        lines = [f'"""{title}"""', "", *used, *([""] if used else [])]
        lines += ["from dlcb.tests.programs.program import Given", "", "INPUTS = {", *inputs, "}", "CALLS = [", *calls]
        return "\n".join([*lines, "]", "", "", f"def program({', '.join(self.inputs)}):", *body, ""])


_IMPORTS = {"torch.": "import torch", "F.": "import torch.nn.functional as F"}


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _quoted(text: str) -> str:
    return f'"{text}"'


@dataclass
class Subject:
    """A program as Python functions. `exact` is the same with all floats in float64."""

    text: str
    inputs: Mapping[str, Given] = field(init=False)
    calls: list[Sizes] = field(init=False)
    function: Callable[..., Any] = field(init=False)
    exact: Callable[..., Any] = field(init=False)

    def __post_init__(self) -> None:
        module = run_text(self.text)
        self.inputs, self.calls, self.function = module.INPUTS, module.CALLS, module.program
        self.exact = run_text(_FLOAT.sub("torch.float64", self.text)).program

    def arguments(self, number: int, exact: bool = False) -> list[Any]:
        """Those of a call, the same each time."""
        generator = torch.Generator().manual_seed(number)
        made = [given.make(self.calls[number], generator) for given in self.inputs.values()]
        return [a.double() if exact and isinstance(a, Tensor) and a.is_floating_point() else a for a in made]


_FLOAT = re.compile(r"\btorch\.(float32|float16|bfloat16)\b")


def run_text(text: str) -> ModuleType:
    """The module of this text; its lines can be read by tracebacks."""
    name = f"random_program_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = ModuleType(name)
    exec(compile(text, file, "exec"), module.__dict__)
    return module
