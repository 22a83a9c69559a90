"""Does a change of a module change what its function computes? Both are evaluated on the same small random inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from dlcb.dialects.graph.derived import NAME as WEIGHTS
from dlcb.dialects.graph.derived import derived_weights
from dlcb.dialects.graph.structure import FuncOp
from dlcb.dialects.graph.types import Dim, TensorType, type_of
from dlcb.dialects.types import FLOATS, bf16, f16, f32, f64
from dlcb.errors import UserError
from dlcb.evaluator.graph import Argument, run_program
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
    for seed in seeds:
        arguments, expected = accepted(before, function, seed)
        actual = run_program(after, arguments, function)
        types = [type_of(v).element for v in lookup(before, function, FuncOp).returned.operands]
        for i, (a, b, element) in enumerate(zip(expected, actual, types, strict=True)):
            at = first_difference(a, b, element)
            if at is not None:
                return Difference(i, at, a[at].item(), b[at].item() if b.shape == a.shape else float("nan"), arguments)
    return None


def accepted(module: ModuleOp, function: str, seed: int) -> tuple[dict[str, Argument], list[Array]]:
    """Random arguments that the function accepts, and what it gives for them."""
    random = np.random.default_rng(seed)
    func = lookup(module, function, FuncOp)
    given = parameters(module, func)
    refusal: UserError | None = None
    for sizes in candidates(func, given, random):
        arguments = random_arguments(given, sizes, random)
        try:
            return arguments, run_program(module, arguments, function)
        except UserError as error:
            refusal = error
    raise UserError(f"@{function} refuses all inputs that were tried; the last time: {refusal}") from refusal


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Attribute
    kind: str

    @property
    def dims(self) -> Sequence[Dim]:
        return self.type.dims if isinstance(self.type, TensorType) else ()


def parameters(module: ModuleOp, func: FuncOp) -> list[Parameter]:
    """What a caller gives: the arguments of the function and, where it takes derived weights, of `@weights` instead."""
    derived = derived_weights(func)
    functions = [func, lookup(module, WEIGHTS, FuncOp)] if derived else [func]
    found: dict[str, Parameter] = {}
    for f in functions:
        for argument, name, kind in zip(f.body.block.args, f.names, f.kinds, strict=True):
            if name not in derived:
                found[name] = Parameter(name, argument.type, kind)
    return list(found.values())


def candidates(func: FuncOp, given: Sequence[Parameter], random: np.random.Generator) -> Iterator[Mapping[str, int]]:
    """Values of the symbols of the arguments: random ones, then one for all, then those of the trace."""
    names = sorted({d for p in given for d in p.dims if isinstance(d, str)})
    for _ in range(MAX_TRIES):
        yield {name: int(random.choice(SMALL)) for name in names}
    for size in (*SMALL, 8, 16, 32):
        yield dict.fromkeys(names, size)
    system = system_of(func)
    if system is not None and system.traced.keys() >= set(names):
        yield system.traced


def random_arguments(
    given: Sequence[Parameter], sizes: Mapping[str, int], random: np.random.Generator
) -> dict[str, Argument]:
    """Floats around 0, but weights above it (a variance is one); truth values; integers small enough to index with."""
    arguments: dict[str, Argument] = {}
    for parameter in given:
        kind = parameter.type
        if not isinstance(kind, TensorType):
            arguments[parameter.name] = int(random.choice(SMALL))
            continue
        shape = [d if isinstance(d, int) else sizes[d] for d in kind.dims]
        if kind.element not in FLOATS:
            values = random.integers(0, 2, shape).astype(DTYPE[kind.element])
        elif parameter.kind == "weight":
            values = random.uniform(0.1, 1, shape)
        else:
            values = random.standard_normal(shape)
        arguments[parameter.name] = convert(values, kind.element)
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
