"""Holds a compiled program to eager: results, updated arguments, who shares memory with whom, at many shapes from one
compile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

import dlcb
from dlcb.benchmarks.accuracy import as_float64, in_float64, judge
from dlcb.errors import UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.retrace import retrace
from dlcb.lowering.text_to_cpu import compile_cpu
from dlcb.runtime.arguments import CallerArguments
from dlcb.runtime.artifact import Artifact
from dlcb.runtime.branches import BranchingModel
from dlcb.runtime.call import StepObserver
from dlcb.runtime.compiled import CompiledModel, Program
from dlcb.runtime.cpu import CpuKernels
from dlcb.runtime.kernels import Kernels
from dlcb.runtime.memory import Allocator, HostileAllocator
from dlcb.runtime.module import CompiledModule
from dlcb.runtime.patterned import PatternedProgram
from dlcb.runtime.plan import CallPlan, Launch
from dlcb.runtime.program import compile_program

KERNELS: dict[str, str] = {}
"""The kernels' text of every program compiled here, by that text's first user: at the end, all go through NVRTC."""


def rand(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*sizes, dtype=dtype)


def whole(*sizes: int, low: int = -5, high: int = 6, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, sizes, dtype=dtype)


def compiled(program: Callable[..., Any], example: Any, name: str = "program", **options: Any) -> CompiledModel:
    """Compile with every check on."""
    model = dlcb.compile(program, example, check=True, **options)
    KERNELS.setdefault(model.cuda_text, name)
    return model


def module_of(model: CompiledModel) -> CompiledModule:
    """What runs the model's calls, if it is wholly native; where it is made for a pattern of broadcasting, those of the
    pattern."""
    program = model.module
    return _native(program.first if isinstance(program, PatternedProgram) else program)


def modules_of(model: CompiledModel) -> Iterator[CompiledModule]:
    """The same, then what runs the calls that it refuses."""
    yield module_of(model)
    if isinstance(model.module, PatternedProgram):
        yield _native(model.module.general)
    if isinstance(model, BranchingModel):
        for other in model.branches[1:]:
            yield from modules_of(other)


@contextmanager
def observed(model: CompiledModel, observer: StepObserver) -> Generator[None]:
    """While it lasts, the observer is told of the steps of every call."""
    with ExitStack() as modules:
        for module in modules_of(model):
            modules.enter_context(module.observed(observer))
        yield


def _native(program: Program) -> CompiledModule:
    assert isinstance(program, CompiledModule)
    return program


def hostile(model: CompiledModel, seed: int, guard: bool = True) -> None:
    """From here on: blocks and threads in another order, all memory poisoned, buffers that end where no byte may be
    touched."""
    model.module = _like(
        model, lambda artifact: CpuKernels(compile_cpu(artifact.kernels), seed), HostileAllocator(guard)
    )


class _Idle:
    """Kernels that do nothing."""

    def function(self, name: str) -> Any:
        return name

    def activate(self) -> None:
        pass

    def launcher(self, function: Any, step: Launch, pointers: int, stream: int) -> Callable[[], None]:
        return lambda: None


def rehearsing(model: CompiledModel) -> CompiledModel:
    """The model with kernels that do nothing, so that no element is wrong; the first way alone of one that branches."""
    artifact, _, interface, report, make_record = model.parts
    return CompiledModel(artifact, _like(model, lambda _: _Idle(), Allocator()), interface, report, make_record)


def _like(model: CompiledModel, kernels: Callable[[Artifact], Kernels], allocator: Allocator) -> Program:
    """The model's program with other kernels and memory."""

    def module(artifact: Artifact) -> CompiledModule:
        main, weights = artifact.programs["main"], artifact.programs.get("weights")
        device = module_of(model).device
        return CompiledModule(
            main, kernels(artifact), device, artifact.weights, weights_program=weights, allocator=allocator
        )

    def general() -> tuple[Artifact, Program]:
        (artifact,) = program.others()
        return artifact, module(artifact)

    program, first = model.module, module(model.parts[0])
    if not isinstance(program, PatternedProgram):
        return first
    return PatternedProgram(first, program._fits, general)  # pyright: ignore[reportPrivateUsage]


FIXED = ("pinned", "stays", "given")
Make = Callable[..., tuple[Any, ...]]
"""The arguments for some sizes. Called twice with the same random numbers, so that both sides may update theirs."""


