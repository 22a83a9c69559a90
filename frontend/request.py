"""One request to compile: a program with its options, captured and compiled at the arguments of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcb.errors import InternalError, UserError
from dlcb.frontend.capture import capture
from dlcb.frontend.capture.inputs import (
    Arguments,
    Dynamic,
    in_order,
    named_dims,
    parameter_names,
    read_arguments,
    signature_of,
    user_names,
)
from dlcb.frontend.capture.retrace import retrace
from dlcb.frontend.importer import Result
from dlcb.frontend.options import Options
from dlcb.frontend.partition.build import build_captured
from dlcb.frontend.tracing.records import Captured
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.interface import Interface
from dlcb.runtime.structure import structure_of

Args = Sequence[Any]
Kwargs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    program: Callable[..., Any]
    dynamic: Dynamic
    options: Options
    fullgraph: bool
    name: str | None

    def compile(
        self, args: Args, kwargs: Kwargs, complete: Callable[[Captured], None] | None = None
    ) -> tuple[Captured, CompiledModel]:
        """What is captured at these arguments, and the model that it becomes. `complete` adds to what was captured."""
        began = time.perf_counter()
        args, kwargs = in_order(signature_of(self.program), args, kwargs)
        captured = capture(self.program, args, kwargs, self.dynamic)
        if complete is not None:
            complete(captured)
        seconds = {"capture": time.perf_counter() - began}
        if self.options.check:
            self._check_retrace(captured, args, kwargs)
        built, results = build_captured(captured, self.name or captured.name, self.options, self.fullgraph)
        built.report.seconds = seconds | built.report.seconds
        arguments = read_arguments(self.program, args, kwargs)
        built.report.names = user_names(arguments, self.dynamic)
        self._check_named(arguments, built.report.dimensions)
        interface = _interface(self.program, captured, results, args, kwargs)
        return captured, CompiledModel(built.artifact, built.program, interface, built.report, _record_maker(captured))

    def _check_named(self, arguments: Arguments, dimensions: Mapping[str, str]) -> None:
        """What the user wants to vary, the program must let vary."""
        if not isinstance(self.dynamic, Mapping):
            return
        for name, symbols in named_dims(arguments, self.dynamic).items():
            for text in map(arguments.text_of, symbols):
                state = dimensions.get(text, "")
                if state.startswith("pinned"):
                    raise UserError(f"dynamic lets {text} vary ('{name}'), but it is {state}")

    def _check_retrace(self, captured: Captured, args: Args, kwargs: Kwargs) -> None:
        found = retrace(captured, self.program, args, kwargs)
        if found is not None:
            raise InternalError(f"{captured.name}: traced at the example's sizes it is another program: {found}")


def _interface(
    program: Callable[..., Any],
    captured: Captured,
    results: Sequence[Result],
    args: Args,
    kwargs: Kwargs,
) -> Interface:
    names = parameter_names(signature_of(program), args, kwargs)
    given: list[Any] = [*args, *(kwargs[n] for n in names[len(args) :])]
    structure = structure_of(given, [])
    inputs: list[list[Any]] = []
    for described in captured.inputs:
        constant = described.kind == "constant"
        inputs.append(["constant", described.name, described.example] if constant else ["argument"])
    outputs = [result.described for result in results]
    filled = captured.out_spec.unflatten(list(range(len(outputs))))
    order: list[Any] = []
    return Interface(names, structure, inputs, structure_of(filled, order), [outputs[i] for i in order])


def _record_maker(captured: Captured) -> Callable[[str, dict[str, Any]], Any]:
    """Makes results of the type that the model returns."""
    example = captured.out_spec.unflatten(list(range(len(captured.outputs))))
    kinds: dict[str, type[Any]] = {}

    def visit(value: Any) -> None:
        if isinstance(value, Mapping):
            kinds[type(value).__name__] = type(value)  # pyright: ignore[reportUnknownArgumentType]
            for v in value.values():  # pyright: ignore[reportUnknownVariableType]
                visit(v)
        elif isinstance(value, (tuple, list)):
            for v in value:  # pyright: ignore[reportUnknownVariableType]
                visit(v)

    visit(example)
    return lambda name, items: kinds[name](**items)
