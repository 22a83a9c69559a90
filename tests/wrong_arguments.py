"""Calls with arguments unlike those of the example: every kind of change to one of them, and what may come of it.

A compiled program either refuses such a call before anything is launched, or answers as eager does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from dlcb.benchmarks.accuracy import as_float64, in_float64
from dlcb.errors import UserError
from dlcb.frontend import torch_private as private
from dlcb.runtime.call import Step
from dlcb.runtime.compiled import CompiledModel
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.plan import CallPlan, Place
from dlcb.tests.end_to_end.agreement import observed, plan_of
from dlcb.tests.graphs import LAYOUTS, difference
from dlcb.tests.programs.check import EAGER_REFUSES, quiet

LARGE = 2**20
HUGE = (2**31 - 1, 2**31, 2**33, 2**62)
Leaves = list[Any]


@dataclass(frozen=True)
class Change:
    """What is done to the leaf of this number."""

    leaf: int
    kind: str
    details: tuple[Any, ...] = ()

    @property
    def is_huge(self) -> bool:
        return self.kind == "huge" or (self.kind == "int" and abs(self.details[0]) > LARGE)

    def apply(self, leaves: Leaves) -> None:
        """A leaf that an earlier change made no plain tensor or number stays as it is."""
        leaf = leaves[self.leaf]
        if self.kind == "alike":
            _resize_alike(leaves, *self.details)
        elif is_plain(leaf) and self.kind in TENSORS:
            leaves[self.leaf] = TENSORS[self.kind](leaf, *self.details)
        elif isinstance(leaf, (int, float)) and self.kind in OTHERS:
            leaves[self.leaf] = OTHERS[self.kind](leaf, *self.details)


def is_plain(leaf: Any) -> bool:
    return (
        isinstance(leaf, Tensor)
        and leaf.layout == torch.strided
        and leaf.device.type == "cpu"
        and not leaf.is_neg()
        and leaf.numel() <= LARGE
    )


def resized(t: Tensor, dim: int, size: int) -> Tensor:
    """The values along a dim again and again, up to the size; ones where there are none."""
    if dim >= t.dim():
        return t
    if not t.shape[dim]:
        return torch.ones([*t.shape[:dim], size, *t.shape[dim + 1 :]], dtype=t.dtype)
    return t.index_select(dim, torch.arange(max(size, 0)) % t.shape[dim])


def _resize_alike(leaves: Leaves, before: int, after: int) -> None:
    """Every dim of this size, of all tensors, and every integer."""
    for number, leaf in enumerate(leaves):
        if is_plain(leaf):
            for dim, size in enumerate(leaf.shape):
                if size == before:
                    leaves[number] = resized(leaves[number], dim, after)
        elif type(leaf) is int and leaf == before:
            leaves[number] = after


def _huge(t: Tensor, dim: int, size: int) -> Tensor:
    sizes = [*t.shape[:dim], size, *t.shape[dim + 1 :]]
    is_possible = dim < t.dim() and t.shape[dim] and prod(max(s, 1) for s in sizes) * t.itemsize < 2**63
    return t.narrow(dim, 0, 1).expand(sizes) if is_possible else t


def _swapped(t: Tensor, a: int, b: int, is_copied: bool) -> Tensor:
    if max(a, b) >= t.dim():
        return t
    return t.transpose(a, b).contiguous() if is_copied else t.transpose(a, b)


def _negated(t: Tensor) -> Tensor:
    return torch.complex(t, t).conj().imag if t.dtype in (torch.float32, torch.float64) else t


TENSORS: dict[str, Callable[..., Any]] = {
    "size": resized,
    "huge": _huge,
    "swap": _swapped,
    "first": lambda t: t[0] if t.dim() and t.shape[0] else t,
    "flat": lambda t: t.reshape(-1),
    "unsqueeze": lambda t, dim: t.unsqueeze(dim),
    "dtype": lambda t, dtype: t.to(dtype),
    "layout": lambda t, name: LAYOUTS[name](t),
    "meta": lambda t: t.to("meta"),
    "sparse": lambda t: t.to_sparse(),
    "negated": _negated,
    "numpy": lambda t: t.detach().double().numpy(),
    "list": lambda t: t.tolist(),
    "requires_grad": lambda t: t.clone().requires_grad_() if t.is_floating_point() else t,
    "other": lambda t, value: value,
}
OTHERS: dict[str, Callable[..., Any]] = {
    "int": lambda _, value: value,
    "by": lambda value, by: value + by if isinstance(value, (int, float)) else value,
    "other": lambda _, value: value,
    "tensor": lambda value: torch.tensor(value) if isinstance(value, (int, float)) else value,
}
VALUES: tuple[Any, ...] = (None, 1, 2.5, True, "x", (), [1.0], 1j)


def changes(leaves: Sequence[Any]) -> st.SearchStrategy[list[Change]]:
    """One change to a call's leaves, or two."""
    numbers = [n for n, leaf in enumerate(leaves) if leaf is not None]
    one = st.sampled_from(numbers).flatmap(lambda n: _changes_of(n, leaves[n]))
    sizes = sorted({s for leaf in leaves if isinstance(leaf, Tensor) for s in leaf.shape})
    if sizes:
        alike = st.tuples(st.sampled_from(sizes), st.integers(0, max(sizes) + 2))
        one = st.one_of(one, one, one, alike.map(lambda pair: Change(numbers[0], "alike", pair)))
    return st.lists(one, min_size=1, max_size=2)


