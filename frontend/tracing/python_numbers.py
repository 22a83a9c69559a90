"""`range`, `len`, `min`, `max` and `math` for the time of a trace.

Python has no hook there: `range` and `math` would use a tracked number unseen, `len` would make a plain int of it, and
`min` and `max` would ask which number is smaller, where all of them together are an expression. What the program's
own code calls is blind_calls.py's.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

from dlcb.dialects.shape.expr import Expr, isqrt, maximum, minimum
from dlcb.frontend.torch_private import FakeTensor
from dlcb.frontend.tracing.tracked import (
    TrackedFloat,
    TrackedInt,
    expr_of,
    extremum,
    number,
    pinned,
    real_function,
    traced,
)

_TRACKED_BY_MATH = ("floor", "ceil", "trunc", "prod")
_REAL_FUNCTIONS = ("sqrt", "log", "log2", "log10", "pow")
_range = builtins.range
_len = builtins.len
_min, _max = builtins.min, builtins.max
_plain_index = operator.index
_plain_isqrt = math.isqrt
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: f
    for name, f in vars(math).items()
    if callable(f) and not name.startswith("_") and name not in _TRACKED_BY_MATH
}


class _RangeMeta(type):
    def __call__(cls, *args: Any) -> range:
        return _range(*[pinned(a, "range()") for a in args])

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _range)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _range)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _range

    def __hash__(cls) -> int:
        return hash(_range)


class _Range(metaclass=_RangeMeta):
    """Stands for `range`: makes real ranges, and is equal to `range` as a type."""


def _tracking_len(sized: Any) -> int:
    return sized.shape[0] if type(sized) is FakeTensor and sized.ndim else _len(sized)


def _extremum(function: Callable[..., Any], build: Callable[..., Expr]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        items = cast(Sequence[Any], args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args)
        tracked = next((item for item in items if type(item) is TrackedInt), None)
        if tracked is None or kwargs or not all(isinstance(item, int) for item in items):
            return function(*args, **kwargs)
        return extremum(tracked.tracker, build(*map(expr_of, items)), function(map(traced, items)))

    return call


def _pinning(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    by = f"math.{name}()"

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*[pinned(a, by) for a in args], **kwargs)

    return call


def _tracking(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    pinning = _pinning(name, function)

    def call(*args: Any) -> Any:
        tracked = any(type(a) in (TrackedInt, TrackedFloat) for a in args)
        if not tracked or len(args) != (2 if name == "pow" else 1):
            return pinning(*args)
        return real_function(name, f"math.{name}()", *args)

    return call


def _isqrt(value: Any) -> int:
    if type(value) is TrackedInt and value >= 0:
        return number(value.tracker, isqrt(value.expr), math.isqrt(traced(value)))
    return _plain_isqrt(value)


def _index(value: Any) -> int:
    return _plain_index(pinned(value, "operator.index()"))


_EXTREMA = {"min": _extremum(_min, minimum), "max": _extremum(_max, maximum)}
_MATH = {name: (_tracking if name in _REAL_FUNCTIONS else _pinning)(name, f) for name, f in _FUNCTIONS.items()}
_MATH["isqrt"] = _isqrt


@contextmanager
def tracking_python_numbers() -> Generator[None]:
    """`range` and `math` pin tracked numbers inside; `len` of a tensor is one, and so are `min` and `max` of some."""
    _replace(builtins, {"range": _Range, "len": _tracking_len, **_EXTREMA})
    _replace(math, _MATH)
    _replace(operator, {"index": _index})
    try:
        yield
    finally:
        _replace(builtins, {"range": _range, "len": _len, "min": _min, "max": _max})
        _replace(math, _FUNCTIONS)
        _replace(operator, {"index": _plain_index})


def _replace(module: ModuleType, replacements: Mapping[str, Any]) -> None:
    for name, replacement in replacements.items():
        setattr(module, name, replacement)
