"""The slow reference of `dlcb.host`: op after op, every integer from the op's own `compute`. The runtime's fast form is
tested against it.

The answer is a list of events in program order; a tensor or the arena is named by its slot, the number of the result
in the program:
    ("argument" | "weight", slot, name)                 ("arena", slot, bytes)
    ("buffer", slot, offset, sizes, strides, dtype)     ("output", slot, sizes, strides, dtype)
    ("view", slot, source, offset, sizes, strides)
    ("launch", kernel, threads, blocks, tensors, ((value, "i32" | "i64"), …), ((error, text), …))
                                                        the chosen variant; no event where it has no blocks
    ("library", slot | None, function, tensors, out | None)
    ("return", (("tensor", slot) | ("index", value), …))
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, SSAValue

from dlcb.dialects.failure import failures_of
from dlcb.dialects.host.facts import AlignedOp, ArgumentOp, ConstantOp, IntegerOp, SizeOp, StrideOp, WeightOp
from dlcb.dialects.host.integers import IntegerOp as Computed
from dlcb.dialects.host.memory import ArenaOp, BufferOp, OutputOp, ViewOp
from dlcb.dialects.host.ops import ProgramOp, ReturnOp
from dlcb.dialects.host.work import CheckOp, LaunchOp, LibraryOp
from dlcb.dialects.types import TYPE_NAME, index
from dlcb.errors import InternalError, UserError

Event = tuple[Any, ...]


@dataclass(frozen=True)
class TensorFacts:
    """What a program may ask about a tensor. `alignment` is the largest power of two, up to 16, that divides its
    address."""

    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    alignment: int = 16


def run_host_program(program: ProgramOp, arguments: Mapping[str, TensorFacts | int]) -> Iterator[Event]:
    """What a call with such arguments does, one after another. A check that fails is a UserError with its text."""
    run = _Run(program, arguments)
    for op in program.body.block.ops:
        yield from run.step(op)


class _Run:
    def __init__(self, program: ProgramOp, arguments: Mapping[str, TensorFacts | int]) -> None:
        self.name = program.sym_name.data
        self.arguments = arguments
        self.integers: dict[SSAValue, int] = {}
        self.slots: dict[SSAValue, int] = {}

    def step(self, op: Operation) -> list[Event]:
        for result in op.results:
            self.slots[result] = len(self.slots)
        match op:
            case Computed():
                operands = [self.integers[o] for o in op.operands]
                self.integers[op.results[0]] = int(op.compute(*operands, *op.attribute_values()))
            case SizeOp():
                self.integers[op.result] = self.facts(op.label.data).sizes[op.number.data]
            case StrideOp():
                self.integers[op.result] = self.facts(op.label.data).strides[op.number.data]
            case AlignedOp():
                self.integers[op.result] = self.facts(op.label.data).alignment >= op.number.data
            case IntegerOp():
                self.integers[op.result] = self.integer(op.label.data)
            case ConstantOp():
                self.integers[op.result] = op.value.data
            case CheckOp():
                self.check(op)
            case _:
                return self.work(op)
        return []

    def work(self, op: Operation) -> list[Event]:
        slots = self.slots
        match op:
            case ArgumentOp() | WeightOp():
                return [(op.opcode(), slots[op.result], op.label.data)]
            case ArenaOp():
                return [("arena", slots[op.result], self.integers[op.bytes])]
            case BufferOp():
                layout = self.all(op.sizes), self.all(op.strides)
                return [("buffer", slots[op.result], self.integers[op.offset], *layout, TYPE_NAME[op.dtype])]
            case OutputOp():
                return [("output", slots[op.result], self.all(op.sizes), self.all(op.strides), TYPE_NAME[op.dtype])]
            case ViewOp():
                place = slots[op.result], slots[op.source], self.integers[op.offset]
                return [("view", *place, self.all(op.sizes), self.all(op.strides))]
            case LaunchOp():
                return self.launch(op)
            case LibraryOp():
                result = None if op.result is None else slots[op.result]
                out = None if op.out is None else slots[op.out]
                return [("library", result, op.function.data, tuple(slots[t] for t in op.tensors), out)]
            case ReturnOp():
                return [("return", tuple(self.result(v) for v in op.values))]
            case _:
                raise InternalError(f"evaluator: {op.name} is not an op of dlcb.host that runs")

    def check(self, op: CheckOp) -> None:
        if not self.integers[op.condition]:
            values = self.all(op.values)
            text = re.sub(r"\{(\d+)\}", lambda m: str(values[int(m[1])]), op.text.data)
            raise UserError(f"{self.name}: {text}")

    def launch(self, op: LaunchOp) -> list[Event]:
        tensors = tuple(self.slots[t] for t in op.tensors)
        for variant in op.variants():
            integers = tuple((self.integers[value], TYPE_NAME[type]) for value, type in variant.integers)
            fits = all(type != "i32" or -(1 << 31) <= value < 1 << 31 for value, type in integers)
            if self.integers[variant.condition] and fits:
                blocks = self.integers[variant.blocks]
                failures = tuple(map(tuple, failures_of(op.failures)))
                return (
                    [("launch", variant.kernel, variant.threads, blocks, tensors, integers, failures)] if blocks else []
                )
        raise InternalError(f"{self.name}: no variant of {[k.root_reference.data for k in op.kernels]} fits")

    def all(self, values: Any) -> tuple[int, ...]:
        return tuple(self.integers[v] for v in values)

    def result(self, value: SSAValue) -> tuple[str, int]:
        return ("index", self.integers[value]) if value.type == index else ("tensor", self.slots[value])

    def facts(self, name: str) -> TensorFacts:
        facts = self.arguments.get(name, TensorFacts())
        if isinstance(facts, int):
            raise InternalError(f"{self.name}: argument '{name}' is a tensor, got the integer {facts}")
        return facts

    def integer(self, name: str) -> int:
        value = self.arguments[name]
        if not isinstance(value, int):
            raise InternalError(f"{self.name}: argument '{name}' is an integer, got a tensor")
        return value