def _changes_of(number: int, leaf: Any) -> st.SearchStrategy[Change]:
    def drawn(kind: str, *details: st.SearchStrategy[Any]) -> st.SearchStrategy[Change]:
        return st.tuples(*details).map(lambda values: Change(number, kind, values))

    if not isinstance(leaf, Tensor):
        by = st.sampled_from((-2, -1, 1, 2))
        whole = st.sampled_from((0, 1, 2, -1, -7, 2**31, 2**62, 2**63))
        choices = [drawn("by", by), drawn("other", st.sampled_from(VALUES)), drawn("tensor")]
        return st.one_of(*choices, *([drawn("int", whole)] * 2 if type(leaf) is int else []))
    layout = drawn("layout", st.sampled_from(sorted(LAYOUTS)))
    dtype = drawn("dtype", st.sampled_from([d for d in (*DTYPES.values(), torch.complex64) if d != leaf.dtype]))
    plain = [drawn(kind) for kind in ("first", "flat", "meta", "sparse", "negated", "numpy", "list", "requires_grad")]
    rank = drawn("unsqueeze", st.sampled_from((0, -1)))
    kinds = [layout, dtype, rank, drawn("other", st.sampled_from(VALUES)), st.one_of(plain)]
    if leaf.dim():
        dims = st.integers(0, leaf.dim() - 1)
        near = dims.flatmap(lambda d: st.tuples(st.just(d), st.sampled_from(_sizes_near(leaf.shape[d]))))
        kinds += [near.map(lambda pair: Change(number, "size", pair))] * 5
        kinds += [drawn("swap", dims, dims, st.booleans()), drawn("huge", dims, st.sampled_from(HUGE))]
    return st.one_of(*kinds)


def _sizes_near(size: int) -> list[int]:
    return sorted({0, 1, 2 * size, *(max(size + by, 0) for by in (-1, 1, 2))} - {size})


@dataclass
class Subject:
    """A program with its example's arguments."""

    name: str
    program: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    slack: float = 0

    @property
    def leaves(self) -> Leaves:
        return private.flatten((self.args, self.kwargs))[0]

    @property
    def fresh(self) -> Callable[..., Any]:
        """The program as it was compiled: a call may change a module for good."""
        return copy.deepcopy(self.program) if isinstance(self.program, nn.Module) else self.program

    def call(self, made: Sequence[Change]) -> Call:
        return Call(self, made)


