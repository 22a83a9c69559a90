"""Calls of functions that read a tracked number without asking it: code in C that is not torch's, and Python's own
libraries, of which numbers may come out that no expression follows. What they are given is pinned.

`len(str(n))`, `bytes(n)`, `numpy.arange(n)`, `Fraction(n, 3)`. Functions that only keep or hand on what they get are
known by name; so are those that the trace has replaced by its own.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import torch

from dlcb.frontend.tracing.tracked import TrackedFloat, TrackedInt, TrackedSize, TrackedText, pinned, to_float, to_int

_KEEPING = frozenset(
    "isinstance issubclass len tuple list dict set frozenset zip enumerate map filter sorted reversed slice id getattr"
    " setattr hasattr delattr callable iter next any all sum abs divmod pow round min max print object property super"
    " staticmethod classmethod bool".split()
)
"""Functions of `builtins` that compare and compute by the number's own methods, or keep it."""
_KEEPING_METHODS = frozenset(
    "append extend add update get setdefault keys values items count remove discard copy index union".split()
)
CACHED: type = type(cache(lambda: None))
_CONTAINERS = (list, tuple, dict, set, frozenset)
_HARMLESS = {"math", "dataclasses", "collections", "functools", "copy", "typing", "logging", "warnings", "contextlib"}
"""`math` is replaced, but for what asks the number."""
_BLIND = (sys.stdlib_module_names - _HARMLESS - {"builtins"}) | {"numpy", "scipy"}
_NUMBERS = (TrackedInt, TrackedFloat)
_TRACKED = (*_NUMBERS, TrackedText)
_TEXTS: tuple[Any, ...] = (str, repr, ascii, format)
_BY_NAME: tuple[Any, ...] = (getattr, setattr, hasattr, delattr)


def called(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The call, as a function of the program makes it."""
    if len(args) == 1 and not kwargs:
        for kind, make in _SAME:
            if function is kind:
                return make(args[0])
    function, args = _uncached(function, args)
    owner: Any = getattr(function, "__self__", None)
    if type(owner) in _TRACKED and isinstance(function, BuiltinMethodType):
        function = getattr(pinned(owner, f"{function.__name__}()"), function.__name__)
    if type(owner) is str and function.__name__ == "join" and len(args) == 1:
        items = list(args[0])
        return _text(owner.join(items), items)
    if args and _is_one_of(function, (map,)):
        args = (partial(called, args[0]), *args[1:])
    found = any(_is_tracked(a) for a in args) or any(_is_tracked(a) for a in kwargs.values())
    if found and (_is_one_of(function, _TEXTS) or (type(owner) is str and function.__name__ == "format")):
        return _text(function(*args, **kwargs), [*args, *kwargs.values()])
    if found and (_is_blind(function) or _is_one_of(function, _BY_NAME)):
        by = f"an argument of {getattr(function, '__name__', function)}()"
        args = tuple([_pinned(a, by) for a in args])
        kwargs = {name: _pinned(a, by) for name, a in kwargs.items()}
    return function(*args, **kwargs)


def _is_one_of(function: Any, functions: tuple[Any, ...]) -> bool:
    return any(function is one for one in functions)


def _type_of(value: Any) -> type:
    """What the program would see."""
    kinds: dict[type, type] = {TrackedInt: int, TrackedFloat: float, TrackedSize: torch.Size}
    kind = cast("type[Any]", type(value))
    return kinds.get(kind, kind)


_SAME: tuple[tuple[type, Callable[[Any], Any]], ...] = ((type, _type_of), (int, to_int), (float, to_float))
"""What Python's types do with one argument, for tracked numbers too."""


def _uncached(function: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What a cache of results calls: those of a trace must not stay in it."""
    bound: Any = getattr(function, "__func__", None)
    if type(bound) is CACHED:
        return bound.__wrapped__, (function.__self__, *args)
    return (function.__wrapped__ if type(function) is CACHED else function), args


def _is_tracked(value: Any) -> bool:
    kind = cast("type[Any]", type(value))
    return kind in _TRACKED or (kind in (tuple, list, TrackedSize) and any(type(item) in _TRACKED for item in value))


def _pinned(value: Any, by: str) -> Any:
    kind = cast("type[Any]", type(value))
    if kind in (tuple, list, TrackedSize):
        return (list if kind is list else tuple)(pinned(item, by) for item in value)
    return pinned(value, by)


def joined(*parts: Any) -> str:
    """A text of parts: texts, and (value, conversion, format) of numbers."""
    found = [part if isinstance(part, str) else _formatted(*part) for part in parts]
    return _text("".join(map(str.__str__, found)), [part if isinstance(part, str) else part[0] for part in parts])


def percent(form: str, values: Any) -> str:
    """`form % values`."""
    return _text(str.__str__(form) % values, [form, values])


def _formatted(value: Any, conversion: int, form: str) -> str:
    convert = _CONVERSIONS.get(conversion)
    return format(value if convert is None else convert(value), pinned(form, "a text"))


_CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}


def _text(written: str, values: Iterable[Any]) -> str:
    sources: list[Any] = []
    for value in values:
        several = type(value) in (tuple, list, TrackedSize)
        sources += [item for item in (value if several else (value,)) if type(item) in _TRACKED]
    return TrackedText(written, tuple(sources)) if sources else written


def _is_blind(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    is_method = owner is not None and not isinstance(owner, ModuleType)
    if is_method and isinstance(function, (BuiltinFunctionType, BuiltinMethodType)):
        return _is_blind_method(owner, function.__name__)
    if isinstance(function, MethodType):
        function = function.__func__
    try:
        return _is_blind_function(function)
    except TypeError:  # what can't be hashed is the program's own
        return False


def _is_blind_method(owner: Any, name: str) -> bool:
    if isinstance(owner, _CONTAINERS):
        return name not in _KEEPING_METHODS
    kind = owner if isinstance(owner, type) else type(owner)
    return not _is_torch(kind.__module__)


@cache
def _is_blind_function(function: Callable[..., Any]) -> bool:
    module = getattr(function, "__module__", None) or ""
    root = module.partition(".")[0]
    if root == "builtins":
        return function.__name__ not in _KEEPING and hasattr(builtins, function.__name__)
    return isinstance(function, (FunctionType, BuiltinFunctionType, type)) and root in _BLIND


def _is_torch(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "dlcb")
