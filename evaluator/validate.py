"""Does a change of a module change what its function computes? Both are evaluated on the same small random inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, TensorType, type_of
from dlcb.dialects.types import FLOATS, bf16, f16, f32, f64
from dlcb.errors import UserError
from dlcb.evaluator.graph import Argument, run
from dlcb.evaluator.scalars import DTYPE, Array, convert
from dlcb.evaluator.sizes import lookup, system_of

SMALL = (2, 3, 1, 5, 4, 0)
"""Values that symbols are tried with."""
MAX_TRIES = 40
TOLERANCE: Mapping[Attribute, float] = {f16: 2e-2, bf16: 1e-1, f32: 1e-4, f64: 1e-9}
"""Allowed error by the result's type, relative to its largest element: a change may round at other places."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first result that differs; `inputs` reproduce it."""

    result: int
    coords: tuple[int, ...]
    before: float
    after: float
    inputs: Mapping[str, Argument]

    def __str__(self) -> str:
        inputs = [f"{k}: {v if isinstance(v, int) else list(v.shape)}" for k, v in self.inputs.items()]
        place = f"result {self.result} at {list(self.coords)}"
        return f"{place} is {self.after}, it was {self.before} before; inputs {', '.join(inputs)}"


def compare(
    before: ModuleOp, after: ModuleOp, function: str = "main", seeds: Iterable[int] = (0, 1, 2)
) -> Difference | None:
    """The first difference, or None. An error of the evaluator in `after` alone is raised.

    Inputs that the function before refuses are not used; where it refuses all, the sizes of the trace are.
    """
    old, new = lookup(before, function, FuncOp), lookup(after, function, FuncOp)
    for seed in seeds:
        arguments, expected = accepted(old, seed)
        actual = run(new, arguments)
        for i, (a, b) in enumerate(zip(expected, actual, strict=True)):
            at = first_difference(a, b, type_of(old.returned.operands[i]).element)
            if at is not None:
                return Difference(i, at, a[at].item(), b[at].item() if b.shape == a.shape else float("nan"), arguments)
    return None


def accepted(func: FuncOp, seed: int) -> tuple[dict[str, Argument], list[Array]]:
    """Random arguments that the function accepts, and what it gives for them."""
    random = np.random.default_rng(seed)
    refusal: UserError | None = None
    for sizes in candidates(func, random):
        arguments = random_arguments(func, sizes, random)
        try:
            return arguments, run(func, arguments)
        except UserError as error:
            refusal = error
    raise UserError(f"@{func.symbol} refuses all inputs that were tried; the last time: {refusal}") from refusal


def candidates(func: FuncOp, random: np.random.Generator) -> Iterator[dict[str, int]]:
    """Values of the symbols of the arguments: random ones, then one for all, then those of the trace."""
    names = sorted({d for a in func.body.block.args for d in dims(a.type) if isinstance(d, str)})
    for _ in range(MAX_TRIES):
        yield {name: int(random.choice(SMALL)) for name in names}
    for size in (*SMALL, 8, 16, 32):
        yield dict.fromkeys(names, size)
    system = system_of(func)
    if system is not None and system.traced.keys() >= set(names):
        yield system.traced


def dims(argument: Attribute) -> Sequence[Dim]:
    return argument.dims if isinstance(argument, TensorType) else ()


def random_arguments(func: FuncOp, sizes: Mapping[str, int], random: np.random.Generator) -> dict[str, Argument]:
    """Floats around 0, truth values, and integers that are small enough to index with."""
    arguments: dict[str, Argument] = {}
    for argument, name in zip(func.body.block.args, func.names, strict=True):
        if not isinstance(argument.type, TensorType):
            arguments[name] = int(random.choice(SMALL))
            continue
        shape = [d if isinstance(d, int) else sizes[d] for d in argument.type.dims]
        element = argument.type.element
        if element in FLOATS:
            arguments[name] = convert(random.standard_normal(shape), element)
        else:
            arguments[name] = random.integers(0, 2, shape).astype(DTYPE[element])
    return arguments


def first_difference(expected: Array, actual: Array, element: Attribute) -> tuple[int, ...] | None:
    """The coordinates of the first element that differs by more than rounding; NaN equals NaN."""
    if expected.shape != actual.shape:
        return (0,) * expected.ndim if expected.size else ()
    if element not in FLOATS:
        wrong = expected != actual
    else:
        wide = expected.astype(np.float64), actual.astype(np.float64)
        finite = np.abs(wide[0][np.isfinite(wide[0])])
        allowed = TOLERANCE[element] * max(1.0, finite.max(initial=0.0))
        wrong = ~np.isclose(*wide, rtol=0, atol=allowed, equal_nan=True)
    found = np.argwhere(wrong)
    return tuple(map(int, found[0])) if len(found) else None