def agrees(program: Callable[..., Any], make: Make, sizes: Sequence[tuple[int, ...]], **options: Any) -> CompiledModel:
    """One compile at the first sizes; the program answers as eager does at all of them, also with hostile memory and
    order.

    All sizes of arguments are free, and the program traced at these sizes is the program that was captured.
    """
    allow_pins = options.pop("pinned", ())
    example = made(make, sizes[0], 0)
    captured = capture(program, example)
    model = compiled(program, example, name=getattr(program, "__name__", type(program).__name__), **options)
    fixed = {dim: state for dim, state in model.dimensions().items() if state.startswith(FIXED)}
    assert set(fixed) == set(allow_pins), fixed
    for seed, case in enumerate(sizes):
        same_answers(program, model, make, case, seed)
        if min(case) > 1:  # at other sizes `contiguous` may do nothing, `expand` may be the identity
            assert retrace(captured, program, made(make, case, seed), {}) is None
    hostile(model, seed=3)
    for seed, case in enumerate(sizes[1:3]):
        same_answers(program, model, make, case, 10 + seed)
    return model


def made(make: Make, sizes: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    return make(*sizes)


def same_answers(
    program: Callable[..., Any], model: Callable[..., Any], make: Make, sizes: tuple[Any, ...], seed: int
) -> None:
    mine, theirs = made(make, sizes, seed), made(make, sizes, seed)
    with torch.no_grad():
        expected = program(*theirs)
        exact_arguments = as_float64(made(make, sizes, seed))
        try:
            exact = in_float64(program)(*exact_arguments)
        except RuntimeError:  # the program names a dtype that float64 does not mix with
            exact, exact_arguments = expected, theirs
    actual = model(*mine)
    same(actual, expected, exact, f"{sizes}: result")
    same(mine, theirs, exact_arguments, f"{sizes}: argument")
    assert sharing(mine, actual) == sharing(theirs, expected), f"{sizes}: who shares memory with whom"


def same(actual: Any, expected: Any, exact: Any, where: str) -> None:
    """The same structure, and leaves that pass the error measure."""
    if isinstance(expected, Tensor):
        assert isinstance(actual, Tensor), where
        verdict = judge(actual, expected, exact)
        assert verdict.ok, f"{where}: {verdict.reason}"
    elif isinstance(expected, Mapping):
        assert isinstance(actual, Mapping), where
        assert list(actual) == list(expected), where
        for key in expected:
            same(actual[key], expected[key], exact[key], f"{where}.{key}")
    elif isinstance(expected, (tuple, list)):
        assert isinstance(actual, tuple if isinstance(expected, tuple) else list), where
        assert len(actual) == len(expected), where
        for number, (a, b, c) in enumerate(zip(actual, expected, exact, strict=True)):
            same(a, b, c, f"{where}[{number}]")
    else:
        assert type(actual) is type(expected), where
        assert actual == expected, where


def sharing(arguments: Any, results: Any) -> list[Any]:
    """For each tensor of the results: which earlier tensor's storage it lies in, and where."""
    tensors = [t for t in private.flatten((arguments, results))[0] if isinstance(t, Tensor)]
    given = len([t for t in private.flatten(arguments)[0] if isinstance(t, Tensor)])
    first: dict[int, int] = {}
    found: list[Any] = []
    for number, tensor in enumerate(tensors):
        owner = first.setdefault(tensor.untyped_storage().data_ptr(), number) if tensor.numel() else number
        if number >= given and owner != number:
            strides = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]
            found.append((number, owner, tensor.data_ptr() - tensors[owner].data_ptr(), strides))
    return found


def plan_of(model: CompiledModel, inputs: Any) -> CallPlan:
    """What a call with these arguments does: its memory, launches and library calls."""
    flat = [leaf for leaf in private.flatten(inputs)[0] if isinstance(leaf, (Tensor, int))]
    refusal = UserError("nothing takes the call")
    for module in modules_of(model):
        try:
            return _plan(module, flat)
        except UserError as error:
            refusal = error
    raise refusal


def _plan(module: CompiledModule, flat: Sequence[Any]) -> CallPlan:
    program = module.program
    module.check(flat)
    arguments = CallerArguments(program, module.device)
    weights = [n for n, a in enumerate(program.arguments) if a.kind == "weight"]
    facts = arguments.facts(flat, [16] * len(weights), weights)
    return compile_program(program)(facts)
