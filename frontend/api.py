"""`dlcb.compile`: capture, import, lower, compile, and hand over what is called like the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, cast, get_args, overload

import torch
from torch.export import ExportedProgram

from dlcb.errors import UnsupportedError, UserError
from dlcb.frontend.capture import name_of
from dlcb.frontend.capture.inputs import Dynamic
from dlcb.frontend.exported_program import Opened, open_exported
from dlcb.frontend.jit import MOST_KINDS, JitModel
from dlcb.frontend.options import HOT_AFTER, HOT_MODES, TORCH_RANGE, HotMode, Options
from dlcb.frontend.request import Request
from dlcb.frontend.second_trace import MOST_BRANCHES, with_second_traces
from dlcb.frontend.torch_private import flatten
from dlcb.lowering.cuda_to_text import cuda_unit
from dlcb.runtime.compiled import CompiledModel

Target = Literal["cuda", "cpu", "reference"]
WeightMode = Literal["live", "frozen"]
TARGETS: tuple[str, ...] = get_args(Target)


class Settings(TypedDict, total=False):
    """The options of `compile` that are given by name."""

    fullgraph: bool
    name: str | None
    keep_ir: bool
    check: bool
    graphs: bool
    branches: int
    hot_shapes: HotMode
    hot_after: int
    kinds: int


@overload
def compile(  # pyright: ignore[reportOverlappingOverload]: an exported program is callable, but says that it is not
    model: ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    dynamic: Dynamic = "auto",
    weights: WeightMode = "live",
    target: Target | None = None,
    **settings: Unpack[Settings],
) -> CompiledModel: ...


@overload
def compile(
    model: Callable[..., Any],
    example_inputs: Sequence[Any] | Mapping[str, Any],
    dynamic: Dynamic = "auto",
    weights: WeightMode = "live",
    target: Target | None = None,
    **settings: Unpack[Settings],
) -> CompiledModel: ...


@overload
def compile(
    model: Callable[..., Any],
    example_inputs: None = None,
    dynamic: Dynamic = "auto",
    weights: WeightMode = "live",
    target: Target | None = None,
    **settings: Unpack[Settings],
) -> JitModel: ...


def compile(
    model: Callable[..., Any] | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    dynamic: Dynamic = "auto",
    weights: WeightMode = "live",
    target: Target | None = None,
    *,
    fullgraph: bool = True,
    name: str | None = None,
    keep_ir: bool = False,
    check: bool = False,
    graphs: bool = True,
    branches: int = MOST_BRANCHES,
    hot_shapes: HotMode = "off",
    hot_after: int = HOT_AFTER,
    kinds: int = MOST_KINDS,
) -> CompiledModel | JitModel:
    """Compile a module or function once, for every size that it accepts.

    `model` may be an exported program: its own example inputs serve where none are given, and "auto" is what the export
    says. `example_inputs`: positional arguments (a tuple) or keyword arguments (a dict). Without them, the program is
    compiled at the first call of each kind of arguments (rank, dtype, device and layout class of tensors, values of
    other constants); the `kinds` used last are kept.

    `dynamic`: "auto" frees every size that can be free; False keeps all; `{"x": {0: "batch"}}` frees these, equal names
    being equal sizes. `weights`: "live" sees every change of the parameters at the next call, "frozen" folds them once
    (`refresh_weights()` folds again). `target`: "cuda" or "cpu", by default where the example is; or "reference", which
    runs each op by its own rule, slowly, on the CPU. `fullgraph=False` lets operations that DLCB does not compile run
    in eager, between the compiled regions; `explain()` lists them.

    `branches`: where Python branches on sizes, a call that goes another way than those before is traced at that call,
    into a program of its own, until there are that many. `hot_shapes`: "on" compiles a program of fixed sizes, in
    another process, for sizes that came `hot_after` times, and uses it from then on; "sync" waits for it.
    `graphs=False` switches CUDA graphs off. `keep_ir` keeps the printed IR of every stage; `check` verifies every
    stage, and that the program traced at the example's sizes is the one that was captured.

    Raises `UserError` for a program that eager refuses too, `UnsupportedError` for one that DLCB does not compile.
    """
    _check_torch()
    _check_choices(model, dynamic, weights, target)
    _check_hot_shapes(hot_shapes, hot_after, target)
    _check_count("branches", branches)
    _check_count("kinds", kinds)

    def compile_at(
        program: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], opened: Opened | None = None
    ) -> CompiledModel:
        device = _device(target, [*args, *kwargs.values()], program)
        options = Options(device, target or device.type, weights, keep_ir, check, graphs, hot_shapes, hot_after)
        known = (dynamic, name) if opened is None else (opened.dynamic, name or opened.name)
        request = Request(program, known[0], options, fullgraph, known[1])
        captured, first = request.compile(args, kwargs, opened.complete if opened else None)
        return first if opened or branches == 1 else with_second_traces(request, captured, first, branches)

    if isinstance(model, ExportedProgram):
        exported = open_exported(model, example_inputs, dynamic)
        return compile_at(exported.module, exported.args, exported.kwargs, exported)
    if example_inputs is None:
        return JitModel(model, partial(compile_at, model), name or name_of(model), kinds)
    return compile_at(model, *_arguments(example_inputs))


def cuda_text(model: CompiledModel) -> str:
    """The whole text that NVRTC compiles."""
    return cuda_unit(model.cuda_text)


def _check_torch() -> None:
    version = tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2])
    first, end = (tuple(map(int, t.split("."))) for t in TORCH_RANGE)
    if not first <= version < end:
        raise UserError(
            f"torch {torch.__version__} is installed; DLCB works with torch >= {TORCH_RANGE[0]}, < {TORCH_RANGE[1]}: "
            f"pip install 'torch>={TORCH_RANGE[0]},<{TORCH_RANGE[1]}'"
        )


def _check_choices(model: Any, dynamic: Any, weights: str, target: str | None) -> None:
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise UnsupportedError("the model is TorchScript; compile the Python module or function that it was made of")
    if not callable(model) and not isinstance(model, ExportedProgram):
        raise UserError(f"the model is a {type(model).__name__}; pass a module, a function or an exported program")
    if not isinstance(dynamic, (bool, Mapping)) and dynamic != "auto":
        raise UserError(
            f"dynamic is {dynamic!r}, expected 'auto', True, False or a dict such as {{'x': {{0: 'batch'}}}}"
        )
    if weights not in ("live", "frozen"):
        raise UserError(f"weights is {weights!r}, expected 'live' or 'frozen'")
    if target not in (None, *TARGETS):
        raise UserError(f"target is {target!r}, expected {', '.join(TARGETS)}")


def _check_hot_shapes(mode: str, after: int, target: str | None) -> None:
    if mode not in HOT_MODES:
        raise UserError(f"hot_shapes is {mode!r}, expected {', '.join(map(repr, HOT_MODES))}")
    if mode != "off" and target == "reference":
        raise UserError("hot_shapes: the reference target has no kernels; compile for cuda or cpu")
    _check_count("hot_after", after)


def _check_count(name: str, value: Any) -> None:
    if type(value) is not int or value < 1:
        raise UserError(f"{name} is {value!r}, expected a number, at least 1")


def _arguments(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return (), dict(cast("Mapping[str, Any]", example_inputs))
    if isinstance(example_inputs, (tuple, list)):
        return tuple(cast("Sequence[Any]", example_inputs)), {}
    given = f"a {type(example_inputs).__name__}"
    raise UserError(f"example_inputs is {given}; pass a tuple of positional arguments, (x,), or a dict")


def _device(target: str | None, values: Sequence[Any], model: Callable[..., Any]) -> torch.device:
    """Where the program runs: where its tensors are; a target that says otherwise is an error."""
    tensors = [v for v in flatten(list(values))[0] if isinstance(v, torch.Tensor)]
    if isinstance(model, torch.nn.Module):
        tensors += list(model.parameters())
    devices = {t.device for t in tensors}
    if any(device.type == "meta" for device in devices):
        raise UserError(
            "a parameter or example input is on the meta device, where nothing can run; move it to cpu or cuda"
        )
    if len(devices) > 1:
        raise UserError(f"the model and its inputs are on several devices: {', '.join(sorted(map(str, devices)))}")
    device = devices.pop() if devices else torch.device("cuda" if target == "cuda" else "cpu")
    if device.type not in ("cpu", "cuda"):
        raise UnsupportedError(f"tensors on {device}; DLCB compiles for cuda and cpu")
    where = "cpu" if target == "reference" else target
    if where is not None and where != device.type:
        raise UserError(f"target {target!r}, but the model and its inputs are on {device}; move them first")
    return device
