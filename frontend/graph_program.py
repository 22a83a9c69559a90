"""A graph of torch's compiler as a program, compiled at its first call, and again where a call needs it.

Dynamo's guards hold what the graph relies on, so a call that a compiled variant refuses is legal: it is compiled anew
with that call as its example, a bounded number of times, and runs in eager after that.
"""

from __future__ import annotations

import inspect
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from typing import Any, Literal, cast

import torch

from dlcb.errors import DlcbError, InternalError, UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.inputs import Argument, KnownDims, read_arguments
from dlcb.frontend.graph_numbers import expression, notice_numbers
from dlcb.frontend.importer import Result
from dlcb.frontend.options import HOT_AFTER, HotMode, Options
from dlcb.frontend.partition.build import build_captured
from dlcb.frontend.tracing.records import device_of
from dlcb.runtime.interface import result_maker
from dlcb.runtime.report import Report

MOST_VARIANTS = 8


@dataclass(frozen=True, slots=True)
class GraphOptions:
    weights: Literal["live", "frozen"] = "live"
    graphs: bool = True
    hot_shapes: HotMode = "off"
    hot_after: int = HOT_AFTER

    def on(self, device: torch.device) -> Options:
        return Options(
            device,
            device.type,
            self.weights,
            graphs=self.graphs,
            hot_shapes=self.hot_shapes,
            hot_after=self.hot_after,
        )


@dataclass(slots=True)
class Places:
    """What each input of a graph is, by its place."""

    names: list[str] = field(default_factory=list[str])
    arguments: list[int] = field(default_factory=list[int])
    """Tensors and integers that may differ between calls."""
    weights: list[int] = field(default_factory=list[int])
    """Parameters and buffers."""
    floats: list[int] = field(default_factory=list[int])
    """Python floats, which Dynamo hands over as tensors of rank 0 and reads at once."""
    dims: dict[int, tuple[str | None, ...]] = field(default_factory=dict[int, "tuple[str | None, ...]"])
    """For each size of an argument a name, equal ones for equal sizes, or None where Dynamo's guards fix it."""
    compound: dict[str, Any] = field(default_factory=dict[str, Any])
    """The names that torch's compiler gives functions of other sizes, with the functions."""


class Float(float):
    """A float that a graph reads as an element of a tensor."""

    def item(self) -> float:
        return float(self)


class GraphProgram:
    """Called with the graph's flat inputs; gives the graph's flat outputs."""

    def __init__(self, graph: torch.fx.GraphModule, name: str, options: GraphOptions, through_aot: bool) -> None:
        self.name = name
        self.through_aot = through_aot
        notice_numbers(graph)
        self._graph = graph
        self._options = options
        self._places = _read_places(graph)
        self._variants: list[Variant] = []
        self._refusals: list[str] = []
        self._gave_up = False
        self._lock = threading.Lock()

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        for variant in self._variants:
            if variant.takes(inputs):
                try:
                    return variant.run(inputs)
                except UserError:
                    continue
        variant = None if self._gave_up else self._new_variant(inputs)
        if variant is not None:
            try:
                return variant.run(inputs)
            except UserError as error:
                self._refusals.append(str(error))
        return self._graph(*inputs)

    @property
    def reports(self) -> list[Report]:
        return [variant.report for variant in self._variants]

    @property
    def refusals(self) -> list[str]:
        """Why calls ran in eager as a whole."""
        return list(self._refusals)

    def explain(self) -> str:
        way = "through AOTAutograd" if self.through_aot else "captured directly"
        if not self._variants and not self._refusals:
            return f"{self.name}, {way}: not called yet"
        lines = [f"{self.name}, {way}: compiled {len(self._variants)} times"]
        lines += [f"  {line}" for variant in self._variants for line in variant.explain().splitlines()]
        lines += [f"  in eager as a whole: {reason}" for reason in dict.fromkeys(self._refusals)]
        return "\n".join(lines)

    def _new_variant(self, inputs: Sequence[Any]) -> Variant | None:
        with self._lock:
            # What refused other parameters takes parameters as inputs from then on.
            bind = all(variant.has_weights(inputs) for variant in self._variants)
            try:
                variant = Variant(self._graph, self.name, self._places, inputs, self._options, bind)
            except DlcbError as error:
                self._refuse(error)
                return None
            except Exception as error:
                self._refuse(InternalError(f"{type(error).__name__}: {error}"))
                return None
            self._variants.insert(0, variant)
            if len(self._variants) >= MOST_VARIANTS:
                self._gave_up = True
                self._refusals.append(f"calls that none of {MOST_VARIANTS} compiled variants takes")
            return variant

    def _refuse(self, error: DlcbError) -> None:
        self._refusals.append(str(error))
        self._gave_up = not isinstance(error, UserError) or len(self._refusals) >= MOST_VARIANTS
        if isinstance(error, InternalError):
            warnings.warn(f"DLCB: {self.name} runs in eager because of a defect of DLCB: {error}", stacklevel=2)


