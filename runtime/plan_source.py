"""The text of the Python function that plans calls of a host program.

All that follows from the program alone is worked out here: which tensor lies in which root, which step needs a root
last. What is left for a call is straight-line integer code, a test that each tensor lies inside its root, and one tuple
for each root, place and step. Only numbers are written into the text, and names of our own; what the program names is
passed beside it. So no row can put code of its own into the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from dlcb.errors import InternalError
from dlcb.runtime.dtypes import DTYPES
from dlcb.runtime.library import LIBRARY
from dlcb.runtime.plan import CallPlan, Launch, LibraryCall, Place, Root, RootKind, extent
from dlcb.runtime.rows import INTEGER_ROWS, Program

MAX_BLOCKS = (1 << 31) - 1
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class _Root:
    """`text` is the root, `room` its bytes, as expressions."""

    kind: RootKind
    text: str
    room: str = ""


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What is known of a slot; `start` in bytes, sizes and strides as expressions."""

    root: int
    dtype: torch.dtype
    start: str
    sizes: Sequence[str]
    strides: Sequence[str]


class PlanSource:
    """`text` defines `plan(facts)`; `given` are the values of the names in it that stand for what the program names;
    `kinds` are those of its roots."""

    def __init__(self, program: Program, separate_buffers: bool) -> None:
        self._program = program
        self._separate_buffers = separate_buffers
        self._numbers = {argument.name: number for number, argument in enumerate(program.arguments)}
        self._integers: dict[int, str] = {}
        """Integers and truths as expressions, by slot."""
        self._tensors: dict[int, _Tensor] = {}
        self._places: dict[int, str] = {}
        """Places that were made, as expressions, by slot."""
        self._roots: list[_Root] = []
        self._arena = -1
        self._results = ""
        self._ending = _last_uses(program)
        self._names: dict[Any, str] = {}
        """Of what is passed beside the text."""
        self._tests: set[str] = set()
        """Those that were written."""
        self._choices: dict[str, int] = {}
        """Which launch chose among the same variants first, by the text of the choice."""
        self.given: dict[str, Any] = {
            "Root": Root,
            "Place": Place,
            "Launch": Launch,
            "LibraryCall": LibraryCall,
            "CallPlan": CallPlan,
        }
        self._lines = ["def plan(facts):"]
        for name in ("sizes", "strides", "integers", "alignment"):
            self._add(f"{name} = facts.{name}")
        self._add("steps = []", "add = steps.append")
        for number, row in enumerate(program.code):
            self._row(number, row)
        self.kinds: list[RootKind] = [root.kind for root in self._roots]
        self._add(f"return CallPlan({_tuple([root.text for root in self._roots])}, tuple(steps), {self._results})")
        self.text = "\n".join([*self._lines, ""])

    # --- rows

    def _row(self, number: int, row: list[Any]) -> None:
        if row[0] in INTEGER_ROWS:
            self._compute(row)
        else:
            _ROWS[row[0]](self, number, *row[1:])

    def _compute(self, row: list[Any]) -> None:
        signature = INTEGER_ROWS[row[0]]
        count = len(signature.operands)
        attributes = [f"({a})" for a in row[2 + count :]]
        operands = [self._integers[s] for s in row[2 : 2 + count]]
        self._set(row[1], signature.source.format(*operands, *attributes))

    def on_constant(self, number: int, r: int, value: int) -> None:
        self._integers[r] = f"({value!r})" if value < 0 else repr(value)

    def on_size(self, number: int, r: int, name: str, dim: int) -> None:
        self._set(r, f"sizes[{self._numbers[name]}][{dim}]")

    def on_stride(self, number: int, r: int, name: str, dim: int) -> None:
        self._set(r, f"strides[{self._numbers[name]}][{dim}]")

    def on_integer(self, number: int, r: int, name: str) -> None:
        self._set(r, f"integers[{self._numbers[name]}]")

    def on_aligned(self, number: int, r: int, name: str, count: int) -> None:
        self._set(r, f"alignment[{self._numbers[name]}] >= {count}")

    def on_check(self, number: int, condition: int, text: str, values: Sequence[int]) -> None:
        self._add(f"if not {self._integers[condition]}: check_failed({number}, {_tuple(self._all(values))})")

    def on_argument(self, number: int, r: int, name: str) -> None:
        place = self._numbers[name]
        argument = self._program.arguments[place]
        dtype = DTYPES[argument.dtype]
        kind, element = self._given("argument"), self._given(dtype)
        fields = [kind, element, f"sizes[{place}]", f"strides[{place}]", str(place), str(argument.updated)]
        sizes, strides = ([f"{what}[{place}][{dim}]" for dim in range(argument.rank)] for what in ("sizes", "strides"))
        root = self._new_root("argument", fields, f"extent(sizes[{place}], strides[{place}]) * {dtype.itemsize}")
        self._whole(r, root, dtype, sizes, strides)

    def on_weight(self, number: int, r: int, name: str) -> None:
        place = self._numbers[name]
        argument = self._program.arguments[place]
        dtype = DTYPES[argument.dtype]
        root = Root("weight", dtype, argument.shape, argument.strides, place)
        room = extent(root.sizes, root.strides) * dtype.itemsize
        self._roots.append(_Root("weight", self._given(root), str(room)))
        self._whole(r, len(self._roots) - 1, dtype, list(map(str, root.sizes)), list(map(str, root.strides)))

    def on_arena(self, number: int, r: int, count: int) -> None:
        size = self._integers[count]
        self._add(f"if not 0 <= {size} < {1 << 63}: bad_arena({size})")
        self._arena = self._bytes("arena", size)

    def on_buffer(
        self, number: int, r: int, arena: int, offset: int, sizes: Sequence[int], strides: Sequence[int], dtype: str
    ) -> None:
        element = DTYPES[dtype]
        made = _Tensor(self._arena, element, self._integers[offset], self._all(sizes), self._all(strides))
        self._test_inside(number, made)
        if self._separate_buffers:
            layout = f"{_tuple(made.sizes)}, {_tuple(made.strides)}"
            self._add(f"v{r} = extent({layout}) * {element.itemsize}")
            made = _Tensor(self._bytes("buffer", f"v{r}"), element, "0", made.sizes, made.strides)
        self._tensors[r] = made

    def on_output(self, number: int, r: int, sizes: Sequence[int], strides: Sequence[int], dtype: str) -> None:
        element = DTYPES[dtype]
        dims, steps = self._all(sizes), self._all(strides)
        layout = f"{_tuple(dims)}, {_tuple(steps)}"
        if not (_all_in(dims + steps, 0, 1 << 63) and prod([int(d) or 1 for d in dims]) * element.itemsize < 1 << 63):
            tests = [f"{' * '.join([str(element.itemsize), *[f'({d} or 1)' for d in dims]])} >> 63"]
            if negative := _or(dims + steps):
                tests.insert(0, f"{negative} < 0")
            self._add(f"if {' or '.join(tests)}: bad_output({layout}, {element.itemsize})")  # torch.empty counts 0 as 1
        fields = [self._given("output"), self._given(element), _tuple(dims), _tuple(steps), "-1", "False"]
        root = self._new_root("output", fields, f"extent({layout}) * {element.itemsize}")
        self._whole(r, root, element, dims, steps)

    def on_view(
        self, number: int, r: int, source: int, offset: int, sizes: Sequence[int], strides: Sequence[int]
    ) -> None:
        of = self._tensors[source]
        start, dims, steps = self._integers[offset], self._all(sizes), self._all(strides)
        if (of.start, start) != ("0", "0"):
            self._add(f"v{r} = {of.start} + {start} * {of.dtype.itemsize}")
            start = f"v{r}"
        self._tensors[r] = made = _Tensor(of.root, of.dtype, start, dims, steps)
        self._test_inside(number, made)

    def on_launch(
        self, number: int, tensors: Sequence[int], variants: Sequence[list[Any]], failures: list[Any]
    ) -> None:
        operands = _tuple([f"({self._tensors[t].root}, {self._tensors[t].start})" for t in tensors])
        told = self._given(tuple((kind, text) for kind, text in failures)) if failures else "()"
        chosen, is_sure = self._choice(number, variants)
        launch = f"add(make(Launch, (*{chosen}, {operands}, {told}, {self._ends(number)})))"
        self._add(launch if is_sure else f"if {chosen}: {launch}")

    def _choice(self, number: int, variants: Sequence[list[Any]]) -> tuple[str, bool]:
        """The name of the kernel, threads, blocks and integers of the variant that a launch takes; and whether it is
        known to have blocks: None stands for a launch of none. Launches that choose alike choose once."""
        lines: list[str] = []
        is_sure = True
        for choice, (kernel, threads, condition, blocks, integers) in enumerate(variants):
            values = self._all(slot for slot, _ in integers)
            narrow = self._all(slot for slot, type in integers if type == "i32")
            holds, known = [self._integers[condition]], _tuple(values)
            if not _all_in(narrow, -(1 << 31), 1 << 31):
                holds.append(f"{-(1 << 31)} <= min(n := {_tuple(narrow)}) and max(n) < {1 << 31}")
                known = "n" if narrow == values else known
            lines += [
                f"{'elif' if choice else 'if'} {' and '.join(holds)}:",
                f"{_INDENT}NAME = {self._given(kernel)}, {threads}, {self._integers[blocks]}, {known}",
            ]
            is_sure &= _all_in([self._integers[blocks]], 1, MAX_BLOCKS + 1) and _all_in(values, -(1 << 63), 1 << 63)
            if holds == ["True"]:
                break
        else:
            lines.append("else: no_variant({number})")
        text = "\n".join(lines)
        name = f"c{self._choices.setdefault(text, number)}"
        if name == f"c{number}":
            self._add(*[line.replace("NAME", name).replace("{number}", str(number)) for line in lines])
            if not is_sure:
                self._add(f"{name} = launchable(*{name})")
        return name, is_sure

    def on_library(
        self,
        number: int,
        r: int | None,
        function: str,
        tensors: Sequence[int],
        out: int | None,
        options: dict[str, Any],
        dtype: str | None,
    ) -> None:
        operands = _tuple([self._place(t) for t in tensors])
        into = "None" if out is None else self._place(out)
        root, element = "None", None if dtype is None else DTYPES[dtype]
        if r is not None and element is not None:
            self._roots.append(_Root("result", self._given(Root("result", element))))
            root = str(len(self._roots) - 1)
            self._whole(r, len(self._roots) - 1, element, [], [])
        head = [self._given(LIBRARY[function]), operands, self._given(options), into, root, self._given(element)]
        self._add(f"add(make(LibraryCall, {_tuple([*head, self._ends(number)])}))")

    def on_return(self, number: int, values: Sequence[int]) -> None:
        for slot in values:
            if slot in self._tensors and self._roots[self._tensors[slot].root].kind in ("arena", "buffer"):
                raise InternalError(f"{self._program.name}: a result lies in the arena, which ends with the call")
        self._results = _tuple([self._integers[s] if s in self._integers else self._place(s) for s in values])

    # --- parts

    def _add(self, *lines: str) -> None:
        self._lines += [_INDENT + line for line in lines]

    def _set(self, slot: int, expression: str) -> None:
        self._add(f"v{slot} = {expression}")
        self._integers[slot] = f"v{slot}"

    def _all(self, slots: Any) -> list[str]:
        return [self._integers[slot] for slot in slots]

    def _given(self, value: Any) -> str:
        """The name of a value that is passed beside the text."""
        key = value if isinstance(value, (str, torch.dtype)) else id(value)
        name = self._names.setdefault(key, f"k{len(self.given)}")
        self.given.setdefault(name, value)
        return name

    def _new_root(self, kind: RootKind, fields: Sequence[str], room: str) -> int:
        number = len(self._roots)
        self._add(f"r{number} = make(Root, {_tuple(fields)})")
        self._roots.append(_Root(kind, f"r{number}", room))
        return number

    def _bytes(self, kind: RootKind, count: str) -> int:
        """A root that is a row of bytes."""
        fields = [self._given(kind), self._given(torch.uint8), f"({count},)", "(1,)", "-1", "False"]
        return self._new_root(kind, fields, count)

    def _whole(self, slot: int, root: int, dtype: torch.dtype, sizes: list[str], strides: list[str]) -> None:
        """The slot is the root's tensor itself."""
        self._tensors[slot] = _Tensor(root, dtype, "0", sizes, strides)
        text = self._roots[root].text
        layout = ["()", "()"] if self._roots[root].kind == "result" else [f"{text}.sizes", f"{text}.strides"]
        self._places[slot] = f"make(Place, ({root}, {self._given(dtype)}, 0, {', '.join(layout)}, True))"

    def _place(self, slot: int) -> str:
        text = self._places.get(slot)
        if text is None:
            made = self._tensors[slot]
            offset = made.start if made.start == "0" else f"{made.start} // {made.dtype.itemsize}"
            fields = [
                str(made.root),
                self._given(made.dtype),
                offset,
                _tuple(made.sizes),
                _tuple(made.strides),
                "False",
            ]
            text = f"make(Place, {_tuple(fields)})"
        if text.startswith("make"):
            self._add(f"p{slot} = {text}")
            text = self._places[slot] = f"p{slot}"
        return text

    def _test_inside(self, number: int, tensor: _Tensor) -> None:
        """A tensor starts at a multiple of its elements' bytes and ends, if it has any, inside its root; nothing of it
        is negative."""
        root, size = self._roots[tensor.root], tensor.dtype.itemsize
        start, sizes, strides = tensor.start, tensor.sizes, tensor.strides
        if _all_in([start, root.room, *sizes, *strides], 0, 1 << 63):
            first, last = int(start), extent(list(map(int, sizes)), list(map(int, strides))) * size
            if first % size == 0 and first + last <= int(root.room):
                return
        tests: list[str] = []
        if root.kind == "arena" and size > 1 and not (start.isdecimal() and int(start) % size == 0):
            tests.append(f"{start} % {size}")
        if negative := _or([start, *sizes, *strides]):
            tests.append(f"{negative} < 0")
        if root.kind != "result":
            steps = [f"({n} - 1)" if s == "1" else f"({n} - 1) * {s}" for n, s in zip(sizes, strides, strict=True)]
            tests.append(" and ".join([*sizes, f"{start} + ({' + '.join([*steps, '1'])}) * {size} > {root.room}"]))
        test = " or ".join(tests)
        if tests and test not in self._tests:
            self._tests.add(test)
            layout = f"{_tuple(sizes)}, {_tuple(strides)}"
            self._add(f"if {test}: outside({number}, {tensor.root}, {start}, {layout}, {size}, {root.room or 0})")

    def _ends(self, number: int) -> str:
        """The roots of library results and separate buffers that no row after this one uses."""
        roots = [self._tensors[slot].root for slot in self._ending.get(number, ())]
        return _tuple([str(root) for root in roots if self._roots[root].kind in ("buffer", "result")])


