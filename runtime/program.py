"""A checked host program as one Python function: straight-line integer code, then the events of the call.

Only slot numbers, argument numbers and integers are written into the source; every text of the program is passed
beside it. So no row can put code of its own into the function.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dlcb.errors import LAYOUT, InternalError, LayoutError, UserError
from dlcb.magic import magic_constants
from dlcb.runtime.rows import INTEGER_ROWS, Program

Event = tuple[Any, ...]
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Facts:
    """What a program may ask about its arguments, each by the argument's number: sizes and strides of inputs, values of
    integers and the largest power of two, up to 16, that divides a tensor's address. What does not apply to an argument
    is not read."""

    sizes: Sequence[Sequence[int]]
    strides: Sequence[Sequence[int]]
    integers: Sequence[int]
    alignment: Sequence[int]


PlanFunction = Callable[[Facts], list[Event]]


def compile_program(program: Program) -> PlanFunction:
    """The function from the facts about a call's arguments to its events, in program order:

    ("argument" | "weight", slot, name)                 ("arena", slot, bytes)
    ("buffer", slot, offset, sizes, strides, dtype)     ("output", slot, sizes, strides, dtype)
    ("view", slot, source, offset, sizes, strides)
    ("launch", kernel, threads, blocks, tensors, ((value, "i32" | "i64"), …), failures as in the row)
    ("library", slot | None, function, tensors, out | None, options, dtype | None)
    ("return", (("tensor", slot) | ("index", value), …))

    A launch takes the first variant whose condition holds and whose 32-bit integers fit; one of 0 blocks is no event. A
    check that fails is a UserError with the check's text, a LayoutError where that begins so. Integers of programs
    are exact: they never wrap.
    """
    source = program_source(program)
    rows = program.code

    def fail(number: int, values: tuple[int, ...]) -> None:
        text = fill(rows[number][2], values)
        kind = LayoutError if text.startswith(LAYOUT) else UserError
        raise kind(f"{program.name}: {text.removeprefix(LAYOUT)}")

    def no_variant(number: int) -> None:
        kernels = ", ".join(variant[0] for variant in rows[number][2])
        raise InternalError(f"{program.name}: none of the kernels {kernels} fits this call")

    namespace: dict[str, Any] = {
        "__builtins__": {},
        "rows": rows,
        "failures": {
            n: tuple((kind, text) for kind, text in row[3]) for n, row in enumerate(rows) if row[0] == "launch"
        },
        "fail": fail,
        "no_variant": no_variant,
        "magic": magic,
        "floor": math.floor,
        "isqrt": math.isqrt,
        "fit": fit,
    }
    exec(compile(source, f"<host program {program.name}>", "exec"), namespace)
    return namespace["plan"]


def program_source(program: Program) -> str:
    """The text of the function, for reading and for `compile_program`."""
    numbers = {argument.name: number for number, argument in enumerate(program.arguments)}
    lines = ["def plan(facts):"]
    lines += [f"{_INDENT}{name} = facts.{name}" for name in ("sizes", "strides", "integers", "alignment")]
    lines += [f"{_INDENT}events = []", f"{_INDENT}add = events.append"]
    for number, row in enumerate(program.code):
        lines += [_INDENT + line for line in _statements(program, numbers, number, row)]
    return "\n".join([*lines, f"{_INDENT}return events", ""])


def fill(text: str, values: Sequence[int]) -> str:
    """The text with `{0}`, `{1}` … replaced by the values; a number without a value stays as it is."""

    def value(match: re.Match[str]) -> str:
        number = int(match[1])
        return str(values[number]) if number < len(values) else match[0]

    return re.sub(r"\{(\d{1,4})\}", value, text)


def magic(divisor: int, bits: int) -> tuple[int, int]:
    """Multiplier and shift of the form with so many bits, or zeros where it has no room for the divisor."""
    return magic_constants(divisor, 32 if bits == 32 else 64) if 0 <= divisor < 1 << (bits - 1) else (0, 0)


def fit(values: Sequence[int]) -> bool:
    """Do all of them fit 32 bits?"""
    return all(-(1 << 31) <= value < 1 << 31 for value in values)


def _statements(program: Program, numbers: dict[str, int], number: int, row: list[Any]) -> list[str]:
    opcode = row[0]
    if opcode in INTEGER_ROWS:
        return [f"v{row[1]} = {_integer_source(row)}"]
    match row:
        case ["constant", r, value]:
            return [f"v{r} = {value!r}"]
        case ["size" | "stride", r, name, dim]:
            return [f"v{r} = {opcode}s[{numbers[name]}][{dim}]"]
        case ["integer", r, name]:
            return [f"v{r} = integers[{numbers[name]}]"]
        case ["aligned", r, name, count]:
            return [f"v{r} = alignment[{numbers[name]}] >= {count}"]
        case ["check", condition, _, values]:
            return [f"if not v{condition}: fail({number}, {_tuple(values)})"]
        case ["launch", tensors, variants, _]:
            return _launch(number, tensors, variants)
        case _:
            return [f"add({_event(program, number, row)})"]


def _integer_source(row: list[Any]) -> str:
    signature = INTEGER_ROWS[row[0]]
    count = len(signature.operands)
    attributes = [f"({a})" for a in row[2 + count :]]
    return signature.source.format(*[f"v{s}" for s in row[2 : 2 + count]], *attributes)


def _tuple(slots: Sequence[int]) -> str:
    return "(" + "".join(f"v{s}, " for s in slots) + ")"


def _launch(number: int, tensors: Sequence[int], variants: Sequence[list[Any]]) -> list[str]:
    lines: list[str] = []
    for choice, (_, threads, condition, blocks, integers) in enumerate(variants):
        packed = "(" + "".join(f"(v{slot}, '{type}'), " for slot, type in integers) + ")"
        what = f"'launch', rows[{number}][2][{choice}][0], {threads}, v{blocks}, {tuple(tensors)}"
        event = f"({what}, {packed}, failures[{number}])"
        narrow = [slot for slot, type in integers if type == "i32"]
        holds = f"v{condition} and fit({_tuple(narrow)})" if narrow else f"v{condition}"
        lines += [f"{'elif' if choice else 'if'} {holds}:", f"{_INDENT}if v{blocks}: add({event})"]
    return [*lines, f"else: no_variant({number})"]


def _event(program: Program, number: int, row: list[Any]) -> str:
    match row:
        case ["argument" | "weight", r, _]:
            return f"('{row[0]}', {r}, rows[{number}][2])"
        case ["arena", r, count]:
            return f"('arena', {r}, v{count})"
        case ["buffer", r, _, offset, sizes, strides, dtype]:
            return f"('buffer', {r}, v{offset}, {_tuple(sizes)}, {_tuple(strides)}, '{dtype}')"
        case ["output", r, sizes, strides, dtype]:
            return f"('output', {r}, {_tuple(sizes)}, {_tuple(strides)}, '{dtype}')"
        case ["view", r, source, offset, sizes, strides]:
            return f"('view', {r}, {source}, v{offset}, {_tuple(sizes)}, {_tuple(strides)})"
        case ["library", r, _, tensors, out, _, dtype]:
            options = f"rows[{number}][5]"
            return f"('library', {r}, rows[{number}][2], {tuple(tensors)}, {out}, {options}, {dtype!r})"
        case ["return", values]:
            results = "".join(
                f"('index', v{s}), " if program.kinds[s] == "index" else f"('tensor', {s}), " for s in values
            )
            return f"('return', ({results}))"
        case _:
            raise InternalError(f"host program {program.name}: opcode {row[0]!r} passed the check but has no meaning")
