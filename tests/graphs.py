"""Graphs in a few lines of Python, run through the whole pipeline, on the CPU target, beside torch and the evaluator.

    def softmax(g: Graph) -> None:
        x = g.input("x", "n", "m")
        e = g.exp(g.sub(x, g.amax(x, axes=[1], keep=True)))
        g.give(g.div(e, g.sum(e, axes=[1], keep=True)))

Result types are inferred; a size that is an expression gets a name (`d0`). A `Batch` compiles the kernels of many
modules as one translation unit, equal kernels once, for a call of the C++ compiler costs seconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue

from dlcb.dialects.graph.base import GraphOp
from dlcb.dialects.graph.creation import number_attr
from dlcb.dialects.graph.elementwise import Comparison
from dlcb.dialects.graph.structure import FuncOp, ReturnOp
from dlcb.dialects.graph.types import Dim, Dims, dims_attr, dims_of, tensor, type_of
from dlcb.dialects.shape.expr import ExprLike, as_expr
from dlcb.dialects.shape.system import Source, System
from dlcb.dialects.types import NAMES, TYPE_NAME, f64, index
from dlcb.evaluator.graph import run
from dlcb.lowering.lower import Lowered, lower
from dlcb.lowering.pipeline import Observer
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.passes.stages import mark_stage
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.memory import Allocator, HostileAllocator
from dlcb.runtime.module import CompiledModule
from dlcb.tests.unit.op_samples import DTYPE, OP, Maker, to_array

ORDER_SEEDS = (0, 1, 7)
CORES = os.cpu_count() or 1
_DIMS = frozenset("shape starts steps low high start step dim".split())
_TRUTH = frozenset(op.name.rpartition(".")[2] for op in OP.values() if issubclass(op, Comparison)) | {"isnan"}


def property_attr(name: str, value: Any) -> Attribute:
    """A Python value as the property of that name."""
    match value:
        case Attribute():
            return value
        case _ if name == "value":
            return number_attr(value)
        case True:
            return UnitAttr()
        case _ if name in _DIMS:
            return dims_attr((value,) if isinstance(value, (int, str)) else tuple(value))
        case int():
            return IntAttr(value)
        case float():
            return FloatAttr(value, f64)
        case _:
            return ArrayAttr(map(IntAttr, value))


class Graph:
    """The function `@main` under construction. Every op of `dlcb.graph` is a method of its name."""

    def __init__(self) -> None:
        self.maker = Maker()
        self.block = Block()
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.system = System()
        self.returned = ReturnOp.make([])

    def input(self, name: str, *dims: Dim, element: str = "f32", kind: str = "input") -> SSAValue:
        """An argument. In a system, a symbol is the size of the first argument that has it."""
        for axis, dim in enumerate(dims):
            if isinstance(dim, str) and dim not in self.system.defines:
                self.system.symbols.setdefault(dim, Source.size(name, axis))
        self.names.append(name)
        self.kinds.append(kind)
        return self.block.insert_arg(tensor(dims, NAMES[element]), len(self.block.args))

    def integer(self, name: str) -> str:
        """An integer argument: the symbol of its name."""
        self.names.append(name)
        self.kinds.append("int")
        self.block.insert_arg(index, len(self.block.args))
        self.system.symbols[name] = Source.integer(name)
        return name

    def dim(self, expr: ExprLike) -> Dim:
        """A dim of this value, named if need be."""
        name = self.maker.named(as_expr(expr))
        if isinstance(name, str) and as_expr(expr).op != "symbol":
            self.system.defines[name] = as_expr(expr)
        return name

    def op(self, name: str, *operands: SSAValue, element: str | None = None, **properties: Any) -> SSAValue:
        if element is None:
            element = "i1" if name in _TRUTH else TYPE_NAME[type_of(operands[1 if name == "where" else 0]).element]
        given = {k: property_attr(k, v) for k, v in properties.items() if v is not False}
        return self.maker.op(name, operands, element, **given)

    def number(self, value: float, element: str = "f32") -> SSAValue:
        return self.op("full", element=element, shape=(), value=value)

    def slice(self, x: SSAValue, starts: Dims, shape: Dims, steps: Sequence[int] | None = None) -> SSAValue:
        return self.op("slice", x, starts=starts, shape=shape, steps=steps or (1,) * len(starts))

    def insert(self, base: SSAValue, src: SSAValue, starts: Dims, steps: Sequence[int] | None = None) -> SSAValue:
        return self.op("insert", base, src, starts=starts, steps=steps or (1,) * len(starts))

    def softmax_of(self, x: SSAValue, axis: int) -> SSAValue:
        e = self.op("exp", self.op("sub", x, self.op("amax", x, axes=[axis], keep=True, empty=True)))
        return self.op("div", e, self.op("sum", e, axes=[axis], keep=True))

    def __getattr__(self, name: str) -> Callable[..., SSAValue]:
        if name.rstrip("_") not in OP:
            raise AttributeError(name)
        return lambda *operands, **properties: self.op(name.rstrip("_"), *operands, **properties)

    def give(self, *values: SSAValue, updates: Sequence[int] = (), aliases: Sequence[tuple[int, int]] = ()) -> None:
        """Return the values; the first ones are the new values of the arguments in `updates`."""
        self.returned = ReturnOp.make(values, updates, aliases)

    def module(self) -> ModuleOp:
        self.block.add_ops(self.maker.ops)
        self.block.add_op(self.returned)
        func = FuncOp.build_from("main", self.block, self.names, self.kinds)
        module = ModuleOp([self.system.to_op("main"), func])
        mark_stage(module, "generalize")
        return module


def graph(build: Callable[[Graph], None]) -> ModuleOp:
    g = Graph()
    build(g)
    return g.module()


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp))


# --- many modules in one unit ---

_KERNEL = re.compile(r"^DLCB_KERNEL\((\w+)", re.MULTILINE)


def kernel_texts(text: str) -> dict[str, str]:
    """Each kernel's name → its text after the name."""
    parts = _KERNEL.split(text)
    return {name: rest.strip() for name, rest in zip(parts[1::2], parts[2::2], strict=True)}


