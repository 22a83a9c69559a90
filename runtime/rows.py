"""The serialized host program, checked. Rows come from strangers' files: nothing is believed, nothing is executed.

A program is a JSON object:
    {"name": str, "arguments": [argument …], "results": [str …], "code": [row …]}
    argument   ["input", name, dtype, rank, updated] | ["weight", name, dtype, [size …], [stride …]] | ["int", name]
Values are slots, numbered 0, 1, 2 … in the order of the rows that define them. `r` is the row's own slot, other small
letters are slots too:
    ["constant", r, int | bool]    ["integer", r, NAME]    ["argument", r, NAME]    ["weight", r, NAME]
    ["size", r, NAME, DIM]    ["stride", r, NAME, DIM]    ["aligned", r, NAME, BYTES]
    [INTEGER OPCODE, r, a …, ATTRIBUTE …]              for the opcodes of `INTEGER_ROWS`
    ["check", c, TEXT, [a …]]             ["arena", r, bytes]
    ["buffer", r, arena, offset, [size …], [stride …], DTYPE]
    ["output", r, [size …], [stride …], DTYPE]
    ["view", r, source, offset, [size …], [stride …]]
    ["launch", [tensor …], [[KERNEL, THREADS, c, blocks, [[a, "i32" | "i64"] …]] …], [[ERROR, TEXT] …]]
                                          the last: what the checks of the kernel say, by their numbers
    ["library", r | null, FUNCTION, [tensor …], out | null, {OPTION: value}, DTYPE | null]
    ["return", [a …]]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, cast

from dlcb.errors import ELEMENT_ERRORS, UserError
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.library import check_call

Kind = Literal["index", "truth", "tensor", "arena"]
MAX_THREADS = 1024
MAX_RANK = 64


@dataclass(frozen=True, slots=True)
class IntegerRow:
    """An integer opcode: its operands' kinds, the number of its integer attributes, its result, its Python source."""

    operands: tuple[Kind, ...]
    attributes: int
    result: Kind
    source: str


_PAIR: tuple[Kind, Kind] = ("index", "index")
_TRUTHS: tuple[Kind, Kind] = ("truth", "truth")