@dataclass
class Call:
    """The example's call, changed."""

    subject: Subject
    made: Sequence[Change]

    def __str__(self) -> str:
        changed = ", ".join(f"{c.kind}{list(c.details)} of leaf {c.leaf}" for c in self.made)
        return f"{self.subject.name}: {changed}; {', '.join(map(_shown, self.leaves()))}"

    @property
    def is_huge(self) -> bool:
        return any(change.is_huge for change in self.made)

    def leaves(self) -> Leaves:
        leaves = [a.clone() if isinstance(a, Tensor) else a for a in self.subject.leaves]
        for change in self.made:
            change.apply(leaves)
        return leaves

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        spec = private.flatten((self.subject.args, self.subject.kwargs))[1]
        return private.unflatten(self.leaves(), spec)

    def run(self, program: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
        """The leaves of the results, and the arguments after the call."""
        args, kwargs = self.arguments()
        results = quiet(partial(program, *args, **kwargs))
        return private.flatten(results)[0], private.flatten((args, kwargs))[0]

    def eager(self) -> list[Any] | Exception:
        """Results and arguments, or what eager raises."""
        try:
            results, given = self.run(self.subject.fresh)
        except Exception as error:
            return error
        return [*results, *given]

    def exact(self, eager: list[Any]) -> list[Any]:
        """The same in float64; eager's own where the program is none there."""
        args, kwargs = self.arguments()
        exact: tuple[Any, dict[str, Any]] = as_float64(args), as_float64(kwargs)
        try:
            results = quiet(partial(in_float64(self.subject.program), *exact[0], **exact[1]))
        except EAGER_REFUSES:
            return eager
        found = [*private.flatten(results)[0], *private.flatten(exact)[0]]
        return found if list(map(_shape, found)) == list(map(_shape, eager)) else eager


def refusal_of(model: CompiledModel, call: Call) -> UserError | list[Any]:
    """Why a call is refused, or the leaves of its results. A refusal comes before the first step; another error is a
    defect."""
    steps: list[Step | None] = []
    try:
        with observed(model, steps.append):
            return call.run(model)[0]
    except UserError as refused:
        if steps:
            raise AssertionError(f"{call}: {refused}: after {len(steps)} steps") from refused
        return refused
    except Exception as error:
        raise AssertionError(f"{call}: {type(error).__name__}: {error}") from error


def plan_or_refusal(model: CompiledModel, call: Call) -> CallPlan | UserError:
    """What a call with too large tensors would do."""
    args, kwargs = call.arguments()
    try:
        return plan_of(model, model.flat(args, kwargs))
    except UserError as refused:
        return refused
    except Exception as error:
        raise AssertionError(f"{call}: {type(error).__name__}: {error}") from error


def without_elements(call: Call) -> list[Any] | Exception:
    """Eager's results, but their elements; the arguments may be too large to hold."""
    mode = private.FakeTensorMode(allow_non_fake_inputs=True)
    args, kwargs = private.map_leaves(partial(_fake, mode), call.arguments())
    program = call.subject.fresh
    try:
        with mode:
            return private.flatten(quiet(partial(program, *args, **kwargs)))[0]
    except Exception as error:
        return error


def _fake(mode: Any, leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    with mode:
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype)


def has_form(results: Sequence[Any], eager: Sequence[Any]) -> bool:
    """The same kinds, sizes and dtypes."""
    return list(map(_form, results)) == list(map(_form, eager[: len(results)]))


def plan_has_form(plan: CallPlan, eager: Sequence[Any]) -> bool:
    """The same for the tensors of a plan, but those that a library makes."""
    known = [
        (*r.sizes,) if isinstance(r, Place) and plan.roots[r.root].kind != "result" else None for r in plan.results
    ]
    wanted = [tuple(e.shape) for e in eager if isinstance(e, Tensor)]
    found = known[: len(wanted)] if len(known) >= len(wanted) else known
    return all(k is None or k == w for k, w in zip(found, wanted, strict=False))


def value_difference(call: Call, mine: Sequence[Any], eager: list[Any]) -> str | None:
    """In what results and arguments after the call differ from eager's."""
    if len(mine) != len(eager):
        return f"{len(mine)} results and arguments, eager has {len(eager)}"
    for number, (have, want, exact) in enumerate(zip(mine, eager, call.exact(eager), strict=True)):
        if isinstance(want, Tensor) and isinstance(have, Tensor):
            wrong = difference(have.detach(), exact.detach(), want.detach(), call.subject.slack)
        else:
            wrong = None if _form(have) == _form(want) else f"{have}, eager gives {want}"
        if wrong is not None:
            return f"leaf {number}: {wrong}"
    return None


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else None


def _form(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, Tensor) else (type(value), repr(value))


def _shown(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}{leaf.stride()}" if _is_strided(leaf) else repr(leaf)[:60]


def _is_strided(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.layout == torch.strided
