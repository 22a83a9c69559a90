"""The caller's arguments: what a call is recognized by, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.overlap import first_overlap
from dlcb.runtime.plan import extent
from dlcb.runtime.program import Facts
from dlcb.runtime.rows import Argument, Program
from dlcb.runtime.weights import ALIGNMENTS, alignment_of

Key = tuple[Any, ...]
Addresses = tuple[int, ...]
Reader = Callable[[Sequence[Any]], tuple[Key, Addresses]]


class CallerArguments:
    """The arguments of a program that its caller passes: inputs and integers, in their order, without the weights.

    A *key* holds everything that plans and checks depend on and calls may differ in: sizes, strides and alignment of
    tensors, the values of integers. So what was checked once for a key holds for every call with it. What no call may
    differ in (dtype, device, a negation that waits) the reader looks at every time.
    """

    def __init__(self, program: Program, device: torch.device) -> None:
        self._name = program.name
        self._device = device
        self._count = len(program.arguments)
        self._expected = [(i, a) for i, a in enumerate(program.arguments) if a.kind != "weight"]
        self._is_updated = [a.updated for _, a in self._expected]
        self._updated = [n for n, updated in enumerate(self._is_updated) if updated]
        self.has_updates = bool(self._updated)
        self._strides = exact_strides if _shows_arguments(program) else normal_strides
        self.read: Reader = self._reader()
        """The key of a call, strides as they are, and the tensors' addresses (0 for an integer). A UserError for
        arguments of the wrong number, kind, dtype or device; not for all wrong ones: a new key has to be checked."""

    @property
    def numbers(self) -> list[int]:
        """For each argument of the caller, its number in the program."""
        return [number for number, _ in self._expected]

    def normal_key(self, arguments: Sequence[Any]) -> Key:
        """The key that all calls have of which a plan can't tell the difference: strides are normal, unless the caller
        gets to see them."""
        key: list[Any] = [tuple(alignment_of(value) for value in arguments if isinstance(value, Tensor))]
        for value, (_, argument) in zip(arguments, self._expected, strict=True):
            if argument.kind == "int":
                key.append(value)
            else:
                key += (value.shape, self._strides(value.shape, value.stride()))
        return tuple(key)

    def check(self, arguments: Sequence[Any]) -> None:
        """A UserError that names the first argument of the wrong type, rank, dtype or device."""
        if len(arguments) != len(self._expected):
            self._fail(f"takes {len(self._expected)} arguments ({self._names()}), got {len(arguments)}")
        for value, (_, argument) in zip(arguments, self._expected, strict=True):
            if argument.kind == "int":
                if type(value) is not int:
                    self._fail(f"{argument.name} must be an int, got {_kind(value)}")
            else:
                self._check_tensor(argument, value)
        for number in self._updated:
            mine = arguments[number]
            if any(size > 1 and stride == 0 for size, stride in zip(mine.shape, mine.stride(), strict=True)):
                self._fail(f"{self._label(number)} is updated in place, but is an expanded tensor")

    def facts(self, arguments: Sequence[Any], weight_alignments: Sequence[int], weight_numbers: Sequence[int]) -> Facts:
        sizes: list[tuple[int, ...]] = [()] * self._count
        strides: list[tuple[int, ...]] = [()] * self._count
        integers = [0] * self._count
        alignment = [0] * self._count
        for value, (number, argument) in zip(arguments, self._expected, strict=True):
            if argument.kind == "int":
                integers[number] = value
            else:
                sizes[number], strides[number] = tuple(value.shape), self._strides(value.shape, value.stride())
                alignment[number] = alignment_of(value)
        for number, known in zip(weight_numbers, weight_alignments, strict=True):
            alignment[number] = known
        return Facts(sizes, strides, integers, alignment)

    def lengths(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """For each argument, the bytes from its first to its last element; the key determines them."""
        return tuple(
            extent(value.shape, value.stride()) * value.element_size() if isinstance(value, Tensor) else 0
            for value in arguments
        )

    def check_updates(self, arguments: Sequence[Any], addresses: Addresses, lengths: Sequence[int]) -> None:
        """A UserError where an updated tensor shares memory with another argument: the order of reads and writes would
        show, and the compiled program does not keep it."""
        found = first_overlap(arguments, list(zip(addresses, lengths, strict=True)), self._is_updated)
        if found is not None:
            mine, other = map(self._label, found)
            self._fail(
                f"{mine} is updated in place, but shares memory with {other}; pass a copy of one of them, "
                "or parts that do not overlap"
            )

    def mark_updated(self, arguments: Sequence[Any]) -> None:
        """Tell autograd that updated tensors have new contents."""
        updated = [arguments[n] for n in self._updated]
        torch.autograd.graph.increment_version([t for t in updated if not t.is_inference()])

    def _reader(self) -> Reader:
        """Straight-line code over the arguments; only their numbers are written into it. In the key, a tensor's strides
        are True where they follow from its sizes, and alignments are 0 where every address is a multiple of 16."""
        names = "".join(f"a{n}, " for n in range(len(self._expected)))
        tensors = [n for n, (_, argument) in enumerate(self._expected) if argument.kind != "int"]
        # A process has one kind of accelerator (torch.accelerator): its index says it all, at two thirds of the cost.
        on_device = "a{n}.is_cpu" if self._device.type == "cpu" else f"a{{n}}.get_device() == {self._device.index}"
        strides = "a{n}.stride()" if self._strides is exact_strides else "a{n}.is_contiguous() or a{n}.stride()"
        wrong: list[str] = []
        key = ["0"]
        if tensors:
            aligned = "".join(f"alignments[p{n} & 15], " for n in tensors)
            key = [f"({' | '.join(f'p{n}' for n in tensors)}) & 15 and ({aligned})"]
        for n in range(len(self._expected)):
            if n in tensors:
                wrong.append(f"a{n}.dtype is not dtypes{n} or not {on_device.format(n=n)} or a{n}.is_neg()")
                key += [f"a{n}.shape", strides.format(n=n)]
            else:
                wrong.append(f"type(a{n}) is not int")
                key.append(f"a{n}")
        addresses = "".join(f"p{n}, " if n in tensors else "0, " for n in range(len(self._expected)))
        lines = [
            "def read(arguments):",
            "  try:",
            f"    {names or '()'} = arguments",
            *(f"    p{n} = a{n}.data_ptr()" for n in tensors),
            f"    if {' or '.join(wrong) or False}: check(arguments)",
            f"    if not ({' and '.join(f'p{n}' for n in tensors) or True}): check_memory(arguments)",
            f"    return ({''.join(part + ', ' for part in key)}), ({addresses})",
            "  except (AttributeError, TypeError, ValueError, RuntimeError):",
            "    check(arguments)",
            "    raise",
        ]
        namespace: dict[str, Any] = {
            "alignments": ALIGNMENTS,
            "check": self.check,
            "check_memory": self._check_memory,
            **{f"dtypes{n}": DTYPES[self._expected[n][1].dtype] for n in tensors},
        }
        exec(compile("\n".join(lines), f"<arguments of {self._name}>", "exec"), namespace)
        return namespace["read"]

    def _check_memory(self, arguments: Sequence[Any]) -> None:
        """Only a tensor without elements may be at address 0."""
        self.check(arguments)
        for value, (_, argument) in zip(arguments, self._expected, strict=True):
            if isinstance(value, Tensor) and not value.data_ptr() and value.numel():
                self._fail(f"{argument.name} has no memory ({_kind(value)}), expected a tensor with elements")

    def _check_tensor(self, argument: Argument, value: Any) -> None:
        if not isinstance(value, Tensor):
            self._fail(f"{argument.name} must be a tensor, got {_kind(value)}")
        if value.layout != torch.strided:
            self._fail(f"{argument.name} has layout {value.layout}, expected a dense tensor")
        if value.dim() != argument.rank:
            self._fail(
                f"{argument.name} has rank {value.dim()} (shape {list(value.shape)}), expected rank {argument.rank}"
            )
        if value.dtype != DTYPES[argument.dtype]:
            self._fail(f"{argument.name} has dtype {value.dtype}, expected {DTYPES[argument.dtype]}")
        if value.device != self._device:
            self._fail(f"{argument.name} is on {value.device}, expected {self._device}")
        if value.is_neg():
            self._fail(f"{argument.name} is a negated view of other memory, expected a plain tensor: resolve_neg()")

    def _label(self, number: int) -> str:
        return self._expected[number][1].name

    def _names(self) -> str:
        return ", ".join(argument.name for _, argument in self._expected)

    def _fail(self, what: str) -> NoReturn:
        raise UserError(f"{self._name}: {what}")


def exact_strides(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    return tuple(strides)


def _shows_arguments(program: Program) -> bool:
    """Does the caller get views of arguments? Then their strides show, also those of dims of size 1."""
    arguments = {row[1] for row in program.code if row[0] == "argument"}
    views = {row[1] for row in program.code if row[0] == "view" and row[2] in arguments}
    return any(row[0] == "return" and not views.isdisjoint(row[1]) for row in program.code)


def normal_strides(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The strides, where a dimension of size 1 gets the stride it would have in a contiguous tensor: the one given
    means nothing. So do all of a tensor without elements."""
    normal = list(strides)
    is_empty = 0 in sizes
    step = 1
    for dim in range(len(normal) - 1, -1, -1):
        if is_empty or sizes[dim] == 1:
            normal[dim] = step
        step = normal[dim] * max(sizes[dim], 1)
    return tuple(normal)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}" if isinstance(value, (int, float, str, bool)) else type(value).__name__