INTEGER_ROWS: dict[str, IntegerRow] = {
    "add": IntegerRow(_PAIR, 0, "index", "{0} + {1}"),
    "sub": IntegerRow(_PAIR, 0, "index", "{0} - {1}"),
    "mul": IntegerRow(_PAIR, 0, "index", "{0} * {1}"),
    "floordiv": IntegerRow(_PAIR, 0, "index", "{0} // {1} if {1} else 0"),
    "ceildiv": IntegerRow(_PAIR, 0, "index", "-(-{0} // {1}) if {1} else 0"),
    "mod": IntegerRow(_PAIR, 0, "index", "{0} % {1} if {1} else 0"),
    "min": IntegerRow(_PAIR, 0, "index", "{0} if {0} < {1} else {1}"),
    "max": IntegerRow(_PAIR, 0, "index", "{0} if {0} > {1} else {1}"),
    "broadcast": IntegerRow(_PAIR, 0, "index", "{1} if {0} == 1 else {0}"),
    "eq": IntegerRow(_PAIR, 0, "truth", "{0} == {1}"),
    "ne": IntegerRow(_PAIR, 0, "truth", "{0} != {1}"),
    "lt": IntegerRow(_PAIR, 0, "truth", "{0} < {1}"),
    "le": IntegerRow(_PAIR, 0, "truth", "{0} <= {1}"),
    "and": IntegerRow(_TRUTHS, 0, "truth", "{0} and {1}"),
    "or": IntegerRow(_TRUTHS, 0, "truth", "{0} or {1}"),
    "not": IntegerRow(("truth",), 0, "truth", "not {0}"),
    "select": IntegerRow(("truth", *_PAIR), 0, "index", "{1} if {0} else {2}"),
    "scaled": IntegerRow(("index",), 2, "index", "floor({0} * ({1} / {2}))"),
    "isqrt": IntegerRow(("index",), 0, "index", "isqrt({0}) if {0} > 0 else 0"),
    "magic_mul": IntegerRow(("index",), 1, "index", "magic({0}, {1})[0]"),
    "magic_shift": IntegerRow(("index",), 1, "index", "magic({0}, {1})[1]"),
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a program. Of an `int`, only the name counts; of an `input`, shape and strides are empty."""

    kind: Literal["input", "weight", "int"]
    name: str
    dtype: str = ""
    rank: int = 0
    updated: bool = False
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """Checked rows. `kinds[slot]` is what a slot holds."""

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[str, ...]
    code: tuple[list[Any], ...]
    kinds: tuple[Kind, ...]

    def kernels(self) -> set[str]:
        """The names of all kernels that the program may launch."""
        return {variant[0] for row in self.code if row[0] == "launch" for variant in row[2]}


def check_program(data: Any) -> Program:
    """The program in the JSON object; a UserError names the first row that is not well formed."""
    return _Checker(data).program()


class _Checker:
    def __init__(self, data: Any) -> None:
        self.place = "header"
        self.name = "?"
        if not isinstance(data, dict):
            self.fail(f"expected an object, got {_short(data)}")
        self.data: dict[Any, Any] = data
        self.name = self.text(self.data.get("name"))
        self.kinds: list[Kind] = []
        self.arguments: dict[str, Argument] = {}

    def program(self) -> Program:
        for row in self.items(self.data.get("arguments")):
            argument = self.argument_row(row)
            if argument.name in self.arguments:
                self.fail(f"two arguments are called {argument.name!r}")
            self.arguments[argument.name] = argument
        results = tuple(self.text(r) for r in self.items(self.data.get("results")))
        code = self.items(self.data.get("code"))
        for number, row in enumerate(code):
            self.place = f"row {number}"
            self.row(row, last=number == len(code) - 1)
        if not code:
            self.fail("a program has at least one row")
        if results and len(results) != len(code[-1][1]):
            self.fail(f"{len(results)} result names but {len(code[-1][1])} results")
        return Program(self.name, tuple(self.arguments.values()), results, tuple(code), tuple(self.kinds))

    def fail(self, what: str) -> NoReturn:
        raise UserError(f"host program {self.name!r} is damaged or foreign: {self.place}: {what}")

    # --- rows

    def argument_row(self, row: Any) -> Argument:
        match row:
            case ["input", name, dtype, rank, bool(updated)]:
                return Argument("input", self.text(name), self.dtype(dtype), self.natural(rank, MAX_RANK), updated)
            case ["weight", name, dtype, sizes, strides]:
                shape = tuple(self.natural(s) for s in self.items(sizes))
                steps = tuple(self.natural(s) for s in self.items(strides))
                if len(shape) != len(steps):
                    self.fail(f"weight {name!r} has {len(shape)} sizes but {len(steps)} strides")
                return Argument("weight", self.text(name), self.dtype(dtype), len(shape), False, shape, steps)
            case ["int", name]:
                return Argument("int", self.text(name))
            case _:
                self.fail(f"not an argument: {_short(row)}")

    def row(self, row: Any, last: bool) -> None:
        fields = self.items(row)
        opcode = self.text(fields[0] if fields else None)
        if (opcode == "return") != last:
            self.fail("the last row, and no other, is 'return'")
        if opcode in INTEGER_ROWS:
            self.integer_row(fields, INTEGER_ROWS[opcode])
        elif opcode in _ROWS:
            expected, check = _ROWS[opcode]
            self.length(fields, expected)
            check(self, *fields[1:])
        else:
            self.fail(f"unknown opcode {opcode!r}")

    def integer_row(self, row: list[Any], signature: IntegerRow) -> None:
        count = len(signature.operands)
        self.length(row, 1 + count + signature.attributes)
        for slot, kind in zip(row[2 : 2 + count], signature.operands, strict=True):
            self.slot(slot, kind)
        attributes = [self.integer(a) for a in row[2 + count :]]
        if row[0] == "scaled":
            numerator, denominator = attributes
            if denominator <= 0:
                self.fail(f"scaled: the denominator must be positive, got {denominator}")
            if abs(numerator) > denominator << 32:
                self.fail(f"scaled: expected a factor of at most 2^32, got {numerator} / {denominator}")
        if row[0] in ("magic_mul", "magic_shift") and attributes[0] not in (32, 64):
            self.fail(f"{row[0]}: bits must be 32 or 64, got {attributes[0]}")
        self.define(row[1], signature.result)

    def constant(self, r: Any, value: Any) -> None:
        self.define(r, "truth" if isinstance(value, bool) else "index")
        if not isinstance(value, bool):
            self.integer(value)

    def dim(self, r: Any, name: Any, dim: Any) -> None:
        argument = self.argument(name, "input")
        if self.natural(dim) >= argument.rank:
            self.fail(f"argument {name!r} has rank {argument.rank}, no dimension {dim}")
        self.define(r, "index")

    def aligned(self, r: Any, name: Any, bytes: Any) -> None:
        self.argument(name, "input", "weight")
        if self.natural(bytes) not in (1, 2, 4, 8, 16):
            self.fail(f"aligned: bytes must be 1, 2, 4, 8 or 16, got {bytes}")
        self.define(r, "truth")

    def named_integer(self, r: Any, name: Any) -> None:
        self.argument(name, "int")
        self.define(r, "index")

    def named_input(self, r: Any, name: Any) -> None:
        self.argument(name, "input")
        self.define(r, "tensor")

    def named_weight(self, r: Any, name: Any) -> None:
        self.argument(name, "weight")
        self.define(r, "tensor")

    def check(self, condition: Any, text: Any, values: Any) -> None:
        self.slot(condition, "truth")
        self.text(text)
        self.slots(values, "index")

    def arena(self, r: Any, bytes: Any) -> None:
        if "arena" in self.kinds:
            self.fail("a program has at most one arena")
        self.slot(bytes, "index")
        self.define(r, "arena")

    def buffer(self, r: Any, arena: Any, offset: Any, sizes: Any, strides: Any, dtype: Any) -> None:
        self.slot(arena, "arena")
        self.slot(offset, "index")
        self.layout(sizes, strides)
        self.dtype(dtype)
        self.define(r, "tensor")

    def output(self, r: Any, sizes: Any, strides: Any, dtype: Any) -> None:
        self.layout(sizes, strides)
        self.dtype(dtype)
        self.define(r, "tensor")

    def view(self, r: Any, source: Any, offset: Any, sizes: Any, strides: Any) -> None:
        self.slot(source, "tensor")
        self.slot(offset, "index")
        self.layout(sizes, strides)
        self.define(r, "tensor")

    def launch(self, tensors: Any, variants: Any, failures: Any) -> None:
        self.slots(tensors, "tensor")
        if not self.items(variants):
            self.fail("a launch has at least one variant")
        for variant in variants:
            match variant:
                case [kernel, threads, condition, blocks, integers]:
                    self.text(kernel)
                    if not 1 <= self.natural(threads) <= MAX_THREADS:
                        self.fail(f"threads must be between 1 and {MAX_THREADS}, got {threads}")
                    self.slot(condition, "truth")
                    self.slot(blocks, "index")
                    for integer in self.items(integers):
                        self.launch_integer(integer)
                case _:
                    self.fail(f"not a variant: {_short(variant)}")

        for failure in self.items(failures):
            match failure:
                case [str(kind), str()] if kind in ELEMENT_ERRORS:
                    pass
                case _:
                    self.fail(f"expected an error of {', '.join(ELEMENT_ERRORS)} and a text, got {_short(failure)}")

    def launch_integer(self, integer: Any) -> None:
        match integer:
            case [slot, "i32" | "i64"]:
                self.slot(slot, "index")
            case _:
                self.fail(f"expected a slot and i32 or i64, got {_short(integer)}")

    def library(self, r: Any, function: Any, tensors: Any, out: Any, options: Any, dtype: Any) -> None:
        self.slots(tensors, "tensor")
        if out is not None:
            self.slot(out, "tensor")
        if (r is None) == (out is None):
            self.fail("a library call has a result or writes into a tensor, one of both")
        problem = check_call(self.text(function), len(tensors), out is not None, options)
        if problem:
            self.fail(problem)
        if r is not None:
            self.dtype(dtype)
            self.define(r, "tensor")

    def results(self, values: Any) -> None:
        for slot in self.items(values):
            if self.kind(slot) not in ("tensor", "index"):
                self.fail(f"slot {slot} holds {self.kinds[slot]}, which can't be a result")

    # --- parts

    def length(self, row: list[Any], expected: int) -> None:
        if len(row) != 1 + expected:
            self.fail(f"{row[0]} has {expected} fields, got {len(row) - 1}")

    def define(self, r: Any, kind: Kind) -> None:
        if r != len(self.kinds) or isinstance(r, bool):
            self.fail(f"defines slot {_short(r)}, the next one is {len(self.kinds)}")
        self.kinds.append(kind)

    def kind(self, slot: Any) -> Kind:
        if type(slot) is not int or not 0 <= slot < len(self.kinds):
            self.fail(f"uses slot {_short(slot)}, {len(self.kinds)} slots are defined so far")
        return self.kinds[slot]

    def slot(self, slot: Any, kind: Kind) -> None:
        if self.kind(slot) != kind:
            self.fail(f"slot {slot} holds {self.kinds[slot]}, expected {kind}")

    def slots(self, slots: Any, kind: Kind) -> None:
        for slot in self.items(slots):
            self.slot(slot, kind)

    def layout(self, sizes: Any, strides: Any) -> None:
        self.slots(sizes, "index")
        self.slots(strides, "index")
        if len(sizes) != len(strides):
            self.fail(f"{len(sizes)} sizes but {len(strides)} strides")

    def argument(self, name: Any, *kinds: str) -> Argument:
        argument = self.arguments.get(self.text(name))
        if argument is None or argument.kind not in kinds:
            self.fail(f"no argument {name!r} of kind {' or '.join(kinds)}")
        return argument

    def items(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            self.fail(f"expected a list, got {_short(value)}")
        return cast("list[Any]", value)

    def text(self, value: Any) -> str:
        if not isinstance(value, str):
            self.fail(f"expected a text, got {_short(value)}")
        return value

    def integer(self, value: Any) -> int:
        if type(value) is not int or abs(value) >= 1 << 64:
            self.fail(f"expected an integer, got {_short(value)}")
        return value

    def natural(self, value: Any, limit: int = 1 << 63) -> int:
        if not 0 <= self.integer(value) <= limit:
            self.fail(f"expected an integer from 0 to {limit}, got {value}")
        return value

    def dtype(self, value: Any) -> str:
        if self.text(value) not in DTYPES:
            self.fail(f"expected a dtype, one of {', '.join(DTYPES)}; got {_short(value)}")
        return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "…"


_ROWS: dict[str, tuple[int, Callable[..., None]]] = {
    "constant": (2, _Checker.constant),
    "size": (3, _Checker.dim),
    "stride": (3, _Checker.dim),
    "aligned": (3, _Checker.aligned),
    "integer": (2, _Checker.named_integer),
    "argument": (2, _Checker.named_input),
    "weight": (2, _Checker.named_weight),
    "check": (3, _Checker.check),
    "arena": (2, _Checker.arena),
    "buffer": (6, _Checker.buffer),
    "output": (4, _Checker.output),
    "view": (5, _Checker.view),
    "launch": (3, _Checker.launch),
    "library": (6, _Checker.library),
    "return": (1, _Checker.results),
}
