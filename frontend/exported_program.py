"""Exported programs: their graph as a program to capture, with the dims that the export lets vary.

A dim that is symbolic in the export is free, under the name of its `Dim` where that is known (a `.pt2` file does not
keep it), within the range that the export gives it. As in torch, a least size of 2 or less is no limit: what an export
calls free is right for 0 and 1 too here.
"""

from __future__ import annotations

import logging
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.export.passes import move_to_device_pass

from dlcb.dialects.shape.expr import Expr, const, sym
from dlcb.errors import UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.inputs import Arguments, Dynamic, KnownDims, different_sizes, named_dims, read_arguments
from dlcb.frontend.graph_numbers import expression
from dlcb.frontend.importer import Imported, import_captured
from dlcb.frontend.static_sizes import free_static_sizes, size_expr
from dlcb.frontend.tracing.records import Captured
from dlcb.frontend.tracing.tracker import Check

__all__ = [
    "ExportedProgram",
    "Opened",
    "eager_of",
    "exact_of",
    "example_of",
    "graph_module",
    "import_exported",
    "load_exported",
    "on_device",
    "open_exported",
]

FREE_BELOW: Final = 2
"""An export assumes sizes of at least this, which limits nothing."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An exported program, ready to be captured. Its tensors are those of the program's state: updates are seen there.

    `checks` are the limits of the export's ranges."""

    module: torch.fx.GraphModule
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    dynamic: Dynamic
    checks: list[Check]
    derivations: list[str] = field(default_factory=list[str])
    """Why numbers in the graph are sizes."""

    def complete(self, captured: Captured) -> None:
        """Add to what was captured of the module what the export knows beyond its graph."""
        captured.checks += self.checks
        captured.notes += self.derivations


def open_exported(program: ExportedProgram, example_inputs: Any, dynamic: Dynamic) -> Opened:
    """`dynamic`: "auto" for what the export says, else as `dlcb.compile` takes it."""
    args, kwargs = _example(program, example_inputs)
    module = graph_module(program)
    arguments = read_arguments(module, args, kwargs)
    dims = _Dims(program, arguments)
    if dynamic == "auto" or dynamic is True:
        static = free_static_sizes(module, arguments, dims.static)
        known = KnownDims(dims.named(), dims.pinned | static.pinned, derived=dims.derived())
        notes = [*_warning(arguments, dims.static - static.pinned.keys()), *static.derivations]
        return Opened(module, _name(program), args, kwargs, known, list(dims.checks()), notes)
    if dynamic is False:
        return Opened(module, _name(program), args, kwargs, dynamic, [])
    named = named_dims(arguments, dynamic)
    different = different_sizes(arguments, named)
    if different:
        raise UserError(different)
    wanted = {symbol for group in named.values() for symbol in group}
    static = free_static_sizes(module, arguments, dims.static & wanted)
    for symbol, why in static.pinned.items():
        raise UserError(f"dynamic lets {arguments.text_of(symbol)} vary, which the export does not: {why}")
    return Opened(module, _name(program), args, kwargs, dynamic, [], static.derivations)


def _warning(arguments: Arguments, free: set[str]) -> Iterator[str]:
    """What nobody can see in an export."""
    if free:
        places = ", ".join(arguments.text_of(symbol) for symbol in arguments.example_sizes if symbol in free)
        yield (
            f"{places}: static in the export, and no op needs these numbers. Branches that Python took on them are not"
            " in the graph: where there are some, export them as dynamic, or compile with dynamic=False"
        )


