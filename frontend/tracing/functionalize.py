"""Memory in value semantics: which value a tensor has at the moment it is read, however it was written.

Tensors that share memory share a `Storage`, whose `value` is the content of its base tensor. A view knows its parent
and the step from it. Writing through a view writes the parent's changed value, up to the base, and makes the storage's
version one more; a view whose value is of an older version is made again from its parent when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from dlcb.errors import UnsupportedError
from dlcb.frontend.tracing.records import Value
from dlcb.frontend.tracing.result_sizes import Sizes

Dims = Sequence[int]

_SHAPE_VIEWS = frozenset(
    {"view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as", "atleast_1d"}
)


_OTHERWISE = "through another one, with which it shares memory in a way that DLCB does not follow"


class Emit(Protocol):
    """Records an op of one result."""

    def __call__(
        self,
        op: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        like: torch.Tensor,
        run: Callable[..., Any] | None = None,
    ) -> Value: ...


@dataclass(eq=False, slots=True)
class Storage:
    root: Value
    """The value that its memory began with."""
    value: Value
    version: int = 0
    copies: list[MaybeCopy] = field(default_factory=list["MaybeCopy"])
    """Copies from and to this memory that are views at other sizes."""
    stale: list[MaybeCopy] = field(default_factory=list["MaybeCopy"])
    """Those of which the other side was written since: to read this side now tells a copy from a view."""


@dataclass(frozen=True, slots=True)
class MaybeCopy:
    """A reshape that copies in the trace, or (`is_view`) one that makes a view there. It is a view where dims of size 1
    let it be, or slices are whole."""

    source: State
    result: State
    line: str
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """view = op(parent, *args, **kwargs)."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    run: Callable[..., Any] | None = None


@dataclass(eq=False, slots=True)
class State:
    """One tensor of the program. Without a step it is its storage's base, or, with a parent, the same tensor again."""

    tensor: torch.Tensor
    storage: Storage
    value: Value
    dims: Sizes
    """Its sizes as tracked ints, as far as someone asked or they are known."""
    version: int = 0
    parent: State | None = None
    step: Step | None = None
    opaque: bool = False
    """Shares memory in a way that is not known as a step from a parent."""
    written: bool = False
    """Its value is what was written last, not a view of its parent's."""


class Memory:
    """The tensors of one trace. `emit` records an op, `operand` gives the sizes of a tensor as operands of a record."""

    def __init__(
        self, emit: Emit, sizes: Callable[[State], tuple[Any, ...]], is_copy: Callable[[MaybeCopy], None]
    ) -> None:
        """`is_copy` requires of the sizes that what is a copy in the trace is one, and what is a view is one."""
        self._emit = emit
        self._is_copy = is_copy
        self._sizes = sizes
        self._states: dict[int, State] = {}
        self.bases: dict[Value, Value] = {}
        """For values that are views: the root of their storage."""

    def find(self, tensor: torch.Tensor) -> State | None:
        return self._states.get(id(tensor))

    def add(self, state: State) -> State:
        self._states[id(state.tensor)] = state
        return state

    def add_copy(self, copy: MaybeCopy) -> None:
        for storage in dict.fromkeys((copy.source.storage, copy.result.storage)):
            storage.copies.append(copy)

    def forget(self) -> None:
        """Lets go of the tensors, which refer to each other."""
        for state in self._states.values():
            state.storage.copies.clear()
            state.storage.stale.clear()
        self._states.clear()

    def read(self, state: State) -> Value:
        if state.storage.stale:
            self.tell_apart(state.storage)
        if state.version != state.storage.version:
            state.value = self._again(state)
            state.version = state.storage.version
            state.written = False
        return state.value

    def read_as_view(self, state: State) -> Value:
        """The value as a view of its storage's, also where it or a parent was written itself."""
        if state.parent is not None and state.step is not None and not state.opaque:
            parent = self.read_as_view(state.parent)
            if state.written or state.version != state.storage.version:
                state.value = self._step(state, state.step, parent)
                state.version = state.storage.version
                state.written = False
        return self.read(state)

    def tell_apart(self, storage: Storage) -> None:
        """What was copied from here, or to here, is seen not to have changed when the other side was written."""
        for copy in storage.stale:
            self._is_copy(copy)
        storage.stale.clear()

    def write(self, state: State, value: Value, line: str) -> None:
        if state.opaque:
            raise UnsupportedError(f"writing a tensor that is read {_OTHERWISE}: {line}")
        if state.parent is None:
            state.storage.value = value
            state.storage.version += 1
            for copy in state.storage.copies:
                if copy.is_view:
                    self._is_copy(copy)
                    continue
                other = copy.result if copy.source.storage is state.storage else copy.source
                other.storage.stale.append(copy)
        else:
            self.write(state.parent, self._written_back(state, state.parent, value, line), line)
        state.value = value
        state.version = state.storage.version
        state.written = True

    def _again(self, state: State) -> Value:
        if state.opaque:
            raise UnsupportedError(f"reading a tensor of {list(state.value.shape)} that was written {_OTHERWISE}")
        if state.parent is None:
            return state.storage.value
        parent = self.read(state.parent)
        return parent if state.step is None else self._step(state, state.step, parent)

    def _step(self, state: State, step: Step, parent: Value) -> Value:
        return self._emit(step.op, (parent, *step.args), step.kwargs, state.tensor, step.run)

    def _written_back(self, view: State, parent: State, value: Value, line: str) -> Value:
        """The parent's value once its view has this one."""
        step = view.step
        if step is None:
            return value
        if step.op in _SHAPE_VIEWS:
            return self._emit("view", (value, self._sizes(parent)), {}, parent.tensor)
        if step.op == "permute":
            (order,) = step.args
            inverse = tuple(sorted(range(len(order)), key=order.__getitem__))
            return self._emit("permute", (value, inverse), {}, parent.tensor)
        if step.op == "expand" and parent.tensor.shape == view.tensor.shape:
            return value
        if step.op in ("select", "slice", "diagonal"):
            args = (self.read(parent), value, *step.args)
            return self._emit(f"{step.op}_scatter", args, step.kwargs, parent.tensor)
        raise UnsupportedError(f"writing through a view made by {step.op}: {line}")
