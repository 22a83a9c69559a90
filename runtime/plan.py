"""What one combination of sizes does in a call, worked out once: where every tensor lies, which launches, which library
calls.

A *root* is a piece of memory of its own (an argument, a weight, the arena, an output, the result of a library call);
every tensor of the program is a *place* in a root. Only the addresses of roots change from call to call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from dlcb.runtime.library import LibraryFunction

RootKind = Literal["argument", "weight", "arena", "buffer", "output", "result"]


class Root(NamedTuple):
    """`number` is the argument's, for arguments and weights. An arena or a separate buffer is a row of `sizes[0]`
    bytes; what is known of a library call's result is its dtype."""

    kind: RootKind
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


class Launch(NamedTuple):
    """One kernel launch. `tensors` are (root, bytes from its start), whose addresses are passed before the `integers`.
    `failures` are (class of error, text) of the kernel's checks, by number. `ends`: the roots that nothing needs after
    it."""

    kernel: str
    threads: int
    blocks: int
    integers: tuple[int, ...]
    tensors: tuple[tuple[int, int], ...]
    failures: tuple[tuple[str, str], ...] = ()
    ends: tuple[int, ...] = ()


class LibraryCall(NamedTuple):
    """One library call; its result is the root `result`, unless it writes into `out`. `ends` as of a launch."""

    function: LibraryFunction
    tensors: tuple[Place, ...]
    options: Mapping[str, Any]
    out: Place | None
    result: int | None
    dtype: torch.dtype | None
    ends: tuple[int, ...] = ()


Step = Launch | LibraryCall


@dataclass(frozen=True, slots=True)
class CallPlan:
    roots: tuple[Root, ...]
    steps: tuple[Step, ...]
    results: tuple[Place | int, ...]

    @property
    def has_quick_routines(self) -> bool:
        return any(isinstance(s, LibraryCall) and s.function.quick is not None for s in self.steps)

    @property
    def is_capturable(self) -> bool:
        return all(isinstance(s, Launch) or s.function.capturable for s in self.steps)


def extent(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements lie between the first and the last one of a tensor, both counted; 0 of an empty one."""
    if 0 in sizes:
        return 0
    last = 0
    for size, stride in zip(sizes, strides, strict=True):
        last += (size - 1) * stride
    return last + 1
