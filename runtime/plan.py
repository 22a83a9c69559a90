"""What one combination of sizes does in a call, worked out once: where every tensor lies, which launches, which library
calls.

A *root* is a piece of memory of its own (an argument, a weight, the arena, an output, the result of a library call);
every tensor of the program is a *place* in a root. Only the addresses of roots change from call to call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from dlcb.errors import InternalError, UserError
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.library import LIBRARY, LibraryFunction
from dlcb.runtime.program import Event, Facts
from dlcb.runtime.rows import Program

MAX_BLOCKS = (1 << 31) - 1
_BITS = {"i32": 32, "i64": 64}


class Root(NamedTuple):
    """`number` is the argument's, for arguments and weights. An arena or a separate buffer is a row of `sizes[0]`
    bytes; what is known of a library call's result is its dtype."""

    kind: Literal["argument", "weight", "arena", "buffer", "output", "result"]
    dtype: torch.dtype
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    number: int = -1
    updated: bool = False


class Place(NamedTuple):
    """A tensor in a root: `offset` elements of its own dtype from the root's start. `whole`: it is the root's tensor
    itself."""

    root: int
    dtype: torch.dtype
    offset: int = 0
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    whole: bool = False

    @property
    def offset_bytes(self) -> int:
        return self.offset * self.dtype.itemsize


class Launch(NamedTuple):
    """One kernel launch; `integers` are (value, 32 or 64 bits), passed after the addresses of `tensors`. `failures` are
    (class of error, text) of the kernel's checks, by number."""

    kernel: str
    threads: int
    blocks: int
    tensors: tuple[Place, ...]
    integers: tuple[tuple[int, int], ...]
    failures: tuple[tuple[str, str], ...] = ()


class LibraryCall(NamedTuple):
    """One library call; its result is the root `result`, unless it writes into `out`."""

    function: LibraryFunction
    tensors: tuple[Place, ...]
    options: Mapping[str, Any]
    out: Place | None
    result: int | None
    dtype: torch.dtype | None


Step = Launch | LibraryCall


@dataclass(frozen=True, slots=True)
class CallPlan:
    """`releases[i]`: the roots that nothing needs after step i."""

    roots: tuple[Root, ...]
    steps: tuple[Step, ...]
    releases: tuple[tuple[int, ...], ...]
    results: tuple[Place | int, ...]

    @property
    def is_capturable(self) -> bool:
        return all(isinstance(s, Launch) or s.function.capturable for s in self.steps)


def build_plan(program: Program, events: Sequence[Event], facts: Facts, separate_buffers: bool = False) -> CallPlan:
    """The plan of a call with these facts. With `separate_buffers` every buffer is a root of its own, so that writing
    past one is seen. A tensor that does not lie inside its root is an InternalError."""
    return _PlanBuilder(program, facts, separate_buffers).build(events)


