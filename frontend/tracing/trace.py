"""One run of a program's Python on fake tensors, recorded at the boundary of torch's C functions.

The mode sees every call of a torch function. Python functions of torch's run again with the mode on, so that what they
call is seen with sizes still tracked; a C function runs on the fakes and becomes one record. `special.py` has the
functions that are treated on their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from dlcb.dialects.shape.expr import Expr
from dlcb.dialects.shape.expr import sub as difference
from dlcb.errors import UnsupportedError
from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.fakes import Fakes
from dlcb.frontend.tracing.functionalize import MaybeCopy, Memory, State, Step, Storage
from dlcb.frontend.tracing.known_sizes import KnownSizes
from dlcb.frontend.tracing.names import DROPPED_KEYWORDS, FIRST_ARGUMENT, KEYWORDS, RANDOM, aten_name
from dlcb.frontend.tracing.primes import primes_from
from dlcb.frontend.tracing.records import Operands, Record, Value, Weight
from dlcb.frontend.tracing.result_sizes import FIXED, Fixed, Found, Sizes, in_trace
from dlcb.frontend.tracing.source import source_line
from dlcb.frontend.tracing.steering import FREE, Path, Site, Steering
from dlcb.frontend.tracing.stricter import refuse_as_eager
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedSize, expr_of
from dlcb.frontend.tracing.tracker import Tracker

Handler = Callable[["Trace", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

_SPECIAL_IN_PYTHON = frozenset(
    {"__len__", "split", "meshgrid", "unique", "unique_consecutive", "sym_max", "sym_min", "sym_int", "sym_float"}
)
"""Functions written in Python that are not run again but treated as if they were C functions."""

_MAYBE_VIEWS = frozenset({"reshape", "flatten", "reshape_as", "contiguous"})
"""Operations that copy only where strides don't allow a view."""

_SMALLEST_FRESH_SIZE = 1009
"""Sizes that depend on elements are larger than those of inputs."""

_PLAIN = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device, type(Ellipsis)})


Resized = Mapping[Value, Mapping[int, int]]
"""Sizes to take in place of others, by operand and axis."""