@dataclass
class _Rehearsal:
    """Kernels that only note which of them are launched."""

    launched: set[str] = field(default_factory=set[str])

    def function(self, name: str) -> Any:
        return name

    def activate(self) -> None:
        pass

    def launcher(self, function: Any, *_: Any) -> Callable[[], None]:
        self.launched.add(function)
        return lambda: None


@dataclass
class _Named:
    """The kernels of one module, under the names that they have in the whole unit."""

    libraries: list[CpuKernels]
    names: dict[str, str]

    def function(self, name: str) -> Any:
        return name

    def activate(self) -> None:
        pass

    def launcher(self, function: Any, *how: Any) -> Callable[[], None]:
        name = self.names[function]
        library = self.libraries[int(name[1:]) % len(self.libraries)]
        return library.launcher(library.function(name), *how)


@dataclass
class Batch:
    """Lowered modules whose kernels share a translation unit (on the CPU, one a core), of the variants that rehearsed
    calls launch."""

    lowered: list[Lowered] = field(default_factory=list[Lowered])
    names: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    known: dict[str, str] = field(default_factory=dict[str, str])
    """The text of a kernel without its name → its name in the unit."""
    needed: dict[str, None] = field(default_factory=dict[str, None])
    libraries: list[Path] = field(default_factory=list[Path])

    def add(self, module: ModuleOp, observer: Observer | None = None) -> int:
        """Lower the module with all checks; its number."""
        lowered = lower(module, check=True, observer=observer)
        self.names.append(self.take(lowered.kernels))
        self.lowered.append(lowered)
        return len(self.lowered) - 1

    def take(self, text: str) -> dict[str, str]:
        """Take up a module's kernels: what each is called in the unit."""
        known = self.known
        return {name: known.setdefault(rest, f"u{len(known)}") for name, rest in kernel_texts(text).items()}

    def rehearse(self, number: int, calls: Sequence[Sequence[Any]]) -> None:
        """Find out which kernels the calls launch."""
        rehearsal = _Rehearsal()
        compiled = self._compiled(number, rehearsal, Allocator())
        for arguments in calls:
            compiled(*[as_it_lies(a) if isinstance(a, Tensor) else a for a in arguments])
        self.libraries = []
        self.needed.update((self.names[number][name], None) for name in sorted(rehearsal.launched))

    def text(self, needed: Collection[str] | None = None) -> str:
        """The kernels of the unit, all or some."""
        chosen = [(name, rest) for rest, name in self.known.items() if needed is None or name in needed]
        return "\n\n".join(f"DLCB_KERNEL({name}{rest}" for name, rest in chosen) + "\n"

    def compiled(self) -> list[Path]:
        """The libraries of what is needed: the kernel un lies in number n modulo how many there are."""
        if not self.libraries:
            units = [[n for n in self.needed if int(n[1:]) % CORES == core] for core in range(CORES)]
            with ThreadPoolExecutor(CORES) as pool:
                self.libraries = list(pool.map(compile_cpu, map(self.text, units)))
        return self.libraries

    def module(self, number: int, order_seed: int = 0) -> CompiledModule:
        """Ready for the calls that were rehearsed; all memory is poisoned, and ends at a guard page for odd seeds."""
        kernels = _Named([CpuKernels(path, order_seed) for path in self.compiled()], self.names[number])
        return self._compiled(number, kernels, HostileAllocator(guard=order_seed % 2 == 1))

    def _compiled(self, number: int, kernels: Any, allocator: Allocator) -> CompiledModule:
        programs = self.lowered[number].programs
        weights = programs.get("weights")
        cpu = torch.device("cpu")
        return CompiledModule(programs["main"], kernels, cpu, {}, weights_program=weights, allocator=allocator)


