"""The caller's arguments: what a call is recognized by, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from dlcb.errors import UserError
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.plan import extent
from dlcb.runtime.program import Facts
from dlcb.runtime.rows import Argument, Program
from dlcb.runtime.weights import ALIGNMENTS, alignment_of

Key = tuple[Any, ...]


class CallerArguments:
    """The arguments of a program that its caller passes: inputs and integers, in their order, without the weights."""

    def __init__(self, program: Program, device: torch.device) -> None:
        self._name = program.name
        self._device = device
        self._count = len(program.arguments)
        self._expected = [(i, a) for i, a in enumerate(program.arguments) if a.kind != "weight"]
        self._is_integer = [a.kind == "int" for _, a in self._expected]
        self._updated = [n for n, (_, a) in enumerate(self._expected) if a.updated]

    @property
    def numbers(self) -> list[int]:
        """For each argument of the caller, its number in the program."""
        return [number for number, _ in self._expected]

    def key(self, arguments: Sequence[Any]) -> Key:
        """Equal for calls of which a plan can't tell the difference. A UserError for arguments of the wrong kind."""
        if len(arguments) != len(self._expected):
            self._fail(f"takes {len(self._expected)} arguments ({self._names()}), got {len(arguments)}")
        parts: list[Any] = []
        try:
            for value, is_integer in zip(arguments, self._is_integer, strict=True):
                if is_integer:
                    if type(value) is not int:
                        self.check(arguments)
                    parts.append(value)
                else:
                    sizes = value.shape
                    strides = normal_strides(sizes, value.stride()) if 1 in sizes else value.stride()
                    parts += (sizes, strides, value.dtype, value.device, ALIGNMENTS[value.data_ptr() & 15])
        except (AttributeError, TypeError, RuntimeError):
            self.check(arguments)
            raise
        return tuple(parts)

    def check(self, arguments: Sequence[Any]) -> None:
        """A UserError that names the first argument of the wrong type, rank, dtype or device."""
        for value, (_, argument) in zip(arguments, self._expected, strict=True):
            if argument.kind == "int":
                if type(value) is not int:
                    self._fail(f"{argument.name} must be an int, got {_kind(value)}")
            else:
                self._check_tensor(argument, value)

    def facts(self, arguments: Sequence[Any], weight_alignments: Sequence[int], weight_numbers: Sequence[int]) -> Facts:
        sizes: list[Sequence[int]] = [()] * self._count
        strides: list[Sequence[int]] = [()] * self._count
        integers = [0] * self._count
        alignment = [0] * self._count
        for value, (number, argument) in zip(arguments, self._expected, strict=True):
            if argument.kind == "int":
                integers[number] = value
            else:
                sizes[number], strides[number] = tuple(value.shape), normal_strides(value.shape, value.stride())
                alignment[number] = alignment_of(value)
        for number, known in zip(weight_numbers, weight_alignments, strict=True):
            alignment[number] = known
        return Facts(sizes, strides, integers, alignment)

    def check_updates(self, arguments: Sequence[Any]) -> None:
        """A UserError where an updated tensor shares memory with itself or with another argument: the order of reads
        and writes would show, and the compiled program does not keep it."""
        for number in self._updated:
            mine = arguments[number]
            if any(size > 1 and stride == 0 for size, stride in zip(mine.shape, mine.stride(), strict=True)):
                self._fail(f"{self._label(number)} is updated in place, but is an expanded tensor")
            for other, is_integer in enumerate(self._is_integer):
                if other != number and not is_integer and _overlap(mine, arguments[other]):
                    self._fail(
                        f"{self._label(number)} is updated in place, but shares memory with {self._label(other)}"
                    )

    def mark_updated(self, arguments: Sequence[Any]) -> None:
        """Tell autograd that updated tensors have new contents."""
        for number in self._updated:
            if not arguments[number].is_inference():
                torch.autograd.graph.increment_version(arguments[number])

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

    def _label(self, number: int) -> str:
        return self._expected[number][1].name

    def _names(self) -> str:
        return ", ".join(argument.name for _, argument in self._expected)

    def _fail(self, what: str) -> NoReturn:
        raise UserError(f"{self._name}: {what}")


def normal_strides(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The strides, where a dimension of size 1 gets the stride it would have in a contiguous tensor: the one given
    means nothing."""
    normal = list(strides)
    step = 1
    for dim in range(len(normal) - 1, -1, -1):
        if sizes[dim] == 1:
            normal[dim] = step
        step = normal[dim] * sizes[dim]
    return tuple(normal)


def _overlap(a: Tensor, b: Tensor) -> bool:
    start, other = a.data_ptr(), b.data_ptr()
    end = start + extent(a.shape, a.stride()) * a.element_size()
    return start < other + extent(b.shape, b.stride()) * b.element_size() and other < end


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}" if isinstance(value, (int, float, str, bool)) else type(value).__name__
