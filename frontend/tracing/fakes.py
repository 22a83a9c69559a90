"""Fake tensors, and what torch's operations make of them.

Torch takes long to say what sizes, strides and dtype a result has: for many operations it runs Python that computes the
result by other operations. But an operation makes results of equal forms of operands of equal forms, so what it made is
remembered, for the layers and the runs that repeat it. What is new in a result that is remembered is its memory, or,
for a view, the memory of the operand that it is a view of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch

from dlcb.frontend import torch_private as private
from dlcb.frontend.tracing.forms import Form, New, View, has_rule, result_of
from dlcb.frontend.tracing.layouts import extent
from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedSize, traced
from dlcb.frontend.tracing.tracker import Tracker

Function: TypeAlias = Callable[..., Any]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = Mapping[str, Any]
Size: TypeAlias = Iterable[int]

_FORM = "dlcb_form"
"""The attribute of a fake that has its form."""


@dataclass(frozen=True, slots=True)
class _Operand:
    """The operand of that place itself."""

    place: int


_Part: TypeAlias = "New | View | _Operand | None"


@dataclass(frozen=True, slots=True)
class _Made:
    """What a call returns: one tensor, or a sequence of this type."""

    kind: type[Any] | None
    parts: tuple[_Part, ...]


class _Unknown(Exception):
    """Something that a key has no place for."""


class Fakes:
    """The fake tensors of the runs of one program."""

    def __init__(self) -> None:
        self.mode = private.FakeTensorMode()
        self._made: dict[tuple[Any, ...], _Made] = {}
        self._states: dict[torch.device, dict[str, Any]] = {}
        self._twins: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        """By the id of the real tensor, which lives as long as its twin."""
        self._memory: dict[int, torch.UntypedStorage] = {}
        """Of twins, by the memory of their real tensors."""

    # Tensors that no operation makes

    def new(self, shape: Size, strides: Size, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """A fake in memory of its own."""
        return self._fake(Form(tuple(shape), tuple(strides), 0, dtype, device))

    def twin(self, tensor: torch.Tensor) -> torch.Tensor:
        """The one fake of a real tensor. Fakes share memory where their real tensors do."""
        known = self._twins.get(id(tensor))
        if known is not None:
            return known[1]
        twin = self._of_real(tensor) if private.is_plain(tensor) else self.mode.from_tensor(tensor)
        self._twins[id(tensor)] = tensor, twin
        return twin

    def _of_real(self, tensor: torch.Tensor) -> torch.Tensor:
        memory = tensor.untyped_storage()
        key = private.storage_key(tensor)
        if key not in self._memory:
            self._memory[key] = private.meta_memory(memory.nbytes())
        return self._fake(_form_of(tensor), self._memory[key]).requires_grad_(tensor.requires_grad)

    def _fake(self, form: Form, memory: torch.UntypedStorage | None = None) -> torch.Tensor:
        shape, strides, offset, dtype, device = form
        state = self._states.get(device)
        if state is None:
            state = self._states[device] = private.fake_state(self.mode, device)
        fake = private.fake_tensor(state, shape, strides, dtype, device, None if memory is None else (memory, offset))
        vars(fake)[_FORM] = form
        return fake

    # Operations

    def call(self, function: Function, args: Args, kwargs: Kwargs, tracker: Tracker, op: str = "") -> Any:
        """What the function returns for fakes, which the fake mode must be on for. Errors are torch's own. `op`: which
        operation it is, if it is one."""
        tensors: list[torch.Tensor] = []
        key = _key(function, args, kwargs, tensors)
        known = None if key is None else self._made.get(key) or self._by_rule(key, op, args, kwargs)
        if known is not None:
            parts = [self._part(part, tensors) for part in known.parts]
            return parts[0] if known.kind is None else known.kind(parts)
        asked = tracker.asked
        result = function(*args, **kwargs)
        made = None if key is None or tracker.asked != asked else _made_of(result, tensors)
        if key is not None and made is not None:
            self._made[key] = made
        return result

    def _by_rule(self, key: tuple[Any, ...], op: str, args: Args, kwargs: Kwargs) -> _Made | None:
        """What is known without torch."""
        if not has_rule(op):
            return None
        found = result_of(op, _with_forms(args), {name: _with_forms(value) for name, value in kwargs.items()})
        if found is None:
            return None
        made = self._made[key] = _Made(None, (found,))
        return made

    def check(self, function: Function, args: Args, kwargs: Kwargs, tracker: Tracker) -> None:
        """Raises torch's error where it refuses the call."""
        if _key(function, args, kwargs, []) not in self._made:
            self.call(function, args, kwargs, tracker)

    def _part(self, part: _Part, tensors: list[torch.Tensor]) -> torch.Tensor | None:
        match part:
            case New(form):
                return self._fake(form)
            case View(form, of):
                return self._fake(form, tensors[of].untyped_storage())
            case _Operand(place):
                return tensors[place]
            case None:
                return None