# --- inputs ---


class Inputs:
    """Random tensors by sizes, each lying in memory in its own way."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *sizes: int, element: str = "f32", low: float = -3, high: float = 3) -> Tensor:
        uniform = torch.rand(sizes, generator=self.generator, dtype=torch.float64) * (high - low) + low
        if element == "i1":
            return uniform > (low + high) / 2
        return (uniform.floor() if element[0] == "i" else uniform).to(DTYPE[element])


def transposed(t: Tensor) -> Tensor:
    """The same values with the first dim innermost in memory."""
    order = tuple(reversed(range(t.dim())))
    return t.permute(order).contiguous().permute(order)


def stepped(t: Tensor) -> Tensor:
    """The same values, every second element of a larger tensor, from its second."""
    wide = torch.zeros([2 * s + 1 for s in t.shape], dtype=t.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in t.shape)]
    return view.copy_(t)


def misaligned(t: Tensor) -> Tensor:
    """The same values, contiguous, one element after a multiple of 16 bytes."""
    memory = torch.zeros(t.numel() + 1, dtype=t.dtype)
    return memory[1:].view(t.shape).copy_(t)


def channels_last(t: Tensor) -> Tensor:
    return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t


def expanded(t: Tensor) -> Tensor:
    """The first row for every row, with a stride of 0."""
    return t[:1].expand(t.shape) if t.dim() and t.shape[0] else t


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda t: t,
    "transposed": transposed,
    "stepped": stepped,
    "misaligned": misaligned,
    "channels_last": channels_last,
    "expanded": expanded,
}


def as_it_lies(t: Tensor) -> Tensor:
    """A copy of the tensor with the same strides and offset in memory of its own, which ends at a guard page."""
    steps: list[int] = [(s - 1) * k for s, k in zip(t.shape, t.stride(), strict=True)]
    reach = 1 + sum(steps) if t.numel() else 0
    shift = int(t.storage_offset()) * t.itemsize % 16 // t.itemsize
    memory = HostileAllocator(guard=True).bytes((reach + shift) * t.itemsize, t.device)
    elements = memory.view(t.dtype)[shift:]
    if t.numel():
        elements.copy_(t.as_strided((reach,), (1,), t.storage_offset()))
    return elements.as_strided(t.shape, t.stride())


# --- comparison ---

SLACK = {torch.float64: 1e-11, torch.float32: 6e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def wide(t: Any) -> Any:
    return t.double() if isinstance(t, Tensor) and t.is_floating_point() else t


def clones(arguments: Sequence[Any]) -> list[Any]:
    return [a.clone() if isinstance(a, Tensor) else a for a in arguments]


def row_errors(actual: Tensor, expected: Tensor) -> Tensor:
    """‖actual - expected‖ / ‖expected‖ of the rows of the last dim, finite elements only; a row that cancels to little
    is measured by the average one."""
    finite = expected.isfinite() & actual.isfinite()
    a, e = (torch.where(finite, t.double(), 0.0) for t in (actual, expected))
    rows = (a - e).reshape(-1, a.shape[-1] if a.dim() else 1)
    norm = e.reshape(rows.shape).norm(dim=-1)
    norm = torch.maximum(norm, norm.square().mean().sqrt())
    return rows.norm(dim=-1) / torch.where(norm == 0, 1.0, norm)


def difference(actual: Tensor, expected: Tensor, eager: Tensor, slack: float = 0) -> str | None:
    """In what a result differs from `expected` (of float64 operands) by more than its type and eager's own error
    explain."""
    if actual.shape != expected.shape:
        return f"sizes {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    if actual.dtype != eager.dtype:
        return f"{actual.dtype}, expected {eager.dtype}"
    if not actual.is_floating_point():
        return None if torch.equal(actual, expected.to(actual.dtype)) else f"{actual}, expected {expected}"
    if not actual.numel():
        return None
    reference = torch.where(eager.isfinite(), expected, eager.double())
    if not torch.equal(torch.where(actual.isfinite(), 0.0, actual), torch.where(eager.isfinite(), 0.0, eager)):
        bad = actual.isfinite() != eager.isfinite()
        if bad.any() or not torch.equal(actual.isnan(), eager.isnan()):
            return f"{actual}, expected {eager}: NaN or infinity elsewhere"
    errors = row_errors(actual, reference)
    allowed = 1.5 * row_errors(eager, reference) + max(SLACK[actual.dtype], slack)
    worst = int((errors - allowed).argmax())
    if bool(errors[worst] <= allowed[worst]):
        return None
    rows = actual.reshape(errors.numel(), -1)[worst], reference.reshape(errors.numel(), -1)[worst]
    return f"row {worst}: {rows[0]}, expected {rows[1]} (error {errors[worst]:.2e}, allowed {allowed[worst]:.2e})"


Witness = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A graph, the calls to try, and what torch says: `witness(*arguments)` returns the results and may change
    arguments in place."""

    name: str
    build: Callable[[Graph], None]
    calls: Sequence[Sequence[Any]]
    witness: Witness
    slack: float = 0
    """The error to allow at least: where a result is of a wider type than what it is computed in."""

    def module(self) -> ModuleOp:
        return graph(self.build)