class _PlanBuilder:
    def __init__(self, program: Program, facts: Facts, separate_buffers: bool) -> None:
        self.program = program
        self.facts = facts
        self.separate_buffers = separate_buffers
        self.numbers = {argument.name: i for i, argument in enumerate(program.arguments)}
        self.roots: list[Root] = []
        self.places: dict[int, Place] = {}
        self.arena = -1
        self.steps: list[Step] = []
        self.results: tuple[Place | int, ...] = ()
        self.handlers: dict[str, Callable[..., None]] = {
            "argument": self.on_argument,
            "weight": self.on_weight,
            "arena": self.on_arena,
            "buffer": self.on_buffer,
            "output": self.on_output,
            "view": self.on_view,
            "launch": self.on_launch,
            "library": self.on_library,
            "return": self.on_return,
        }

    def build(self, events: Sequence[Event]) -> CallPlan:
        for kind, *details in events:
            self.handlers[kind](*details)
        return CallPlan(tuple(self.roots), tuple(self.steps), self.releases(), self.results)

    def too_large(self, what: str) -> UserError:
        return UserError(f"{self.program.name}: too large for one call: {what}")

    def addressable(self, count: int) -> None:
        if count >= 1 << 63:
            raise self.too_large(f"a result or the workspace would take {count} bytes, 2^63 - 1 at most")

    def fail(self, what: str) -> InternalError:
        return InternalError(f"{self.program.name}: {what}")

    # --- events

    def on_argument(self, slot: int, name: str) -> None:
        number = self.numbers[name]
        argument = self.program.arguments[number]
        sizes, strides = tuple(self.facts.sizes[number]), tuple(self.facts.strides[number])
        root = Root("argument", DTYPES[argument.dtype], sizes, strides, number, argument.updated)
        self.places[slot] = self.whole(root)

    def on_weight(self, slot: int, name: str) -> None:
        number = self.numbers[name]
        argument = self.program.arguments[number]
        root = Root("weight", DTYPES[argument.dtype], argument.shape, argument.strides, number)
        self.places[slot] = self.whole(root)

    def on_arena(self, slot: int, size_bytes: int) -> None:
        self.arena = len(self.roots)
        self.addressable(self.natural("the arena's bytes", size_bytes))
        self.roots.append(Root("arena", torch.uint8, (size_bytes,), (1,)))

    def on_buffer(self, slot: int, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> None:
        element = DTYPES[dtype]
        if offset % element.itemsize:
            raise self.fail(f"a buffer of {dtype} starts at byte {offset}")
        place = Place(self.arena, element, offset // element.itemsize, sizes, strides)
        self.places[slot] = self.inside(place)
        if self.separate_buffers:
            size_bytes = extent(sizes, strides) * element.itemsize
            self.roots.append(Root("buffer", torch.uint8, (size_bytes,), (1,)))
            self.places[slot] = Place(len(self.roots) - 1, element, 0, sizes, strides)

    def on_output(self, slot: int, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> None:
        self.natural("a size or stride of an output", min((*sizes, *strides), default=0))
        # torch.empty too counts a size of 0 as 1
        self.addressable(math.prod([max(size, 1) for size in sizes]) * DTYPES[dtype].itemsize)
        self.places[slot] = self.whole(Root("output", DTYPES[dtype], sizes, strides))

    def on_view(self, slot: int, source: int, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
        of = self.places[source]
        self.places[slot] = self.inside(Place(of.root, of.dtype, of.offset + offset, sizes, strides))

    def on_launch(
        self,
        kernel: str,
        threads: int,
        blocks: int,
        tensors: tuple[int, ...],
        integers: tuple[tuple[int, str], ...],
        failures: tuple[tuple[str, str], ...],
    ) -> None:
        if blocks < 0:
            raise self.fail(f"{kernel}: {blocks} blocks")
        if blocks > MAX_BLOCKS:
            raise self.too_large(f"{kernel} would take {blocks} blocks of {threads} threads, {MAX_BLOCKS} at most")
        packed = tuple([(value, _BITS[type]) for value, type in integers])
        for value, bits in packed:
            if not -(1 << bits - 1) <= value < 1 << bits - 1:
                raise self.too_large(f"{kernel} would take the number {value}, which does not fit {bits} bits")
        self.steps.append(Launch(kernel, threads, blocks, tuple([self.places[t] for t in tensors]), packed, failures))

    def on_library(
        self,
        slot: int | None,
        function: str,
        tensors: tuple[int, ...],
        out: int | None,
        options: Mapping[str, Any],
        dtype: str | None,
    ) -> None:
        operands = tuple([self.places[t] for t in tensors])
        into = None if out is None else self.places[out]
        element = None if dtype is None else DTYPES[dtype]
        result = None
        if slot is not None and element is not None:
            self.places[slot] = self.whole(Root("result", element))
            result = self.places[slot].root
        self.steps.append(LibraryCall(LIBRARY[function], operands, options, into, result, element))

    def on_return(self, results: tuple[tuple[str, int], ...]) -> None:
        self.results = tuple(value if kind == "index" else self.places[value] for kind, value in results)
        for result in self.results:
            if isinstance(result, Place) and self.roots[result.root].kind in ("arena", "buffer"):
                raise self.fail("a result lies in the arena, which ends with the call")

    # --- parts

    def whole(self, root: Root) -> Place:
        self.roots.append(root)
        return Place(len(self.roots) - 1, root.dtype, 0, root.sizes, root.strides, whole=True)

    def natural(self, what: str, value: int) -> int:
        if value < 0:
            raise self.fail(f"{what}: {value} is negative")
        return value

    def inside(self, place: Place) -> Place:
        root = self.roots[place.root]
        self.natural("an offset, size or stride of a tensor", min(place.offset, *place.sizes, *place.strides, 0))
        if root.kind == "result":
            return place
        end = place.offset + extent(place.sizes, place.strides)
        room = extent(root.sizes, root.strides)
        if end > place.offset and end * place.dtype.itemsize > room * root.dtype.itemsize:
            raise self.fail(
                f"a tensor of sizes {place.sizes}, strides {place.strides} at {place.offset} ends at element {end}, "
                f"outside its {root.kind} of {room * root.dtype.itemsize} bytes"
            )
        return place

    def releases(self) -> tuple[tuple[int, ...], ...]:
        """After which step library results and separate buffers are needed no more."""
        kept = {result.root for result in self.results if isinstance(result, Place)}
        ending = {n for n, root in enumerate(self.roots) if root.kind in ("result", "buffer")} - kept
        releases: list[tuple[int, ...]] = [()] * len(self.steps)
        for number in range(len(self.steps) - 1, -1, -1) if ending else ():
            releases[number] = tuple(sorted(step_roots(self.steps[number]) & ending))
            ending.difference_update(releases[number])
        return tuple(releases)


def step_roots(step: Step) -> set[int]:
    """The roots that a step reads or writes."""
    roots = {place.root for place in step.tensors}
    if isinstance(step, LibraryCall):
        roots |= {step.out.root} if step.out is not None else set()
        roots |= {step.result} if step.result is not None else set()
    return roots


def extent(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements lie between the first and the last one of a tensor, both counted; 0 of an empty one."""
    if 0 in sizes:
        return 0
    last = 0
    for size, stride in zip(sizes, strides, strict=True):
        last += (size - 1) * stride
    return last + 1