def example_of(program: ExportedProgram) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs that the export was made with."""
    return _example(program, None)


def _example(program: ExportedProgram, given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(given, Mapping):
        return (), dict(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if given is not None:
        return tuple(given), {}
    if program.example_inputs is None:
        raise UserError("the exported program has no example inputs; give example_inputs")
    args, kwargs = program.example_inputs
    return tuple(args), dict(kwargs)


def _name(program: ExportedProgram) -> str:
    """The class of the module that was exported, where the graph says it."""
    for node in program.graph.nodes:
        for path, kind in node.meta.get("nn_module_stack", {}).values():
            name = str(getattr(kind, "__name__", kind)).rpartition(".")[2]
            if not path and not name.startswith("_"):
                return name
    return "exported"


def graph_module(program: ExportedProgram) -> torch.fx.GraphModule:
    """The graph over the program's own parameters and buffers, called as the exported module was; without the checks
    that torch runs before it, which look at sizes as numbers."""
    module = program.module(check_guards=False)
    assert isinstance(module, torch.fx.GraphModule)
    return torch.fx.GraphModule(module, module.graph)


def eager_of(program: ExportedProgram) -> Callable[..., Any]:
    """The program in PyTorch, with a copy of its state."""
    module = graph_module(program)
    return _with_state(module, {name: tensor.clone() for name, tensor in _state(module)})


def exact_of(program: ExportedProgram) -> Callable[..., Any]:
    """The program on the CPU in float64, also where its graph names another float: what rounding is measured by."""
    module = graph_module(program)
    for node in module.graph.nodes:
        node.args = private.map_leaves(_widened, node.args)
        node.kwargs = private.map_leaves(_widened, node.kwargs)
    module.recompile()
    wide = {n: t.to("cpu", torch.float64 if t.is_floating_point() else t.dtype, copy=True) for n, t in _state(module)}
    return _with_state(module, wide)


def _state(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        yield name, tensor.detach()


def _with_state(module: torch.nn.Module, state: dict[str, torch.Tensor]) -> Callable[..., Any]:
    return lambda *args, **kwargs: torch.func.functional_call(module, state, args, kwargs)


def _widened(leaf: Any) -> Any:
    if isinstance(leaf, torch.dtype) and leaf.is_floating_point:
        return torch.float64
    return torch.device("cpu") if isinstance(leaf, torch.device) else leaf


def on_device(program: ExportedProgram, device: str) -> ExportedProgram:
    """The program with its tensors there."""
    tensors = [*program.state_dict.values(), *program.constants.values(), *_tensors(program.example_inputs)]
    if all(t.device.type == device for t in tensors if isinstance(t, torch.Tensor)):
        return program
    return move_to_device_pass(program, device)


def _tensors(tree: Any) -> list[Any]:
    return private.flatten(tree)[0]


def input_values(program: ExportedProgram) -> list[Any]:
    """What the export knew of each leaf of the arguments: a fake tensor, a size, or a constant."""
    specs = program.graph_signature.input_specs
    names = [spec.arg.name for spec in specs if spec.kind is InputKind.USER_INPUT]
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    return [nodes[name].meta.get("val") for name in names]


def _dim_names(values: Sequence[Any]) -> dict[str, str]:
    """What users called the symbols, where the export was made in this process."""
    sizes = [
        s for v in values for s in (v.shape if isinstance(v, torch.Tensor) else [v]) if isinstance(s, torch.SymInt)
    ]
    if not sizes:
        return {}
    environment = cast(Any, sizes[0]).node.shape_env
    names: Mapping[str, str] = getattr(environment, "source_name_to_debug_name", {})
    symbols: Mapping[str, Any] = getattr(environment, "source_to_var", {})
    return {str(environment.replace(symbols[s])): name for s, name in names.items() if s in symbols}


def size_ranges(program: ExportedProgram) -> Iterator[tuple[str, int, int | None]]:
    """For each symbol its least and its largest value."""
    for symbol, allowed in cast(Any, program).range_constraints.items():
        low, high = allowed.lower, allowed.upper
        yield str(symbol), int(low) if low.is_Integer else 0, int(high) if high.is_Integer else None


class _Dims:
    """What the export says of each size of each leaf of the arguments."""

    def __init__(self, program: ExportedProgram, arguments: Arguments) -> None:
        leaves, values = arguments.leaves, input_values(program)
        if len(values) != len(leaves):
            raise UserError(f"the exported program takes {len(values)} inputs, the example has {len(leaves)}")
        self._program = program
        self._names = _dim_names(values)
        self._derived: list[tuple[str, Any]] = []
        """Sizes that are functions of the export's symbols."""
        self._symbols: dict[str, list[str]] = defaultdict(list)
        """For each symbol of the export, the sizes that are it."""
        self.static: set[str] = set()
        """The sizes that are numbers in the export."""
        self.pinned: dict[str, str] = {}
        """The integers that are, each with the reason."""
        for leaf, value in zip(leaves, values, strict=True):
            sizes = value.shape if leaf.kind == "tensor" else [value]
            for symbol, size in zip(leaf.symbols, sizes, strict=False):
                if isinstance(size, torch.SymInt) and not size_expr(size).is_Symbol:
                    self._derived.append((symbol, size_expr(size)))
                elif isinstance(size, torch.SymInt):
                    self._symbols[str(size_expr(size))].append(symbol)
                elif leaf.kind == "tensor":
                    self.static.add(symbol)
                else:
                    self.pinned[symbol] = f"the export has the number {size} here"

    def named(self) -> dict[str, list[str]]:
        """The sizes that are symbolic in the export, by what they are called there."""
        return {self._names.get(s, s): found for s, found in self._symbols.items()}

    def derived(self) -> dict[str, Expr]:
        """Sizes that are sums and products of symbols, each of which is a size of an input."""
        first = {symbol: sizes[0] for symbol, sizes in self._symbols.items()}
        found = {symbol: expression(size, first) for symbol, size in self._derived}
        return {symbol: expr for symbol, expr in found.items() if expr is not None}

    def checks(self) -> Iterator[Check]:
        """The ranges that the export gives its symbols, and what it says of derived sizes."""
        for symbol, expr in self.derived().items():
            yield Check("eq", sym(symbol), expr, "the export says so")
        for symbol, low, high in size_ranges(self._program):
            for size in self._symbols.get(symbol, ())[:1]:
                name = self._names.get(symbol, symbol)
                text = f"the export lets '{name}' be {low} to {'any size' if high is None else high}"
                if low > FREE_BELOW:
                    yield Check("le", const(low), sym(size), text)
                if high is not None:
                    yield Check("le", sym(size), const(high), text)


def import_exported(program: ExportedProgram, dynamic: Dynamic = "auto") -> Imported:
    """The whole program as IR; `UnsupportedError` for an operation that has no native form."""
    opened = open_exported(program, None, dynamic)
    captured = capture(opened.module, opened.args, opened.kwargs, opened.dynamic)
    opened.complete(captured)
    return import_captured(captured)


@contextmanager
def _quiet() -> Generator[None]:
    """Torch logs the traceback of an error on its way to another one, and 2.11 warns of its own buffers."""
    logger = logging.getLogger("torch.export")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given buffer is not writable", UserWarning)
            yield
    finally:
        logger.disabled = before


def load_exported(path: Path) -> ExportedProgram:
    """`torch.export.load`, with one clear error for whatever is no exported program.

    As torch says of it: it uses pickle under the hood, so only files whose maker one trusts are to be loaded."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    try:
        with _quiet():
            return torch.export.load(path)
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise UserError(f"{path}: not an exported program that torch {torch.__version__} reads: {first}") from None
