"""Runs of one program at chosen sizes, and what they record."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch

from dlcb.dialects.shape.expr import Expr, sym
from dlcb.errors import UnsupportedError
from dlcb.frontend import torch_private as private
from dlcb.frontend.capture.inputs import Argument, Arguments
from dlcb.frontend.capture.refusals import Refused, first_line
from dlcb.frontend.capture.sizes import Plan
from dlcb.frontend.tracing.fakes import Fakes
from dlcb.frontend.tracing.functionalize import Storage
from dlcb.frontend.tracing.layouts import strides_like
from dlcb.frontend.tracing.python_numbers import tracking_python_numbers
from dlcb.frontend.tracing.real import Real
from dlcb.frontend.tracing.records import (
    ELEMENT,
    Alias,
    Input,
    Place,
    Record,
    Update,
    Value,
    Weight,
    result_dim_symbol,
)
from dlcb.frontend.tracing.result_sizes import Sizes
from dlcb.frontend.tracing.rewritten import Rewritten, keeps_results
from dlcb.frontend.tracing.special import make_handlers
from dlcb.frontend.tracing.steering import FREE, Path, Site, Steering
from dlcb.frontend.tracing.trace import Resized, Trace
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedSize, symbol
from dlcb.frontend.tracing.tracker import Check

_one_at_a_time = threading.RLock()
"""A run replaces functions of `builtins` and `math`."""


@dataclass(slots=True)
class Run:
    """What one run recorded."""

    inputs: list[Input]
    weights: list[Weight]
    records: list[Record]
    outputs: list[Any]
    out_spec: private.TreeSpec
    updates: list[Update]
    aliases: list[Alias]
    checks: list[Check]
    traced: dict[str, int]
    result_dims: dict[str, tuple[Value, int]]
    notes: list[str]
    asks_layouts: bool
    hands_out_sizes: bool
    """Does the program get sizes as numbers, which it can use unseen?"""
    extrema: set[Expr]
    """The least and greatest of numbers that it took."""
    sizes: dict[Value, Sizes]
    """Of inputs, weights and results, as the run knows them."""
    memory: dict[Value, Value]
    places: dict[Value, Place]
    sites: dict[Site, int]
    """The number of the value that is made at each site."""
    replaced: dict[Site, dict[Path, Any]]
    """The program's own operands where edits stand in place of them."""
    failed: str | None
    """An operation that failed, after which the program went on."""


def names_in(run: Run, other: Run) -> dict[str, Expr]:
    """For sizes of the other run's results, which count their values otherwise: their names in this run."""
    sites = {number: site for site, number in other.sites.items()}
    found: dict[str, Expr] = {}
    for name, (value, dim) in other.result_dims.items():
        number = run.sites.get(sites[value.id], value.id)
        if number != value.id and dim != ELEMENT:
            found[name] = sym(result_dim_symbol(replace(value, id=number), dim))
    return found


Mend = Callable[[Refused], Resized | None]
"""For an operation that is refused: the sizes with which a run may go on; None where it ends."""


