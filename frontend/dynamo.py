"""`torch.compile(backend="dlcb")`: what torch calls, and what it tells afterwards.

Without gradients, Dynamo's graph is captured as it is: it is a torch program like any other, and AOTAutograd's trace
costs many times as much. Graphs that need gradients, autocast or torch's higher-order operators go through AOTAutograd,
whose forward and backward graphs are captured one by one. A graph is compiled at its first call, when its inputs are
there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import count
from typing import Any

import torch

from dlcb.errors import UserError
from dlcb.frontend import torch_private as private
from dlcb.frontend.graph_program import GraphOptions, GraphProgram
from dlcb.frontend.importer import TABLE

_KEPT = 256
_programs: deque[GraphProgram] = deque(maxlen=_KEPT)
"""The programs of this process, for `explain()`."""
_numbers = count()


def compile_graph(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    **words: Any,
) -> Callable[..., Any]:
    """The backend. `options`: `weights`, `graphs`, `hot_shapes` and `hot_after`, as in `dlcb.compile`. torch's `mode`
    asks for what DLCB does anyway and changes nothing."""
    chosen = _read_options({**words, **(options or {})})
    if _needs_aot(graph, example_inputs):
        return private.through_aot_autograd(graph, example_inputs, lambda traced, _: _add(traced, chosen, True), TABLE)
    return _add(graph, chosen, False)


def explain() -> str:
    """What became of the graphs that torch handed over in this process: what is native, what runs in eager and why."""
    if not _programs:
        return "torch has handed no graph to the backend 'dlcb'"
    return "\n".join(program.explain() for program in _programs)


def programs() -> list[GraphProgram]:
    """The programs of the graphs that torch handed over, the latest last."""
    return list(_programs)


def _add(graph: torch.fx.GraphModule, options: GraphOptions, through_aot: bool) -> GraphProgram:
    program = GraphProgram(graph, f"graph_{next(_numbers)}", options, through_aot)
    _programs.append(program)
    return program


def _read_options(words: Mapping[str, Any]) -> GraphOptions:
    known = {field.name for field in fields(GraphOptions)}
    given = {key: value for key, value in words.items() if key != "mode"}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise UserError(f"backend 'dlcb': unknown options {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    return GraphOptions(**given)


def _needs_aot(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs):
        return True
    return private.is_any_autocast_enabled() or any(private.is_for_aot(node) for node in graph.graph.nodes)
