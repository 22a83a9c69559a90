"""What capture hands on: inputs, weights, a list of records in value semantics, outputs.

A record is one ATen operation at the boundary of torch's C functions. Its operands are `Value`s (tensors), `Expr`s
(integers that depend on sizes), `Real`s (floats that do), and plain Python constants; lists are tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import torch

from dlcb.frontend.torch_private import TreeSpec
from dlcb.frontend.tracing.steering import FREE, Steering
from dlcb.frontend.tracing.tracker import Check

Operands: TypeAlias = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class Value:
    """One tensor value."""

    id: int
    shape: tuple[int, ...]
    """Traced sizes."""
    dtype: torch.dtype
    device: torch.device
    strides: tuple[int, ...] = ()
    """As eager has them at the traced sizes."""

    def __repr__(self) -> str:
        return f"%{self.id}"


@dataclass(eq=False, slots=True)
class Record:
    """results = op(*args, **kwargs), by ATen's name and argument names."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[Value, ...]
    line: str
    run: Callable[..., Any] | None = None
    """What torch ran, for the eager form of the record; None: the function of that name."""
    only_eager: dict[str, Any] = field(default_factory=dict[str, Any])
    """Keyword arguments that say nothing about values: a device, a memory format."""
    why_eager: str = ""
    """Why no kernel can compute it, where capture knows that already."""
    ordered: bool = False
    """Takes numbers from torch's generator: it runs in the program's order among its like."""

    def __repr__(self) -> str:
        given = [*map(_text, self.args), *(f"{k}={_text(v)}" for k, v in self.kwargs.items())]
        results = ", ".join(f"{v}:{list(v.shape)}" for v in self.results)
        return f"{results} = {self.op}({', '.join(given)})  # {self.line}"


def _text(operand: Any) -> str:
    return f"({', '.join(map(_text, cast(Operands, operand)))})" if isinstance(operand, tuple) else str(operand)


@dataclass(slots=True)
class Input:
    """One leaf of the arguments. `kind` is tensor, int, or constant (guarded by equality at the call)."""

    name: str
    kind: str
    example: Any
    value: Value | None = None
    symbols: tuple[str | int, ...] = ()
    """The symbol of each size of a tensor, or of the int. A number is a size that is known."""


@dataclass(slots=True)
class Weight:
    """A tensor the program reads that is no argument. `kind` is parameter, buffer or constant."""

    name: str
    kind: str
    tensor: torch.Tensor
    value: Value


@dataclass(frozen=True, slots=True)
class Pin:
    """A size of an input that keeps the example's value, and why."""

    symbol: str
    value: int
    reason: str


@dataclass(frozen=True, slots=True)
class Update:
    """The program writes the value into an input or a weight."""

    target: Value
    value: Value


@dataclass(frozen=True, slots=True)
class Alias:
    """An output shares memory with an input or weight (`of` is its value) or an earlier output (`of` is its index)."""

    output: int
    of: Value | int


@dataclass(frozen=True, slots=True)
class Place:
    """Where an output lies in eager: in memory whose whole content is `content`, and which began as `root`."""

    content: Value
    root: Value


@dataclass(slots=True)
class Captured:
    """A whole program, valid for all sizes for which its checks hold."""

    name: str
    inputs: list[Input]
    weights: list[Weight]
    records: list[Record]
    outputs: list[Any]
    """Flat leaves: `Value`, `Expr`, `Real` or a constant."""
    checks: list[Check]
    pins: list[Pin]
    updates: list[Update]
    aliases: list[Alias]
    traced: dict[str, int]
    """The traced value of every symbol."""
    result_dims: dict[str, tuple[Value, int]]
    """Symbols that stand for a size of a result: `%12_1` is size 1 of value 12. With `ELEMENT` as the dim, for the
    element of a tensor of rank 0."""
    in_spec: TreeSpec
    out_spec: TreeSpec
    notes: list[str]
    """What the program asked that the capture can't check."""
    memory: dict[Value, Value]
    """For values that are views: the value with which their memory began."""
    places: dict[Value, Place] = field(default_factory=dict["Value", "Place"])
    """Of outputs that are tensors; of one that is not there, `memory` says where it lies."""
    steering: Steering = FREE
    """Leads a run at other sizes on the way that was captured."""
    rewritten: bool = False
    """Do its runs notice what Python's operators hide?"""
    asks_layouts: bool = False
    """The program goes by how its arguments lie in memory: refuse those that lie otherwise, and gaps."""
    keeps_layouts: bool = False
    """Refuse, by a `LayoutError`, a call whose arguments lie otherwise than the example."""

    def __str__(self) -> str:
        return "\n".join(
            [
                *(f"{i.value or i.name} = {i.kind} {i.name} {list(i.symbols) or i.example}" for i in self.inputs),
                *(f"{w.value} = {w.kind} {w.name} {list(w.value.shape)}" for w in self.weights),
                *map(str, self.records),
                f"return {self.outputs}",
                *(f"update {u.target} = {u.value}" for u in self.updates),
                *(f"alias output {a.output} of {a.of}" for a in self.aliases),
                *(f"check {c.condition}  # {c.text}" for c in self.checks),
                *(f"pin {p.symbol} = {p.value}  # {p.reason}" for p in self.pins),
            ]
        )


ELEMENT = -1
"""In place of a dim in `Captured.result_dims`."""


def value_name(value: Value) -> str:
    """The name of a tensor that one part of a program makes and another takes."""
    return f"v{value.id}"


def element_symbol(value: Value) -> str:
    return f"{value_name(value)}_element"


def result_dim_symbol(value: Value, dim: int) -> str:
    return f"%{value.id}_{dim}"


def device_of(captured: Captured) -> torch.device:
    """Where the program's tensors are; of several devices, the first that is not the CPU."""
    values = [given.value for given in captured.inputs] + [weight.value for weight in captured.weights]
    devices = [value.device for value in values if value is not None]
    devices += [value.device for record in captured.records[:1] for value in record.results]
    return next((d for d in devices if d.type != "cpu"), torch.device("cpu"))