class Session:
    """One program with its arguments; fake twins of its weights are shared by all runs."""

    def __init__(self, program: Callable[..., Any], arguments: Arguments) -> None:
        self.program = program
        self.arguments = arguments
        self.line = "?"
        """Where the last run was when it ended."""
        self.refused: Refused | None = None
        """The operation that the last run ended with, if torch refused it."""
        self.compared: Check | None = None
        """The last comparison of sizes before the last run failed."""
        self.reached = 0
        """How many operations came before the last run failed."""
        self._modules = list(program.modules()) if isinstance(program, torch.nn.Module) else []
        self.rewritten: Rewritten | None = None
        """The program's functions as the runs have them, where they are not as the program's source has them."""
        self._fakes = Fakes()
        self._named = _named_tensors(program)
        self._handlers = make_handlers()
        if keeps_results(program):
            self.rewrite()

    def rewrite(self) -> bool:
        """Let runs notice what Python's operators hide; whether that changes anything."""
        if self.rewritten is not None:
            return False
        self.rewritten = Rewritten(self.program)
        return True

    def run(self, plan: Plan, steering: Steering = FREE, mend: Mend | None = None) -> Run:
        """Run the program at the plan's sizes, on the way that `steering` says. With `mend` the run is no run of the
        program where an operation was refused: it goes on with the sizes that `mend` gives."""
        trace = Trace(self._fakes, self._named, self._handlers, steering)

        def refused(record: Record, error: Exception) -> Refused:
            return Refused(record, len(trace.records), first_line(error), trace.known_sizes.of)

        if mend is not None:
            trace.mend = lambda record, error: mend(refused(record, error))
        inputs: list[Input] = []
        leaves = [self._leaf(trace, argument, plan, inputs) for argument in self.arguments.leaves]
        args, kwargs = private.unflatten(leaves, self.arguments.spec)
        self.refused = self.compared = None
        try:
            with _one_at_a_time, torch.no_grad(), private.quiet_fakes(), self._unchanged_modules():
                noticing = self.rewritten() if self.rewritten else nullcontext()
                with noticing, tracking_python_numbers(), self._fakes.mode, trace:
                    result = self.program(*args, **kwargs)
            return self._finish(trace, inputs, result)
        except Exception as error:
            self.reached = len(trace.records)
            self.compared = next((check for check in reversed(trace.tracker.checks) if check.comparison), None)
            if trace.running is not None:
                self.refused = refused(trace.running, error)
            raise
        finally:
            self.line = trace.line
            trace.tracker.active = False
            trace.memory.forget()

    def _leaf(self, trace: Trace, argument: Argument, plan: Plan, inputs: list[Input]) -> Any:
        """An argument of the run: a fake tensor, a tracked int, or the constant itself."""
        given = Input(argument.name, argument.kind, argument.example, None, argument.symbols)
        inputs.append(given)
        sizes = [plan.values[name] for name in argument.symbols]
        trace.tracker.traced |= dict(zip(argument.symbols, sizes, strict=True))
        dims = tuple(
            size if name in plan.pinned else symbol(trace.tracker, name, size, argument.kind == "tensor")
            for name, size in zip(argument.symbols, sizes, strict=True)
        )
        if argument.kind == "int":
            trace.hands_out_sizes = trace.hands_out_sizes or type(dims[0]) is TrackedInt
            return dims[0]
        if argument.kind == "constant":
            return argument.example
        example = argument.example
        fake = self._fakes.new(sizes, strides_like(example, sizes), example.dtype, example.device)
        given.value = trace.add_base(fake, dims).value
        return fake

    def _finish(self, trace: Trace, inputs: list[Input], result: Any) -> Run:
        for storage in trace.bases.values():
            trace.memory.tell_apart(storage)
        leaves, out_spec = private.flatten(private.map_leaves(_plain_tuple, result))
        outputs = [self._output(trace, leaf) for leaf in leaves]
        return Run(
            inputs=inputs,
            weights=list(trace.weights.values()),
            records=trace.records,
            outputs=outputs,
            out_spec=out_spec,
            updates=[Update(base, storage.value) for base, storage in trace.bases.items() if storage.version],
            aliases=list(_aliases(trace, leaves)),
            checks=trace.tracker.checks,
            traced=trace.tracker.traced,
            result_dims=trace.known_sizes.symbols,
            notes=trace.notes,
            asks_layouts=trace.asks_layouts,
            hands_out_sizes=trace.hands_out_sizes,
            extrema=trace.tracker.extrema,
            sizes=trace.known_sizes.of,
            memory=trace.memory.bases,
            places=_places(trace, leaves),
            sites=trace.sites,
            replaced=trace.replaced,
            failed=trace.failed,
        )

    def _output(self, trace: Trace, leaf: Any) -> Any:
        if type(leaf) is TrackedFloat and leaf.operand.ratio is None:
            leaf = leaf.pin("a result")
        fake = trace.fake(leaf)
        is_tensor = isinstance(fake, torch.Tensor)
        recorded = trace.memory.read_as_view(trace.state(fake)) if is_tensor else trace.operand(fake)
        if recorded is None or isinstance(recorded, _OUTPUTS):
            return recorded
        raise UnsupportedError(f"the program returns a {type(leaf).__name__}; return the tensors in it")

    @contextmanager
    def _unchanged_modules(self) -> Generator[None]:
        """Undo what the run assigns to attributes of modules; a tensor there would be state that DLCB does not keep."""
        before = [(module, space, space.copy()) for module in self._modules for space in _spaces(module)]
        try:
            yield
        finally:
            changed = [(module, space, saved) for module, space, saved in before if not _is_same(space, saved)]
            made = [(module, space.copy(), saved) for module, space, saved in changed]
            for _, space, saved in changed:
                space.clear()
                space.update(saved)
        for module, space, saved in made:
            _refuse_new_tensors(module, space, saved)


def _plain_tuple(leaf: Any) -> Any:
    """The sizes of a tensor as a tuple, of which each is a result."""
    return tuple(leaf) if isinstance(leaf, TrackedSize) else leaf


_OUTPUTS = (Value, Expr, Real, bool, int, float, str, torch.dtype, torch.device)


def _spaces(module: torch.nn.Module) -> list[dict[str, Any]]:
    space = vars(module)
    return [space, space["_parameters"], space["_buffers"], space["_modules"]]


def _is_same(space: dict[str, Any], saved: dict[str, Any]) -> bool:
    return len(space) == len(saved) and all(map(operator.is_, space.values(), saved.values()))


def _refuse_new_tensors(module: torch.nn.Module, space: dict[str, Any], saved: dict[str, Any]) -> None:
    for name, value in space.items():
        if isinstance(value, torch.Tensor) and saved.get(name) is not value:
            raise UnsupportedError(
                f"forward assigns a tensor to '{name}' of {type(module).__name__}; write into it, or return it"
            )


def _named_tensors(program: Callable[..., Any]) -> dict[int, tuple[str, str]]:
    if not isinstance(program, torch.nn.Module):
        return {}
    named = {id(tensor): (name, "buffer") for name, tensor in program.named_buffers()}
    return named | {id(tensor): (name, "parameter") for name, tensor in program.named_parameters()}


def _aliases(trace: Trace, leaves: list[Any]) -> Iterator[Alias]:
    """Outputs that share memory with an input, a weight or an earlier output."""
    owner: dict[Storage, Value | int] = {storage: value for value, storage in trace.bases.items()}
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            of = owner.setdefault(trace.state(trace.fake(leaf)).storage, index)
            if of is not index:
                yield Alias(index, of)


def _places(trace: Trace, leaves: list[Any]) -> dict[Value, Place]:
    states = [trace.state(trace.fake(leaf)) for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return {trace.memory.read(state): Place(state.storage.value, state.storage.root) for state in states}
