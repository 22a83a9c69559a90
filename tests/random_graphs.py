"""Random graphs as data: a list of steps that builds both a `dlcb.graph` function and what torch computes.

Values stay of moderate size, and nothing jumps where an operand changes a little, so that all targets can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor
from xdsl.ir import SSAValue

from dlcb.dialects.shape.expr import Expr, add, const, evaluate, floordiv, mul, sub, sym
from dlcb.tests.graphs import LAYOUTS, SLACK, Case, Graph, Inputs
from dlcb.tests.unit.op_samples import DTYPE

Shape = tuple[Expr, ...]
UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sin": torch.sin,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "gelu": F.gelu,
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
}
REDUCE: dict[str, Callable[..., Tensor]] = {"mean": torch.mean, "amax": torch.amax, "amin": torch.amin}
SCAN: dict[str, Callable[..., Tensor]] = {
    "cumsum": lambda x, axis: (x * SMALL).cumsum(axis),
    "cummax": lambda x, axis: x.cummax(axis).values,
    "cummin": lambda x, axis: x.cummin(axis).values,
}
SMALL = 1 / 64
ZERO, ONE = const(0), const(1)


@dataclass(frozen=True)
class Step:
    """One op; `args` are numbers of values (inputs first), `data` what else it takes. Sizes in it are expressions."""

    kind: str
    args: tuple[int, ...]
    data: Any
    shape: Shape
    element: str


@dataclass(frozen=True)
class Program:
    inputs: tuple[tuple[Shape, str], ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    update: int | None = None
    """The value that the first input takes, if any."""
    empty: bool = True
    """May sizes be 0?"""

    @property
    def values(self) -> list[tuple[Shape, str]]:
        return [*self.inputs, *((s.shape, s.element) for s in self.steps)]

    def __str__(self) -> str:
        lines = [f"v{i} = input {[*map(str, s)]} {e}" for i, (s, e) in enumerate(self.inputs)]
        for i, step in enumerate(self.steps, len(self.inputs)):
            lines.append(f"v{i} = {step.kind} {step.args} {step.data} -> {[*map(str, step.shape)]} {step.element}")
        return "\n".join([*lines, f"return {self.results}, v0 becomes {self.update}"])


# --- as a graph ---


def build(program: Program, g: Graph) -> None:
    values: list[SSAValue] = []
    for i, (shape, element) in enumerate(program.inputs):
        values.append(g.input(f"x{i}", *map(g.dim, shape), element=element))
    for step in program.steps:
        values.append(_build_step(g, step, [values[a] for a in step.args]))
    updates = [] if program.update is None else [program.update]
    g.give(*[values[r] for r in (*updates, *program.results)], updates=[0] if updates else [])


def _build_step(g: Graph, step: Step, args: list[SSAValue]) -> SSAValue:
    x, data, shape = args[0], step.data, tuple(map(g.dim, step.shape))
    match step.kind:
        case "cast":
            return g.cast(x, element=step.element)
        case "scale":
            return g.op("mul", x, g.number(data, "f64"), element=step.element)
        case "mean" | "amax" | "amin":
            return g.op(step.kind, x, axes=data[0], keep=data[1])
        case "softmax":
            return g.softmax_of(x, data)
        case "cumsum":
            return g.cumsum(g.mul(x, g.number(SMALL, "f64")), axis=data)
        case "cummax" | "cummin":
            return g.op(step.kind, x, axis=data)
        case "reshape" | "expand":
            return g.op(step.kind, x, shape=shape)
        case "permute":
            return g.permute(x, order=data)
        case "slice":
            return g.slice(x, tuple(map(g.dim, data[0])), shape, data[1])
        case "insert":
            return g.insert(args[0], args[1], tuple(map(g.dim, data[0])), data[1])
        case "flip":
            return g.flip(x, axes=data)
        case "pad":
            return g.pad(x, low=data[0], high=data[1], value=data[2])
        case "concat":
            return g.concat(*args, axis=data)
        case "take":
            return g.take(*args, axis=data)
        case "max_pool" | "avg_pool":
            kernel, stride, padding, dilation = data
            return g.op(step.kind, x, kernel=[kernel], stride=[stride], padding=[padding], dilation=[dilation])
        case _:
            return g.op(step.kind, *args)


# --- in torch ---


def witness(program: Program, *tensors: Tensor) -> list[Tensor]:
    env = sizes_of(program, tensors)
    values = list(tensors)
    exact = tensors[0].dtype == torch.float64
    for step in program.steps:
        args = [values[a] for a in step.args]
        values.append(args[0] if exact and step.kind == "cast" else _torch_step(step, args, env))
    if program.update is None:
        return [values[r] for r in program.results]
    results = [values[r].clone() for r in program.results]
    tensors[0].copy_(values[program.update].clone())
    return [values[r] if r == 0 else result for r, result in zip(program.results, results, strict=True)]


def sizes_of(program: Program, tensors: Sequence[Tensor]) -> dict[str, int]:
    pairs = zip(program.inputs, tensors, strict=True)
    return {e.name: size for (shape, _), t in pairs for e, size in zip(shape, t.shape, strict=True) if e.name}


def _torch_step(step: Step, args: list[Tensor], env: Mapping[str, int]) -> Tensor:
    x, data = args[0], step.data
    shape = [evaluate(e, env) for e in step.shape]
    match step.kind:
        case "cast":
            return x.to(DTYPE[step.element])
        case "scale":
            return x * data
        case "mean" | "amax" | "amin":
            return REDUCE[step.kind](x, data[0], keepdim=data[1])
        case "softmax":
            return x.softmax(data)
        case "cumsum" | "cummax" | "cummin":
            return SCAN[step.kind](x, data)
        case "reshape":
            return x.reshape(shape)
        case "expand":
            return x.expand(shape)
        case "permute":
            return x.permute(data)
        case "slice":
            return x[_grid(data, shape, env)]
        case "insert":
            result = x.clone()
            result[_grid(data, args[1].shape, env)] = args[1]
            return result
        case "flip":
            return x.flip(data)
        case "pad":
            widths = [w for pair in zip(reversed(data[0]), reversed(data[1]), strict=True) for w in pair]
            return F.pad(x, widths, value=data[2])
        case "concat":
            return torch.cat(args, data)
        case "take":
            return x[(slice(None),) * data + (args[1],)]
        case "max_pool" | "avg_pool":
            return _pool(step.kind, x, data, shape)
        case "where":
            return torch.where(args[0], args[1], args[2])
        case _:
            return (UNARY.get(step.kind) or BINARY[step.kind])(*args)


def _grid(data: Any, shape: Sequence[int], env: Mapping[str, int]) -> tuple[slice, ...]:
    starts = [evaluate(s, env) for s in data[0]]
    ends = zip(starts, shape, data[1], strict=True)
    return tuple(slice(s, max(s + (n - 1) * k + 1, s), k) for s, n, k in ends)


def _pool(kind: str, x: Tensor, data: Any, shape: Sequence[int]) -> Tensor:
    kernel, stride, padding, dilation = data
    flat = x.reshape(-1, 1, x.shape[-1])
    if not flat.numel():
        return x.new_zeros(shape)
    if kind == "max_pool":
        return F.max_pool1d(flat, kernel, stride, padding, dilation).reshape(shape)
    return F.avg_pool1d(flat, kernel, stride, padding, count_include_pad=False).reshape(shape)


# --- drawing ---


@dataclass
class _Drawn:
    """A program under construction."""

    draw: Callable[..., Any]
    inputs: list[tuple[Shape, str]] = field(default_factory=list[tuple[Shape, str]])
    values: list[tuple[Shape, str]] = field(default_factory=list[tuple[Shape, str]])
    steps: list[Step] = field(default_factory=list[Step])
    empty: bool = True

    def pick(self, what: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(what))

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def add(self, kind: str, args: Sequence[int], data: Any, shape: Shape, element: str) -> int:
        self.steps.append(Step(kind, tuple(args), data, tuple(shape), element))
        self.values.append((tuple(shape), element))
        return len(self.values) - 1

    def tensors(self) -> list[int]:
        """Values of floats, the late ones more often."""
        floats = [i for i, (_, e) in enumerate(self.values) if e[0] == "f"]
        return floats + floats[-3:] * 2

    def step(self) -> None:
        v = self.pick(self.tensors())
        shape, element = self.values[v]
        kind = self.pick(KINDS)
        getattr(self, "_" + kind)(v, shape, element)

    def _unary(self, v: int, shape: Shape, element: str) -> None:
        self.add(self.pick(list(UNARY)), [v], None, shape, element)

    def _scale(self, v: int, shape: Shape, element: str) -> None:
        self.add("scale", [v], self.pick([0.5, -1.5, 2.0]), shape, element)

    def _cast(self, v: int, shape: Shape, element: str) -> None:
        if self.inputs[0][1] != "f64":
            self.add("cast", [v], None, shape, self.pick(["f32", "f16", "f64"]))

    def _binary(self, v: int, shape: Shape, element: str) -> None:
        fits = [i for i, (s, e) in enumerate(self.values) if e == element and _broadcasts(s, shape)]
        w = self.pick(fits + fits[-3:])
        args = (v, w) if self.chance(2) else (w, v)
        self.add(self.pick(list(BINARY)), args, None, shape, element)

    def _where(self, v: int, shape: Shape, element: str) -> None:
        masks = [i for i, (s, e) in enumerate(self.values) if e == "i1" and _broadcasts(s, shape)]
        fits = [i for i, (s, e) in enumerate(self.values) if e == element and _broadcasts(s, shape)]
        if masks:
            self.add("where", (self.pick(masks), v, self.pick(fits)), None, shape, element)

    def _reduce(self, v: int, shape: Shape, element: str) -> None:
        if not shape:
            return
        axes = tuple(sorted(self.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape)))))
        keep = self.chance(2)
        kind = "mean" if any(shape[a] is ZERO for a in axes) else self.pick(list(REDUCE))
        self.empty = self.empty and kind == "mean"
        kept = tuple(ONE if i in axes else s for i, s in enumerate(shape) if keep or i not in axes)
        self.add(kind, [v], (axes, keep), kept, element)

    def _softmax(self, v: int, shape: Shape, element: str) -> None:
        if shape:
            self.add("softmax", [v], self.draw(st.integers(0, len(shape) - 1)), shape, element)

    def _scan(self, v: int, shape: Shape, element: str) -> None:
        if shape:
            self.add(self.pick(list(SCAN)), [v], self.draw(st.integers(0, len(shape) - 1)), shape, element)

    def _reshape(self, v: int, shape: Shape, element: str) -> None:
        total = mul(1, *shape)
        options: list[Shape] = [(total,), (*shape, ONE), (ONE, *shape), tuple(s for s in shape if s is not ONE)]
        for i in range(len(shape) - 1):
            options += [(*shape[:i], mul(shape[i], shape[i + 1]), *shape[i + 2 :])] * 2
        for i, s in enumerate(shape):
            if s.value is not None and s.value > 1 and s.value % 2 == 0:
                options += [(*shape[:i], const(2), const(s.value // 2), *shape[i + 1 :])]
                options += [(*shape[:i], const(s.value // 2), const(2), *shape[i + 1 :])]
            if s.value is None and len(s.terms) == 1 and len(s.terms[0][1]) > 1:
                first = s.terms[0][1][0]
                rest = mul(s.terms[0][0], *s.terms[0][1][1:])
                options += [(*shape[:i], first, rest, *shape[i + 1 :]), (*shape[:i], rest, first, *shape[i + 1 :])] * 2
        if len(shape) > 1:
            options.append(tuple(reversed(shape)))
        wanted = self.pick([o for o in options if len(o) <= 5])
        self.add("reshape", [v], None, wanted, element)

    def _permute(self, v: int, shape: Shape, element: str) -> None:
        order = tuple(self.draw(st.permutations(range(len(shape)))))
        self.add("permute", [v], order, tuple(shape[i] for i in order), element)

    def _expand(self, v: int, shape: Shape, element: str) -> None:
        if len(shape) < 4:
            known = [d for d in DIMS if d.value is not None or any(d in s for s, _ in self.inputs)]
            wide = tuple(self.pick(known) if s is ONE and self.chance(2) else s for s in shape)
            lead = (self.pick(known),) if self.chance(2) else ()
            self.add("expand", [v], None, (*lead, *wide), element)

    def _slice(self, v: int, shape: Shape, element: str) -> None:
        starts, sizes, steps = self._part(shape)
        self.add("slice", [v], (starts, steps), sizes, element)

    def _part(self, shape: Shape) -> tuple[Shape, Shape, tuple[int, ...]]:
        """A grid inside the shape."""
        starts, sizes, steps = [const(0)] * len(shape), list(shape), [1] * len(shape)
        if shape and ZERO not in shape:
            axis = self.draw(st.integers(0, len(shape) - 1))
            match self.draw(st.integers(0, 3)):
                case 0:
                    sizes[axis] = floordiv(shape[axis], 2)
                case 1:
                    sizes[axis], steps[axis] = floordiv(shape[axis], 2), 2
                case 2:
                    self.empty = False
                    starts[axis], sizes[axis] = ONE, sub(shape[axis], 1)
                case _:
                    starts[axis] = floordiv(shape[axis], 2)
                    sizes[axis] = sub(shape[axis], starts[axis])
        return tuple(starts), tuple(sizes), tuple(steps)

    def _insert(self, v: int, shape: Shape, element: str) -> None:
        starts, sizes, steps = self._part(shape)
        w = self.pick([i for i, (s, e) in enumerate(self.values) if s == shape and e == element])
        part = self.add("slice", [w], ((const(0),) * len(shape), (1,) * len(shape)), sizes, element)
        if self.chance(2):
            part = self.add("tanh", [part], None, sizes, element)
        self.add("insert", [v, part], (starts, steps), shape, element)

    def _flip(self, v: int, shape: Shape, element: str) -> None:
        if shape:
            self.add("flip", [v], (self.draw(st.integers(0, len(shape) - 1)),), shape, element)

    def _pad(self, v: int, shape: Shape, element: str) -> None:
        low = tuple(self.pick([0, 0, 1, 2]) for _ in shape)
        high = tuple(self.pick([0, 0, 1, 3]) for _ in shape)
        sizes = tuple(add(s, a + b) for s, a, b in zip(shape, low, high, strict=True))
        self.add("pad", [v], (low, high, self.pick([0.0, 0.5, -1.0])), sizes, element)

    def _concat(self, v: int, shape: Shape, element: str) -> None:
        if not shape:
            return
        axis = self.draw(st.integers(0, len(shape) - 1))
        rest = (*shape[:axis], *shape[axis + 1 :])
        alike = [
            i
            for i, (s, e) in enumerate(self.values)
            if e == element and len(s) == len(shape) and (*s[:axis], *s[axis + 1 :]) == rest
        ]
        parts = [v, *(self.pick(alike) for _ in range(self.draw(st.integers(1, 2))))]
        size = add(*[self.values[p][0][axis] for p in parts])
        self.add("concat", parts, axis, (*shape[:axis], size, *shape[axis + 1 :]), element)

    def _take(self, v: int, shape: Shape, element: str) -> None:
        indices = [i for i, (_, e) in enumerate(self.values) if e == "i64"]
        if indices and 0 < len(shape) < 5 and ZERO not in shape:
            self.empty = False
            axis, at = self.draw(st.integers(0, len(shape) - 1)), self.pick(indices)
            self.add("take", [v, at], axis, (*shape[:axis], *self.values[at][0], *shape[axis + 1 :]), element)

    def _pool(self, v: int, shape: Shape, element: str) -> None:
        if len(shape) < 2 or shape[-1] in (ZERO, ONE):
            return
        kind = self.pick(["max_pool", "avg_pool"])
        kernel, stride, padding = self.pick([(2, 1, 1), (3, 2, 1), (3, 1, 1), (2, 2, 1)])
        dilation = 1 if kind == "avg_pool" or kernel == 3 else self.pick([1, 2])
        self.empty = False
        size = add(floordiv(sub(add(shape[-1], 2 * padding), dilation * (kernel - 1) + 1), stride), 1)
        self.add(kind, [v], (kernel, stride, padding, dilation), (*shape[:-1], size), element)


KINDS = (
    "unary unary scale cast binary binary binary where reduce reduce softmax scan reshape reshape permute expand slice "
    "insert flip pad concat take pool"
).split()
N, M, K = sym("n"), sym("m"), sym("k")
DIMS = (N, M, K, const(4), const(1))


def _broadcasts(small: Shape, large: Shape) -> bool:
    pairs = zip(reversed(small), reversed(large), strict=False)
    return len(small) <= len(large) and all(a is b or a is ONE for a, b in pairs)


@st.composite
def programs(draw: Any) -> Program:
    d = _Drawn(draw)
    element = d.pick(["f32", "f32", "f32", "f16", "f64"])
    shapes = st.lists(st.sampled_from(DIMS), min_size=1, max_size=3).map(tuple)
    for _ in range(draw(st.integers(1, 3))):
        d.inputs.append((draw(shapes), element))
    d.inputs.append((d.inputs[0][0], "i1"))
    if d.chance(3):
        d.inputs.append(((K,), "i64"))
    d.values = list(d.inputs)
    for _ in range(draw(st.integers(2, 12))):
        d.step()
    floats = [i for i, (_, e) in enumerate(d.values) if e[0] == "f"]
    last = floats[len(d.inputs) - 1 :] or floats
    results = tuple(sorted({floats[-1], *draw(st.lists(st.sampled_from(last), max_size=3))}))
    like_first = [i for i in floats if d.values[i] == d.inputs[0] and i]
    update = d.pick(like_first) if like_first and d.chance(3) else None
    used = tuple(r for r in results if r >= len(d.inputs)) or (floats[-1],)
    return Program(tuple(d.inputs), tuple(d.steps), used, update, d.empty)


# --- calls ---

SIZES = ((3, 4, 5), (1, 1, 1), (1, 7, 2), (33, 2, 70), (5, 1, 3), (2, 300, 1))


def calls(program: Program, seed: int, count: int = 5) -> list[list[Tensor]]:
    """Argument lists: several sizes, each argument lying in memory in its own way."""
    given = Inputs(seed)
    chosen = list(SIZES[: count - 1]) + ([(0, 3, 2), (4, 0, 3)] if program.empty else [(2, 300, 1)])
    found: list[list[Tensor]] = []
    for number, (n, m, k) in enumerate(chosen):
        env = {"n": n, "m": m, "k": k}
        arguments: list[Tensor] = []
        for i, (shape, element) in enumerate(program.inputs):
            sizes = [evaluate(e, env) for e in shape]
            if element == "i64":
                t = given(*sizes, element=element, low=-1, high=1)
            else:
                t = given(*sizes, element=element)
            layouts = [name for name in LAYOUTS if not (name == "expanded" and i == 0 and program.update is not None)]
            arguments.append(LAYOUTS[layouts[(seed + 3 * number + i) % len(layouts)] if number else "contiguous"](t))
        if _is_fine(program, arguments):
            found.append(arguments)
    return found


def _is_fine(program: Program, arguments: list[Tensor]) -> bool:
    """Does torch take these sizes? It does not reduce nothing to an extremum."""
    try:
        witness(program, *[a.clone() for a in arguments])
    except (RuntimeError, IndexError):
        return False
    return True


def as_case(program: Program, number: int) -> Case:
    return Case(
        f"random graph {number}:\n{program}",
        lambda g: build(program, g),
        calls(program, number),
        lambda *tensors: witness(program, *tensors),
        max(SLACK[DTYPE[e]] for _, e in program.values if e[0] in "fb"),
    )