def check_call(compiled: CompiledModule, case: Case, arguments: Sequence[Any]) -> None:
    """One call of the compiled module against torch; arguments that torch changes must be changed so, the others not at
    all."""
    ours = [as_it_lies(a) if isinstance(a, Tensor) else a for a in arguments]
    eager, exact = clones(arguments), [wide(a) for a in clones(arguments)]
    results = compiled(*ours)
    wanted, precise = (as_list(case.witness(*a)) for a in (eager, exact))
    shown = ", ".join(f"{tuple(a.shape)}{a.stride()}" if isinstance(a, Tensor) else str(a) for a in arguments)
    assert len(results) == len(wanted)
    for i, (have, want, truth) in enumerate(zip(results, wanted, precise, strict=True)):
        assert isinstance(have, Tensor)
        owners, torch_owners = sharing(have, ours), sharing(want, eager)
        assert {*owners} <= {*torch_owners}, f"{case.name}: result {i} shares memory with {owners}, not {torch_owners}"
        wrong = difference(have, truth, want, case.slack)
        assert wrong is None, f"{case.name}: result {i} of ({shown}): {wrong}"
    for i, (have, want, truth) in enumerate(zip(ours, eager, exact, strict=True)):
        if isinstance(have, Tensor):
            wrong = difference(have, truth, want, case.slack)
            assert wrong is None, f"{case.name}: argument {i} after the call of ({shown}): {wrong}"


def sharing(tensor: Tensor, arguments: Sequence[Any]) -> list[int]:
    """The arguments whose memory the tensor lies in."""
    memory = tensor.untyped_storage().data_ptr()
    tensors = [(i, a) for i, a in enumerate(arguments) if isinstance(a, Tensor)]
    return [i for i, a in tensors if tensor.numel() and a.untyped_storage().data_ptr() == memory]


def check_evaluator(module: ModuleOp, case: Case, arguments: Sequence[Any]) -> None:
    """The evaluator on the module at any stage of the graph level against torch."""
    arrays = [to_array(a) if isinstance(a, Tensor) else a for a in clones(arguments)]
    found = run(main_of(module), arrays)
    updated = main_of(module).returned.updated
    eager, exact = clones(arguments), [wide(a) for a in clones(arguments)]
    wanted, precise = (as_list(case.witness(*a)) for a in (eager, exact))
    pairs = [(eager[i], exact[i]) for i in updated] + list(zip(wanted, precise, strict=True))
    for i, (have, (want, truth)) in enumerate(zip(found, pairs, strict=True)):
        wrong = difference(torch.from_numpy(have).to(want.dtype), truth, want, case.slack)
        assert wrong is None, f"{case.name}: result {i} of the evaluator: {wrong}"


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def dims(value: SSAValue) -> Dims:
    return dims_of(value)


def graph_ops(module: ModuleOp) -> list[GraphOp]:
    return [op for op in module.walk() if isinstance(op, GraphOp)]
