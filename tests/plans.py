"""The plan of a call from the events that the interpreter of host programs tells, one after another: slow, and plain to
read. The runtime's function has to agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from dlcb.errors import InternalError, UserError
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.library import LIBRARY
from dlcb.runtime.plan import CallPlan, Launch, LibraryCall, Place, Root, Step, extent
from dlcb.runtime.plan_source import MAX_BLOCKS
from dlcb.runtime.program import Facts
from dlcb.runtime.rows import Program

_BITS = {"i32": 32, "i64": 64}


class PlanOfEvents:
    """Knows nothing of which step needs a root last: `ends` are empty."""

    def __init__(self, program: Program, facts: Facts, separate_buffers: bool) -> None:
        self._program = program
        self._facts = facts
        self._separate_buffers = separate_buffers
        self._numbers = {argument.name: i for i, argument in enumerate(program.arguments)}
        self._roots: list[Root] = []
        self._places: dict[int, Place] = {}
        self._arena = -1
        self._steps: list[Step] = []
        self._results: tuple[Place | int, ...] = ()

    def build(self, events: Iterable[tuple[Any, ...]]) -> CallPlan:
        handlers: dict[str, Callable[..., None]] = {
            "argument": self._on_argument,
            "weight": self._on_weight,
            "arena": self._on_arena,
            "buffer": self._on_buffer,
            "output": self._on_output,
            "view": self._on_view,
            "launch": self._on_launch,
            "library": self._on_library,
            "return": self._on_return,
        }
        for kind, *details in events:
            handlers[kind](*details)
        return CallPlan(tuple(self._roots), tuple(self._steps), self._results)

    # --- events

    def _on_argument(self, slot: int, name: str) -> None:
        number = self._numbers[name]
        argument = self._program.arguments[number]
        sizes, strides = self._facts.sizes[number], self._facts.strides[number]
        self._places[slot] = self._whole(
            Root("argument", DTYPES[argument.dtype], sizes, strides, number, argument.updated)
        )

    def _on_weight(self, slot: int, name: str) -> None:
        number = self._numbers[name]
        argument = self._program.arguments[number]
        self._places[slot] = self._whole(
            Root("weight", DTYPES[argument.dtype], argument.shape, argument.strides, number)
        )

    def _on_arena(self, slot: int, count: int) -> None:
        self._natural("the arena's bytes", count)
        self._addressable(count)
        self._arena = len(self._roots)
        self._roots.append(Root("arena", torch.uint8, (count,), (1,)))

    def _on_buffer(self, slot: int, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> None:
        element = DTYPES[dtype]
        if offset % element.itemsize:
            raise self._wrong(f"a buffer of {dtype} starts at byte {offset}")
        self._places[slot] = self._inside(Place(self._arena, element, offset // element.itemsize, sizes, strides))
        if self._separate_buffers:
            self._roots.append(Root("buffer", torch.uint8, (extent(sizes, strides) * element.itemsize,), (1,)))
            self._places[slot] = Place(len(self._roots) - 1, element, 0, sizes, strides)

    def _on_output(self, slot: int, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> None:
        self._natural("a size or stride of an output", min((*sizes, *strides), default=0))
        self._addressable(math.prod([max(size, 1) for size in sizes]) * DTYPES[dtype].itemsize)
        self._places[slot] = self._whole(Root("output", DTYPES[dtype], sizes, strides))

    def _on_view(self, slot: int, source: int, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
        of = self._places[source]
        self._places[slot] = self._inside(Place(of.root, of.dtype, of.offset + offset, sizes, strides))

    def _on_launch(
        self,
        kernel: str,
        threads: int,
        blocks: int,
        tensors: tuple[int, ...],
        integers: tuple[tuple[int, str], ...],
        failures: tuple[tuple[str, str], ...],
    ) -> None:
        if blocks < 0:
            raise self._wrong(f"{kernel}: {blocks} blocks")
        if blocks > MAX_BLOCKS:
            raise self._too_large(f"{kernel} would take {blocks} blocks of {threads} threads, {MAX_BLOCKS} at most")
        for value, type in integers:
            bits = _BITS[type]
            if not -(1 << bits - 1) <= value < 1 << bits - 1:
                raise self._too_large(f"{kernel} would take the number {value}, which does not fit {bits} bits")
        places = [self._places[t] for t in tensors]
        operands = tuple((place.root, place.offset * place.dtype.itemsize) for place in places)
        self._steps.append(Launch(kernel, threads, blocks, tuple(v for v, _ in integers), operands, failures))

    def _on_library(self, slot: int | None, function: str, tensors: tuple[int, ...], out: int | None) -> None:
        row = next(row for row in self._rows_of(function) if (row[1], tuple(row[3]), row[4]) == (slot, tensors, out))
        operands = tuple(self._places[t] for t in tensors)
        into = None if out is None else self._places[out]
        element = None if row[6] is None else DTYPES[row[6]]
        result = None
        if slot is not None and element is not None:
            self._places[slot] = self._whole(Root("result", element))
            result = self._places[slot].root
        self._steps.append(LibraryCall(LIBRARY[function], operands, row[5], into, result, element))

    def _rows_of(self, function: str) -> list[list[Any]]:
        return [row for row in self._program.code if row[0] == "library" and row[2] == function]

    def _on_return(self, results: tuple[tuple[str, int], ...]) -> None:
        self._results = tuple(value if kind == "index" else self._places[value] for kind, value in results)

    # --- parts

    def _whole(self, root: Root) -> Place:
        self._roots.append(root)
        return Place(len(self._roots) - 1, root.dtype, 0, root.sizes, root.strides, whole=True)

    def _inside(self, place: Place) -> Place:
        root = self._roots[place.root]
        self._natural("an offset, size or stride of a tensor", min(place.offset, *place.sizes, *place.strides, 0))
        if root.kind == "result":
            return place
        end = place.offset + extent(place.sizes, place.strides)
        room = extent(root.sizes, root.strides) * root.dtype.itemsize
        if end > place.offset and end * place.dtype.itemsize > room:
            raise self._wrong(
                f"a tensor of sizes {place.sizes}, strides {place.strides} at {place.offset} ends at element {end}, "
                f"outside its {root.kind} of {room} bytes"
            )
        return place

    def _natural(self, what: str, value: int) -> None:
        if value < 0:
            raise self._wrong(f"{what}: {value} is negative")

    def _addressable(self, count: int) -> None:
        if count >= 1 << 63:
            raise self._too_large(f"a result or the workspace would take {count} bytes, 2^63 - 1 at most")

    def _wrong(self, what: str) -> InternalError:
        return InternalError(f"{self._program.name}: {what}")

    def _too_large(self, what: str) -> UserError:
        return UserError(f"{self._program.name}: too large for one call: {what}")