def _last_uses(program: Program) -> dict[int, list[int]]:
    """By row: the slots of buffers and library results that it is the last to use, and that are no results."""
    owners: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, row in enumerate(program.code):
        match row:
            case ["buffer", r, *_]:
                owners[r] = r
            case ["view", r, source, *_] if source in owners:
                owners[r] = owners[source]
            case ["launch", tensors, *_]:
                last |= {owners[t]: number for t in tensors if t in owners}
            case ["library", r, _, tensors, out, *_]:
                owners |= {} if r is None else {r: r}
                last |= {owners[t]: number for t in (*tensors, out, r) if t in owners}
            case ["return", values]:
                for value in values:
                    last.pop(owners.get(value, -1), None)
            case _:
                pass
    found: dict[int, list[int]] = {}
    for slot, number in last.items():
        found.setdefault(number, []).append(slot)
    return found


def _tuple(parts: Sequence[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _all_in(values: Sequence[str], least: int, end: int) -> bool:
    """Are all of them literals from `least` on, below `end`? Then a call need not look."""
    literals = [value.strip("()") for value in values]
    return all([text.removeprefix("-").isdecimal() and least <= int(text) < end for text in literals])


def _or(values: Sequence[str]) -> str:
    """Is negative where one of the values is; empty where none can be."""
    signed = dict.fromkeys(value for value in values if not value.isdecimal())
    return f"({' | '.join(signed)})" if signed else ""


_ROWS: dict[str, Callable[..., None]] = {
    "constant": PlanSource.on_constant,
    "size": PlanSource.on_size,
    "stride": PlanSource.on_stride,
    "aligned": PlanSource.on_aligned,
    "integer": PlanSource.on_integer,
    "argument": PlanSource.on_argument,
    "weight": PlanSource.on_weight,
    "check": PlanSource.on_check,
    "arena": PlanSource.on_arena,
    "buffer": PlanSource.on_buffer,
    "output": PlanSource.on_output,
    "view": PlanSource.on_view,
    "launch": PlanSource.on_launch,
    "library": PlanSource.on_library,
    "return": PlanSource.on_return,
}