class Trace(private.TorchFunctionMode):
    """The records of one run. `named` finds the name and kind of a real tensor that is a parameter or buffer."""

    def __init__(
        self,
        fakes: Fakes,
        named: dict[int, tuple[str, str]],
        handlers: Handlers,
        steering: Steering = FREE,
    ) -> None:
        super().__init__()
        self.fakes = fakes
        self.tracker = Tracker(steering.answers)
        self.sites: dict[Site, int] = {}
        """Where the numbers of values come from."""
        self.replaced: dict[Site, dict[Path, Any]] = {}
        """The program's own operands where edits stand in place of them."""
        self.memory = Memory(self.emit, self.sizes, self._require_copy)
        self.records: list[Record] = []
        self.weights: dict[int, Weight] = {}
        self.known_sizes = KnownSizes(self.tracker, lambda tensor: self.state(tensor).dims)
        self.bases: dict[Value, Storage] = {}
        """The memory of inputs and weights, by the value they start with."""
        self.notes: list[str] = []
        self.asks_layouts = False
        """Does the program go by how tensors lie in memory?"""
        self.hands_out_sizes = False
        """Does the program itself, and not torch, get sizes as numbers?"""
        self.mend: Callable[[Record, Exception], Resized | None] | None = None
        """For an operation that refuses its operands: the sizes with which it may go on. Such a run is no run of the
        program; it tells what else is refused."""
        self.running: Record | None = None
        """The operation that torch runs at the moment."""
        self.failed: str | None = None
        """The first operation of the program's own that failed; a program that goes on has caught that."""
        self.line = "?"
        self._named = named
        self._handlers = handlers
        self._storages: dict[int, Storage] = {}
        self._steering = steering
        self._made: Counter[tuple[str, str]] = Counter()
        self._constants = 0
        self._values = max(steering.ids.values(), default=0)
        self._running: list[Any] = []
        self._fresh_sizes = primes_from(_SMALLEST_FRESH_SIZE)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = self._handlers.find(func)
        try:
            return handler(self, func, args, kwargs or {})
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            if not self.is_inside_torch and not isinstance(error, UnsupportedError):
                self.failed = self.failed or f"{getattr(func, '__name__', func)}: {source_line()}"
            raise

    @property
    def is_inside_torch(self) -> bool:
        """Does a Python function of torch's run?"""
        return bool(self._running)

    def run_python(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The body of a Python function of torch's, with the mode on. What it asks of its C namesake, torch hands
        to the mode under the Python function's name again."""
        namesake = private.c_method(func.__name__) if func in self._running else None
        if namesake is not None:
            return self._handlers.find(namesake)(self, namesake, args, kwargs)
        self._running.append(func)
        try:
            with self:
                return private.without_dispatch(func)(*args, **kwargs)
        finally:
            self._running.pop()

    def perform(
        self,
        name: str,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        why_eager: str = "",
        ordered: bool = False,
        stand_in: Callable[..., Any] | None = None,
    ) -> Any:
        """Run a C function on the fakes and record it under this name. `why_eager`, `ordered`: see `Record`; `stand_in`
        makes the results where the function can't run on fakes."""
        self.line = source_line()
        if private.is_any_autocast_enabled():
            raise UnsupportedError(
                f"{name}: autocast is active ({self.line}); DLCB compiles the dtypes that the program states"
            )
        if private.is_inside_transform():
            raise UnsupportedError(
                f"{name}: inside vmap, grad or another transform of torch.func ({self.line});"
                ' torch.compile(backend="dlcb") writes these out and compiles the result'
            )
        args = tuple(map(self.fake, args))
        kwargs = {key: self.fake(value) for key, value in kwargs.items()}
        if self._steering.edits:
            args, kwargs = self._edited(name, args, kwargs)
        record = self._record(name, func, args, kwargs)
        record.why_eager, record.ordered = why_eager, ordered
        self.running = record
        if stand_in is None:
            result, found = self._result_of(record, name, func, args, kwargs)
        else:
            result, found = stand_in(*args, **kwargs), None
        self.running = None
        self._bind(record, result, args, found)
        return result

    def _result_of(
        self, record: Record, name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Found | Fixed]:
        """The fakes that a function makes, with their sizes if it makes one. Where it refuses its operands, `mend` may
        have it go on with others."""
        given = args, kwargs
        try:
            result = self.fakes.call(func, args, kwargs, self.tracker, name)
            refuse_as_eager(name, args, kwargs)
        except Exception as error:
            sizes = None if self.mend is None else self.mend(record, error)
            if sizes is None:
                raise
            given = self._resized(sizes, args), {key: self._resized(sizes, value) for key, value in kwargs.items()}
            result = self.fakes.call(func, *given, self.tracker, name)
        found = self.known_sizes.found(name, args, kwargs)
        if found is not None and given[0] is not args and isinstance(result, torch.Tensor):
            found = None if found is FIXED else _as_they_are(found, result.shape)
        return result, found

    def _resized(self, sizes: Resized, operand: Any) -> Any:
        """An operand with other fakes where sizes are to be others."""
        kind = cast(type[Any], type(operand))
        if kind is tuple or kind is list:
            return cast(Any, kind(self._resized(sizes, item) for item in operand))
        changed = sizes.get(self.operand(operand)) if kind is private.FakeTensor else None
        if changed is None:
            return operand
        shape = list(operand.shape)
        for axis, size in changed.items():
            shape[axis] = size
        return operand.new_empty(shape)

    def fakes_of(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a C function returns for fakes, without a record."""
        return self.fakes.call(func, args, kwargs, self.tracker)

    def check(self, func: Callable[..., Any], *args: Any) -> None:
        """Raises torch's own error where a C function refuses these fakes."""
        self.fakes.check(func, args, {}, self.tracker)

    def _edited(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        site, steering = (self.line, name, self._made[self.line, name]), self._steering
        if site not in steering.edits:
            return args, kwargs
        self.dims(args[0])
        self.replaced[site] = {p: self.operand(leaf) for p, leaf in steering.replaced(site, args, kwargs).items()}
        return steering.edited(site, args, kwargs, self.tracker)

    def emit(
        self,
        op: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        like: torch.Tensor,
        run: Callable[..., Any] | None = None,
    ) -> Value:
        """Record an op of one result, whose traced sizes and dtype are those of a fake."""
        value = self.new_value(like, op)
        self.records.append(Record(op, args, kwargs, (value,), self.line, run))
        return value

    def new_value(self, like: torch.Tensor, op: str = "") -> Value:
        """`op`: what makes it. Numbers count up; a run that follows another has its numbers at equal sites."""
        site = (self.line, op, self._made[self.line, op])
        self._made[self.line, op] += 1
        number = self._steering.ids.get(site)
        if number is None:
            number = self._values = self._values + 1
        self.sites[site] = number
        return Value(number, tuple(like.shape), like.dtype, like.device, like.stride())

    # Operands

    def fake(self, operand: Any) -> Any:
        """An operand with fakes for real tensors."""
        kind = cast(type[Any], type(operand))
        if kind in _PLAIN or kind is private.FakeTensor:
            return operand
        if isinstance(operand, torch.Tensor):
            return self.weight(operand)
        if kind is tuple or kind is list or kind is TrackedSize:
            return cast(Any, kind(map(self.fake, operand)))
        if kind is slice:
            return slice(self.fake(operand.start), self.fake(operand.stop), self.fake(operand.step))
        return operand

    def operand(self, operand: Any) -> Any:
        """An operand as it is recorded."""
        kind = cast(type[Any], type(operand))
        if kind in _PLAIN:
            return operand
        if kind is private.FakeTensor:
            return self.memory.read(self.state(operand))
        if kind is TrackedInt:
            return operand.expr
        if kind is TrackedFloat:
            return operand.operand
        if isinstance(operand, (tuple, list)):
            return tuple(map(self.operand, cast(Operands, operand)))
        return operand

    def _record(self, name: str, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Record:
        """The record of a call, without results."""
        if not kwargs:
            return Record(name, tuple(map(self.operand, args)), {}, (), self.line, func)
        first = None if args else next((key for key in FIRST_ARGUMENT if key in kwargs), None)
        given = args if first is None else (kwargs[first],)
        words: dict[str, Any] = {}
        dropped: dict[str, Any] = {}
        for key, value in kwargs.items():
            if key != first:
                place = dropped if key in DROPPED_KEYWORDS else words
                place[KEYWORDS.get(key, key)] = self.operand(value)
        return Record(name, tuple(map(self.operand, given)), words, (), self.line, func, dropped)

    # Tensors

    def state(self, tensor: torch.Tensor) -> State:
        """What is known of a tensor; a real one becomes a weight."""
        found = self.memory.find(tensor)
        if found is not None:
            return found
        if isinstance(tensor, private.FakeTensor):
            raise UnsupportedError(
                f"a tensor of {list(tensor.shape)} comes from an operation that capture did not see: {source_line()}"
            )
        return self.state(self.weight(tensor))

    def weight(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake twin of a real tensor."""
        twin = self.fakes.twin(tensor)
        if id(tensor) in self.weights:
            return twin
        name, kind = self._named.get(id(tensor), (f"const_{self._constants}", "constant"))
        self._constants += kind == "constant"
        state = self.add_base(twin, tuple(twin.shape))
        self.weights[id(tensor)] = Weight(name, kind, tensor, state.value)
        return twin

    def add_base(self, fake: torch.Tensor, dims: tuple[int, ...]) -> State:
        """A tensor with memory of its own: an input or a weight."""
        value = self.new_value(fake)
        storage = self._storages[private.storage_key(fake)] = self.bases[value] = Storage(value, value)
        return self.memory.add(State(fake, storage, value, self.known_sizes.add(value, dims)))

    def dims(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """The sizes of a tensor as tracked ints."""
        return self._dims(self.state(tensor))

    def hand_out(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """The sizes of a tensor for whoever asks."""
        dims = self.dims(tensor)
        if not self._running and not self.hands_out_sizes:
            self.hands_out_sizes = any(type(dim) is TrackedInt for dim in dims)
        return dims

    def sizes(self, state: State) -> tuple[Any, ...]:
        return tuple(map(size_operand, self._dims(state)))

    def _dims(self, state: State) -> tuple[int, ...]:
        return self.known_sizes.asked(state.dims)

    def fresh_size(self) -> int:
        """A size of the trace that depends on elements."""
        return next(self._fresh_sizes)

    def element(self, tensor: torch.Tensor) -> int:
        """The one element of an integer tensor as a tracked int."""
        return self.known_sizes.element(self.state(tensor).value, self.fresh_size())

    # Results

    def _bind(self, record: Record, result: Any, fakes: tuple[Any, ...], found: Found | Fixed) -> None:
        """Keep the record of a call if it made new tensors. `found`: sizes, if it made one."""
        several = cast(Operands, result) if isinstance(result, (tuple, list)) else (result,)
        tensors = [r for r in several if isinstance(r, torch.Tensor)]
        if not tensors:
            return
        if result is tensors[0] and (same := self.memory.find(tensors[0])) is not None:
            if record.op in _MAYBE_VIEWS:
                self.memory.add_copy(MaybeCopy(same, same, record.line, is_view=True))
            return
        record.results = tuple([self.new_value(tensor, record.op) for tensor in tensors])
        self.records.append(record)
        parent = fakes[0] if result is tensors[0] and fakes and isinstance(fakes[0], torch.Tensor) else None
        for tensor, value in zip(tensors, record.results, strict=True):
            dims = self.known_sizes.add(value, found if len(tensors) == 1 or found is FIXED else None)
            self._place(tensor, value, dims, record, parent)

    def _place(
        self, tensor: torch.Tensor, value: Value, dims: Sizes, record: Record, parent: torch.Tensor | None
    ) -> None:
        """Find the memory of a result: its own, or that of an operand."""
        key = private.storage_key(tensor)
        storage = self._storages.get(key)
        if storage is None:
            storage = self._storages[key] = Storage(value, value)
            state = self.memory.add(State(tensor, storage, value, dims))
            if parent is not None and record.op in _MAYBE_VIEWS and parent.dtype == tensor.dtype:
                self.memory.add_copy(MaybeCopy(self.state(parent), state, record.line))
            return
        self.memory.bases[value] = storage.root
        if parent is not None and private.storage_key(parent) == key:
            state = self.state(parent)
            step = Step(record.op, record.args[1:], record.kwargs, record.run)
            self.memory.add(State(tensor, storage, value, dims, storage.version, state, step))
        else:
            self.memory.add(State(tensor, storage, value, dims, storage.version, opaque=True))

    def _require_copy(self, copy: MaybeCopy) -> None:
        """Where a size is 1, or a slice is whole, the result may be a view."""
        does = "makes a view" if copy.is_view else "copies"
        kind, why = "eq" if copy.is_view else "ne", f"a reshape {does}, and one side is written, at {copy.line}"
        for size in self._dims(copy.source) if not copy.is_view else ():
            if type(size) is TrackedInt:
                self.tracker.require("ne", size.expr, 1, why)
        part = copy.source
        while part.parent is not None:
            sizes, whole = self._dims(part), self._dims(part.parent)
            for one, other in zip(sizes, whole, strict=True) if len(sizes) == len(whole) else ():
                less = difference(expr_of(other), expr_of(one))
                if less.value is None:
                    self.tracker.require(kind, less, 0, why)
            part = part.parent

    def alias(self, fake: torch.Tensor, of: torch.Tensor) -> None:
        """Another tensor object for the same tensor."""
        state = self.state(of)
        value = self.memory.read(state)
        self.memory.add(State(fake, state.storage, value, state.dims, state.storage.version, parent=state))

    def assign(self, target: torch.Tensor, fake: torch.Tensor) -> None:
        """target.copy_(fake), for a fake of the target's sizes."""
        if fake.dtype != target.dtype:
            fake = self.perform("to", torch.Tensor.to, (fake, target.dtype), {})
        self.memory.write(self.state(target), self.memory.read(self.state(fake)), self.line)


def _as_they_are(found: Sequence[Any], shape: Sequence[int]) -> Found:
    """The sizes that were found, where the tensor has them."""
    known = zip(found, shape, strict=True)
    return [dim if dim is not None and dim is not FIXED and in_trace(dim) == size else None for dim, size in known]


def size_operand(size: int) -> int | Expr:
    return expr_of(size) if type(size) is TrackedInt else size


class Handlers:
    """Which handler treats a torch function; found once for each function."""

    def __init__(
        self,
        special: dict[str, Handler],
        getters: dict[str, Handler],
        inplace: Handler,
        out: Handler,
        random: Handler,
        overload: Callable[[Any, Callable[[str], Handler]], Handler],
    ) -> None:
        self._overload = overload
        self._special = special
        self._getters = getters
        self._inplace = inplace
        self._out = out
        self._random = random
        self._found: dict[Any, Handler] = {}

    def find(self, func: Any) -> Handler:
        handler = self._found.get(func)
        if handler is None:
            handler = self._found[func] = self._choose(func)
        return handler

    def _choose(self, func: Any) -> Handler:
        if private.is_overload(func):
            return self._overload(func, self._named)
        if private.is_getter(func):
            return self._getters.get(func.__self__.__name__, ask)
        name = aten_name(func.__name__)
        if private.is_python_function(func) and name not in _SPECIAL_IN_PYTHON:
            return Trace.run_python
        return self._named(name)

    def _named(self, name: str) -> Handler:
        if name in self._special:
            return self._special[name]
        if name.rstrip("_") in RANDOM:
            return self._random
        if name.endswith("_") and not name.startswith("__"):
            return self._inplace
        return self._operation(name)

    def _operation(self, name: str) -> Handler:
        def operation(trace: Trace, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if kwargs and kwargs.get("out") is not None:
                return self._out(trace, func, args, kwargs)
            return trace.perform(name, func, args, kwargs)

        return operation


def ask(trace: Trace, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A question about a tensor whose answer needs no record."""
    return func(*args, **kwargs)
