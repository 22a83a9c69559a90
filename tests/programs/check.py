"""Hold a compiled program to eager at each of its calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import dlcb
from dlcb.errors import DlcbError, LayoutError, UnsupportedError, UserError
from dlcb.frontend.api import Target
from dlcb.runtime.compiled import CompiledModel
from dlcb.tests.end_to_end.agreement import sharing
from dlcb.tests.graphs import SLACK, difference
from dlcb.tests.programs.program import Subject

EAGER_REFUSES = (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError, ZeroDivisionError)
UNSTABLE = 0.02
"""Where eager is farther than this from float64, its values are a matter of luck."""

NOT_FOLLOWED = "writing through a view made by"
"""What no region can take over from eager: windows that overlap."""
PINNED = ("pinned by", "compared at", "squeeze", "a slice ends", "indices reach beyond")
"""What checks say that keep the way a program went: how many results a call has, which dims are gone, which bounds of a
slice are clamped, and what torch documents but does not check where there are no elements."""


@dataclass(frozen=True)
class Failure:
    """`kind` stays the same when a program shrinks; `call` is the number of the call, None where compiling fails."""

    kind: str
    text: str
    call: int | None = None


@dataclass(frozen=True)
class Expected:
    """What eager gives: results, and arguments after the call; `exact` the same in float64, None where eager's floats
    are too far from it."""

    given: list[Any]
    results: tuple[Any, ...]
    exact: list[Tensor | None]

    @property
    def tensors(self) -> list[Tensor]:
        return [t for t in [*self.results, *self.given] if isinstance(t, Tensor)]


def quiet(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return call()


def expected(subject: Subject, number: int) -> Expected | None:
    """None where eager refuses the call."""
    given = subject.arguments(number)
    try:
        results = quiet(lambda: subject.function(*given))
    except EAGER_REFUSES:
        return None
    found = [t for t in [*results, *given] if isinstance(t, Tensor)]
    return Expected(given, results, [_stable(t, e) for t, e in zip(found, _exact(subject, number, found), strict=True)])


def _exact(subject: Subject, number: int, eager: Sequence[Tensor]) -> Sequence[Tensor]:
    """Eager itself where a program is none in float64."""
    given = subject.arguments(number, exact=True)
    torch.set_default_dtype(torch.float64)
    try:
        results = quiet(lambda: subject.exact(*given))
    except EAGER_REFUSES:
        return eager
    finally:
        torch.set_default_dtype(torch.float32)
    found = [t for t in [*results, *given] if isinstance(t, Tensor)]
    return found if [t.shape for t in found] == [t.shape for t in eager] else eager


def _stable(eager: Tensor, exact: Tensor) -> Tensor | None:
    if not eager.is_floating_point():
        return exact if torch.equal(eager, exact.to(eager.dtype)) else None
    e, x = eager.double(), exact.double()
    if not (torch.equal(e.isnan(), x.isnan()) and torch.equal(e.isinf(), x.isinf())):
        return None
    e, x = (torch.where(t.isfinite(), t, 0.0) for t in (e, x))
    return exact.double() if bool(((e - x).abs() <= UNSTABLE * (1 + x.abs())).all()) else None


def compile_subject(subject: Subject, target: Target) -> CompiledModel | Failure | None:
    """None for a program that DLCB says it does not compile, which is no failure."""
    example = tuple(subject.arguments(0))
    try:
        return quiet(lambda: dlcb.compile(subject.function, example, target=target, fullgraph=False, check=True))
    except Exception as error:
        if isinstance(error, UnsupportedError) and NOT_FOLLOWED in str(error):
            return None
        return Failure(f"compile: {type(error).__name__}", _text(error))


def check_calls(subject: Subject, model: CompiledModel) -> Failure | None:
    """The first call that goes wrong."""
    for number in range(len(subject.calls)):
        wanted = expected(subject, number)
        if wanted is not None:
            failure = check_call(subject, model, number, wanted)
            if failure is not None:
                return failure
    return None


def check_call(subject: Subject, model: CompiledModel, number: int, wanted: Expected) -> Failure | None:
    given = subject.arguments(number)
    try:
        results = quiet(lambda: model(*given))
    except LayoutError as error:
        return Failure("call: LayoutError", _text(error), number)
    except UserError as error:
        pinned = any(word in str(error) for word in PINNED) or _is_pinned(subject, model, number)
        return None if pinned else Failure("call: UserError", _text(error), number)
    except Exception as error:
        return Failure(f"call: {type(error).__name__}", _text(error), number)
    wrong = _difference(subject, given, results, wanted, placed=model.target != "reference")
    return None if wrong is None else Failure(wrong[0], f"{dict(subject.calls[number])}: {wrong[1]}", number)


def _text(error: Exception) -> str:
    place = ""
    if not isinstance(error, DlcbError) and error.__traceback__ is not None:
        last = error.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        place = f" ({last.tb_frame.f_code.co_filename.rpartition('/')[2]}:{last.tb_lineno})"
    return f"{type(error).__name__}: {error}{place}"


def _is_pinned(subject: Subject, model: CompiledModel, number: int) -> bool:
    """Does the call change a dim that the report calls pinned?"""
    states = model.dimensions()
    example, given = subject.arguments(0), subject.arguments(number)
    for name, before, after in zip(subject.inputs, example, given, strict=True):
        pairs = zip(before.shape, after.shape, strict=True) if isinstance(before, Tensor) else [(before, after)]
        for dim, (m, n) in enumerate(pairs):
            key = f"{name}.shape[{dim}]" if isinstance(before, Tensor) else name
            if m != n and not states.get(key, "free").startswith("free"):
                return True
    return False


def _difference(
    subject: Subject, given: list[Any], results: Any, wanted: Expected, placed: bool
) -> tuple[str, str] | None:
    """`placed`: results lie in memory as eager's do, but that a copy which eager leaves out for a size of 1 is made."""
    if not isinstance(results, tuple) or len(results) != len(wanted.results):
        return "results", f"{type(results).__name__} of {len(results)}, eager gives {len(wanted.results)}"
    have = [t for t in [*results, *given] if isinstance(t, Tensor)]
    if len(have) != len(wanted.tensors):
        return "results", "not the same of them are tensors"
    slack = max([SLACK[t.dtype] for t in [*wanted.tensors] if t.is_floating_point()], default=0.0)
    slack = max(slack, *(SLACK[d] for d in SLACK if str(d) in subject.text or str(d)[6:] in subject.text), 0.0)
    for place, (mine, eager, exact) in enumerate(zip(have, wanted.tensors, wanted.exact, strict=True)):
        name = f"result {place}" if place < len(results) else f"argument {place - len(results)}"
        if mine.dtype != eager.dtype or mine.shape != eager.shape:
            return "form", f"{name}: {mine.dtype} {[*mine.shape]}, eager gives {eager.dtype} {[*eager.shape]}"
        wrong = None if exact is None or _is_near(mine, exact, slack) else difference(mine, exact, eager, slack)
        if wrong is not None:
            return "value", f"{name}: {wrong}"
        if placed and eager.numel() and _strides(mine) != _strides(eager):
            return "strides", f"{name}: sizes {[*mine.shape]} strides {mine.stride()}, eager has {eager.stride()}"
    if not placed:
        return None
    mine, eager = sharing(given, results), sharing(wanted.given, wanted.results)
    tensors = [t for t in [*wanted.given, *wanted.results] if isinstance(t, Tensor)]
    eager = [shared for shared in eager if shared in mine or 1 not in tensors[shared[0]].shape]
    return None if mine == eager else ("sharing", f"memory shared as {mine}, in eager as {eager}")


def _is_near(mine: Tensor, exact: Tensor, slack: float) -> bool:
    """Near by the scale of what goes in, which is about 1: where a sum cancels to nothing, no relative error says
    anything."""
    return exact.is_floating_point() and bool(((mine.double() - exact).abs() <= slack).all())


def _strides(t: Tensor) -> list[int]:
    return [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]


def failure_of(subject: Subject, target: Target) -> Failure | None:
    """Compile and call; None where all is right, or eager refuses the example itself."""
    if expected(subject, 0) is None:
        return None
    model = compile_subject(subject, target)
    return check_calls(subject, model) if isinstance(model, CompiledModel) else model
