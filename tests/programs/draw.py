"""Draw a random program: every line has run in eager, at two sizes, before the next one is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from dlcb.tests.programs.operations import OPERATIONS
from dlcb.tests.programs.program import Given, Program, Sizes, Step
from dlcb.tests.programs.table import NothingFits, is_float

BASE: Sizes = {"a": 4, "b": 5, "c": 6, "d": 7, "n": 2}
OTHER: Sizes = {"a": 9, "b": 8, "c": 11, "d": 3, "n": 3}
EDGES = (0, 1, 2, 3, 7, 8, 13, 31, 64)
LARGEST = 300
MOST = 5000
"""Elements of an input."""
LIMIT = 200.0
"""How large elements become: far from where float16 ends, so that sums of them do not reach it either."""
DIMS = "a b c d".split() * 4 + ["1", "2", "2*a", "b + 1"]
FLOATS = "float32 float32 float32 float64 float16 bfloat16".split()
TYPES = [*FLOATS * 2, *"int64 int64 int32 int16 int8 uint8 bool bool".split()]
FLAT = "contiguous contiguous contiguous transposed stepped misaligned expanded".split()
TRIES = 12


class Draft:
    """A program under construction, with the values that it has at two sizes."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.inputs: dict[str, Given] = {}
        self.steps: list[Step] = []
        self.values: dict[str, Any] = {}
        self.others: dict[str, Any] = {}

    def tensor(self, test: Callable[[Tensor], bool] = lambda t: True) -> str:
        """A value that passes, late ones more often."""
        names = [n for n, v in self.values.items() if isinstance(v, Tensor) and test(v)]
        if not names:
            raise NothingFits
        return self.random.choice(names + names[-3:] * 2)

    def like(self, name: str, test: Callable[[Tensor], bool] = lambda t: True) -> str:
        """A value that broadcasts with this one; a new input now and then."""
        value = self.values[name]
        names = [n for n, v in self.values.items() if isinstance(v, Tensor) and test(v) and _broadcast(v, value)]
        if names and self.random.random() < 0.9:
            return self.random.choice(names)
        fresh = self.new(value.shape, value.dtype)
        return fresh if test(self.values[fresh]) else name

    def new(self, sizes: Sequence[int], dtype: torch.dtype) -> str:
        """An input of these sizes, each as the name that has it."""
        symbols = {size: name for name, size in BASE.items() if name != "n"}
        dims = tuple(symbols.get(size, str(size)) for size in sizes)
        return self.add_input(Given(dims, str(dtype).removeprefix("torch."), self.layout(len(dims))))

    def layout(self, rank: int) -> str:
        return self.random.choice(FLAT + ["channels_last"] * 4 if rank == 4 else FLAT)

    def add_input(self, given: Given) -> str:
        name = f"{'x' if given.dtype else 'k'}{len(self.inputs)}"
        self.inputs[name] = given
        self.values[name] = given.make(BASE, torch.Generator().manual_seed(0))
        self.others[name] = given.make(OTHER, torch.Generator().manual_seed(1))
        return name

    def draw_inputs(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            rank = self.random.choice([1, 2, 2, 2, 3, 3, 4, 4, 0])
            dims = [self.random.choice(DIMS) for _ in range(rank)]
            self.add_input(Given(tuple(dims), self.random.choice(TYPES), self.layout(rank)))
        if self.random.random() < 0.3:
            self.add_input(Given(("n",)))

    def draw_step(self) -> None:
        """Append a line that eager takes; none where many tries fail."""
        operations, weights = zip(*OPERATIONS, strict=True)
        for _ in range(TRIES):
            known = len(self.inputs)
            (operation,) = self.random.choices(operations, weights)
            try:
                if self._takes(operation(self)):
                    return
            except NothingFits:
                pass
            for name in list(self.inputs)[known:]:
                del self.inputs[name], self.values[name], self.others[name]

    def _takes(self, code: str) -> bool:
        if _is_statement(code):
            if run_line(code, self.values) is REFUSED or run_line(code, self.others) is REFUSED:
                return False
            self.steps.append(Step((), code))
            return True
        found, other = run_line(code, self.values), run_line(code, self.others)
        made, also = _tensors(found), _tensors(other)
        if not made or len(made) != len(also) or not all(map(is_moderate, [*made, *also])):
            return False
        if any(a.dtype != b.dtype or a.dim() != b.dim() for a, b in zip(made, also, strict=True)):
            return False
        first = sum(len(step.names) for step in self.steps)
        names = tuple(f"v{first + i}" for i in range(len(made)))
        self.steps.append(Step(names, code))
        self.values |= zip(names, made, strict=True)
        self.others |= zip(names, also, strict=True)
        return True

    def draw_results(self) -> tuple[str, ...]:
        made = [n for step in self.steps for n in step.names]
        chosen = (
            {made[-1], *self.random.sample(made, min(len(made), self.random.randint(0, 3)))} if made else set[str]()
        )
        if self.random.random() < 0.15 or not chosen:
            chosen.add(self.random.choice([n for n, v in self.values.items() if isinstance(v, Tensor)]))
        return tuple(sorted(chosen, key=lambda n: (n[0], int(n[1:]))))

    def draw_calls(self, count: int) -> tuple[Sizes, ...]:
        """The first is what the program is compiled for; sizes 0, 1, and of all kinds."""
        calls: list[Sizes] = [BASE, OTHER]
        names = [n for n in BASE if n != "n"]
        channels = {g.dims[1] for g in self.inputs.values() if len(g.dims) == 4} if self._convolves() else set[str]()
        for number in range(count):
            drawn = {n: self.random.choice(EDGES) for n in names} | {"n": self.random.randint(0, 3)}
            if number == 0:
                drawn = {**BASE, self.random.choice(names): self.random.choice([0, 1])}
            elif number == 1:
                drawn = {**BASE, self.random.choice(names): LARGEST + self.random.randint(0, 9)}
            if any(drawn.get(name) == 0 for name in channels):
                continue
            if all(given.count(drawn) <= MOST for given in self.inputs.values()):
                calls.append(drawn)
        return tuple(calls)

    def _convolves(self) -> bool:
        """Convolutions of no channels have other sizes in eager than torch documents."""
        return any("conv2d" in step.code for step in self.steps)

    def spread_written(self) -> None:
        """What is written into lies so that each element has a place of its own."""
        for name, given in self.inputs.items():
            if given.layout == "expanded" and self.values[name]._version:
                self.inputs[name] = replace(given, layout="contiguous")


REFUSED = object()


def run_line(code: str, values: dict[str, Any]) -> Any:
    """What a line gives in eager, or that eager refuses it."""
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if _is_statement(code):
                exec(code, {"torch": torch, "F": F}, values)
                return None
            return eval(code, {"torch": torch, "F": F}, values)
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, ZeroDivisionError):
        return REFUSED


def _is_statement(code: str) -> bool:
    try:
        compile(code, "line", "eval")
    except SyntaxError:
        return True
    return False


def is_moderate(t: Tensor) -> bool:
    """Neither large nor without a value: what overflows is a matter of luck."""
    if t.numel() > 20 * MOST or t.dim() > 5 or t.is_complex():
        return False
    wide = t.double() if is_float(t) else t.long()
    return bool((wide.abs() <= LIMIT).all())


def _broadcast(a: Tensor, b: Tensor) -> bool:
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return list(value) if isinstance(value, tuple) and all(isinstance(v, Tensor) for v in value) else []


def draw_program(random: Random, calls: int = 4) -> Program:
    draft = Draft(random)
    draft.draw_inputs()
    for _ in range(random.randint(2, 12)):
        draft.draw_step()
    draft.spread_written()
    results = draft.draw_results()
    return Program(dict(draft.inputs), tuple(draft.steps), results, draft.draw_calls(calls))