class Variant:
    """One compiled form of a graph: for some values of its floats and, with `bind`, for some parameters."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        name: str,
        places: Places,
        inputs: Sequence[Any],
        options: GraphOptions,
        bind: bool,
    ) -> None:
        began = time.perf_counter()
        self._weight_places = places.weights if bind else []
        self._argument_places = places.arguments if bind else sorted([*places.arguments, *places.weights])
        self._weights = [inputs[i] for i in self._weight_places]
        program = _Bound(graph, places, inputs, self._argument_places, self._weight_places)
        arguments = [inputs[i] for i in self._argument_places]
        leaves = read_arguments(program, arguments, {}).leaves
        captured = capture(program, arguments, {}, _known_dims(leaves, places, self._argument_places))
        constants = [leaf.kind == "constant" for leaf in leaves]
        self._constant_places = [*places.floats, *compress(self._argument_places, constants)]
        self._constants = [_number(inputs[i]) for i in self._constant_places]
        self._argument_places = [
            p for p, constant in zip(self._argument_places, constants, strict=True) if not constant
        ]
        seconds = {"capture": time.perf_counter() - began}
        captured.keeps_layouts = True
        built, results = build_captured(captured, name, options.on(device_of(captured)), fullgraph=False)
        built.report.seconds = seconds | built.report.seconds
        self._built = built
        self._run = built.program.run
        self._outputs = None if _is_plain(results) else [result_maker(result.described) for result in results]

    @property
    def report(self) -> Report:
        return self._built.report

    def explain(self) -> str:
        return self._built.report.text(self._built.artifact)

    def takes(self, inputs: Sequence[Any]) -> bool:
        return self.has_weights(inputs) and all(
            _number(inputs[i]) == known for i, known in zip(self._constant_places, self._constants, strict=True)
        )

    def has_weights(self, inputs: Sequence[Any]) -> bool:
        return all(inputs[i] is known for i, known in zip(self._weight_places, self._weights, strict=True))

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        results = self._run([inputs[i] for i in self._argument_places])
        return results if self._outputs is None else [make(results) for make in self._outputs]


class _Bound(torch.nn.Module):
    """A graph as a module that has its parameters and buffers, called with the rest."""

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        places: Places,
        inputs: Sequence[Any],
        argument_places: Sequence[int],
        weight_places: Sequence[int],
    ) -> None:
        super().__init__()
        self.__dict__["graph"] = graph
        self._all = list(inputs)
        self._places = argument_places
        for place in places.floats:
            self._all[place] = Float(inputs[place])
        for place in weight_places:
            tensor = inputs[place]
            named = self._parameters if isinstance(tensor, torch.nn.Parameter) else self._buffers
            named[places.names[place]] = tensor
        parameters = [
            inspect.Parameter(places.names[place], inspect.Parameter.POSITIONAL_OR_KEYWORD) for place in argument_places
        ]
        self.__dict__["forward"] = _with_signature(self._forward, inspect.Signature(parameters))
        self.eval()

    def _forward(self, *arguments: Any) -> Any:
        full = list(self._all)
        for place, argument in zip(self._places, arguments, strict=True):
            full[place] = argument
        return self.__dict__["graph"](*full)


def _with_signature(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    def forward(*arguments: Any) -> Any:
        return function(*arguments)

    cast(Any, forward).__signature__ = signature
    return forward


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _known_dims(leaves: Sequence[Argument], places: Places, argument_places: Sequence[int]) -> KnownDims:
    """Sizes that are functions of others follow these."""
    named: dict[str, list[str]] = {}
    fixed: dict[str, str] = {}
    for leaf, place in zip(leaves, argument_places, strict=True):
        for symbol, name in zip(leaf.symbols, places.dims.get(place) or repeat(None), strict=False):
            if name is None:
                fixed[symbol] = "torch's guards fix it"
            else:
                named.setdefault(name, []).append(symbol)
    first = {name: symbols[0] for name, symbols in named.items() if name not in places.compound}
    functions = {name: expression(size, first) for name, size in places.compound.items() if name in named}
    derived = {s: expr for name, expr in functions.items() if expr is not None for s in named.pop(name)}
    return KnownDims(named, fixed, must_vary=False, derived=derived)


def _is_plain(results: Sequence[Result]) -> bool:
    return [result.place for result in results] == list(range(len(results))) and all(
        result.divisor is None for result in results
    )


def _read_places(graph: torch.fx.GraphModule) -> Places:
    places = Places()
    for place, node in enumerate(graph.graph.find_nodes(op="placeholder")):
        places.names.append(node.name)
        example = private.example_of(node)
        if private.is_static_input(node):
            places.weights.append(place)
        elif isinstance(example, torch.Tensor) and _is_float(node, example):
            places.floats.append(place)
        else:
            places.arguments.append(place)
            sizes = example.shape if isinstance(example, torch.Tensor) else (example,)
            places.dims[place] = tuple(map(private.symbolic_name, sizes))
            places.compound |= private.compound_sizes(sizes)
    return places


def _is_float(node: torch.fx.Node, example: torch.Tensor) -> bool:
    read = node.users and all(user.op == "call_method" and user.target == "item" for user in node.users)
    return bool(read) and example.dim() == 0 and example.dtype == torch.float64 and example.device.type == "cpu"