def form_of(fake: torch.Tensor) -> Form:
    """The form of a fake, which it keeps."""
    found: Form | None = vars(fake).get(_FORM)
    if found is None:
        found = vars(fake)[_FORM] = _form_of(fake)
    return found


def _with_forms(operand: Any) -> Any:
    """An operand with forms in place of fakes."""
    if type(operand) is private.FakeTensor:
        return form_of(operand)
    if type(operand) is tuple or type(operand) is list:
        return tuple(map(_with_forms, cast("Args", operand)))
    return operand


def _form_of(tensor: torch.Tensor) -> Form:
    return Form(tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), tensor.dtype, tensor.device)


# --- keys -------------------------------------------------------------------------------------------------------------

_AS_THEY_ARE = frozenset(
    {type(None), str, torch.dtype, torch.device, torch.memory_format, torch.layout, type(Ellipsis)}
)
_NUMBERS: dict[type[Any], type[Any]] = {int: int, TrackedInt: int, float: float, TrackedFloat: float, bool: bool}
_SEQUENCES: dict[type[Any], type[Any]] = {tuple: tuple, TrackedSize: tuple, torch.Size: tuple, list: list}


def _key(function: Function, args: Args, kwargs: Kwargs, tensors: list[torch.Tensor]) -> tuple[Any, ...] | None:
    """All that the form of the results follows from, or None where that is not known. Fills in the tensors."""
    if torch.is_grad_enabled():
        return None
    parts: list[Any] = [function, torch.get_default_dtype(), private.ambient_choices(function)]
    try:
        _add(args, parts, tensors)
        for name, value in kwargs.items():
            parts.append(name)
            _add(value, parts, tensors)
    except _Unknown:
        return None
    if len(tensors) > 1:
        parts += _sharing(tensors)
    return tuple(parts)


def _add(operand: Any, parts: list[Any], tensors: list[torch.Tensor]) -> None:
    kind = cast(type[Any], type(operand))
    if kind is private.FakeTensor:
        tensors.append(operand)
        parts.append(form_of(operand))
    elif kind in _NUMBERS:
        parts += (_NUMBERS[kind], traced(operand))
    elif kind in _AS_THEY_ARE:
        parts.append(operand)
    elif kind in _SEQUENCES:
        parts += (_SEQUENCES[kind], len(operand))
        for item in operand:
            _add(item, parts, tensors)
    elif kind is slice:
        parts.append(slice)
        for item in (operand.start, operand.stop, operand.step):
            _add(item, parts, tensors)
    else:
        raise _Unknown


def _sharing(tensors: list[torch.Tensor]) -> Iterable[int]:
    """Which of the tensors are one, and which lie in the same memory."""
    first: dict[int, int] = {}
    for place, tensor in enumerate(tensors):
        yield first.setdefault(id(tensor), place)
    first = {}
    for place, tensor in enumerate(tensors):
        yield first.setdefault(private.storage_key(tensor), place)


# --- what was made ----------------------------------------------------------------------------------------------------


def _made_of(result: Any, tensors: list[torch.Tensor]) -> _Made | None:
    """None where it can't be made again."""
    if isinstance(result, torch.Tensor):
        kind, items = None, [result]
    elif type(result) in (tuple, list) or private.is_named_result(result):
        kind, items = cast(type[Any], type(result)), list(result)
    else:
        return None
    memory = {private.storage_key(tensor): place for place, tensor in reversed([*enumerate(tensors)])}
    try:
        return _Made(kind, tuple([_part_of(item, tensors, memory) for item in items]))
    except _Unknown:
        return None


def _part_of(item: Any, tensors: list[torch.Tensor], memory: dict[int, int]) -> _Part:
    if item is None:
        return None
    place = next((place for place, tensor in enumerate(tensors) if tensor is item), None)
    if place is not None:
        return _Operand(place)
    if type(item) is not private.FakeTensor or not private.is_plain(item) or item.requires_grad:
        raise _Unknown
    form, key = form_of(item), private.storage_key(item)
    if key in memory:
        if memory[key] < 0:
            raise _Unknown
        return View(form, memory[key])
    if form.offset or item.untyped_storage().nbytes() != extent(form.shape, form.strides) * form.dtype.itemsize:
        raise _Unknown
    memory[key] = -1
    return New(form)
